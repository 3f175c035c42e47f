"""A NATS server for each file of tests that asks for one, sources that are closed in the end, and an open folder."""

import tempfile
from pathlib import Path

import pytest
from nats_server import NatsServer

from eventide.events.reader import EventReader


@pytest.fixture(scope="module")
def nats(tmp_path_factory):
    server = NatsServer(tmp_path_factory.mktemp("nats")).start()
    yield server
    server.kill()


@pytest.fixture
def everybodys_folder():
    """A folder that all users may look into: pytest's own are shut again whenever somebody starts another pytest."""
    with tempfile.TemporaryDirectory(prefix="eventide-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


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
