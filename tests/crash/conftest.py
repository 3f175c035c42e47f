"""The process whose children live and die, started once for each file of tests; and a database for their stores."""

import pytest
from postgres_server import PostgresServer
from publisher_lives import lives_of_a_process


@pytest.fixture(scope="module")
def lives():
    with lives_of_a_process() as live:
        yield live


@pytest.fixture
def postgres():
    server = PostgresServer().start()
    yield server
    server.kill()
