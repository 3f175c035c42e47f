"""A file of client settings: who may read it, what may stand in it, where it goes, and that nobody else sees it."""

import http.server
import os
import pickle
import ssl
import threading

import confluent_kafka
import pytest
from certificates import make_certificates

from eventide.engines.spark import _work_folder
from eventide.engines.spark_nats import SequenceReader
from eventide.errors import EventideError, InputError
from eventide.live.addresses import warning_of_secret, without_secrets
from eventide.live.client_settings import read_clients, settings_of
from eventide.live.sinks.kafka import KafkaSink
from eventide.live.sinks.open_sink import open_sink
from eventide.live.sinks.webhook import Webhook
from eventide.live.sources.kafka import Kafka
from eventide.live.sources.kafka import parse_address as parse_kafka
from eventide.live.sources.open_source import open_source
from eventide.live.stores.open_store import open_store

CANARY = "canary-9f3"


@pytest.fixture
def clients(tmp_path):
    def write(text, mode=0o600):
        path = tmp_path / "clients.toml"
        path.write_text(text)
        path.chmod(mode)
        return path

    return write


def refused(path):
    with pytest.raises(InputError) as problem:
        read_clients(path)
    assert CANARY not in str(problem.value)
    return str(problem.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o644])
def test_a_file_that_others_may_read_is_refused(clients, mode):
    path = clients("[nats]\ntoken = 'x'", mode)
    assert f"chmod 600 {path}" in refused(path)


def test_a_group_may_read_what_root_has_made_for_us(clients, monkeypatch):
    """As in a container whose secrets are mounted; by no means everybody."""
    monkeypatch.setattr(os, "fstat", lambda _, real=os.fstat: os.stat_result([*real(_)[:4], 0, *real(_)[5:]]))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert settings_of("nats://a/S", clients("[nats]\ntoken = 'x'", 0o440)) == {"token": "x"}
    assert "chmod 600" in refused(clients("[nats]\ntoken = 'x'", 0o444))


@pytest.mark.parametrize("wrong", ["absent", "folder", "bytes"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, wrong):
    path = tmp_path / wrong
    if wrong == "folder":
        path.mkdir()
    elif wrong == "bytes":
        path.write_bytes(b"\xff")
    assert "cannot be read as a file of client settings" in refused(path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"[kafak]\na = '{CANARY}'", "line 1: there is no kind of client 'kafak'; did you mean 'kafka'?"),
        (f"\n[nats]\npasword = '{CANARY}'", "line 3: there is no setting of nats 'pasword'; did you mean 'password'?"),
        (f"[postgres]\npass = '{CANARY}'", "line 2: there is no setting of postgres 'pass'"),
        (f"[webhook]\ntoken = '{CANARY}'", "line 2: there is no setting of webhook 'token'"),
        (f"['redis://h']\npassword = '{CANARY}'", "there is no kind of client 'redis://h'"),
        (f"['nats://me@h']\ntoken = '{CANARY}'", "a scheme, a host and perhaps a port"),
        (f"['nats://h/STREAM']\ntoken = '{CANARY}'", "a scheme, a host and perhaps a port"),
        (f"nats = '{CANARY}'", "line 1: nats is a table; write [nats]"),
        (f"[nats]\nuser = '{CANARY}'", "user and password belong together"),
        (f"[nats]\ntoken = '{CANARY}'\nnkey = 'y'", "nkey and token are different ways to log in"),
        (f"[nats]\ntls = '{CANARY}'", "line 2: tls is true or false"),
        ("[nats]\nca = 'ca.pem'\nkey = 'key.pem'", "certificate and key belong together"),
        (f"[nats]\ntoken = ['{CANARY}']", "line 2: token is no value"),
        (f"[nats]\ntoken = {{ vault = '{CANARY}' }}", "line 2: token is no value"),
        (f"[webhook]\nheaders = '{CANARY}'", "line 2: headers is a table of values"),
        (f"[webhook]\nheaders = {{ Host = '{CANARY}' }}", "line 2: 'Host' is no header to add"),
        (f"[nats]\ntoken = {CANARY}", "clients.toml is not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_without_showing_a_value(clients, text, sentence):
    assert sentence in refused(clients(text))


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        *(("kafka", key) for key in ("bootstrap.servers", "group.id", "group.instance.id", "enable.auto.commit")),
        *(("kafka", key) for key in ("auto.offset.reset", "enable.auto.offset.store", "isolation.level", "acks")),
        *(("kafka", key) for key in ("enable.idempotence", "transactional.id", "message.max.bytes", "debug")),
        *(("kafka", key) for key in ("session.timeout.ms", "test.mock.num.brokers", "error_cb", "oauth_cb")),
        *(("postgres", key) for key in ("host", "hostaddr", "dbname", "options", "service", "client_encoding")),
    ],
)
def test_what_our_promises_depend_on_is_not_for_a_file(clients, kind, key):
    sentence = f"line 2: {key} is said by the address or set by eventide, whose promises depend on it; leave it out"
    assert sentence in refused(clients(f"[{kind}]\n'{key}' = '{CANARY}'"))
    if "_" not in key:
        assert sentence in refused(clients(f"[{kind}]\n{key} = '{CANARY}'"))


def test_values_are_literal_or_from_the_environment_or_from_a_private_file(clients, tmp_path, monkeypatch):
    monkeypatch.setenv("KAFKA_PASSWORD", CANARY)
    (tmp_path / "user.txt").write_text("ann\n")
    (tmp_path / "user.txt").chmod(0o600)
    path = clients(
        """
        [kafka]
        security.protocol = "SASL_SSL"
        "sasl.username" = { file = "user.txt" }
        sasl.password = { env = "KAFKA_PASSWORD" }
        ssl.ca.location = "ca.pem"
        socket.timeout.ms = 5000
        enable.ssl.certificate.verification = true
        """
    )
    found = settings_of("kafka://broker/topic", path)
    assert found == {
        "security.protocol": "SASL_SSL",
        "sasl.username": "ann",
        "sasl.password": CANARY,
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "socket.timeout.ms": "5000",
        "enable.ssl.certificate.verification": True,
    }
    assert CANARY not in repr(found)
    assert "sasl.password" in repr(found)
    monkeypatch.delenv("KAFKA_PASSWORD")
    assert settings_of("nats://h/S", path) == {}  # which needs nothing of Kafka
    with pytest.raises(InputError, match=r"sasl\.password is to be in a variable of the environment that is not set"):
        settings_of("kafka://broker/topic", path)
    monkeypatch.setenv("KAFKA_PASSWORD", CANARY)
    (tmp_path / "user.txt").chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        settings_of("kafka://broker/topic", path)


def test_paths_are_relative_to_the_file_and_words_stay_words(clients, tmp_path):
    path = clients("[postgres]\nsslrootcert = 'system'\npassfile = 'pass'\nsslkey = '/keys/k'\nsslmode = 'require'")
    expected = {"sslrootcert": "system", "passfile": str(tmp_path / "pass"), "sslkey": "/keys/k", "sslmode": "require"}
    assert settings_of("postgres://h/db", path) == settings_of("postgresql://u@h:5432/db#s", path) == expected


def test_the_table_of_an_address_stands_for_that_of_its_kind(clients):
    path = clients(
        """
        [nats]
        token = "any"
        ["nats://One.example.org"]
        token = "one"
        ["postgresql://db1,db2:5433"]
        password = "two"
        ["https://hooks.example.org"]
        headers = { Authorization = "three" }
        """
    )
    assert settings_of("nats://one.example.org:4222/S", path) == {"token": "one"}
    assert settings_of("nats://somebody@one.example.org/S?subject=a", path) == {"token": "one"}
    assert settings_of("nats://one.example.org:4223/S", path) == {"token": "any"}
    assert settings_of("nats://[::1]:4222/S", path) == {"token": "any"}
    assert settings_of("postgres://u:p@db2:5433,db1/city#s", path) == {"password": "two"}
    assert settings_of("postgresql://db1/city", path) == settings_of("postgresql:///city", path) == {}
    assert settings_of("https://hooks.example.org:443/in?a=b", path) == {"headers": {"Authorization": "three"}}
    assert settings_of("http://hooks.example.org/in", path) == settings_of("https://other.example.org/in", path) == {}
    assert settings_of("counts.csv", path) == {}


def test_the_environment_names_the_file_where_nobody_else_does(clients, tmp_path, monkeypatch):
    monkeypatch.setenv("EVENTIDE_CLIENTS", str(clients("[nats]\ntoken = 'a'")))
    other = tmp_path / "other.toml"
    other.write_text("[nats]\ntoken = 'b'")
    other.chmod(0o600)
    assert settings_of("nats://h/S") == {"token": "a"}
    assert settings_of("nats://h/S", other) == {"token": "b"}
    monkeypatch.setenv("EVENTIDE_CLIENTS", "")
    assert settings_of("nats://h/S") == {}


@pytest.mark.parametrize("kind", [Kafka, KafkaSink])
def test_kafka_gets_the_settings_and_keeps_its_own(clients, monkeypatch, kind):
    """What is asked of the client, since no broker with SASL can be had in tests."""
    given = []

    class Client:
        def __init__(self, settings):
            given.append(settings)

        def list_topics(self, *_):
            raise confluent_kafka.KafkaException("none here")

        def close(self):
            pass

    monkeypatch.setattr(confluent_kafka, "Consumer", Client)
    monkeypatch.setattr(confluent_kafka, "Producer", Client)
    path = clients(f'[kafka]\nsecurity.protocol = "SASL_SSL"\nsasl.mechanism = "PLAIN"\nsasl.password = "{CANARY}"')
    with pytest.raises(InputError, match="none lets us in") as problem:
        kind("kafka://broker:9092/topic", clients=path).open()
    assert CANARY not in str(problem.value)
    expected = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.password": CANARY}
    assert given
    for settings in given:
        assert expected.items() <= settings.items()
        assert settings["bootstrap.servers"] == "broker:9092"
    if kind is Kafka:
        assert given[0].items() >= {"enable.auto.commit": False, "auto.offset.reset": "error"}.items()
    else:
        assert given[0].items() >= {"acks": "all", "enable.idempotence": True}.items()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f'security.protocol = "{CANARY}"', "because of: security.protocol;"),
        (f'no.such.property = "{CANARY}"', "because of: no.such.property;"),
        (f'ssl.ca.pem = "{CANARY}"\nsecurity.protocol = "SSL"', "because of: ssl.ca.pem, security.protocol;"),
    ],
)
@pytest.mark.parametrize("kind", [Kafka, KafkaSink])
def test_what_the_client_of_kafka_refuses_is_named_without_its_value(clients, capfd, kind, text, named):
    with pytest.raises(InputError) as problem:
        kind("kafka://127.0.0.1:9/topic", clients=clients(f"[kafka]\n{text}")).open()
    assert named in str(problem.value)
    assert CANARY not in str(problem.value) + "".join(capfd.readouterr())


def test_kafka_takes_no_password_in_its_address():
    with pytest.raises(InputError, match="file of client settings") as problem:
        parse_kafka(f"kafka://user:{CANARY}@broker/topic")
    assert CANARY not in str(problem.value)


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append(dict(self.headers))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
    server.heard = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_webhook_is_sent_its_headers_beside_ours(clients, receiver, monkeypatch):
    monkeypatch.setenv("TOKEN", f"Bearer {CANARY}")
    path = clients('[webhook]\nheaders = { Authorization = { env = "TOKEN" }, "X-Team" = "city" }')
    sink = open_sink(f"http://127.0.0.1:{receiver.server_port}/in", ["a"], clients=path)
    sink.send(3, b"{}")
    (heard,) = receiver.heard
    expected = {"Authorization": f"Bearer {CANARY}", "X-Team": "city", "Idempotency-Key": "3"}
    assert expected.items() <= heard.items()
    assert CANARY not in sink.name + repr(vars(sink))


def test_headers_go_over_tls_or_stay_on_this_machine(clients):
    path = clients(f'[webhook]\nheaders = {{ Authorization = "{CANARY}" }}')
    with pytest.raises(InputError, match=r"the headers for example.org would go unprotected.*https") as problem:
        Webhook("http://example.org/in", clients=path)
    assert CANARY not in str(problem.value)
    Webhook("https://example.org/in", clients=path)
    Webhook("http://[::1]:80/in", clients=path)


@pytest.mark.parametrize("value", ["two\\nlines", "caf\u00e9"])
def test_a_header_that_cannot_be_sent_is_refused_without_showing_it(clients, value):
    path = clients(f'[webhook]\nheaders = {{ Authorization = "{CANARY}{value}" }}')
    with pytest.raises(InputError, match="the header Authorization must be one line") as problem:
        Webhook("https://example.org/in", clients=path)
    assert CANARY not in str(problem.value)


def test_a_webhook_behind_an_authority_of_our_own(clients, receiver, tmp_path):
    make_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    receiver.socket = context.wrap_socket(receiver.socket, server_side=True, do_handshake_on_connect=False)
    url = f"https://127.0.0.1:{receiver.server_port}/in"
    with pytest.raises(OSError, match="certificate"):
        Webhook(url).send(0, b"{}")
    Webhook(url, clients=clients("[webhook]\nca = 'ca.pem'")).send(0, b"{}")
    assert len(receiver.heard) == 1
    with pytest.raises(InputError, match="files of TLS"):
        Webhook(url, clients=clients("[webhook]\ncertificate = 'server.pem'\nkey = 'ca.key'"))
    with pytest.raises(InputError, match="files of TLS"):
        Webhook(url, clients=clients("[webhook]\nca = 'absent.pem'"))


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("counts.csv", "counts.csv"),
        ("postgresql://ann@db/city#s", "postgresql://ann@db/city#s"),
        ("postgresql:///city?host=/run#s", "postgresql:///city?host=/run#s"),
        (f"postgresql://ann:{CANARY}@db/city#s", "postgresql://ann@db/city#s"),
        (f"postgresql://ann:{CANARY}%40x@db/city?a=b", "postgresql://ann@db/city?a=b"),
        (f"postgresql://db/city?password={CANARY}#s", "postgresql://db/city#s"),
        (f"postgresql://db/city?a=b&sslpassword={CANARY}", "postgresql://db/city?a=b"),
        (f"nats://{CANARY}@db/S?subject=x", "nats://db/S?subject=x"),
        (f"redis://:{CANARY}@db", "redis://db"),
    ],
)
def test_an_address_without_its_secrets(address, shown):
    assert without_secrets(address) == shown
    warning = warning_of_secret(address)
    assert (warning is None) == (address == shown)
    assert CANARY not in str(warning)


@pytest.mark.parametrize("opening", [open_source, open_store, lambda place: open_sink(place, ["a"])])
@pytest.mark.parametrize("address", [f"redis://:{CANARY}@db/x", f"kafka://u:{CANARY}@h/t/x", f"nats://{CANARY}@h"])
def test_an_address_that_is_refused_is_not_shown(opening, address):
    with pytest.raises(EventideError) as problem:
        opening(address)
    assert CANARY not in str(problem.value)


def test_the_work_folder_of_spark_is_not_named_after_a_password():
    assert _work_folder(f"postgresql://ann:{CANARY}@db/city#s", None) == "postgresql://ann@db/city#s.spark"
    assert _work_folder("visits.db", None) == "visits.db.spark"


def test_what_spark_sends_to_executors_holds_no_secret(clients):
    """They read the file by themselves: only its path travels."""
    path = clients(f"[nats]\ntoken = '{CANARY}'")
    reader = SequenceReader("nats://127.0.0.1:1/S", ["a"], 10, 1, clients=str(path))
    assert CANARY.encode() not in pickle.dumps(reader)
    assert str(path).encode() in pickle.dumps(reader)
