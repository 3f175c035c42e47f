"""A NATS server for each file of tests that asks for one, sources that are closed in the end, and time for both."""

import pytest
from nats_server import PATIENCE, NatsServer

from eventide.live.event_reader import EventReader


@pytest.fixture
def patient(monkeypatch):
    """Servers are here, so that they are only slow, and never away, unless a test says so."""
    from eventide.live.sinks import kafka as kafka_sinks
    from eventide.live.sources import kafka as kafka_sources
    from eventide.live.sources import nats_address, nats_stream

    monkeypatch.setattr(nats_address, "CONNECT_SECONDS", PATIENCE)
    for module in (nats_stream, kafka_sources, kafka_sinks):
        monkeypatch.setattr(module, "PATIENCE", PATIENCE)


@pytest.fixture(scope="module")
def nats(tmp_path_factory):
    server = NatsServer(tmp_path_factory.mktemp("nats")).start()
    yield server
    server.kill()


@pytest.fixture
def opened():
    """Open sources of events in the bins a and b; they are closed in the end."""
    made = []

    def open_source(source, position=None):
        made.append(source)
        reader = EventReader(["a", "b"])
        reader.key = bytes(16)
        source.open(position, reader)
        return source

    yield open_source
    for source in made:
        source.close()
