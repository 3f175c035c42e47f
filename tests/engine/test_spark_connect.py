"""Through Spark Connect: Spark calls another process with each batch, and counts are those of one machine."""

import pytest
from spark_cluster import ConnectServer, Driver
from spark_events import check, new_life, releases_of_one_machine, write_events

pytestmark = pytest.mark.engine
KILLED = -9
STEPS = 6


@pytest.fixture
def server(tmp_path):
    server = ConnectServer(tmp_path).start()
    try:
        yield server
    finally:
        server.kill()


def test_a_publisher_that_is_killed_goes_on_with_the_same_server(server, tmp_path):
    """The query that it leaves on the server waits for it, and ends when the next one begins."""
    write_events(tmp_path / "events", rows=6_000, steps=STEPS, users=300, files=3, seed=6, delay=8)
    life = new_life(tmp_path, tmp_path / "events", steps=STEPS, arrival="arrival", late="20s", cap="3/7min")
    life |= {"master": server.address}
    assert Driver(life, tmp_path / "log", "after-commit:1").end() == KILLED
    assert Driver(life, tmp_path / "log").end() == 0
    assert check(life, tmp_path / "log", STEPS) == releases_of_one_machine(tmp_path, life)
