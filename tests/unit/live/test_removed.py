"""A store that is removed, moved or replaced while a publisher writes to it: it stops, and nothing more leaves."""

import json
import logging
import shutil

import pytest
from click.testing import CliRunner
from live_stores import a_commit, filled, in_a_child
from running_service import MINUTE, configuration, event, running, stream, wait_until

import eventide as ev
from eventide.cli import main
from eventide.errors import StoreError
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.publisher.delivery import Deliveries
from eventide.live.stores import database_store
from eventide.live.stores.open_store import open_store

COUNTS = [[3, 5], [4, 4], [9, 1], [2, 2]]


def removed(path):
    path.unlink()


def removed_with_its_log(path):
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def moved(path):
    path.rename(path.with_name("elsewhere.db"))


def replaced(path):
    shutil.copy(path, path.with_name("copy.db"))
    path.with_name("copy.db").rename(path)


def robbed_of_its_log(path):
    path.with_name(path.name + "-wal").unlink()


WAYS = [removed, removed_with_its_log, moved, replaced, robbed_of_its_log]
SENTENCE = r"removed, moved or replaced while it was in use.*--after-restore"


def publisher(path):
    mechanism = ev.Uniform(epsilon=1, window=2, bins=["north", "south"], noise=ev.noise.Zero())
    store = open_store(path, for_tests=True)
    return ev.Publisher(MemoryFeed(COUNTS), mechanism, store, [path.with_name("out.jsonl")])


def steps_in(path):
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_leaves_a_store_that_is_gone(tmp_path, way, caplog):
    live = publisher(tmp_path / "store.db")
    with caplog.at_level(logging.INFO, "eventide.live"):
        live.run(until=2)
        wait_until(lambda: live.deliver() or steps_in(tmp_path / "out.jsonl") == [0, 1])  # a slow sink rests
        way(tmp_path / "store.db")
        with pytest.raises(StoreError, match=SENTENCE):
            live.run()
    live.close()
    assert steps_in(tmp_path / "out.jsonl") == [0, 1]
    assert [record.fields["step"] for record in caplog.records] == [0, 1]
    assert (live.published, live.next_step) == (2, 2)


@pytest.mark.parametrize("way", WAYS)
def test_no_event_is_taken_and_no_waiting_release_is_sent(tmp_path, way):
    live = publisher(tmp_path / "store.db")
    live._deliveries, waiting = Deliveries(live.store), live._deliveries  # a sink that rests
    live.run(until=2)
    live._deliveries = waiting
    way(tmp_path / "store.db")
    with pytest.raises(StoreError, match=SENTENCE):
        live.deliver()
    with pytest.raises(StoreError, match=SENTENCE):
        live.store.keep([(2, b"event")])
    live.close()
    assert steps_in(tmp_path / "out.jsonl") == []


def test_a_store_that_is_put_back_goes_on(tmp_path):
    live = publisher(tmp_path / "store.db")
    live.run(until=2)
    moved(tmp_path / "store.db")
    with pytest.raises(StoreError, match=SENTENCE):
        live.run()
    live.close()
    (tmp_path / "elsewhere.db").rename(tmp_path / "store.db")
    with publisher(tmp_path / "store.db") as live:
        live.run()
    assert steps_in(tmp_path / "out.jsonl") == [0, 1, 2, 3]


@pytest.fixture
def second_step_removes_the_store(monkeypatch):
    def removing(store, head, commits):
        if commits[-1].step >= 1:
            store._database._path.unlink()
        return written(store, head, commits)

    written = database_store.DatabaseStore._write_steps
    monkeypatch.setattr(database_store.DatabaseStore, "_write_steps", removing)


@pytest.mark.parametrize(("together", "left"), [(1, [0]), (64, [])])
def test_the_command_ends_with_exit_code_5(tmp_path, monkeypatch, second_step_removes_the_store, together, left):
    monkeypatch.setattr("eventide.live.publisher.publisher.TOGETHER", together)
    counts, store, out = (tmp_path / name for name in ("counts.csv", "store.db", "out.jsonl"))
    counts.write_text("t,a\n0,50\n1,60\n2,70\n")
    options = ["--epsilon", "1", "--window", "3", "--mechanism", "ba", "--store", str(store), "--out", str(out)]
    done = CliRunner().invoke(main, ["publish", str(counts), *options])
    assert done.exit_code == 5
    assert "removed, moved or replaced" in done.output
    assert steps_in(out) == left


def test_readers_of_a_service_never_see_the_step(tmp_path, second_step_removes_the_store):
    with running(configuration(tmp_path, [stream(tmp_path)])) as up:
        city = up.service.streams["city"]
        up.post([event()])
        up.pass_steps(1)
        up.clock.set(city.feed.timeline.end(1) + MINUTE)
        wait_until(lambda: city.failed)
        answer = up.client("read").get("/v1/streams/city/releases").json()
        described = up.client("read").get("/v1/streams/city").json()
    assert [release["step"] for release in answer["releases"]] == [0]
    assert (described["health"], described["next_step"]) == ("failed", 1)


def test_a_reader_in_the_writers_process_does_not_cost_it_its_log(tmp_path, monkeypatch):
    """Whoever closes a file gives up all locks that its process has on it; then the next one deletes the log."""
    monkeypatch.setattr("eventide.live.stores.sqlite_database.CUT_LOG_EVERY", 0)
    path = tmp_path / "city.db"
    writer = filled(path)
    assert (tmp_path / "city.db-wal").stat().st_size == 0
    open_store(path, read_only=True).close()
    in_a_child("open_store(path).close()", path)
    assert (tmp_path / "city.db-wal").exists()
    writer.commit(a_commit(5))
    assert in_a_child("print(open_store(path, read_only=True).next_step())", path) == "6\n"
    writer.close()
