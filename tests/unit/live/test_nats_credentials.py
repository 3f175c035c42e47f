"""NATS servers that ask who we are: passwords, tokens, keys, credentials and TLS, against servers that really run."""

import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import closing

import nkeys
import pytest
from certificates import make_certificates
from nats_credentials import Identity, an_operator
from nats_server import PATIENCE, NatsServer

from eventide.engines.spark_nats import SequenceReader
from eventide.errors import InputError
from eventide.live.sinks.jetstream import JetStreamSink
from eventide.live.sources.jetstream import JetStream

CANARY = "canary-7c1"
KEY = Identity(nkeys.PREFIX_BYTE_USER, "eventide")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("secured"))


@pytest.fixture(scope="module")
def secured(folder):
    """A server with TLS that knows a password and a key."""
    users = f'{{ user: eventide, password: "{CANARY}" }}, {{ nkey: {KEY.public} }}'
    tls = f'tls {{ cert_file: "{folder}/server.pem", key_file: "{folder}/server.key" }}'
    trusted = ssl.create_default_context(cafile=folder / "ca.pem")
    login = {"user": "eventide", "password": CANARY, "tls": trusted}
    server = NatsServer(folder, settings=f"authorization {{ users: [{users}] }}\n{tls}", **login).start()
    server.make_stream("EVENTS", "events.>")
    server.make_stream("OUT", "out.>")
    yield server
    server.kill()


def clients(folder, text):
    """A file of client settings for NATS, with a name of its own."""
    path = folder / f"clients-{abs(hash(text))}.toml"
    path.write_text(f"[nats]\n{text}\n")
    path.chmod(0o600)
    return path


def private(folder, name, text):
    (folder / name).write_text(text)
    (folder / name).chmod(0o600)
    return folder / name


PASSWORD = f'user = "eventide"\npassword = "{CANARY}"\nca = "ca.pem"'


@pytest.mark.parametrize("way", ["password", "nkey"])
def test_source_and_sink_are_let_in_over_tls(secured, folder, way):
    private(folder, "user.nk", KEY.seed.decode() + "\n")
    path = clients(folder, PASSWORD if way == "password" else 'nkey = { file = "user.nk" }\nca = "ca.pem"')
    with closing(JetStream(f"{secured.address}/EVENTS", clients=path, patience=PATIENCE)) as source:
        source.open(None, None)
    with closing(JetStreamSink(f"{secured.address}/OUT?subject=out.{way}", clients=path, patience=PATIENCE)) as sink:
        sink.open()
        assert sink.last_step() == -1
        sink.send(0, b'{"step": 0}')
    reader = SequenceReader(f"{secured.address}/EVENTS", [], 10, 1, clients=str(path), patience=PATIENCE)
    assert reader.initialOffset()["sequence"] == 0


@pytest.mark.parametrize(
    "text",
    [
        'user = "eventide"\npassword = "wrong"\nca = "ca.pem"',
        f'user = "eventide"\npassword = "{CANARY}"',  # whose authority the system does not trust
    ],
)
def test_who_is_not_let_in_is_told_so(secured, folder, text):
    with pytest.raises(InputError, match="or it does not let us in") as problem:
        JetStream(f"{secured.address}/EVENTS", clients=clients(folder, text), patience=1)
    assert CANARY not in str(problem.value)


class PlainServer(threading.Thread):
    """Says that it is NATS and takes no TLS, as somebody would who stands between; keeps what it is told."""

    def __init__(self):
        super().__init__(daemon=True)
        self.heard = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def run(self):
        info = {"server_id": "x", "version": "2.11.0", "max_payload": 1 << 20, "auth_required": True}
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(b"INFO " + json.dumps(info).encode() + b"\r\n")
                connection.settimeout(PATIENCE)
                while said := connection.recv(4096):
                    self.heard += said
                    if b"CONNECT" in self.heard:
                        connection.sendall(b"PONG\r\n")


@pytest.mark.parametrize("tls", ['ca = "ca.pem"', "tls = true", ""])
def test_where_tls_is_asked_for_nothing_is_said_without_it(folder, tls):
    """Without the settings of TLS the same server hears the password: so the test can fail."""
    server = PlainServer()
    server.start()
    path = clients(folder, f'user = "eventide"\npassword = "{CANARY}"\n{tls}')
    address = f"nats://127.0.0.1:{server.port}/EVENTS"
    if tls:
        with pytest.raises(InputError, match="or it does not let us in"):
            JetStream(address, clients=path, patience=1)
        assert server.heard == b""
    else:
        JetStream(address, clients=path, patience=PATIENCE).close()
        assert CANARY.encode() in server.heard
    server.listener.close()


def test_a_token(tmp_path):
    server = NatsServer(tmp_path, settings=f'authorization {{ token: "{CANARY}" }}', token=CANARY).start()
    try:
        server.make_stream("EVENTS", "events.>")
        private(tmp_path, "token.txt", CANARY + "\n")
        path = clients(tmp_path, 'token = { file = "token.txt" }')
        with closing(JetStream(f"{server.address}/EVENTS", clients=path, patience=PATIENCE)) as source:
            source.open(None, None)
        with pytest.raises(InputError, match="does not let us in"):
            JetStream(f"{server.address}/EVENTS", patience=1)
    finally:
        server.kill()


def test_credentials_of_an_operators_user(tmp_path):
    settings, credentials = an_operator()
    private(tmp_path, "eventide.creds", credentials)
    login = {"user_credentials": str(tmp_path / "eventide.creds")}
    server = NatsServer(tmp_path, settings=settings, **login).start()
    try:
        server.make_stream("EVENTS", "events.>")
        path = clients(tmp_path, 'credentials = { file = "eventide.creds" }')
        with closing(JetStream(f"{server.address}/EVENTS", clients=path, patience=PATIENCE)) as source:
            source.open(None, None)
        with pytest.raises(InputError, match="does not let us in"):
            JetStream(f"{server.address}/EVENTS", patience=1)
    finally:
        server.kill()


def test_without_nkeys_a_sentence_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "nkeys", None)
    monkeypatch.setattr("eventide.live.sources.nats_streams.find_spec", lambda name: None if name == "nkeys" else name)
    with pytest.raises(InputError, match=r"pip install 'nats-py\[nkeys\]'"):
        JetStream("nats://127.0.0.1:9/S", clients=clients(folder, 'nkey = "seed"'))


EVENT = {"timestamp": "2026-01-01T00:00:01Z", "user": 1, "bin": "a"}


def published(folder, store, server, *options, **environment):
    """What `eventide publish` says about one hour of a stream, which it ends by itself; standard output and error."""
    command = [sys.executable, "-m", "eventide", "publish", f"{server.address}/EVENTS", "--bins", "bins.txt"]
    command += ["--epsilon", "1", "--window", "2", "--step", "1h", "--mechanism", "uniform", "--log", "json", "--json"]
    command += ["--start", "2026-01-01T00:00:00Z", "--until", "2026-01-01T01:00:00Z", "--store", store, *options]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["option", "variable"])
def test_a_whole_run_shows_no_secret_anywhere(secured, folder, tmp_path, way):
    secured.send("events.a", [EVENT])
    (tmp_path / "bins.txt").write_text("a\nb\n")
    path = clients(folder, PASSWORD)
    out = f"{secured.address}/OUT?subject=out.run.{way}"
    named = {"EVENTIDE_CLIENTS": str(path)} if way == "variable" else {}
    done = published(tmp_path, "city.db", secured, "--out", out, *([] if named else ["--clients", path]), **named)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] == 1
    assert CANARY not in done.stdout + done.stderr
    kept = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(kept) >= 3  # the store, its lock and the bins
    assert not [file for file in kept if CANARY.encode() in file.read_bytes()]
    ledger = [sys.executable, "-m", "eventide", "ledger", "city.db", "--json"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(ledger, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert CANARY not in told.stdout + told.stderr


@pytest.mark.slow
def test_a_password_in_an_address_works_and_is_warned_of(tmp_path):
    server = NatsServer(tmp_path, settings=f'authorization {{ token: "{CANARY}" }}', token=CANARY).start()
    try:
        server.make_stream("EVENTS", "events.>")
        server.send("events.a", [EVENT])
        (tmp_path / "bins.txt").write_text("a\nb\n")
        server.address = server.address.replace("//", f"//{CANARY}@")
        done = published(tmp_path, "city.db", server, "--out", "out.jsonl")
        assert done.returncode == 0, done.stderr
        assert "Warning: the nats:// address holds a password, which everybody on this machine can see" in done.stderr
        assert CANARY not in done.stdout + done.stderr
        written = [file for file in tmp_path.iterdir() if re.match(r"city|out", file.name)]
        assert written
        assert not [file for file in written if CANARY.encode() in file.read_bytes()]
    finally:
        server.kill()
