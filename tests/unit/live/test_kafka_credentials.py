"""TLS and SASL of Kafka, with a file of client settings: the mock cluster behind a door that speaks both."""

import json
import time
from contextlib import closing

import pytest
from certificates import make_certificates
from confluent_kafka import Producer
from kafka_door import Door
from nats_server import PATIENCE

from eventide.errors import InputError
from eventide.live.sinks.kafka import KafkaSink
from eventide.live.sources.kafka import Kafka

PASSWORD = "a word that nobody sees"


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0})
    (broker,) = cluster.list_topics(timeout=PATIENCE).brokers.values()
    folder = make_certificates(tmp_path_factory.mktemp("certificates"))
    producer = Producer({"bootstrap.servers": f"{broker.host}:{broker.port}"})
    producer.produce("visits", json.dumps({"timestamp": 1767225600, "user": 1, "bin": "a"}))
    assert producer.flush(PATIENCE) == 0
    with closing(Door(f"{broker.host}:{broker.port}", folder, "eventide", PASSWORD)) as door:
        door.certificates = folder
        yield door


def clients(folder, door, **changed):
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "eventide",
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(door.certificates / "ca.pem"),
    } | changed
    path = folder / "clients.toml"
    path.write_text("[kafka]\n" + "".join(f'{name} = "{value}"\n' for name, value in settings.items()))
    path.chmod(0o600)
    return path


@pytest.mark.slow
def test_events_and_releases_go_through_tls_and_sasl(door, tmp_path, opened):
    address, settings = f"kafka://127.0.0.1:{door.port}", clients(tmp_path, door)
    source = opened(Kafka(f"{address}/visits?arrival=read", clients=settings, patience=PATIENCE))
    until, batch = time.monotonic() + PATIENCE, source.poll(0.2)
    while not len(batch.events.time):
        assert time.monotonic() < until, "the event does not come"
        batch = source.poll(0.2)
    sink = KafkaSink(f"{address}/released", clients=settings, patience=PATIENCE)
    sink.open()
    sink.send(0, b'{"step": 0}')
    sink.close()
    assert door.let_in >= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed", [{"sasl.password": "wrong"}, {"ssl.ca.location": "probe"}, {"security.protocol": "PLAINTEXT"}]
)
def test_who_is_not_let_in_is_told_so_and_no_password_is_shown(door, tmp_path, changed, caplog, capfd):
    settings = clients(tmp_path, door, **changed)
    with pytest.raises(InputError, match="none lets us in") as refused:
        Kafka(f"kafka://127.0.0.1:{door.port}/visits?arrival=read", clients=settings, patience=2)
    shown = caplog.text + "".join(capfd.readouterr()) + str(refused.value)
    assert PASSWORD not in shown
    assert "wrong" not in shown
