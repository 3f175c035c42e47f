"""Damaged stores, full disks and missing rights: found, said, and never a fresh ledger."""

import os
import sqlite3
from contextlib import closing

import pytest
from live_stores import SETTING, a_commit, filled, in_a_child, listing

from eventide.errors import StoreError
from eventide.live.stores.base import Commit
from eventide.live.stores.open_store import open_store
from eventide.privacy.ledger import Entry

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
    store.keep([(steps, b"k" * 300)], "a batch")
    store.deliver("a sink", steps - 1)
    held = everything(store)
    store.close()
    (tmp_path / "city.db.lock").unlink()
    return path, held


def everything(store):
    return list(store.releases()), list(store.entries()), store.kept(), store.epochs(), store.delivered("a sink")


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


WHAT_NO_STEP_HOLDS = [
    "UPDATE delivery SET step = 8",
    "UPDATE delivery SET sink = 'another'",
    "UPDATE batch SET step = 8",
    "UPDATE batch SET name = 'another'",
]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE step SET entries = replace(entries, '100', '99') WHERE step = 4",
        "UPDATE step SET release = x'00' WHERE step = 4",
        "UPDATE step SET tape = x'00' WHERE step = 4",
        "UPDATE step SET seal = x'00' WHERE step = 4",
        "UPDATE step SET epoch = 1 WHERE step = 4",
        "DELETE FROM step WHERE step = 3",
        "DELETE FROM step WHERE step < 3",
        "DELETE FROM step WHERE step > 8",
        "UPDATE head SET step = 8",
        "UPDATE head SET chain = x'00'",
        "UPDATE head SET position = 'null'",
        "UPDATE head SET seal = x'00'",
        "UPDATE step SET step = 40 WHERE step = 4",
        "UPDATE snapshot SET state = x'00'",
        "UPDATE snapshot SET step = 2",
        "UPDATE kept SET tally = x'00'",
        "UPDATE epoch SET measured_from = 1",
        "UPDATE epoch SET setting = replace(setting, '1000000000', '2000000000')",
        "UPDATE store SET key = x'00'",
        "UPDATE store SET for_tests = 1",
        *WHAT_NO_STEP_HOLDS,
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


@pytest.mark.parametrize("statement", WHAT_NO_STEP_HOLDS)
def test_a_writer_does_not_begin_on_a_changed_name_or_number(tmp_path, statement):
    """Or a batch would be counted twice, and a sink would miss a step."""
    path, _ = whole_store(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)
    with closing(open_store(path)) as store, pytest.raises(StoreError, match="damaged"):
        store.begin(SETTING)


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
    in_a_child("filled(path); os.kill(os.getpid(), 9)", path, dies=-9)
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
    pages = store._database._connection.execute("PRAGMA page_count").fetchone()[0]
    store._database._connection.execute(f"PRAGMA max_page_count = {pages}")
    large = a_commit(5)._replace(release=os.urandom(100_000))
    with pytest.raises(StoreError, match="no room left"):
        store.commit(large)
    assert store.next_step() == 5
    store._database._connection.execute("PRAGMA max_page_count = 1000000")
    store.commit(large)
    store.verify()
    store.close()


def test_a_file_that_may_not_grow_is_said_and_nothing_is_lost(tmp_path):
    path = tmp_path / "city.db"
    filled(path).close()
    code = """
store = open_store(path)
store.begin(SETTING)
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path) + 50_000,) * 2)
try:
    for step in range(5, 500):
        store.commit(a_commit(step)._replace(release=os.urandom(20_000)))
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


def test_a_store_that_finds_no_room_is_not_begun(tmp_path):
    code = """
resource.setrlimit(resource.RLIMIT_FSIZE, (8192,) * 2)
try:
    open_store(path)
except StoreError as problem:
    print(problem)
"""
    assert "cannot be read or written" in in_a_child(code, tmp_path / "city.db")
    assert list(tmp_path.iterdir()) == []


NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@as_root
@pytest.mark.parametrize("file_mode", [0o600, pytest.param(0o644, marks=pytest.mark.slow)])
def test_without_rights_nothing_is_begun(everybodys_folder, file_mode):
    path = everybodys_folder / "city.db"
    filled(path).close()
    path.chmod(file_mode)
    code = f"""
os.setgid({NOBODY}); os.setuid({NOBODY})
for place in (path, path + ".new"):
    try:
        open_store(place).begin(SETTING)
    except StoreError as problem:
        print(problem)
"""
    before = listing(everybodys_folder)
    first, second = in_a_child(code, path).splitlines()
    assert "cannot be opened or written" in first
    assert "cannot be used" in second
    assert listing(everybodys_folder) == before


@as_root
def test_a_store_at_rest_can_be_read_where_nothing_can_be_written(everybodys_folder):
    path = everybodys_folder / "city.db"
    filled(path).close()
    path.chmod(0o644)
    code = f"""
os.setgid({NOBODY}); os.setuid({NOBODY})
print(open_store(path, read_only=True).next_step())
"""
    assert in_a_child(code, path) == "5\n"
