"""Two writers, restored backups, damaged stores, end to end through `eventide publish`: exit code 5, one sentence."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eventide.cli import main
from eventide.live.stores.open_store import open_store
from eventide.live.stores.verification import verify

WINDOW = 4
COUNTS = ("counts.csv", "--epsilon", "1", "--window", str(WINDOW), "--mechanism", "ba")
COUNTS = (*COUNTS, "--store", "store.db", "--out", "private.jsonl")


@pytest.fixture
def publish(tmp_path, monkeypatch, capsys):
    """Run `eventide publish` in a folder of its own; give its exit code and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(["publish", *words])
        return ended.value.code, capsys.readouterr().err

    return run


def write_counts(steps):
    """A file of counts, longer each time; what was there stays."""
    Path("counts.csv").write_text("\n".join(["north,south", *(f"{step},{7 * step % 50}" for step in range(steps))]))


def refused(result):
    """Exit code 5 and one sentence."""
    code, err = result
    assert code == 5, err
    assert err.count("\n") == 1
    return err


def published():
    return [json.loads(line) for line in Path("private.jsonl").read_text().splitlines()]


def restore():
    """Put the backup in the place of the store, as somebody does who has lost a disk."""
    for path in Path().glob("store.db*"):
        path.unlink()
    shutil.copy("backup.db", "store.db")


@pytest.mark.parametrize("beside", [pytest.param("lock kept", marks=pytest.mark.slow), "lock lost"])
def test_a_restored_backup_is_refused_and_then_goes_on_behind_what_was_published(publish, beside):
    write_counts(20)
    assert publish(*COUNTS)[0] == 0
    shutil.copy("store.db", "backup.db")
    write_counts(30)
    assert publish(*COUNTS)[0] == 0
    before = Path("private.jsonl").read_bytes()
    if beside == "lock kept":
        shutil.copy("backup.db", "store.db")
    else:
        restore()
    write_counts(60)
    assert "--after-restore" in refused(publish(*COUNTS))
    assert Path("private.jsonl").read_bytes() == before
    assert publish(*COUNTS, "--after-restore")[0] == 0
    assert Path("private.jsonl").read_bytes().startswith(before)
    lines = published()
    assert [line["step"] for line in lines] == list(range(60))  # no step was released twice
    silent = lines[30 : 30 - 1 + WINDOW]
    assert not any(line["fresh"] for line in silent)
    assert all(line["values"] == lines[19]["values"] for line in silent)  # the last one that the backup knows
    store = open_store("store.db", read_only=True)
    assert verify(store.entries(), store.epochs(), store.next_step()).problems == []
    store.close()
    assert publish(*COUNTS)[0] == 0  # and from now on as ever


def damaged(content, chance):
    """The content of a store with one thing wrong with it, of many."""
    for length in (0, 1, 100, 4096, len(content) // 2, len(content) - 4096):
        yield f"cut to {length} bytes", content[:length]
    yield "something else", b"a diary " * 2000
    for place in [page + chance.randrange(4096) for page in range(0, len(content), 4096) for _ in range(3)]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << chance.randrange(8)
        yield f"a bit of byte {place} flipped", bytes(flipped)


def test_a_damaged_store_is_refused_or_the_damage_matters_to_nobody(publish):
    """Whatever is wrong, no step is released a second time, and no ledger begins anew."""
    write_counts(20)
    assert publish(*COUNTS)[0] == 0
    content, before = Path("store.db").read_bytes(), Path("private.jsonl").read_bytes()
    write_counts(25)
    flips_found = 0
    for what, wrong in damaged(content, random.Random(1)):
        for path in Path().glob("store.db-*"):
            path.unlink()
        Path("store.db").write_bytes(wrong)
        Path("store.db.lock").unlink(missing_ok=True)
        Path("private.jsonl").write_bytes(before)
        code, err = publish(*COUNTS)
        assert code == 5 or (code == 0 and "flipped" in what), (what, err)
        flips_found += code == 5 and "flipped" in what
        assert Path("private.jsonl").read_bytes().startswith(before), what
        assert len(published()) == (20 if code == 5 else 25), what
    assert flips_found > 5  # the others hit what nobody reads


def test_a_store_that_was_lost_is_not_begun_anew_over_its_releases(publish):
    write_counts(20)
    assert publish(*COUNTS)[0] == 0
    before = Path("private.jsonl").read_bytes()
    for path in Path().glob("store.db*"):
        path.unlink()
    assert "Or the store was restored from a backup" in refused(publish(*COUNTS))
    assert Path("private.jsonl").read_bytes() == before


def test_a_folder_that_cannot_be_written_is_refused(publish):
    write_counts(20)
    Path("closed").mkdir(mode=0o500)
    words = [word.replace("store.db", "closed/store.db") for word in COUNTS]
    if os.geteuid() == 0:
        words = [word.replace("store.db", "/proc/store.db") for word in COUNTS]  # where root cannot write either
    refused(publish(*words))
    assert not Path("private.jsonl").exists()


def follow(start, *words):
    command = [sys.executable, "-m", "eventide", "publish", "log.jsonl", "--follow", "--step", "300ms", "--bins", "2"]
    privacy = ["--epsilon", "1", "--window", "5", "--start", start, "--store", "store.db", "--out", "private.jsonl"]
    return subprocess.Popen([*command, *privacy, *words], stderr=subprocess.PIPE, text=True)


def steps_written():
    path = Path("private.jsonl")
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for_more(process, steps=3):
    before = steps_written()
    while process.poll() is None and steps_written() < before + steps:
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()[1]


def taking_over(first, start):
    """Pause the first writer and take over; if it sleeps in the middle of a commit or a line, wake it and try again."""
    for _ in range(100):
        first.send_signal(signal.SIGSTOP)
        third = follow(start, "--take-over")
        before = steps_written()
        while third.poll() is None and steps_written() < before + 3:
            time.sleep(0.02)
        if third.poll() is None:
            return third
        _, err = third.communicate()
        assert "in the middle of a commit" in err or "by another process; end it" in err
        first.send_signal(signal.SIGCONT)
        time.sleep(random.uniform(1, 2))  # to catch up with the steps that it missed
    raise AssertionError("the first writer sleeps in a commit each time")


@pytest.mark.slow
def test_a_second_writer_is_refused_and_one_that_was_taken_over_commits_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("log.jsonl").touch()
    start = datetime.now(UTC).isoformat()
    first = follow(start)
    wait_for_more(first)
    second = follow(start)
    _, err = second.communicate()
    assert second.returncode == 5
    assert f"process {first.pid}" in err
    assert "--take-over" in err
    third = taking_over(first, start)
    first.send_signal(signal.SIGCONT)
    _, err = first.communicate()
    assert first.returncode == 5
    assert "taken over" in err
    wait_for_more(third)
    third.terminate()
    third.communicate()
    assert third.returncode == 0
    store = open_store("store.db", read_only=True)
    store.verify()
    assert [step for step, _ in store.releases()] == list(range(store.next_step()))
    assert verify(store.entries(), store.epochs(), store.next_step()).problems == []
    expected = b"".join(release + b"\n" for _, release in store.releases())
    store.close()
    assert Path("private.jsonl").read_bytes() == expected
