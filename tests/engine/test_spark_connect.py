"""Through Spark Connect: Spark calls another process with each batch, and counts are those of one machine."""

import shlex
import subprocess
import sys

import pytest
from spark_cluster import PATIENCE, ConnectServer, Driver, environment
from spark_events import check, new_life, releases_of_one_machine, write_events

from eventide.engines.spark_feed import STARTS, started
from eventide.errors import StateError

pytestmark = pytest.mark.engine
KILLED = -9
STEPS = 6


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = ConnectServer(tmp_path_factory.mktemp("server")).start()
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


def test_the_command_line_publishes_a_folder_through_a_server(server, tmp_path):
    (tmp_path / "visits").mkdir()
    for name, user in (("a", "anna"), ("b", "ben")):
        (tmp_path / "visits" / f"{name}.csv").write_text(f"timestamp,user,bin\n2024-03-30T00:00:05Z,{user},north\n")
    (tmp_path / "bins.txt").write_text("north\nsouth\n")
    options = shlex.split(
        "--epsilon 1000000 --window 2 --step 1min --start 2024-03-30 --until 2024-03-30T00:02 --user user "
        "--bins bins.txt --mechanism uniform --store store.db --out out.csv --engine spark"
    )
    command = [sys.executable, "-m", "eventide", "publish", "visits", *options]
    there = environment(SPARK_REMOTE=server.address)
    done = subprocess.run(command, cwd=tmp_path, env=there, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "out.csv").read_text().splitlines()
    assert [row.split(",")[2:] for row in rows] == [["north", "south"], ["2", "0"], ["0", "0"]]


class Writer:
    """Fails to start a query as often as it is told."""

    def __init__(self, failures, sentence):
        self.failures, self.sentence = failures, sentence

    def start(self):
        from pyspark.errors import PySparkException

        if self.failures:
            self.failures -= 1
            raise PySparkException(self.sentence)
        return "a query"


def test_a_server_that_is_too_busy_to_start_a_query_is_asked_again():
    assert started(Writer(STARTS - 1, "Python worker failed to connect back.")) == "a query"
    for writer in (Writer(STARTS, "Python worker failed to connect back."), Writer(1, "something else")):
        with pytest.raises(StateError, match="did not start the query"):
            started(writer)
