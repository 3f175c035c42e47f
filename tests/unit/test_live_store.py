"""The SQLite store: one commit a step, one writer, epochs that wait, and damage that is found."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from eventide.errors import InputError, StateError, StoreError
from eventide.live import sqlite_file
from eventide.live.open_store import open_store
from eventide.live.store import Commit, Setting
from eventide.live.verification import verify
from eventide.privacy.amounts import NANO
from eventide.privacy.ledger import Entry

SETTING = Setting(
    people="riders",
    mechanism={"name": "ba", "parameters": {"shift_budget": False}},
    epsilon=NANO,
    window=3,
    sensitivity=1,
    bins=("north", "south"),
    steps={"step": "10min", "start": "2026-01-01T00:00:00Z"},
    noise="secure",
)


def a_commit(step, charge=100, snapshot=None, position=None):
    entries = [Entry(step, "point", "", charge)] if charge else []
    return Commit(step, entries, b'{"step": %d}' % step, b"tape %d" % step, snapshot, position or {"offset": step})


def filled(path, steps=5, snapshots=(), setting=SETTING, **options):
    store = open_store(path, **options)
    store.begin(setting)
    for step in range(steps):
        store.commit(a_commit(step, snapshot=b"state %d" % step if step in snapshots else None))
    return store


def test_what_was_committed_is_there_again(tmp_path):
    path = tmp_path / "city.db"
    filled(path, 5, snapshots=[1]).close()
    store = open_store(path)
    standing = store.begin(SETTING)
    assert (standing.next_step, standing.origin, standing.measured_from) == (5, 0, 0)
    assert (standing.snapshot, standing.tapes) == (b"state 1", [b"tape 2", b"tape 3", b"tape 4"])
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
    found = {name: store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas}
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
        store.commit(a_commit(5)._replace(release=None))
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


def changes(store):
    """Whatever only a writer may do."""
    return (
        lambda: store.commit(a_commit(5)),
        lambda: store.keep([(5, b"x")]),
        lambda: store.deliver("x", 1),
        lambda: store.promise("x"),
        lambda: store.after_restore(9),
    )


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


def test_a_batch_is_kept_once_and_its_name_forgotten_a_window_later(tmp_path):
    store = filled(tmp_path / "city.db", 0)
    assert store.keep([(0, b"a"), (1, b"b")], batch="first")
    assert not store.keep([(0, b"a"), (1, b"b")], batch="first")
    assert store.keep([], batch="empty")
    assert len(store.kept()) == 2
    names = lambda: [name for (name,) in store._rows.all("SELECT name FROM batch ORDER BY name")]  # noqa: E731
    for step in range(5):
        store.commit(a_commit(step))
        assert (
            names() == [["empty", "first"], ["empty", "first"], ["empty", "first"], ["empty", "first"], ["first"]][step]
        )
    store.commit(a_commit(5))
    assert names() == []
    store.close()


def test_what_was_erased_is_nowhere_in_the_files(tmp_path, monkeypatch):
    monkeypatch.setattr("eventide.live.sqlite_store.CUT_LOG_EVERY", 0)
    store = filled(tmp_path / "city.db", 1)
    secret, state = os.urandom(64), os.urandom(64)
    store.keep([(1, secret)])
    store.commit(a_commit(1, snapshot=state))
    store.commit(a_commit(2, snapshot=b"harmless"))
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    store.close()
    assert b"harmless" in content
    assert secret not in content
    assert state not in content


# Settings and epochs.


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"people": "drivers"}, ["people (riders before, drivers now)"]),
        ({"epsilon": NANO // 2}, ["epsilon (1.0 before, 0.5 now)"]),
        ({"window": 5, "sensitivity": 2}, ["window (3 before, 5 now)", "sensitivity (1 before, 2 now)"]),
        ({"bins": ("south", "north")}, ["bins (the same 2 in another order)"]),
        ({"bins": tuple(map(str, range(88_762)))}, ["bins (2 before, 88,762 now: 88,762 new and 2 gone)"]),
        (
            {"mechanism": {"name": "ba", "parameters": {"shift_budget": True}}},
            ["parameters.shift_budget (False before"],
        ),
        ({"mechanism": {"name": "bd"}}, ["mechanism.name (ba before, bd now)", "mechanism.parameters"]),
        ({"noise": "opendp"}, ["noise (secure before, opendp now)"]),
    ],
)
def test_another_setting_is_refused_and_every_difference_named(tmp_path, change, said):
    filled(tmp_path / "city.db").close()
    store = open_store(tmp_path / "city.db")
    with pytest.raises(InputError, match="--new-epoch") as refusal:
        store.begin(SETTING._replace(**change))
    window = change.get("window", 3)
    for words in [*said, f"before step {4 + max(3, window)} repeats"]:
        assert words in str(refusal.value)
    assert len(str(refusal.value)) < 600
    assert store.begin(SETTING).next_step == 5  # nothing happened, and the place is free
    store.close()


@pytest.mark.parametrize("new_epoch", [True, False])
def test_steps_are_cut_in_one_way_for_ever(tmp_path, new_epoch):
    filled(tmp_path / "city.db").close()
    store = open_store(tmp_path / "city.db")
    with pytest.raises(InputError, match=r"steps\.step \(10min before, 5min now\).*can never change"):
        store.begin(SETTING._replace(steps=SETTING.steps | {"step": "5min"}), new_epoch=new_epoch)
    store.close()


# steps      0 1 2 3 4 | 5 6 7 8 9
# charges    x x x x x | . . . . x    the last is at 4 and the longer window has 5 steps
def test_a_new_epoch_waits_until_no_window_holds_both(tmp_path):
    filled(tmp_path / "city.db", snapshots=[2]).close()
    store = open_store(tmp_path / "city.db")
    new = SETTING._replace(window=5, bins=("west",))
    standing = store.begin(new, new_epoch=True)
    assert (standing.next_step, standing.origin, standing.measured_from) == (5, 9, 9)
    assert (standing.snapshot, standing.tapes, standing.last_release) == (None, [], b'{"step": 4}')
    with pytest.raises(StateError, match="before 9"):
        store.commit(a_commit(5))
    for step in range(5, 9):
        store.commit(a_commit(step, charge=0)._replace(tape=b""))
    store.commit(a_commit(9, charge=NANO))
    store.commit(a_commit(10))
    assert verify(store.entries(), store.epochs(), 11).problems == [
        "the window that ends at step 10 was charged 1 of 1"  # 100 nano too many, as the test charged it
    ]
    store.close()
    store = open_store(tmp_path / "city.db")
    standing = store.begin(new, new_epoch=True)  # a flag left in place begins no other epoch
    assert (standing.next_step, standing.origin, standing.tapes) == (11, 9, [b"tape 9", b"tape 10"])
    assert len(store.epochs()) == 2
    store.close()


def test_kept_events_of_the_epoch_before_go(tmp_path):
    store = filled(tmp_path / "city.db")
    store.keep([(5, b"tally of other bins")])
    store.close()
    store = open_store(tmp_path / "city.db")
    store.begin(SETTING._replace(bins=("west",)), new_epoch=True)
    assert store.kept() == []
    store.close()


def test_an_epoch_that_never_charged_does_not_hide_the_one_before(tmp_path):
    filled(tmp_path / "city.db", setting=SETTING._replace(window=10)).close()
    for window in (2, 3):
        store = open_store(tmp_path / "city.db")
        assert store.begin(SETTING._replace(window=window), new_epoch=True).measured_from == 14
        store.close()


@pytest.mark.parametrize("noise", ["seeded", "zero", "unit", "mine"])
def test_noise_that_is_not_private_needs_a_store_for_tests(tmp_path, noise):
    store = open_store(tmp_path / "city.db")
    with pytest.raises(InputError, match="private noise only"):
        store.begin(SETTING._replace(noise=noise))
    store.close()
    with pytest.raises(InputError, match="store for real data"):
        open_store(tmp_path / "city.db", for_tests=True)
    filled(tmp_path / "test.db", for_tests=True, setting=SETTING._replace(noise=noise)).close()
    store = open_store(tmp_path / "test.db")
    assert store.for_tests  # for ever
    store.close()


# Backups.


def test_a_restored_backup_is_noticed_by_the_file_beside_it(tmp_path):
    path, backup = tmp_path / "city.db", tmp_path / "backup.db"
    filled(path, 3).close()
    shutil.copy(path, backup)
    store = open_store(path)
    store.begin(SETTING)
    store.commit(a_commit(3))
    store.commit(a_commit(4))
    store.close()
    shutil.copy(backup, path)
    store = open_store(path)
    with pytest.raises(StoreError, match=r"ends at step 2 but had come to step 4.*--after-restore"):
        store.begin(SETTING)
    store.begin(SETTING, after_restore=True)
    standing = store.after_restore(3)
    assert (standing.next_step, standing.measured_from, standing.origin) == (5, 7, 7)
    assert (standing.snapshot, standing.tapes, standing.last_release) == (None, [], b'{"step": 2}')
    for step in (5, 6):
        store.commit(a_commit(step, charge=0))
    store.commit(a_commit(7))
    assert [step for step, _ in store.releases()] == [0, 1, 2, 5, 6, 7]
    assert verify(store.entries(), store.epochs(), store.next_step()).holds
    assert store.epochs()[-1].restored
    store.verify()
    store.close()
    store = open_store(path)
    assert store.begin(SETTING).next_step == 8
    store.close()


def test_after_a_restore_and_a_longer_window_the_lost_steps_still_count(tmp_path):
    store = filled(tmp_path / "city.db", 3)
    assert store.after_restore(20).measured_from == 22
    store.close()
    store = open_store(tmp_path / "city.db")
    standing = store.begin(SETTING._replace(window=10), new_epoch=True)
    assert (standing.next_step, standing.measured_from) == (20, 29)
    store.close()


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


# Versions.


@pytest.fixture
def newer_version(monkeypatch):
    def second(connection):
        connection.execute("CREATE TABLE extra (id INTEGER PRIMARY KEY)")

    monkeypatch.setitem(sqlite_file.MIGRATIONS, 2, second)
    return second


def version_of(path):
    connection = sqlite3.connect(path)
    try:
        applied = [number for (number,) in connection.execute("SELECT version FROM migration")]
        return connection.execute("PRAGMA user_version").fetchone()[0], applied
    finally:
        connection.close()


def test_an_old_store_is_brought_to_this_version(tmp_path, request):
    path = tmp_path / "city.db"
    filled(path).close()
    assert version_of(path) == (1, [1])
    request.getfixturevalue("newer_version")
    with pytest.raises(StoreError, match="version 1, before 2"):
        open_store(path, read_only=True)
    store = open_store(path)
    assert store.begin(SETTING).next_step == 5
    store.deliver("x", 1)
    store.close()
    assert version_of(path) == (2, [1, 2])
    open_store(path, read_only=True).close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "city.db"
    filled(path).close()

    def broken(connection):
        connection.execute("DROP TABLE kept")
        connection.execute("no such statement")

    monkeypatch.setitem(sqlite_file.MIGRATIONS, 2, broken)
    with pytest.raises(StoreError):
        open_store(path)
    monkeypatch.delitem(sqlite_file.MIGRATIONS, 2)
    assert version_of(path) == (1, [1])
    store = open_store(path)
    assert store.kept() == []
    store.close()


def test_a_newer_store_is_refused(tmp_path, newer_version, monkeypatch):
    path = tmp_path / "city.db"
    filled(path).close()
    monkeypatch.delitem(sqlite_file.MIGRATIONS, 2)
    for read_only in (True, False):
        with pytest.raises(StoreError, match="newer eventide"):
            open_store(path, read_only=read_only)


# Whatever is there is never begun anew.


def listing(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith((".lock", "-shm"))}


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("city.db", b"", "is empty"),
        ("city.db", b"step,a,b\n0,1,2\n" * 100, "is damaged or no store"),
        ("city.db", b"SQLite format 3\0", "is damaged or no store"),
        ("city.db-wal", b"a log without its store", "is missing but its log"),
        ("city.db-journal", b"a log without its store", "is missing but its log"),
        (
            "city.db.lock",
            json.dumps({"pid": 1, "since": "then", "store": "x", "step": 41}).encode(),
            "had come to step 41",
        ),
    ],
)
def test_what_is_no_store_is_refused_and_left_alone(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StoreError, match=sentence):
        open_store(tmp_path / "city.db")
    assert (tmp_path / name).read_bytes() == content
    assert {path.name for path in tmp_path.iterdir()} == {name}


def test_another_programs_database_is_refused(tmp_path):
    connection = sqlite3.connect(tmp_path / "city.db")
    connection.execute("CREATE TABLE step (step INTEGER)")
    connection.close()
    before = listing(tmp_path)
    with pytest.raises(StoreError, match="no store of eventide"):
        open_store(tmp_path / "city.db")
    assert listing(tmp_path) == before


def test_folders_and_addresses_are_refused(tmp_path):
    with pytest.raises(InputError, match="folder"):
        open_store(tmp_path)
    with pytest.raises(InputError, match="there is no store"):
        open_store(tmp_path / "none.db", read_only=True)
    with pytest.raises(StoreError, match="cannot be used"):
        open_store(tmp_path / "no" / "folder.db")
    with pytest.raises(InputError, match="redis://"):
        open_store("redis://somewhere")
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_was_not_finished_leaves_nothing(tmp_path, monkeypatch):
    def broken(connection):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setitem(sqlite_file.MIGRATIONS, 2, broken)
    with pytest.raises(StoreError):
        open_store(tmp_path / "city.db")
    assert list(tmp_path.iterdir()) == []


# Damage.


def whole_store(tmp_path, steps=12):
    """A store whose every page is in the file, and what it holds."""
    path = tmp_path / "city.db"
    store = open_store(path)
    store.begin(SETTING)
    for step in range(steps):
        release = b'{"step": %d, "values": [%s]}' % (step, b"7, " * 400 + b"7")
        commit = Commit(step, [Entry(step, "point", "", 100)], release, b"t" * 700, b"s" * 900, {"offset": step})
        store.commit(commit)
    store.keep([(steps, b"k" * 300)])
    held = everything(store)
    store.close()
    (tmp_path / "city.db.lock").unlink()
    return path, held


def everything(store):
    return list(store.releases()), list(store.entries()), store.kept(), store.epochs()


def goes_on(path):
    """Open the store, look at everything and become its writer."""
    store = open_store(path)
    try:
        store.verify()
        return everything(store), begun(store)
    finally:
        store.close()


def begun(store):
    return tuple(store.begin(SETTING))


def test_a_store_cut_anywhere_is_refused(tmp_path):
    path, held = whole_store(tmp_path)
    data = path.read_bytes()
    assert goes_on(path)[0] == held
    for length in [*range(0, 200, 9), *range(200, len(data), 1021), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(StoreError):
            goes_on(path)
        assert path.stat().st_size == length
    path.write_bytes(data)
    assert goes_on(path)[0] == held


def test_a_flipped_bit_is_found_or_changes_nothing(tmp_path):
    path, held = whole_store(tmp_path)
    data = path.read_bytes()
    standing = goes_on(path)[1]
    data = path.read_bytes()
    found = 0
    for position in [*range(0, 100), *range(100, len(data), 499)]:
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        for rest in tmp_path.glob("city.db-*"):
            rest.unlink()
        try:
            with closing(open_store(path)) as store:  # a writer does not read everything, and draws nothing twice
                assert begun(store) == standing, f"byte {position}"
        except StoreError:
            pass
        try:
            assert goes_on(path) == (held, standing), f"byte {position}"
        except StoreError:
            found += 1
    assert found > 60


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE step SET entries = replace(entries, '100', '99') WHERE step = 4",
        "UPDATE step SET release = x'00' WHERE step = 4",
        "UPDATE step SET tape = x'00' WHERE step = 4",
        "UPDATE step SET position = 'null' WHERE step = 4",
        "UPDATE step SET epoch = 1 WHERE step = 4",
        "DELETE FROM step WHERE step = 3",
        "DELETE FROM step WHERE step < 3",
        "DELETE FROM step WHERE step > 8",
        "UPDATE head SET step = 8",
        "UPDATE head SET chain = x'00'",
        "UPDATE step SET step = 40 WHERE step = 4",
        "UPDATE snapshot SET state = x'00'",
        "UPDATE snapshot SET step = 2",
        "UPDATE kept SET tally = x'00'",
        "UPDATE epoch SET measured_from = 1",
        "UPDATE epoch SET setting = replace(setting, '1000000000', '2000000000')",
        "UPDATE store SET key = x'00'",
        "UPDATE store SET for_tests = 1",
    ],
)
def test_a_changed_row_is_found(tmp_path, statement):
    path, _ = whole_store(tmp_path)
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="damaged"):
        goes_on(path)


def test_opening_checks_what_going_on_depends_on(tmp_path):
    path, _ = whole_store(tmp_path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE step SET entries = '[]' WHERE step = 10")
    connection.commit()
    connection.close()
    store = open_store(path)
    with pytest.raises(StoreError, match="the charges of step 10"):
        store.begin(SETTING)
    assert store.release(3) is not None
    with pytest.raises(StoreError, match="step 10"):
        store.release(10)
    store.close()


def test_commits_lost_with_a_damaged_log_are_missed(tmp_path):
    path = tmp_path / "city.db"
    code = "import os; from test_live_store import *; store = filled(os.environ['STORE']);os.kill(os.getpid(), 9)"
    environment = os.environ | {"STORE": str(path), "PYTHONPATH": os.path.dirname(__file__)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == -9
    log = tmp_path / "city.db-wal"
    data = bytearray(log.read_bytes())
    data[len(data) - 3000] ^= 1  # in the last commit
    log.write_bytes(data)
    store = open_store(path)
    with pytest.raises(StoreError, match="ends at step 3 but had come to step 4"):
        store.begin(SETTING)
    store.close()


# Disks and rights.


def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path):
    store = filled(tmp_path / "city.db")
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    large = a_commit(5)._replace(release=b"x" * 100_000)
    with pytest.raises(StoreError, match="no room left"):
        store.commit(large)
    assert store.next_step() == 5
    store._connection.execute("PRAGMA max_page_count = 1000000")
    store.commit(large)
    store.verify()
    store.close()


def in_a_child(code, path, **options):
    preamble = "import os, resource, sys; from test_live_store import *; path = os.environ['STORE']\n"
    environment = os.environ | {"STORE": str(path), "PYTHONPATH": os.path.dirname(__file__)}
    child = subprocess.run(
        [sys.executable, "-c", preamble + code], env=environment, capture_output=True, text=True, **options
    )
    assert child.returncode == 0, child.stderr
    return child.stdout


def test_a_file_that_may_not_grow_is_said_and_nothing_is_lost(tmp_path):
    path = tmp_path / "city.db"
    filled(path).close()
    code = """
store = open_store(path)
store.begin(SETTING)
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path) + 50_000,) * 2)
try:
    for step in range(5, 500):
        store.commit(a_commit(step)._replace(release=b"x" * 20_000))
except StoreError as problem:
    print(step, problem)
os._exit(0)
"""
    step, _, sentence = in_a_child(code, path).partition(" ")
    assert "cannot be read or written" in sentence or "no room left" in sentence
    store = open_store(path)
    standing = store.begin(SETTING)
    assert standing.next_step == int(step)
    store.verify()
    store.close()


NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@as_root
@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "sentence"), [(0o755, 0o600, "cannot be"), (0o755, 0o644, "cannot be written")]
)
def test_without_rights_nothing_is_begun(tmp_path, folder_mode, file_mode, sentence):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "city.db"
    filled(path).close()
    path.chmod(file_mode)
    folder.chmod(folder_mode)
    for parent in tmp_path.parents[:3]:
        if parent.stat().st_uid == os.getuid() and parent.name.startswith("pytest"):
            parent.chmod(0o755)
    tmp_path.chmod(0o755)
    code = f"""
os.setgid({NOBODY}); os.setuid({NOBODY})
for place in (path, path + ".new"):
    try:
        open_store(place).begin(SETTING)
    except StoreError as problem:
        print(problem)
"""
    before = listing(folder)
    first, second = in_a_child(code, path).splitlines()
    assert sentence in first
    assert "cannot be used" in second
    assert listing(folder) == before


@as_root
def test_a_store_at_rest_can_be_read_where_nothing_can_be_written(tmp_path):
    path = tmp_path / "city.db"
    filled(path).close()
    path.chmod(0o644)
    for parent in [tmp_path, *tmp_path.parents[:3]]:
        if parent.name.startswith(("pytest", "test")):
            parent.chmod(0o755)
    code = f"""
os.setgid({NOBODY}); os.setuid({NOBODY})
print(open_store(path, read_only=True).next_step())
"""
    assert in_a_child(code, path) == "5\n"
