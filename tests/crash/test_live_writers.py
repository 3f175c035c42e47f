"""Two processes and one store: the second is refused, and one that was paused and taken over writes nothing."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing

import pytest

import eventide as ev
from eventide.errors import InputError, StoreError
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.stores.base import Commit, StoreSetting
from eventide.live.stores.open_store import open_store
from eventide.live.stores.verification import verify
from eventide.privacy.ledger import Entry

MOMENTS = [0, *(pytest.param(moment, marks=pytest.mark.slow) for moment in range(1, 5))]
SETTING = StoreSetting("riders", {"name": "ba"}, 1000, 5, 1, ("a", "b"), {"step": "1min"}, "secure")

WRITER = """
import sys
import time
from eventide.errors import StoreError
from eventide.live.stores.open_store import open_store
from eventide.live.stores.base import Commit
from eventide.privacy.ledger import Entry
from test_live_writers import SETTING

store = open_store(sys.argv[1])
step = store.begin(SETTING).next_step
print("begun", flush=True)
try:
    while True:
        store.commit(Commit(step, [Entry(step, "point", "", 200)], b"by the first %d" % step, b"", None, None))
        print(step, flush=True)
        time.sleep(0.005)
        step += 1
except StoreError as problem:
    print("refused:", problem, flush=True)
"""


PUBLISHER = """
import sys
import eventide as ev
from eventide.errors import StoreError
from eventide.live.feeds.count_feed import MemoryFeed
from test_live_writers import COUNTS

mechanism = ev.Uniform(epsilon=1, window=2, bins=2)
with ev.Publisher(MemoryFeed(COUNTS), mechanism, sys.argv[1], [sys.argv[1] + ".jsonl"]) as publisher:
    print("begun", flush=True)
    try:
        publisher.run(stop=lambda: print(publisher.next_step, flush=True))
    except StoreError as problem:
        print("refused:", problem, flush=True)
        sys.exit(3)
"""
COUNTS = [[7, 8]] * 20_000  # more than can be released before it is paused


def start(path, code=WRITER):
    modules = os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": modules}
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "begun\n"
    return child


def committed(child, at_least):
    """Wait until the child says that it has committed some steps."""
    while (line := child.stdout.readline()) and int(line) < at_least:
        pass


def pause(child):
    os.kill(child.pid, signal.SIGSTOP)
    os.waitpid(child.pid, os.WUNTRACED)


def commit(store, step):
    store.commit(Commit(step, [Entry(step, "point", "", 200)], b"by the second %d" % step, b"", None, None))


def test_the_second_process_is_refused_until_the_first_is_gone(tmp_path):
    path = tmp_path / "city.db"
    child = start(path)
    try:
        committed(child, 3)
        with closing(open_store(path)) as store:
            with pytest.raises(StoreError, match=f"process {child.pid} since"):
                store.begin(SETTING)
            pause(child)  # asleep is not gone
            with pytest.raises(StoreError, match=f"process {child.pid} since"):
                store.begin(SETTING)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    with closing(open_store(path)) as store:
        assert store.begin(SETTING).next_step > 3


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_paused_writer_that_wakes_up_after_a_take_over_commits_nothing(tmp_path, moment):
    path = tmp_path / "city.db"
    child = start(path)
    try:
        committed(child, 3)
        time.sleep(0.003 * moment)
        pause(child)
        store, standing = begin_when_possible(child, path)
        with closing(store):
            mine = range(standing.next_step, standing.next_step + 20)
            for step in mine[:10]:
                commit(store, step)
            os.kill(child.pid, signal.SIGCONT)
            rest = child.stdout.read()
            assert "was taken over by another writer" in rest
            child.wait()
            for step in mine[10:]:
                commit(store, step)
            releases = dict(store.releases())
            assert all(releases[step] == b"by the second %d" % step for step in mine)
            assert all(releases[step] == b"by the first %d" % step for step in range(standing.next_step))
            assert sorted(releases) == list(range(mine[-1] + 1))
            assert verify(store.entries(), store.epochs(), store.next_step()).holds
            store.verify()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def begin_when_possible(child, path):
    store = None

    def begin():
        nonlocal store
        store = impatient(path)
        try:
            return store.begin(SETTING, take_over=True)
        except StoreError:
            store.close()
            raise

    standing = when_possible(child, begin)
    return store, standing


def impatient(path):
    store = open_store(path)
    store._database._connection.execute("PRAGMA busy_timeout = 100")
    return store


def when_possible(child, take_over):
    """Take over; a process that sleeps in the middle of a commit, or of a line, is woken until it sleeps elsewhere."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        try:
            return take_over()
        except (StoreError, InputError) as problem:
            if "in the middle of a commit" not in str(problem) and "by another process; end it" not in str(problem):
                raise
            os.kill(child.pid, signal.SIGCONT)
            time.sleep(random.uniform(0, 0.02))
            pause(child)
    raise AssertionError("the first process was always found in a commit")


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_paused_publisher_that_wakes_up_after_a_take_over_writes_no_line_twice(tmp_path, moment):
    path, out = tmp_path / "city.db", tmp_path / "city.db.jsonl"
    child = start(path, PUBLISHER)

    def take_over():
        mechanism = ev.Uniform(epsilon=1, window=2, bins=2)
        return ev.Publisher(MemoryFeed(COUNTS), mechanism, impatient(path), [out], take_over=True)

    try:
        committed(child, 20)
        time.sleep(0.003 * moment)
        pause(child)
        with when_possible(child, take_over) as publisher:
            publisher.run(until=publisher.next_step + 20)
            os.kill(child.pid, signal.SIGCONT)
            assert "was taken over by another writer" in child.stdout.read()
            child.wait()
            publisher.run(until=publisher.next_step + 20)
            stored = [release for _, release in publisher.store.releases()]
        assert out.read_bytes().splitlines() == stored
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_readers_read_while_a_writer_writes(tmp_path):
    path = tmp_path / "city.db"
    child = start(path)
    try:
        for _ in range(20):
            with closing(open_store(path, read_only=True)) as reader:
                reader.verify()
                next_step = reader.next_step()
                assert [step for step, _ in reader.releases(0, next_step - 1)] == list(range(next_step))
                entries = [entry for entry in reader.entries() if entry.step < next_step]
                assert verify(entries, reader.epochs(), next_step).holds
        committed(child, 50)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    with closing(open_store(path)) as store:
        assert store.begin(SETTING).next_step >= 50
