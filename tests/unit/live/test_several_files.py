"""Folders, patterns, lists of files and Hive partitions: one promise over all files, as if they were one."""

from __future__ import annotations

import gzip
import json
import os
import random
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from eventide.errors import InputError
from eventide.events.files import lines as event_lines
from eventide.events.files.members import find_members
from eventide.events.reader import Columns, EventReader
from eventide.events.timeline import Timeline
from eventide.live.feeds.base import Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.open_source import open_source

KEY = bytes(range(16))
ROWS = [(f"2026-01-0{1 + hour // 24}T{hour % 24:02}:30:00Z", f"user {hour * user % 7}", "ab"[user % 3 > 0])
        for hour in range(60) for user in range(4)]  # fmt: skip
NAMES = ("time", "user", "bin")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Many blocks, so that what happens between them is seen."""
    monkeypatch.setattr(event_lines, "BLOCK", 500)


def write(path, rows, names=NAMES):
    path.parent.mkdir(parents=True, exist_ok=True)
    dicts = [dict(zip(names, row, strict=True)) for row in rows]
    match path.name.partition(".")[2]:
        case "parquet":
            pa_parquet.write_table(pa.Table.from_pylist(dicts), path, row_group_size=17)
        case "csv" | "csv.gz" as ending:
            text = "\n".join([",".join(names), *(",".join(row) for row in rows), ""]).encode()
            path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
        case _:
            path.write_text("".join(json.dumps(row) + "\n" for row in dicts))
    return path


def feed_of(source, names=NAMES):
    reader = EventReader(["a", "b"], Columns(*names))
    return EventFeed(open_source(source), Timeline("2026-01-01", "1h"), reader, max_per_step=2)


def steps_of(source, resume=None, names=NAMES):
    with closing(feed_of(source, names)) as feed:
        return [step for step in feed.steps(resume or Resume(0, None, KEY, [])) if step is not None]


def counts_of(steps):
    return [step.counts.tolist() for step in steps]


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return counts_of(steps_of(write(tmp_path_factory.mktemp("one") / "events.csv", ROWS)))


@pytest.fixture
def folder(tmp_path):
    """The rows in any order over files of every kind, with what other programs leave beside them."""
    rows = random.Random(3).sample(ROWS, len(ROWS))
    names = ["e.csv", "a.parquet", "b/c.jsonl", "b/a.csv.gz", "d.ndjson"]
    for number, name in enumerate(names):
        write(tmp_path / "logs" / name, rows[number :: len(names)])
    write(tmp_path / "logs" / "empty.csv", [])
    for name in ("_SUCCESS", ".part.crc", "_temporary/half.csv", ".git/x.csv"):
        (tmp_path / "logs" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "logs" / name).write_text("nothing")
    return tmp_path / "logs"


def test_a_folder_is_as_one_file_with_all_rows(folder, expected):
    assert len(expected) == 60
    assert counts_of(steps_of(folder)) == expected
    names = [member.name for member in find_members(folder)]
    assert names == sorted(names) == ["a.parquet", "b/a.csv.gz", "b/c.jsonl", "d.ndjson", "e.csv", "empty.csv"]


def test_a_pattern_and_a_list_mean_files(folder, expected):
    assert counts_of(steps_of(f"{folder}/**/*.*")) == expected
    assert counts_of(steps_of([folder / "b", f"{folder}/?.*", str(folder / "empty.csv")])) == expected
    assert counts_of(steps_of([folder / "e.csv", folder / "e.csv"])) == counts_of(steps_of(folder / "e.csv"))
    named = write(folder.parent / "a[1].csv", ROWS)  # a file may be named like a pattern
    assert counts_of(steps_of(named)) == expected


def test_reading_goes_on_from_any_position(folder, expected):
    steps = steps_of(folder)
    assert len({step.position["number"] for step in steps}) > 1
    for step in steps[::7]:
        position = json.loads(json.dumps(step.position))
        again = steps_of(folder, Resume(step.index + 1, position, KEY, []))
        assert counts_of(again) == expected[step.index + 1 :]


def test_reading_goes_on_in_the_file_where_it_stood(tmp_path, expected):
    for number, name in enumerate(("a.csv", "b.parquet", "c.jsonl", "d.csv.gz")):
        write(tmp_path / name, ROWS[number * 60 : (number + 1) * 60])
    steps = steps_of(tmp_path)
    assert {step.position["number"] for step in steps} == {0, 1, 2, 3}
    for step in steps[::7]:
        with closing(feed_of(tmp_path)) as feed:
            again = feed.steps(Resume(step.index + 1, step.position, KEY, []))
            assert counts_of(step for step in again if step is not None) == expected[step.index + 1 :]
            assert feed.counters.again <= 20  # those of a block, not of the files before


@pytest.mark.parametrize("change", ["added", "removed", "renamed", "changed"])
def test_other_files_are_refused_after_a_part_was_published(folder, change):
    position = steps_of(folder)[5].position
    match change:
        case "added":
            write(folder / "zz.csv", ROWS[:1])
        case "removed":
            (folder / "empty.csv").unlink()
        case "renamed":
            (folder / "empty.csv").rename(folder / "still.csv")
        case "changed":
            write(folder / "e.csv", ROWS[:5])
    says = "one of the files has changed" if change == "changed" else "files were added, removed or renamed"
    with pytest.raises(InputError, match=f"{says} since a part of them was published; give the same files"):
        steps_of(folder, Resume(6, position, KEY, []))


def test_a_file_is_known_again_from_the_first_step_on(tmp_path):
    path = write(tmp_path / "events.csv", ROWS[::-1])  # so that all steps are open until the last block
    position = steps_of(path)[0].position
    write(path, ROWS[10:])
    with pytest.raises(InputError, match=r"events\.csv has changed or is another file since a part of it"):
        steps_of(path, Resume(1, position, KEY, []))


def test_a_folder_of_one_file_is_that_file(folder, tmp_path):
    path = write(tmp_path / "single" / "events.csv", ROWS)
    position = steps_of(path)[5].position
    assert set(position) == {"at", "file"}  # as a single file always had it
    assert steps_of(tmp_path / "single", Resume(6, position, KEY, []))[0].index == 6


def test_what_cannot_be_one_source_is_refused(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty holds no file of events"):
        open_source(tmp_path / "empty")
    with pytest.raises(InputError, match=r"no file is named like .*csvs; check the pattern"):
        open_source(f"{folder}/*.csvs")
    with pytest.raises(InputError, match="there is no file to read"):
        open_source([])
    with pytest.raises(InputError, match="absent is not a file or folder"):
        open_source(folder / "absent")
    with pytest.raises(InputError, match="only one file can be followed"):
        open_source(folder, follow=True)
    with pytest.raises(InputError, match="an address or - stands alone"):
        open_source([folder, "nats://secret@127.0.0.1/EVENTS"])
    (folder / "latest.csv").symlink_to(folder / "e.csv")
    with pytest.raises(InputError, match=r"latest\.csv and e\.csv are one file, which would count twice"):
        open_source(folder)
    (folder / "latest.csv").unlink()
    (folder / "notes.txt").write_text("about")
    with pytest.raises(InputError, match=r"notes\.txt ends in none of .*; move it away, or give a pattern"):
        open_source(folder)
    (folder / "notes.txt").unlink()
    (folder / "_delta_log").mkdir()
    with pytest.raises(InputError, match="is a Delta table, whose files also hold rows that were removed"):
        open_source(folder)


@pytest.mark.parametrize("name", ["b/z.parquet", "b/z.csv.gz", "b/z.csv"])
def test_a_member_that_cannot_be_read_is_refused_by_its_name(folder, name):
    (folder / name).write_bytes(b"")
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        open_source(folder)


def test_a_member_that_ends_too_early_is_refused_before_a_step_comes_out(folder):
    for name, size in (("b/a.csv.gz", -9), ("a.parquet", -4)):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2] + bytes(20) + content[size:])
        with pytest.raises(InputError, match=name.replace(".", r"\.") + " cannot be read"):
            steps_of(folder)
        (folder / name).write_bytes(content)
    if os.geteuid():
        (folder / "d.ndjson").chmod(0)
        with pytest.raises(InputError, match=r"d\.ndjson cannot be opened"):
            open_source(folder)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_folders_named_column_and_value_are_columns(tmp_path, expected, ending):
    for place in "ab":
        for user in {user for _, user, _ in ROWS}:
            rows = [(row[0],) for row in ROWS if row[1:] == (user, place)]
            quoted = user.replace(" ", "%20")
            write(tmp_path / "set" / f"bin={place}" / f"user={quoted}" / f"part-0.{ending}", rows, ("time",))
    assert counts_of(steps_of(tmp_path / "set")) == expected
    assert counts_of(steps_of(f"{tmp_path}/set/bin=*/*/*.{ending}")) == expected


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_partition_may_be_the_day_or_have_no_value(tmp_path, ending):
    for day in ("2026-01-02", "2026-01-01", "__HIVE_DEFAULT_PARTITION__"):
        write(tmp_path / f"day={day}" / f"part.{ending}", [("ann", "a"), ("bob", "b")], ("user", "bin"))
    steps = steps_of(tmp_path, names=("day", "user", "bin"))
    assert counts_of(steps)[::24] == [[1, 1], [1, 1]]
    assert len(steps) == 25


def test_a_column_of_the_file_counts_before_that_of_a_folder(tmp_path):
    for ending in ("parquet", "csv", "jsonl"):
        write(tmp_path / "bin=a" / f"part.{ending}", [("2026-01-01", f"ann {ending}", "b")])
    assert counts_of(steps_of(tmp_path)) == [[0, 3]]


def test_the_first_row_that_is_refused_is_told_with_its_file(folder):
    write(folder / "a.csv", [("never", "ann", "a")] * 300)
    reader = EventReader(["a", "b"], Columns(*NAMES))
    feed = EventFeed(open_source(folder), Timeline("2026-01-01", "1h"), reader, until="2026-01-01T01:00")
    with pytest.raises(InputError, match=r"column 'time', first at row 1 of a\.csv"):
        list(feed.steps(Resume(0, None, KEY, [], check_first_rows=True)))
