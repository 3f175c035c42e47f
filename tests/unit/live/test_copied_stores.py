"""A copy of a store is told from the store that was moved, and does not go on beside its original."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest
from live_stores import SETTING, a_commit, filled
from old_stores import make_old_file

from eventide.errors import StoreError
from eventide.live.stores.open_store import open_store


@pytest.fixture
def running(tmp_path):
    """A store with 5 steps whose writer is still at work."""
    store = filled(tmp_path / "city.db")
    yield store
    store.close()


def begin(path, **options):
    """Where a writer of the store at a path would go on."""
    with closing(open_store(path)) as store:
        return store.begin(SETTING, **options).next_step


def copied(folder, name, suffixes):
    folder.mkdir(exist_ok=True)
    for suffix in suffixes:
        shutil.copy(folder.parent / f"city.db{suffix}", folder / (name + suffix))
    return folder / name


@pytest.mark.parametrize("suffixes", [("",), ("", ".lock"), ("", "-wal"), ("", "-wal", ".lock")])
@pytest.mark.parametrize("after_restore", [False, True])
def test_a_copy_does_not_go_on_while_its_original_does(tmp_path, running, suffixes, after_restore):
    with sqlite3.connect(tmp_path / "city.db") as other:  # so that a copy without the log has the steps too
        other.execute("PRAGMA wal_checkpoint")
    copy = copied(tmp_path / "elsewhere", "copy.db", suffixes)
    with pytest.raises(StoreError, match=r"copy\.db is a copy of .*city\.db, which is still there"):
        begin(copy, after_restore=after_restore)
    running.commit(a_commit(5))  # which minds nothing of it
    assert running.next_step() == 6


def test_beside_an_original_that_nobody_writes_a_copy_goes_on_behind_it(tmp_path, running):
    copy = copied(tmp_path / "elsewhere", "copy.db", ["", "-wal"])
    running.commit(a_commit(5))
    running.close()
    with pytest.raises(StoreError, match=r"go on here with --after-restore"):
        begin(copy)
    with closing(open_store(copy)) as store:
        store.begin(SETTING, after_restore=True)
        standing = store.after_restore(0)
        assert (standing.next_step, standing.measured_from) == (6, 5 + 3)


def test_a_copy_from_before_the_first_step_is_known_though_its_log_is_missing(tmp_path, running):
    with closing(open_store(tmp_path / "new.db")) as store:
        store.begin(SETTING)
        shutil.copy(tmp_path / "new.db", tmp_path / "copy.db")
        with pytest.raises(StoreError, match="which is still there"):
            begin(tmp_path / "copy.db")


def test_a_copy_whose_original_is_elsewhere_goes_on_as_a_restored_backup_only(tmp_path, running):
    running.close()
    copy = copied(tmp_path / "elsewhere", "copy.db", [""])
    os.rename(tmp_path / "city.db", tmp_path / "another-machine.db")
    with pytest.raises(StoreError, match=r"take city\.db\.lock along as copy\.db\.lock; else give --after-rest"):
        begin(copy)
    with closing(open_store(copy)) as store:
        store.begin(SETTING, after_restore=True)
        assert store.after_restore(9).measured_from == 8 + 3
        store.commit(a_commit(9, charge=0))
    assert begin(copy) == 10  # it is an ordinary store from then on


def test_a_backup_under_the_old_name_is_known_without_the_file_beside_it(tmp_path, running):
    shutil.copy(tmp_path / "city.db", tmp_path / "backup.db")
    running.close()
    (tmp_path / "city.db.lock").unlink()
    os.rename(tmp_path / "backup.db", tmp_path / "city.db")
    with pytest.raises(StoreError, match="--after-restore"):
        begin(tmp_path / "city.db")


def test_a_store_that_is_moved_goes_on(tmp_path, running):
    running.close()
    os.rename(tmp_path / "city.db", tmp_path / "renamed.db")  # without anything beside it
    assert begin(tmp_path / "renamed.db") == 5
    (tmp_path / "disk").mkdir()
    for suffix in ("", ".lock"):  # as mv does from one disk to another
        shutil.copy(tmp_path / f"renamed.db{suffix}", tmp_path / "disk" / f"city.db{suffix}")
        (tmp_path / f"renamed.db{suffix}").unlink()
    assert begin(tmp_path / "disk" / "city.db") == 5


def test_a_second_name_of_the_file_is_refused(tmp_path, running):
    running.close()
    os.link(tmp_path / "city.db", tmp_path / "link.db")
    with pytest.raises(StoreError, match=r"link\.db is another name of .*city\.db"):
        begin(tmp_path / "link.db")
    assert begin(tmp_path / "city.db") == 5


def test_another_store_in_the_old_place_is_no_original(tmp_path, running):
    running.close()
    os.rename(tmp_path / "city.db", tmp_path / "moved.db")
    os.rename(tmp_path / "city.db.lock", tmp_path / "moved.db.lock")
    filled(tmp_path / "city.db", steps=1).close()
    assert begin(tmp_path / "moved.db") == 5


def test_a_store_of_an_older_version_goes_on_wherever_it_is(tmp_path):
    make_old_file(tmp_path / "old.db", 5)
    shutil.copy(tmp_path / "old.db", tmp_path / "copy.db")
    assert begin(tmp_path / "copy.db") == 5
    assert begin(tmp_path / "old.db") == 5


def test_a_damaged_home_is_found(tmp_path, running):
    running.close()
    with closing(sqlite3.connect(tmp_path / "city.db")) as connection:
        assert connection.execute("UPDATE home SET file = '1'").rowcount == 1
        connection.commit()
    with pytest.raises(StoreError, match="damaged"):
        begin(tmp_path / "city.db")
