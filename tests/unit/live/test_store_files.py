"""The file of a store: its versions, and what is never begun anew."""

import json
import sqlite3
import threading
from contextlib import closing

import pytest
from live_stores import SETTING, filled, in_a_child, listing
from old_stores import make_old_file

from eventide.errors import InputError, StoreError
from eventide.live.stores import sqlite_file
from eventide.live.stores.open_store import open_store

# Versions.


@pytest.fixture
def newer_version(monkeypatch):
    def fourth(connection):
        connection.execute("CREATE TABLE extra (id INTEGER PRIMARY KEY)")

    monkeypatch.setitem(sqlite_file.MIGRATIONS, 4, fourth)
    return fourth


def version_of(path):
    connection = sqlite3.connect(path)
    try:
        applied = [number for (number,) in connection.execute("SELECT version FROM migration")]
        return connection.execute("PRAGMA user_version").fetchone()[0], applied
    finally:
        connection.close()


def test_an_old_store_is_brought_to_this_version(tmp_path, request):
    path = tmp_path / "city.db"
    make_old_file(path, 5)
    request.getfixturevalue("newer_version")
    open_store(path, read_only=True).close()
    assert version_of(path) == (1, [1])
    store = open_store(path)
    assert store.begin(SETTING).next_step == 5
    store.deliver("x", 1)
    store.close()
    assert version_of(path) == (4, [1, 2, 3, 4])


def test_nobody_writes_while_a_store_is_brought_to_this_version(tmp_path, request):
    writer = filled(tmp_path / "city.db")
    request.getfixturevalue("newer_version")
    with pytest.raises(StoreError, match=r"being written by process \d+ since .*; stop it: nobody may write"):
        open_store(tmp_path / "city.db")
    writer.close()
    open_store(tmp_path / "city.db").close()
    assert version_of(tmp_path / "city.db") == (4, [3, 4])


def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "city.db"
    filled(path).close()

    def broken(connection):
        connection.execute("DROP TABLE kept")
        connection.execute("no such statement")

    monkeypatch.setitem(sqlite_file.MIGRATIONS, 4, broken)
    with pytest.raises(StoreError):
        open_store(path)
    monkeypatch.delitem(sqlite_file.MIGRATIONS, 4)
    assert version_of(path) == (3, [3])
    store = open_store(path)
    assert store.kept() == []
    store.close()


def test_a_newer_store_is_refused(tmp_path, newer_version, monkeypatch):
    path = tmp_path / "city.db"
    filled(path).close()
    open_store(path).close()
    monkeypatch.delitem(sqlite_file.MIGRATIONS, 4)
    for read_only in (True, False):
        with pytest.raises(StoreError, match="newer eventide"):
            open_store(path, read_only=read_only)


# Whatever is there is never begun anew.


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("city.db", b"", "is empty"),
        ("city.db", b"step,a,b\n0,1,2\n" * 100, "is no store of eventide; give the file that was made with --store"),
        ("city.db", b"SQLite format 3\0", "is no store of eventide; give the file that was made with --store"),
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

    monkeypatch.setattr(sqlite_file, "_make_tables", broken)
    with pytest.raises(StoreError):
        open_store(tmp_path / "city.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("linked", [pytest.param(False, marks=pytest.mark.slow), True])
def test_what_a_kill_left_while_a_store_was_made_is_gone_with_the_next_start(tmp_path, linked):
    path = tmp_path / "city.db"
    code = f"""
link = os.link
def killed(*names):
    if {linked}:
        link(*names)
    os.kill(os.getpid(), 9)
os.link = killed
open_store(path)
"""
    in_a_child(code, path, dies=-9)
    assert [file.suffix for file in tmp_path.iterdir() if file != path] == [".part"]
    if linked:
        with closing(open_store(path, read_only=True)) as store:
            name = store.name
    with closing(open_store(path)) as store:
        assert not linked or store.name == name  # it is never made a second time
        assert store.begin(SETTING).next_step == 0
    assert not list(tmp_path.glob(".*"))


def test_two_processes_that_make_a_store_at_once_make_one(tmp_path):
    opened = []
    threads = [threading.Thread(target=lambda: opened.append(open_store(tmp_path / "city.db"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({store.name for store in opened}) == 1
    assert len(opened) == 8
    for store in opened:
        store.close()
