"""After a restore nothing is measured until no window of any epoch, also of one that was lost, can mix."""

import json
import shutil
from contextlib import closing

import pytest
from click.testing import CliRunner
from command_words import with_last
from live_stores import SETTING, a_commit, filled
from running_service import stream

from eventide.cli import main
from eventide.errors import StoreError
from eventide.events.clock import ManualClock
from eventide.live.stores.open_store import open_store
from eventide.service.live_stream import Circumstances, LiveStream

LONGER = SETTING._replace(window=10)


@pytest.fixture
def restored(tmp_path):
    """A backup with 3 steps under windows of 3, put back behind steps up to 12 under windows of 10.

    backup    0 1 2
    lost            3 4 ... 12          a window of 10 began behind the backup: step 12 may be measured
    restored                   13       and shares windows with the steps up to 21
    """
    path = tmp_path / "city.db"
    filled(path, 3).close()
    shutil.copy(path, tmp_path / "backup.db")
    with closing(open_store(path)) as store:
        assert store.begin(LONGER, new_epoch=True).measured_from == 12
        for step in range(3, 13):
            store.commit(a_commit(step, charge=100 if step == 12 else 0))
    shutil.copy(tmp_path / "backup.db", path)
    return path


def test_the_file_beside_a_store_remembers_a_longer_window_that_the_backup_does_not_know(restored):
    with closing(open_store(restored)) as store:
        store.begin(SETTING, after_restore=True)
        standing = store.after_restore(3)
        assert (standing.next_step, standing.measured_from) == (13, 12 + 10)
        for step in range(13, 23):
            store.commit(a_commit(step, charge=100 if step == 22 else 0))
    with closing(open_store(restored)) as store:  # what was lost once is waited for also after a second loss
        store.begin(SETTING, after_restore=True)
        assert store.after_restore(13).measured_from == 22 + 3


@pytest.mark.parametrize(("longest", "measured_from"), [(0, 12 + 3), (10, 12 + 10), (2, 12 + 3)])
def test_where_nothing_remembers_it_the_operator_says_it(restored, longest, measured_from):
    restored.with_name("city.db.lock").unlink()
    with closing(open_store(restored)) as store:
        store.begin(SETTING, after_restore=True)
        assert store.after_restore(13, longest_window=longest).measured_from == measured_from


def test_a_note_of_an_older_version_is_read(restored):
    lock = restored.with_name("city.db.lock")
    note = json.loads(lock.read_text())
    assert note.pop("free_from") == 22
    lock.write_text(json.dumps(note))
    with closing(open_store(restored)) as store:
        with pytest.raises(StoreError, match="had come to step 12"):
            store.begin(SETTING)
        store.begin(SETTING, after_restore=True)
        assert store.after_restore(3).measured_from == 12 + 3


def test_a_backup_beside_the_log_of_what_was_lost_is_refused_until_the_log_is_removed(tmp_path):
    path, log = tmp_path / "city.db", tmp_path / "city.db-wal"
    filled(path).close()
    backup = path.read_bytes()
    with closing(open_store(path)) as store:
        store.begin(SETTING)
        for step in range(5, 60):
            store.commit(a_commit(step))
        store._database._cut_log()
        for step in range(60, 63):
            store.commit(a_commit(step))
        left = log.read_bytes()
    assert left
    path.write_bytes(backup)  # as after a kill, which leaves the log
    log.write_bytes(left)
    with pytest.raises(StoreError, match="damaged"), closing(open_store(path)) as store:
        store.begin(SETTING, after_restore=True)
    for beside in tmp_path.glob("city.db-*"):
        beside.unlink()
    path.write_bytes(backup)
    with closing(open_store(path)) as store:
        store.begin(SETTING, after_restore=True)
        assert store.after_restore(0)[:3] == (63, 62 + 3, 62 + 3)
        store.verify()


def publish(folder, *more):
    counts, store, out = (str(folder / name) for name in ("counts.csv", "city.db", "out.jsonl"))
    options = ["--epsilon", "1", "--window", "2", "--mechanism", "ba", "--store", store, "--out", out, *more]
    return CliRunner().invoke(main, with_last("publish", counts, *options))


def test_the_command_asks_for_the_longest_window_and_takes_it(tmp_path):
    (tmp_path / "counts.csv").write_text("t,a\n" + "".join(f"{step},50\n" for step in range(4)))
    assert publish(tmp_path).exit_code == 0
    (tmp_path / "city.db.lock").unlink()
    alone = publish(tmp_path, "--longest-window", "9")
    assert (alone.exit_code, "give --after-restore as well" in alone.output) == (2, True)
    asked = publish(tmp_path, "--after-restore")
    assert "nothing is measured before step 5. If a window since the backup had more than 2 steps" in asked.output
    assert "--longest-window" in asked.output
    said = publish(tmp_path, "--after-restore", "--longest-window", "9")
    assert "If a window since the backup" not in said.output
    with closing(open_store(tmp_path / "city.db", read_only=True)) as store:
        assert [epoch.measured_from for epoch in store.epochs()] == [0, 5, 3 + 9]


@pytest.mark.parametrize(("said", "steps"), [(None, 5), ("9", 9), ("2h", 120)])
def test_the_service_takes_it_for_each_stream(tmp_path, said, steps):
    told = Circumstances(after_restore=True, longest_window=said)
    live = LiveStream(stream(tmp_path), ManualClock(), for_tests=True, circumstances=told)
    live.stop()
    assert live.measured_from == steps - 1
