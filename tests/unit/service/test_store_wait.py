"""A store that cannot be used for a while: its stream waits and heals by itself, others go on, nothing is redrawn."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading

import pytest
from nats_server import free_port
from postgres_server import PostgresServer
from running_service import PATIENCE, configuration, event, running, stream, wait_until

from eventide.live.stores.database import Unavailable
from eventide.live.stores.open_store import open_store
from eventide.privacy.noise import Seeded
from eventide.service.store_wait import Pauses, StoreWait

SHORT = Pauses(0.01, 0.05)


@pytest.fixture
def towns(tmp_path):
    """Two streams, the first of which has a store that tests fill."""
    with running(configuration(tmp_path, [stream(tmp_path, "full"), stream(tmp_path, "city")]), pauses=SHORT) as up:
        yield up


def limit(up, pages, name="full"):
    """Let the store of a stream have so many pages and no more: for SQLite its disk is full then."""
    up.service.streams[name].publisher.store._database._connection.execute(f"PRAGMA max_page_count = {pages}")


def fill(up, name="full"):
    limit(up, 1, name)  # which means: as many as there are


def make_room(up, name="full"):
    limit(up, 1_000_000, name)


def health(up, name):
    return up.client("read").get(f"/v1/streams/{name}").json()["health"]


def ready(up, name=""):
    return up.client().get(f"/readyz{name and '/' + name}").status_code


def post_until_refused(up, name="full"):
    """Send batches until the store has no room for one; what was accepted."""
    accepted = []
    for number in range(10_000):
        users = [f"{number}-{each}" for each in range(200)]
        answer = up.post([event("north", user) for user in users], name, key=f"batch-{number}")
        if answer.status_code != 200:
            assert (answer.status_code, answer.json()["code"]) == (503, "store-unavailable")
            assert answer.headers["retry-after"] == "5"
            return accepted, (users, f"batch-{number}")
        accepted += users
    raise AssertionError("the store was never full")


def test_a_full_disk_halts_one_stream_which_heals_by_itself(towns, caplog):
    fill(towns)
    accepted, (refused, key) = post_until_refused(towns)
    assert (health(towns, "full"), ready(towns, "full")) == ("waiting", 503)
    assert (health(towns, "city"), ready(towns, "city"), ready(towns)) == ("running", 200, 200)
    assert towns.client().get("/healthz").status_code == 200
    assert 'eventide_up{stream="full"} 0.0' in towns.client("read").get("/metrics").text
    assert towns.post([event("south", "bert")], "city").json()["accepted"] == 1
    towns.pass_steps(name="city")
    make_room(towns)
    wait_until(lambda: towns.service.streams["full"].notices.last == 0)
    assert (health(towns, "full"), ready(towns, "full")) == ("running", 200)
    again = towns.post([event("north", user) for user in refused], "full", key=key)
    assert again.json()["accepted"] == 0  # it was kept before, or is late
    (released,) = towns.client("read").get("/v1/streams/full/releases").json()["releases"]
    assert released["values"][0] in (len(accepted), len(accepted) + len(refused))
    said = [record.getMessage() for record in caplog.records]
    assert said[-1] == "stream full goes on: its store can be used again"
    assert "stream full waits for its store" in said[0]
    assert "no room left on its disk" in said[0]
    assert not any("start again" in sentence for sentence in said)


def test_what_was_drawn_is_written_as_it_was_drawn(tmp_path):
    """The only draw of a step is what is published, however often its commit failed: a retry that drew again would
    prefer the values for which there happened to be room."""
    drawn = []

    class Listening(Seeded):
        def laplace(self, *arguments):
            drawn.append(answer := super().laplace(*arguments))
            return answer

    noisy = stream(tmp_path, mechanism="uniform", parameters={"noise": Listening(7)}, filter="none")
    with running(configuration(tmp_path, [noisy]), pauses=SHORT) as up:
        city, commits, attempts = up.service.streams["city"], [], iter(range(5))
        original = city.publisher.store._write_steps

        def failing(head, given):
            commits.extend(rows := original(head, given))
            if next(attempts, None) is not None:
                raise Unavailable("the disk is full", "make room")
            return rows

        city.publisher.store._write_steps = failing
        up.pass_steps()
        stored = city.publisher.store.release(0)
    assert len(commits) == 6
    assert {row.release for row in commits} == {stored}
    assert len(drawn) == 1


def test_the_log_of_a_store_is_emptied_before_it_is_tried_again(tmp_path):
    """It may be what fills the disk, and is otherwise emptied after a commit only."""
    with running(configuration(tmp_path), pauses=SHORT) as up:
        store = up.service.streams["city"].publisher.store
        store._database._log_cut_at = float("inf")  # not by commits
        up.pass_steps(3)
        original, sizes = store._write_steps, []

        def failing(head, commits):
            sizes.append((tmp_path / "city.store-wal").stat().st_size)
            rows = original(head, commits)
            if len(sizes) == 1:
                raise Unavailable("the disk is full", "make room")
            return rows

        store._write_steps = failing
        up.pass_steps()
    assert sizes[0] > 0
    assert sizes[1:] == [0]


def test_a_stream_that_waits_is_stopped_without_waiting_for_its_store(tmp_path, caplog):
    full = configuration(tmp_path, [stream(tmp_path, "full")])
    with running(full, pauses=Pauses(first=PATIENCE)) as up:
        fill(up)
        post_until_refused(up)
        up.service.stop()
        assert not up.service.failed
    assert "stream full ends without its store" in caplog.records[-1].getMessage()


def test_a_stream_that_has_stopped_for_good_makes_liveness_fail_and_the_others_go_on(towns):
    towns.service.streams["full"].publisher.store.commit = lambda commit: 1 / 0
    towns.clock.set(towns.service.streams["full"].feed.timeline.end(0))
    wait_until(lambda: towns.service.streams["full"].failed)
    answer = towns.client().get("/healthz")
    assert (answer.status_code, answer.json()["code"]) == (503, "stream-stopped")
    assert (ready(towns, "full"), ready(towns, "city"), ready(towns)) == (503, 200, 200)
    wait_until(lambda: towns.service.streams["city"].notices.last == 0)
    assert ready(towns, "atlantis") == 404


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "code"), [("StoreError('gone')", 5), ("ValueError('3 events')", 1)])
def test_a_stream_that_has_stopped_for_good_ends_the_process_where_that_is_wanted(tmp_path, fault, code):
    (tmp_path / "eventide.toml").write_text(
        """
[server]
port = 0
failed_stream = "exit"
[[streams]]
name = "city"
epsilon = 1
window = 5
step = "1s"
start = 2026-01-01T00:00:00Z
bins = 3
mechanism = "uniform"
store = "city.store"
""".replace("port = 0", f"port = {free_port()}")
    )
    program = f"""
import sys
from eventide.errors import StoreError
from eventide.live.stores.database_store import DatabaseStore

def commit(self, *commits):
    raise {fault}

DatabaseStore.commit = commit
from eventide.cli import main
main(["serve", sys.argv[1]])
"""
    command = [sys.executable, "-c", program, str(tmp_path / "eventide.toml")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == code, ended.stderr
    assert "Error: " in ended.stderr
    assert "3 events" not in ended.stderr


@pytest.fixture
def small_disk(tmp_path):
    """A disk of eight megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount: run it as root")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.slow
def test_a_disk_that_is_really_full_for_a_while_costs_nothing(tmp_path, small_disk):
    full = stream(tmp_path, "full", store=small_disk / "full.store")
    with running(configuration(tmp_path, [full, stream(tmp_path, "city")]), pauses=SHORT) as up:
        up.post([event("north", "before")], "full")
        up.pass_steps(2, "full")
        released = up.client("read").get("/v1/streams/full/releases").content
        with open(small_disk / "ballast", "wb", buffering=0) as ballast, contextlib.suppress(OSError):
            while ballast.write(bytes(4096)):
                pass
        wait_until(lambda: up.service.streams["city"].notices.last == 1)
        up.clock.set(up.service.streams["full"].feed.timeline.end(300))  # the log grows with every step
        wait_until(lambda: ready(up, "full") == 503)
        assert health(up, "full") == "waiting"
        wait_until(lambda: up.service.streams["city"].notices.last == 300)
        assert ready(up) == 200
        os.remove(small_disk / "ballast")
        wait_until(lambda: up.service.streams["full"].notices.last == 300)
        assert ready(up, "full") == 200
        assert up.client("read").get("/v1/streams/full/releases?last=1").content == released
    store = open_store(small_disk / "full.store", read_only=True)
    store.verify()
    assert store.next_step() == 301
    store.close()


@pytest.mark.database
def test_postgresql_that_is_stopped_and_started_costs_nothing(tmp_path, caplog):
    server = PostgresServer().start()
    try:
        away = stream(tmp_path, "away", store=f"{server.address}#away")
        with running(configuration(tmp_path, [away, stream(tmp_path, "city")]), pauses=SHORT) as up:
            database = up.service.streams["away"].publisher.store._database
            database._patience = 0.5
            up.post([event("north", "before")], "away")
            up.pass_steps(2, "away")
            up.client("read").get("/metrics")
            os.kill(server.process.pid, signal.SIGINT)  # a fast shutdown
            server.process.wait()
            wait_until(lambda: ready(up, "away") == 503)  # though no step is due, and nobody sends anything
            assert health(up, "away") == "waiting"
            assert "stream away waits for its store: its server does not answer" in caplog.messages
            check_readers_are_told_at_once(up)
            up.clock.set(up.service.streams["away"].feed.timeline.end(5))
            wait_until(lambda: up.post([event("north", "during", 6)], "away", key="a").status_code == 503)
            wait_until(lambda: up.service.streams["city"].notices.last == 5)
            assert (ready(up, "away"), ready(up)) == (503, 200)
            server.start()
            wait_until(lambda: up.service.streams["away"].notices.last == 5)
            assert up.post([event("north", "during", 6)], "away", key="a").status_code == 200
            up.pass_steps(name="away")
            newest = "/v1/streams/away/releases?latest=1"
            wait_until(lambda: up.client("read").get(newest).status_code == 200)
            last = up.client("read").get(newest).json()["releases"][0]
            assert (last["step"], last["values"][0]) == (6, 1)
            assert "stream away goes on: its store can be used again" in caplog.messages
            assert not any("unexpected" in message for message in caplog.messages)
    finally:
        server.kill()


def check_readers_are_told_at_once(up):
    """Whoever reads waits for no server; figures come from memory, of all streams."""
    answer = up.client("read").get("/v1/streams/away/releases", timeout=30)
    assert (answer.status_code, answer.json()["code"]) == (503, "store-unavailable")
    assert answer.headers["retry-after"] == "5"
    figures = up.client("operate").get("/metrics", timeout=30)
    assert 'eventide_up{stream="away"} 0.0' in figures.text
    assert 'eventide_up{stream="city"} 1.0' in figures.text
    assert 'eventide_window_spent_ratio{stream="away"} 0.4' in figures.text


@pytest.mark.database
def test_a_stream_ends_though_its_server_is_away(tmp_path):
    """It says so, and waits neither for the step in hand nor for what its sinks lack."""
    server = PostgresServer().start()
    try:
        away = stream(tmp_path, "away", store=f"{server.address}#away", out=(str(tmp_path / "out.jsonl"),))
        with running(configuration(tmp_path, [away]), pauses=SHORT) as up:
            up.pass_steps(2, "away")
            up.service.streams["away"].publisher.store._database._patience = 10 * PATIENCE  # too long for any test
            server.kill()
            up.clock.set(up.service.streams["away"].feed.timeline.end(5))
            wait_until(lambda: health(up, "away") == "waiting")
        assert not up.service.streams["away"].failed
    finally:
        server.kill()


def test_the_pause_grows(caplog):
    class Feed:
        def halt(self):
            pass

    caplog.set_level(logging.WARNING)
    wait = StoreWait("city", Feed(), threading.Event(), Pauses(0.01, 0.04))
    for _ in range(4):
        wait.wait(Unavailable("full", "make room"))
    assert [record.fields["again_in"] for record in caplog.records] == [0.01, 0.02, 0.04, 0.04]


def test_a_stream_that_is_ahead_of_the_clock_is_not_ready(tmp_path):
    """Its store came to later steps with a wrong clock; when they are over it is well again."""
    with running(configuration(tmp_path)) as up:
        up.pass_steps(5)
        start = up.service.streams["city"].feed.timeline.start
    (tmp_path / "tokens").unlink()
    with running(configuration(tmp_path)) as up:  # whose clock is at the start again
        assert up.service.streams["city"].feed.clock.now() == start
        answer = up.client().get("/readyz/city")
        assert (health(up, "city"), answer.status_code) == ("ahead", 503)
        assert "ahead of this machine's clock" in answer.json()["title"]
        assert 'eventide_up{stream="city"} 0.0' in up.client("read").get("/metrics").text
        up.clock.set(up.service.streams["city"].feed.timeline.end(4))
        assert (health(up, "city"), ready(up, "city")) == ("running", 200)
