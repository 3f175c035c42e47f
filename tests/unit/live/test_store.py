"""The SQLite store: one commit a step, one writer, and nothing left of what was erased."""

import os
import stat
import threading

import pytest
from live_stores import SETTING, a_commit, changes, check_withdrawal, filled

from eventide.errors import StateError, StoreError
from eventide.live.stores.base import PlanStep
from eventide.live.stores.memory_store import MemoryStore
from eventide.live.stores.open_store import open_store
from eventide.privacy.ledger import Entry


def test_what_was_committed_is_there_again(tmp_path):
    path = tmp_path / "city.db"
    filled(path, 5, snapshots=[1]).close()
    store = open_store(path)
    standing = store.begin(SETTING)
    assert (standing.next_step, standing.origin, standing.measured_from) == (5, 0, 0)
    assert (standing.snapshot, standing.recorded) == (b"state 1", [b"tape 2", b"tape 3", b"tape 4"])
    assert (standing.last_release, standing.position) == (b'{"step": 4}', {"offset": 4})
    assert store.release(3) == b'{"step": 3}'
    assert store.release(5) is None
    assert list(store.releases(1, 2)) == [(1, b'{"step": 1}'), (2, b'{"step": 2}')]
    assert list(store.entries(3)) == [Entry(3, "point", "", 100), Entry(4, "point", "", 100)]
    assert [(epoch.number, epoch.setting) for epoch in store.epochs()] == [(0, SETTING)]
    store.verify()
    store.close()


def test_a_new_store_stands_at_its_beginning(tmp_path):
    store = open_store(tmp_path / "city.db")
    standing = store.begin(SETTING)
    assert standing[:7] == (0, 0, 0, None, [], None, None)
    assert len(standing.key) == 16
    store.close()


def test_the_key_is_drawn_once_and_shown_to_nobody(tmp_path):
    keys = []
    for _ in range(2):
        store = open_store(tmp_path / "one.db")
        standing = store.begin(SETTING)
        keys.append(standing.key)
        assert str(standing.key) not in repr(standing)
        store.close()
    other = open_store(tmp_path / "two.db")
    assert keys[0] == keys[1] != other.begin(SETTING).key
    other.close()


def test_nobody_else_may_read_the_files(tmp_path):
    before = os.umask(0)
    try:
        store = filled(tmp_path / "city.db")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        assert modes == dict.fromkeys(["city.db", "city.db-wal", "city.db-shm", "city.db.lock"], 0o600)
        store.close()
    finally:
        os.umask(before)


def test_commits_are_made_as_safe_as_sqlite_can(tmp_path):
    store = filled(tmp_path / "city.db")
    pragmas = {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1, "cell_size_check": 1}
    found = {name: store._database._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas}
    store.close()
    assert found == pragmas


@pytest.mark.parametrize("step", [0, 4, 6])
def test_a_step_is_committed_once_and_in_order(tmp_path, step):
    store = filled(tmp_path / "city.db")
    with pytest.raises(StateError, match="where step 5 is next"):
        store.commit(a_commit(step))
    store.commit(a_commit(5))
    assert store.next_step() == 6
    store.close()


def test_a_commit_that_fails_leaves_nothing(tmp_path):
    store = filled(tmp_path / "city.db")
    store.keep([(5, b"tally")])
    with pytest.raises(StoreError):
        store.commit(a_commit(5)._replace(recorded=None))
    assert (store.next_step(), store.kept()) == (5, [(5, b"tally")])
    store.commit(a_commit(5))
    store.close()


def test_charges_of_another_step_are_refused(tmp_path):
    store = filled(tmp_path / "city.db")
    with pytest.raises(StateError, match="charges of another step"):
        store.commit(a_commit(5)._replace(entries=[Entry(4, "point", "", 1)]))
    store.close()


def test_only_a_writer_writes(tmp_path):
    filled(tmp_path / "city.db").close()
    for read_only in (False, True):
        store = open_store(tmp_path / "city.db", read_only=read_only)
        for change in changes(store):
            with pytest.raises(StateError, match="writer"):
                change()
        store.close()


def test_a_writer_that_withdraws_leaves_the_store_as_it_found_it(tmp_path):
    check_withdrawal(lambda: open_store(tmp_path / "city.db"))
    assert b"mine" not in (tmp_path / "city.db").read_bytes()


def test_that_a_backup_was_restored_is_never_withdrawn(tmp_path):
    store = open_store(tmp_path / "city.db")
    store.begin(SETTING)
    measured_from = store.after_restore(0).measured_from
    store.withdraw()
    assert measured_from > 0
    assert store.begin(SETTING).measured_from == measured_from
    store.close()


def test_sinks_and_promises_are_remembered(tmp_path):
    store = filled(tmp_path / "city.db")
    assert store.delivered("file") == -1
    store.deliver("file", 3)
    store.deliver("file", 4)
    store.promise("Nobody is told apart.")
    store.close()
    reader = open_store(tmp_path / "city.db", read_only=True)
    assert (reader.delivered("file"), reader.delivered("web")) == (4, -1)
    assert reader.epochs()[0].guarantee == "Nobody is told apart."
    reader.close()


def test_threads_may_share_a_store(tmp_path):
    store = filled(tmp_path / "city.db", 0)
    found, problems = [], []

    def read():
        try:
            for step in range(200):
                store.deliver("thread", step)
                found.append(len(list(store.releases())))
        except Exception as problem:
            problems.append(problem)

    thread = threading.Thread(target=read)
    thread.start()
    for step in range(200):
        store.commit(a_commit(step))
    thread.join()
    store.close()
    assert problems == []
    assert found == sorted(found)


# Open events of a source that cannot replay.


def test_kept_events_go_when_their_step_is_committed(tmp_path):
    store = filled(tmp_path / "city.db", 2)
    assert store.keep([(2, b"two"), (3, b"three"), (2, b"more of two")])
    assert store.kept() == [(2, b"two"), (2, b"more of two"), (3, b"three")]
    store.commit(a_commit(2))
    assert store.kept() == [(3, b"three")]
    with pytest.raises(StateError, match="released"):
        store.keep([(2, b"late")])
    store.close()


def test_a_batch_is_kept_once_and_its_name_forgotten_with_its_last_step(tmp_path):
    """How many batches a step had is as raw as how many events."""
    store = filled(tmp_path / "city.db", 0)
    assert store.keep([(0, b"a"), (1, b"b")], batch="first")
    assert not store.keep([(0, b"a"), (1, b"b")], batch="first")
    assert store.keep([], batch="empty")
    assert len(store.kept()) == 2
    names = lambda: [name for (name,) in store._rows.all("SELECT name FROM batch ORDER BY name")]  # noqa: E731
    assert names() == ["empty", "first"]
    store.commit(a_commit(0))
    assert names() == ["first"]
    store.commit(a_commit(1))
    assert names() == []
    store.close()


def test_what_was_erased_is_nowhere_in_the_files(tmp_path, monkeypatch):
    monkeypatch.setattr("eventide.live.stores.sqlite_database.CUT_LOG_EVERY", 0)
    store = filled(tmp_path / "city.db", 1)
    secret, state, open_slots = os.urandom(64), os.urandom(64), os.urandom(64)
    store.keep([(1, secret)], batch="the name of a batch")
    plan = PlanStep(b"released", open_slots, whole=False)
    store.commit(a_commit(1, snapshot=state, position={"offset": 7_654_321})._replace(plan=plan))
    store.commit(a_commit(2, snapshot=b"harmless")._replace(plan=PlanStep(b"more", b"nothing open", whole=False)))
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    store.close()
    assert b"harmless" in content
    assert secret not in content
    assert b"the name of a batch" not in content
    assert state not in content
    assert open_slots not in content
    assert b"7654321" not in content


# One writer.


def test_the_second_writer_is_refused_and_told_who_is_there(tmp_path):
    first = filled(tmp_path / "city.db")
    second = open_store(tmp_path / "city.db")
    with pytest.raises(StoreError, match=rf"process {os.getpid()} since 20.*--take-over"):
        second.begin(SETTING)
    assert second.release(1) == b'{"step": 1}'  # reading is free
    first.close()
    assert second.begin(SETTING).next_step == 5
    second.close()


def test_another_name_of_the_same_store_has_the_same_writer(tmp_path):
    first = filled(tmp_path / "city.db")
    (tmp_path / "link.db").symlink_to(tmp_path / "city.db")
    second = open_store(tmp_path / "link.db")
    with pytest.raises(StoreError, match="being written"):
        second.begin(SETTING)
    first.close()
    second.close()


def test_after_a_take_over_the_first_changes_nothing_any_more(tmp_path):
    first, second = filled(tmp_path / "city.db"), open_store(tmp_path / "city.db")
    assert second.begin(SETTING, take_over=True).next_step == 5
    for change in changes(first):
        with pytest.raises(StoreError, match="taken over"):
            change()
    second.commit(a_commit(5)._replace(release=b"second"))
    third = open_store(tmp_path / "city.db")
    with pytest.raises(StoreError, match="being written"):
        third.begin(SETTING)
    first.close()
    with pytest.raises(StoreError, match="being written"):  # leaving does not open the second's door
        third.begin(SETTING)
    assert second.release(5) == b"second"
    assert second.kept() == []
    second.close()
    third.close()


def test_a_run_without_a_store_cannot_be_resumed():
    store = MemoryStore()
    store.begin(SETTING)
    with pytest.raises(StoreError, match="cannot resume: this run has no store; give one with store="):
        store.begin(SETTING)
