"""A door in front of a Kafka broker that has neither TLS nor SASL: it speaks both, and passes on who is let in.

The broker tells clients its own address; the door puts its own in the place, which is as long.
"""

import contextlib
import socket
import ssl
import struct
import threading

API_VERSIONS, SASL_HANDSHAKE = 18, 17


class Door:
    """Listens with TLS and asks for SASL PLAIN with one user and password."""

    def __init__(self, broker, certificates, user, password):
        host, port = broker.rsplit(":", 1)
        self._broker, self._login = (host, int(port)), f"\0{user}\0{password}".encode()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._places = [host.encode() + struct.pack(">i", each) for each in (int(port), self.port)]
        self.let_in = 0
        self._open, self._threads = [], []
        self._start(self._accept)

    def close(self):
        """End all connections, and wait for those who serve them: none is left for others to find."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(60)

    def _start(self, work, *given):
        self._threads.append(threading.Thread(target=work, args=given, daemon=True))
        self._threads[-1].start()
        return self._threads[-1]

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._start(self._serve, client)

    def _serve(self, plain):
        with (
            contextlib.suppress(OSError, ssl.SSLError, ValueError),
            plain,
            self._context.wrap_socket(plain, server_side=True) as client,
            socket.create_connection(self._broker) as broker,
        ):
            self._open += [client, broker]
            if not self._lets_in(client, broker):
                return
            answers = self._start(self._pass_back, broker, client)
            while frame := _frame(client):
                broker.sendall(frame)
            broker.shutdown(socket.SHUT_RDWR)
            answers.join()

    def _lets_in(self, client, broker):
        while frame := _frame(client):
            kind, version = struct.unpack(">hh", frame[4:8])
            if frame[4:] == self._login:
                self.let_in += 1
                client.sendall(bytes(4))
                return True
            if kind == API_VERSIONS:
                broker.sendall(frame)
                answer = _frame(broker)
                client.sendall(_with_handshake(answer) if version == 0 else answer)
            elif kind == SASL_HANDSHAKE:
                answer = frame[8:12] + struct.pack(">hih", 0, 1, 5) + b"PLAIN"
                client.sendall(struct.pack(">i", len(answer)) + answer)
            else:
                return False
        return False

    def _pass_back(self, broker, client):
        with contextlib.suppress(OSError):
            while frame := _frame(broker):
                client.sendall(frame.replace(*self._places))


def _with_handshake(answer):
    """What the broker understands, and that SASL is asked for as well."""
    size, number, error, known = struct.unpack(">iihi", answer[:14])
    more = struct.pack(">hhh", SASL_HANDSHAKE, 0, 0)
    return struct.pack(">iihi", size + len(more), number, error, known + 1) + answer[14:] + more


def _frame(connection):
    """A message with its length; nothing at the end."""
    head = _exactly(connection, 4)
    return head and head + _exactly(connection, struct.unpack(">i", head)[0])


def _exactly(connection, size):
    data = b""
    while len(data) < size:
        if not (more := connection.recv(size - len(data))):
            return b""
        data += more
    return data
