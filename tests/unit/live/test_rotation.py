"""A log that is rotated while it is followed, or between two runs: each event of a file that is there counts once."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from eventide.errors import InputError
from eventide.events.clock import ManualClock
from eventide.events.files import lines as event_lines
from eventide.events.reader import Columns, EventReader
from eventide.events.timeline import Timeline
from eventide.live.feeds.base import ClosedStep, Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources import log_file
from eventide.live.sources.base import ReadAgain
from eventide.live.sources.growing_file import GrowingFile
from eventide.live.sources.open_source import open_source
from eventide.live.sources.rotated_names import files_of_log, rotation_of

KEY = bytes(range(16))
SECOND = 1_000_000
HEADER = "time,user,bin\n"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Many blocks, and files that are known by few bytes, so that what happens between them is seen."""
    for module in (event_lines, log_file):
        monkeypatch.setattr(module, "LONGEST_LINE", 150)
    monkeypatch.setattr(log_file, "BLOCK", 200)
    monkeypatch.setattr(log_file, "HEAD", 64)


class Log:
    """A log that grows and is rotated, whoever follows it, and the clock both live by; steps are ten seconds long."""

    def __init__(self, folder: Path, name: str = "log.jsonl") -> None:
        self.path = folder / name
        self.clock = ManualClock(0)
        self.people = 0
        self.written: dict[int, int] = {}  # events by their step
        self.counts: dict[int, int] = {}  # as they were counted
        self.closed = ClosedStep(-1, np.zeros(1, np.int64), None)
        self.source: GrowingFile | None = None
        self.create()

    def create(self) -> None:
        self.path.write_text(HEADER if self.path.suffix == ".csv" else "")

    def line(self, path: Path) -> str:
        """One event more that happens now, as a line."""
        seconds = self.clock.now() / SECOND
        self.people += 1
        self.written[int(seconds // 10)] = self.written.get(int(seconds // 10), 0) + 1
        if ".csv" in path.name:
            return f"{seconds},user {self.people},a\n"
        return json.dumps({"time": seconds, "user": f"user {self.people}", "bin": "a"}) + "\n"

    def append(self, events: int = 1, path: Path | None = None) -> None:
        path = path or self.path
        with path.open("a") as file:
            file.write("".join(self.line(path) for _ in range(events)))

    def predecessor(self, tag: str) -> Path:
        return self.path.with_name(f"{self.path.name}{tag}")

    def rotate(self, *, create: bool = True) -> None:
        """As logrotate does: the predecessors move by one, then the log becomes the first of them."""
        for number in range(9, 0, -1):
            for packed in ("", ".gz"):
                if (path := self.predecessor(f".{number}{packed}")).exists():
                    path.rename(self.predecessor(f".{number + 1}{packed}"))
        if self.path.exists():
            self.path.rename(self.predecessor(".1"))
        if create:
            self.create()

    def compress(self, number: int) -> None:
        path = self.predecessor(f".{number}")
        if path.exists():
            self.predecessor(f".{number}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()

    def follow(self, *, continue_with: Path | None = None, begin: int | None = None) -> None:
        """Begin anew behind the last step that was closed, as if killed in between."""
        self.die()
        self.source = GrowingFile(self.path, self.clock, continue_with=continue_with)
        if begin is not None:
            self.source.begin_at(begin * SECOND)
        self.feed = EventFeed(self.source, Timeline("1970-01-01", "10s"), EventReader(["a"], Columns("time")))
        resume = Resume(self.closed.index + 1, json.loads(json.dumps(self.closed.position)), KEY, [])
        self.feed.begin(resume)
        self.source.open(resume.position, self.feed.reader)

    def die(self) -> None:
        if self.source is not None:
            self.source.close()

    def poll(self, *, all_of_it: bool = True) -> None:
        """Look once, or until everything was read, and close the steps that are over."""
        while True:
            try:
                batch = self.source.poll(0)
            except ReadAgain:
                self.follow()
                continue
            self.feed.take(batch)
            for step in self.feed.closed():
                self.closed, self.counts[step.index] = step, int(step.counts.sum())
            if self.source._caught_up or not all_of_it:
                return

    def at(self, seconds: float) -> None:
        self.clock.set(round(seconds * SECOND))

    def counted(self) -> dict[int, int]:
        """Let all steps be over, and give what was counted in each."""
        self.poll()
        self.at(self.clock.now() / SECOND + 20)
        self.poll()
        self.die()
        return {step: count for step, count in self.counts.items() if count}


@pytest.fixture(params=["log.jsonl", "log.csv"])
def log(tmp_path, request):
    log = Log(tmp_path, request.param)
    yield log
    log.die()


def test_a_log_that_is_renamed_and_created_is_followed_and_so_is_whoever_still_writes_to_the_old_file(log):
    log.follow()
    log.append(3)
    log.poll()
    log.append(2)
    log.rotate()
    log.append(1, log.predecessor(".1"))
    log.append(2)
    log.poll()
    log.append(1, log.predecessor(".1"))
    log.at(11)
    log.append(1)
    log.append(1, log.predecessor(".1"))
    assert log.counted() == log.written


def test_several_rotations_between_two_looks_are_all_read(log):
    log.follow()
    for _ in range(5):
        log.append(2)
        log.rotate()
    log.append(1)
    assert log.counted() == log.written


def test_a_log_may_be_away_for_a_while_also_at_the_start(log):
    log.follow()
    log.append(2)
    log.rotate(create=False)
    log.poll()
    log.at(12)
    log.poll()
    log.follow()
    log.append(1, log.predecessor(".1"))
    log.poll()
    log.create()
    log.append(3)
    assert log.counted() == log.written


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("looks", [True, False])
def test_what_was_copied_and_cut_is_read_once(log, dies, looks):
    log.follow()
    log.append(4)
    log.poll()
    log.append(2)
    if looks:
        log.poll()
    shutil.copy(log.path, log.predecessor(".1"))
    if dies:
        log.follow()
        log.poll(all_of_it=False)
    log.create()
    if dies:
        log.follow()
    log.append(3)
    log.poll()
    log.append(1)
    assert log.counted() == log.written


def test_a_file_that_was_cut_is_known_by_its_beginning_also_where_it_is_longer_than_before(log):
    log.follow()
    log.append(4)
    log.poll()
    shutil.copy(log.path, log.predecessor(".1"))
    log.create()
    log.append(50)
    assert log.counted() == log.written


def test_a_copy_may_end_before_what_was_read(log):
    """Lines that come between copying and cutting are lost by whoever rotates like this, but not if they were read."""
    log.follow()
    log.append(8)
    shutil.copy(log.path, log.predecessor(".1"))
    log.append(1)
    log.poll()
    log.at(10)
    log.poll()
    log.create()
    log.follow()
    log.append(2)
    assert log.counted() == log.written


@pytest.mark.parametrize("compressed", [0, 1, 2])
def test_after_a_restart_rotated_and_compressed_files_are_read_from_where_reading_stood(log, compressed):
    log.follow()
    log.append(30)
    log.at(10)
    log.append(1)
    log.poll()
    log.append(30)
    for _ in range(3):
        log.rotate()
        log.append(20)
    for number in range(3, 3 - compressed, -1):
        log.compress(number)
    log.follow()
    assert log.counted() == log.written


def test_a_log_that_was_rotated_before_the_first_step_was_released_is_read_from_its_predecessor_on(log):
    log.follow()
    log.append(3)
    log.poll()
    log.rotate()
    log.append(2)
    log.follow()
    assert log.counted() == log.written


def test_files_that_were_complete_long_before_the_first_step_are_not_read(log):
    days = 86_400
    log.predecessor(".2.gz").write_text("this is not a compressed file")
    os.utime(log.predecessor(".2.gz"), (8 * days, 8 * days))
    log.at(10 * days)
    log.append(2)
    log.rotate()
    os.utime(log.predecessor(".1"), (10 * days - 1, 10 * days - 1))
    log.append(1)
    log.follow()
    with pytest.raises(InputError, match=r"\.3\.gz cannot be read to its end"):
        log.poll()
    log.follow(begin=10 * days)
    log.poll()
    assert log.feed.counters.accepted == 3


@pytest.mark.parametrize("packed", [".xz", ".bz2"])
def test_what_is_compressed_in_another_way_is_refused_where_it_would_have_to_be_read(log, packed):
    log.predecessor(f".1{packed}").write_bytes(b"something")
    log.follow()
    with pytest.raises(InputError, match=f"log.*{packed} is compressed in a way that cannot be read"):
        log.poll()
    log.follow(continue_with=log.path)
    log.append(2)
    assert log.counted() == log.written


@pytest.mark.parametrize("how", ["emptied", "emptied while away", "removed while away"])
def test_where_what_was_read_is_gone_somebody_says_how_to_go_on(log, how):
    log.follow()
    log.append(40)
    log.at(12)
    log.append(2)
    log.poll()
    lost = log.closed
    if how == "emptied":
        log.create()
        with pytest.raises(InputError, match="was cut, and there is no copy beside it"):
            log.poll()
    else:
        if how == "removed while away":
            log.path.unlink()
            log.predecessor(".1").write_text("")  # or the new log might get the old one's inode
        log.create()
    with pytest.raises(InputError, match=r"is not the file that was followed before.*--continue-with FILE"):
        log.follow()
    with pytest.raises(InputError, match=r"is neither .*log\.\w+ nor one of the files beside it"):
        log.follow(continue_with=log.path.with_name("other.jsonl"))
    log.append(3)
    log.follow(continue_with=log.path)
    log.written = {0: 40, 1: 3}
    log.poll()
    log.rotate()
    log.append(1)
    log.at(20)
    log.poll()
    assert log.closed.index == lost.index + 1
    log.follow(continue_with=log.path)  # what was read before is found, so that it holds
    log.append(2)
    assert log.counted() == log.written


def test_a_file_that_was_removed_when_it_was_read_to_its_end_is_not_missed(log):
    log.follow()
    log.append(5)
    log.poll()
    log.rotate()
    log.append(2)
    log.at(11)
    log.poll()
    log.predecessor(".1").unlink()
    log.follow()
    log.append(1)
    assert log.counted() == log.written


@pytest.mark.parametrize("dies", [True, False])
def test_a_file_that_is_written_anew_as_it_was_counts_once(log, dies):
    log.follow()
    log.append(5)
    log.at(11)
    log.append(2)
    log.poll()
    shutil.copy(log.path, log.predecessor(".new"))
    log.predecessor(".new").replace(log.path)
    if dies:
        log.follow()
    log.append(1)
    assert log.counted() == log.written


def test_a_file_is_found_under_a_name_of_any_kind(log):
    log.follow()
    log.append(40)
    log.at(11)
    log.append(2)
    log.poll()
    log.append(1)
    log.path.rename(log.path.with_name("before.txt"))
    log.create()
    log.append(1)
    log.follow()
    assert log.counted() == log.written


def test_a_last_line_that_never_gets_its_end_is_refused_when_its_file_is_let_go_of(log):
    log.follow()
    with log.path.open("a") as file:
        file.write('{"time": 0, "us')
    for _ in range(3):
        log.poll()
        log.rotate()
        log.append(1)
    assert log.counted() == log.written
    assert log.feed.counters.refused == {"row cannot be read": 1}


def test_a_position_of_an_older_version_is_gone_on_with(log):
    log.follow()
    log.append(40)
    log.at(11)
    log.append(1)
    log.poll()
    (known,) = log.closed.position["files"]
    log.closed = log.closed._replace(position={"at": known["at"], "head": known["head"]})
    log.append(3)
    log.rotate()
    log.compress(1)
    log.append(3)
    log.follow()
    assert log.counted() == log.written


def test_positions_tell_nothing_of_what_was_read_but_where(log):
    log.follow()
    log.append(5)
    log.poll()
    log.rotate()
    log.append(5)
    log.at(10)
    log.poll()
    position, key = log.closed.position, log.feed.reader.key
    assert [sorted(entry) for entry in position["files"]] == [
        ["at", "before", "done", "head", "inode"],
        ["at", "before", "head", "inode"],
    ]
    log.feed.reader.key = bytes(16)
    other = log.source._position()
    log.feed.reader.key = key
    assert all(
        entry[mark] != mine[mark]
        for entry, mine in zip(other["files"], position["files"], strict=True)
        for mark in ("head", "before")
    )


def test_predecessors_are_known_by_their_names_and_ordered_by_them(tmp_path):
    names = ["log.jsonl.10.gz", "log.jsonl.3.gz", "log.jsonl.2", "log.jsonl.1", "log.jsonl"]
    for name in [*names, "log.jsonl.2.gz", "log.jsonl.old", "log.json.1", "other.jsonl.1", "log.jsonl.1.part"]:
        (tmp_path / name).touch()
    assert [path.name for path in files_of_log(tmp_path / "log.jsonl")] == names
    dated = ["log-2026-01-09-9.csv.gz", "log-2026-01-09-10.csv", "log.csv-20260131", "log.csv-20260201.gz"]
    for name in dated[:2]:
        (tmp_path / name).touch()
    assert [path.name for path in files_of_log(tmp_path / "log.csv")] == dated[:2]
    for name in dated[2:]:
        assert rotation_of(name, "log.csv").dated
    assert rotation_of("log.csv.2026013100-1769817600", "log.csv").age == (2026013100, 1769817600)
    (tmp_path / "log.csv.1").touch()
    with pytest.raises(InputError, match=r"some predecessors of log\.csv have a number and some a date"):
        files_of_log(tmp_path / "log.csv")


def test_only_a_log_that_is_followed_can_be_continued(tmp_path):
    log = Log(tmp_path)
    with pytest.raises(InputError, match="give --follow as well"):
        open_source(log.path, continue_with=log.path)


class Chance:
    """A log to which anything happens that may, in any order: it is renamed and created, or else copied and cut."""

    def __init__(self, log: Log, seed: int) -> None:
        self.log, self.chance = log, random.Random(seed)
        self.copied = False  # and not cut yet
        self.happenings = [self.append, self.look, self.die, self.compress, self.forget]
        self.happenings += [self.copy] if seed % 2 else [self.rotate, self.lag]

    def live(self, happenings: int) -> None:
        often = [8, 6, 2, 1, 1, 2, 3][: len(self.happenings)]
        self.log.follow()
        for happening in self.chance.choices(self.happenings, often, k=happenings):
            self.log.at(self.log.clock.now() / SECOND + self.chance.choice([0, 0, 0.5, 3, 9]))
            happening()
        if self.copied:
            self.cut()

    def append(self) -> None:
        if not self.copied:  # what comes between copying and cutting is lost by whoever rotates
            self.log.path.exists() or self.log.create()
            self.log.append(self.chance.choice([1, 1, 2, 9]))

    def lag(self) -> None:
        before = self.log.predecessor(".1")
        if before.exists():
            self.log.append(1, before)

    def look(self) -> None:
        self.log.poll(all_of_it=self.chance.random() < 0.5)

    def die(self) -> None:
        self.log.follow()

    def rotate(self) -> None:
        if self.log.path.exists():
            self.log.rotate(create=self.chance.random() < 0.7)

    def compress(self) -> None:
        self.log.compress(2 if self.copied else self.chance.choice([1, 2]))

    def copy(self) -> None:
        if self.copied:
            self.cut()
        elif self.log.path.exists() and self.log.path.read_text().count("\n") > 3:
            path = self.log.path.rename(self.log.path.with_name("kept"))
            self.log.rotate(create=False)
            path.rename(self.log.path)
            shutil.copy(self.log.path, self.log.predecessor(".1"))
            self.copied = True

    def cut(self) -> None:
        self.log.create()
        self.copied = False

    def forget(self) -> None:
        """Remove the oldest files, once all that was in them is released."""
        self.log.poll()
        self.log.at(self.log.clock.now() / SECOND + 10)
        self.log.poll()
        for path in self.log.path.parent.iterdir():
            rotation = rotation_of(path.name, self.log.path.name)
            if rotation is not None and rotation.age < (-4,):
                path.unlink()


@pytest.mark.parametrize("seed", range(10))
def test_whatever_happens_to_a_log_each_event_counts_once(log, seed):
    Chance(log, seed).live(80)
    assert log.counted() == log.written
