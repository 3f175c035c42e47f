"""Through Spark Connect: Spark calls another process with each batch, and counts are those of one machine."""

import shlex
import subprocess
import sys

import pytest
from spark_cluster import PATIENCE, ConnectServer, Driver, environment
from spark_events import check, new_life, releases_of_one_machine, write_events

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
