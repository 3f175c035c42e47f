"""Files, growing files and standard input as sources: what they hand over, where they stand, what they refuse."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairwise import pairwise

from eventide.errors import InputError
from eventide.events.clock import ManualClock
from eventide.events.files import lines as event_lines
from eventide.events.files.parquet_file import ParquetFile
from eventide.events.reader import Columns, EventReader
from eventide.events.timeline import Timeline
from eventide.live.feeds.base import ClosedStep, Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.open_feed import open_feed
from eventide.live.sources import log_file, standard_input
from eventide.live.sources.complete_files import CompleteFiles
from eventide.live.sources.file_marks import mark_of_file
from eventide.live.sources.growing_file import GrowingFile
from eventide.live.sources.open_source import open_source
from eventide.live.sources.standard_input import StandardInput

KEY = bytes(range(16))
SECOND = 1_000_000
ROWS = [(time, f"user {time * 7 % 13}", "ab"[time % 3 > 0]) for time in range(0, 600, 3)]
ENDINGS = [".csv", ".csv.gz", ".jsonl", ".ndjson", ".jsonl.gz", ".parquet"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Many blocks, so that what happens between them is seen."""
    monkeypatch.setattr(event_lines, "BLOCK", 200)
    monkeypatch.setattr(log_file, "BLOCK", 200)
    for module in (event_lines, log_file, standard_input):
        monkeypatch.setattr(module, "LONGEST_LINE", 150)


def lines_of(rows, ending: str) -> str:
    if ending == ".csv":
        return "".join(f"{time},x,{user},{place}\n" for time, user, place in rows)
    return "".join(json.dumps({"time": str(time), "user": user, "bin": place}) + "\n" for time, user, place in rows)


def write(path: Path, rows=ROWS) -> Path:
    ending = path.name.removesuffix(".gz")[path.name.index(".") :]
    if ending == ".parquet":
        names = ("time", "user", "bin")
        table = pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
        pa_parquet.write_table(table, path, row_group_size=17)
        return path
    text = ("time,more,user,bin\n" if ending == ".csv" else "") + lines_of(rows, ending)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def reader_of() -> EventReader:
    return EventReader(["a", "b"], Columns("time"))


def feed_of(source, **options) -> EventFeed:
    return EventFeed(source, Timeline("1970-01-01", "10s"), reader_of(), max_per_step=2, **options)


def steps_of(source, resume: Resume | None = None, **options) -> list[ClosedStep]:
    feed = feed_of(source, **options)
    try:
        return [step for step in feed.steps(resume or Resume(0, None, KEY, [])) if step is not None]
    finally:
        feed.close()


def counts_of(steps) -> list[list[int]]:
    return [step.counts.tolist() for step in steps]


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> list[list[int]]:
    return counts_of(steps_of(open_source(write(tmp_path_factory.mktemp("plain") / "events.csv"))))


def test_a_file_gives_the_counts_of_all_its_steps(expected):
    assert len(expected) == 60
    assert np.sum(expected) == len(ROWS)


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_gives_the_same(tmp_path, expected, ending):
    assert counts_of(steps_of(open_source(write(tmp_path / f"events{ending}")))) == expected


@pytest.mark.parametrize("ending", [".csv", ".jsonl.gz", ".parquet"])
def test_the_order_of_rows_does_not_matter(tmp_path, expected, ending):
    shuffled = random.Random(5).sample(ROWS, len(ROWS))
    assert counts_of(steps_of(open_source(write(tmp_path / f"events{ending}", shuffled)))) == expected
    nearly = [*ROWS[10:30], *ROWS[:10], *ROWS[30:]]
    assert counts_of(steps_of(open_source(write(tmp_path / f"nearly{ending}", nearly)))) == expected


def moments(unit, rows=ROWS, zone="UTC"):
    """A table whose times are moments."""
    times, users, bins = zip(*rows, strict=True)
    told = pa.array(times, pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp(unit, zone))
    return pa.table({"time": told, "user": users, "bin": bins})


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_what_a_parquet_file_says_of_its_times_saves_a_pass(tmp_path, expected, monkeypatch, unit):
    shuffled = random.Random(5).sample(ROWS, len(ROWS))
    asked = []
    rows = ParquetFile.rows
    monkeypatch.setattr(ParquetFile, "rows", lambda *given: asked.append(given[2]) or rows(*given))
    for name, saved in (("with", True), ("without", False)):
        path = tmp_path / f"{name}.parquet"
        pa_parquet.write_table(moments(unit, shuffled), path, row_group_size=17, write_statistics=saved)
        assert counts_of(steps_of(open_source(path))) == expected
        assert (["time"] in asked) == (not saved)


def test_times_without_a_zone_are_read_since_they_may_go_back(tmp_path):
    table = moments("us", zone=None)
    pa_parquet.write_table(table, tmp_path / "events.parquet")
    assert ParquetFile(tmp_path / "events.parquet").earliest(0, "time") is None
    pa_parquet.write_table(moments("us"), tmp_path / "events.parquet")
    (earliest,) = ParquetFile(tmp_path / "events.parquet").earliest(0, "time")["time"].to_pylist()
    assert (earliest.timestamp(), ParquetFile(tmp_path / "events.parquet").earliest(0, "user")) == (0, None)


def test_a_file_that_says_wrong_times_is_refused(tmp_path, monkeypatch):
    pa_parquet.write_table(moments("us"), tmp_path / "events.parquet")
    later = moments("us", ROWS[100:]).select(["time"])[:1]
    monkeypatch.setattr(ParquetFile, "earliest", lambda *given: later)
    with pytest.raises(InputError, match="says wrong times"):
        steps_of(open_source(tmp_path / "events.parquet"))


@pytest.mark.parametrize("ending", ENDINGS)
def test_reading_goes_on_from_any_position(tmp_path, expected, ending):
    path = write(tmp_path / f"events{ending}")
    steps = steps_of(open_source(path))
    assert len({str(step.position) for step in steps}) > 5
    for step in steps[::7]:
        position = json.loads(json.dumps(step.position))
        again = steps_of(open_source(path), Resume(step.index + 1, position, KEY, []))
        assert counts_of(again) == expected[step.index + 1 :]


@pytest.fixture
def passes(monkeypatch) -> list[int]:
    """Where each pass over a file of lines began."""
    begun: list[int] = []
    plain = event_lines.LineFile.blocks

    def counted(self, begin: int):
        begun.append(begin)
        return plain(self, begin)

    monkeypatch.setattr(event_lines.LineFile, "blocks", counted)
    return begun


def opened(path: Path) -> EventFeed:
    """A feed whose start is taken from the data, so that the times are looked through before it is begun."""
    feed = open_feed(path, ["a", "b"], step="10s", time="time", user="user", max_per_step=2)
    assert isinstance(feed, EventFeed)
    return feed


def pulled(feed: EventFeed, resume: Resume | None = None) -> list[ClosedStep]:
    with contextlib.closing(feed):
        return [step for step in feed.steps(resume or Resume(0, None, KEY, [])) if step is not None]


@pytest.mark.parametrize("ending", [".csv", ".jsonl.gz"])
def test_a_complete_file_is_passed_over_once_for_times_and_once_to_read(tmp_path, expected, passes, ending):
    path = write(tmp_path / f"events{ending}")
    steps = pulled(opened(path))
    assert counts_of(steps) == expected
    assert passes == [0, 0]
    position = json.loads(json.dumps(steps[30].position))
    again = pulled(opened(path), Resume(31, position, KEY, []))
    assert counts_of(again) == expected[31:]
    assert passes[2:] == [0, position["at"]]


def test_times_are_looked_through_again_where_they_were_found_in_something_else(
    tmp_path, expected, passes, monkeypatch
):
    path = write(tmp_path / "events.csv")
    position = steps_of(open_source(path))[30].position
    feed = opened(path)
    monkeypatch.setattr(event_lines, "BLOCK", 333)  # an earlier version may have read other blocks
    elsewhere = opened(path)
    passes.clear()
    assert counts_of(pulled(elsewhere, Resume(31, position, KEY, []))) == expected[31:]
    assert passes == [position["at"], position["at"]]
    write(path, [*ROWS, (600, "user 1", "a")])
    passes.clear()
    assert counts_of(pulled(feed)) == [*expected, [1, 0]]
    assert passes == [0, 0]


def test_few_steps_of_a_sorted_file_are_open_at_a_time(tmp_path):
    feed = feed_of(open_source(write(tmp_path / "events.csv")))
    most = 0
    for _ in feed.steps(Resume(0, None, KEY, [])):
        most = max(most, len(feed._open))
    feed.close()
    assert most < 10


def test_a_file_that_changed_is_not_gone_on_with(tmp_path):
    path = write(tmp_path / "events.csv")
    position = steps_of(open_source(path))[5].position
    path.write_text(path.read_text() + "600,x,ann,a\n")
    with pytest.raises(InputError, match=r"events\.csv has changed"):
        steps_of(open_source(path), Resume(6, position, KEY, []))


@pytest.mark.parametrize("ending", ENDINGS)
def test_another_file_of_the_same_length_is_not_gone_on_with(tmp_path, ending):
    path = write(tmp_path / f"events{ending}")
    position = steps_of(open_source(path))[5].position
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    with pytest.raises(InputError, match=f"events{ending} has changed or is another file"):
        steps_of(open_source(path), Resume(6, position, KEY, []))
    path.write_bytes(data)
    assert steps_of(open_source(path), Resume(6, position, KEY, []))[0].index == 6


def test_the_mark_of_a_file_is_keyed_and_of_all_its_parts(tmp_path):
    path = tmp_path / "events.csv"
    data = os.urandom(1 << 20)
    path.write_bytes(data)
    mark = mark_of_file(path, KEY)
    assert mark == mark_of_file(path, KEY) != mark_of_file(path, bytes(16))
    for begin in range(0, len(data), 1 << 16):
        path.write_bytes(data[:begin] + bytes(1 << 15) + data[begin + (1 << 15) :])
        assert mark_of_file(path, KEY) != mark
    path.write_bytes(b"")
    assert mark_of_file(path, KEY) != mark


TOO_LONG = pairwise(
    {"ending": [".csv", ".csv.gz", ".jsonl", ".jsonl.gz"], "length": [151, 2000], "place": [0, 77, len(ROWS)]},
    fits=lambda case: True,
)


@pytest.mark.parametrize(("ending", "length", "place"), [tuple(case.values()) for case in TOO_LONG])
def test_a_line_that_is_too_long_is_refused_alone(tmp_path, expected, ending, length, place):
    before, after = (lines_of(rows, ending.removesuffix(".gz")) for rows in (ROWS[:place], ROWS[place:]))
    text = ("time,more,user,bin\n" if "csv" in ending else "") + before + "x" * length + "\n" + after
    path = tmp_path / f"events{ending}"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    feed = feed_of(open_source(path))
    steps = [step for step in feed.steps(Resume(0, None, KEY, [])) if step]
    feed.close()
    assert counts_of(steps) == expected
    assert feed.counters.refused == {"row cannot be read": 1}
    again = steps_of(open_source(path), Resume(21, steps[20].position, KEY, []))
    assert counts_of(again) == expected[21:]


def test_a_line_may_be_as_long_as_is_said_and_not_longer():
    for length, refused in ((150, 0), (151, 1)):
        for before, after in ((b"", b""), (b"a\n", b""), (b"", b"\n"), (b"b\n" * 99, b"\nc\n" + b"d\n" * 99)):
            lines = before + b"x" * length + after
            kept = lines if not refused else before + after.removeprefix(b"\n")
            assert event_lines.without_long_lines(lines) == (kept, refused)


def test_lines_that_are_no_rows_are_counted_and_left_out(tmp_path):
    csv = tmp_path / "events.csv"
    csv.write_bytes(b'time,user,bin\n1,ann,a\n2,bob\n3,cy,b,c,d\n\n4,\xff\xfe,b\n5,"d,e",a')
    jsonl = tmp_path / "events.jsonl"
    jsonl.write_bytes(
        b'{"time": 1, "user": "ann", "bin": "a"}\n[2]\n{"time": 3\n\n'
        b'{"time": "4", "user": 7.0, "bin": "b", "more": [1]}\n{"time": 5, "user": 8, "bin": "a"}'
    )
    for path in (csv, jsonl):
        feed = feed_of(open_source(path))
        assert counts_of(step for step in feed.steps(Resume(0, None, KEY, [])) if step) == [[2, 1]]
        feed.close()
        assert feed.counters.refused == {"row cannot be read": 2}


csv_line = st.text('12,"ab \ufeff\r\\', max_size=12).map(lambda text: text.encode() + b"\n")
json_value = st.sampled_from(['"a"', "1", "null", "[1]", '{"user": 2}', '"', "{", "}", '"\\ud800"', "NaN", ""])
json_line = st.one_of(
    st.tuples(json_value, json_value).map(
        lambda pair: f'{{"time": 1, "user": {pair[0]}, "bin": {pair[1]}}}\n'.encode()
    ),
    st.sampled_from(
        [b'{"time": 1, "more":\n', b"}\n", b"\n", b"[" * 100_000 + b"\n", b'{"time": 1}{"time": 2}\n', b"\xff\n"]
    ),
)


@pytest.mark.parametrize(
    ("lines", "form"),
    [
        (csv_line, event_lines.CsvLineReader(b"time,user,bin", "a file")),
        (csv_line, event_lines.CsvLineReader(b"user,time,bin", "a file")),
        (json_line, event_lines.JsonLineReader()),
    ],
    ids=["csv", "csv, users first", "json"],
)
@given(data=st.data())
def test_no_line_changes_what_is_read_from_another(lines, form, data):
    """Each line is somebody's, so a quote or bracket left open must cost nobody else an event."""

    def read(block: bytes) -> tuple[list, int]:
        events = reader.read(*form.rows(block, reader.wanted)[:2])
        return [*zip(*(column.tolist() for column in events[:3]), strict=True)], events.refused.total()

    reader = EventReader(["a"], Columns("time", "user"), other="b")
    reader.key = KEY
    drawn = data.draw(st.lists(lines, max_size=6))
    parts = [read(line) for line in drawn]
    together = [event for events, _ in parts for event in events], sum(refused for _, refused in parts)
    assert read(b"".join(drawn)) == together


def test_a_quote_left_open_is_refused_alone(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text('time,user,bin\n1,"ann,a\n2,bob,a\n3,"c ""y"" d",b\n4,e",b\n5,f,"')
    feed = feed_of(open_source(path))
    assert counts_of(step for step in feed.steps(Resume(0, None, KEY, [])) if step) == [[1, 2]]
    feed.close()
    assert feed.counters.refused == {"row cannot be read": 2}


def test_the_first_time_of_a_file_is_found_wherever_it_stands(tmp_path):
    path = write(tmp_path / "events.csv", [*ROWS[40:], (100, "ann", "a"), *ROWS[50:]])
    source = open_source(path)
    assert isinstance(source, CompleteFiles)
    assert source.first_time(reader_of()) == 100 * SECOND
    source.close()
    source = open_source(write(tmp_path / "none.csv", [("never", "ann", "a")]))
    with pytest.raises(InputError, match=r"column 'time' of none\.csv holds no time that can be read; say how"):
        source.first_time(reader_of())
    reader = EventReader(["a", "b"], Columns("time"), time_format="ms")
    with pytest.raises(InputError, match=r"of none\.csv holds no time that --time-format 'ms' describes; correct"):
        source.first_time(reader)
    source.close()


def empty_table():
    return pa.table({name: pa.array([], pa.string()) for name in ("time", "user", "bin")})


@pytest.mark.parametrize("name", ["events.csv", "events.jsonl", "events.parquet"])
def test_a_file_without_rows_is_not_taken_for_one_of_strange_times(tmp_path, name):
    (tmp_path / name).write_bytes(b"time,user,bin\n" if name == "events.csv" else b"")
    if name == "events.parquet":
        pa_parquet.write_table(empty_table(), tmp_path / name)
    source = open_source(tmp_path / name)
    with pytest.raises(InputError, match=f"{name} has no rows; look whether all of it was delivered"):
        source.first_time(reader_of())
    source.close()


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("events.csv", b"time,bin\n1,a\n", "no column 'user'. Its first line must name all columns; say which"),
        ("events.csv", b"time,user,bin,user\n1,a,b,c\n", "has 2 columns 'user'"),
        ("events.csv", b"time;user;bin\n1;a;b\n", "semicolons between names and no comma, and only commas are read"),
        ("events.csv", b"", "is empty or begins with an empty line"),
        ("events.csv", b"\xff\xfe\n", "the first line of events.csv is not in UTF-8; save the file in UTF-8"),
        ("events.csv", b"time,user,bin\r,more\n", r"first line of events\.csv has a carriage return inside"),
        (
            "events.csv",
            gzip.compress(b"time,user,bin\n", mtime=0),
            r"is compressed \(gzip\).*rename it so that it ends in \.gz",
        ),
        ("events.csv", b"PAR1\n", r"is Parquet.*rename it so that it ends in \.parquet"),
        ("events.csv.gz", gzip.compress(b"time,user,bin\n" + os.urandom(3000).hex().encode())[:-600], "damaged or cut"),
        ("events.parquet", b"PAR1 nonsense", "cannot be read as a Parquet file"),
        ("events.xlsx", b"", "ends in none of .csv, .jsonl"),
    ],
)
def test_bad_files_are_refused_with_a_sentence(tmp_path, name, content, fault):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=fault):
        steps_of(open_source(tmp_path / name))


def test_a_parquet_file_without_a_column_is_refused(tmp_path):
    pa_parquet.write_table(pa.table({"time": [1], "bin": ["a"]}), tmp_path / "events.parquet")
    with pytest.raises(InputError, match="no column 'user'; its columns are time, bin"):
        steps_of(open_source(tmp_path / "events.parquet"))


def test_a_missing_file_and_one_that_cannot_be_followed_are_refused(tmp_path):
    with pytest.raises(InputError, match="is not a file"):
        open_source(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="cannot be followed"):
        open_source(write(tmp_path / "events.csv.gz"), follow=True)
    with pytest.raises(InputError, match="make an empty file if the log has yet to begin"):
        open_source(tmp_path / "absent.csv", follow=True)
    growing = open_source(write(tmp_path / "events.csv"), follow=True)
    assert isinstance(growing, GrowingFile)
    growing.close()


# Growing files, on a clock that moves when told.


class Growing:
    """A file that grows, the feed that follows it, and the clock both live by."""

    def __init__(self, path: Path, now: float = 0, resume: Resume | None = None) -> None:
        self.clock = ManualClock(round(now * SECOND))
        self.source = GrowingFile(path, self.clock)
        self.feed = feed_of(self.source)
        self.feed.begin(resume or Resume(0, None, KEY, []))
        try:
            self.source.open(resume.position if resume else None, self.feed.reader)
        except InputError:
            self.feed.close()
            raise
        self.path = path

    def at(self, seconds: float, text: str = "") -> list[tuple[int, list[int]]]:
        """Append, let time pass up to a moment, look, and give the steps that close."""
        with self.path.open("a") as file:
            file.write(text)
        self.clock.set(round(seconds * SECOND))
        self.steps: list[ClosedStep] = []
        caught_up = False
        while not caught_up:
            self.feed.take(self.source.poll(0))
            caught_up = self.source._caught_up
            self.steps += self.feed.closed()
        return [(step.index, step.counts.tolist()) for step in self.steps]


@pytest.fixture
def growing(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("time,user,bin\n")
    growing = Growing(path)
    yield growing
    growing.feed.close()


def test_a_growing_file_closes_steps_on_the_clock(growing):
    # looks    1        4      11         25
    # lines    1a       2b     12a
    # step     |-- 0 --------| 10 |-- 1 -----| 20
    assert growing.at(1, "1,ann,a\n") == []
    assert growing.at(4, "2,bob,b\n") == []
    assert growing.at(11, "12,cy,a\n") == [(0, [1, 1])]
    assert growing.at(25) == [(1, [1, 0])]
    assert growing.at(26, "15,dan,a\n22,dan,b\n") == []
    assert growing.feed.counters.late == 1


def test_a_torn_last_line_is_left_until_it_is_complete(growing):
    assert growing.at(1, "1,ann,a\n2,bo") == []
    assert growing.at(2, "b,") == []
    assert growing.at(9, "b\n") == []
    assert growing.at(10) == [(0, [1, 1])]
    assert growing.feed.counters.refused == {}


def test_many_lines_are_read_before_the_source_has_seen_so_far(growing):
    lines = "".join(f"{5 + number / 100},user {number},b\n" for number in range(100))
    assert growing.at(30, lines) == [(0, [0, 100]), (1, [0, 0]), (2, [0, 0])]


def test_after_a_restart_steps_that_fell_due_wait_for_the_first_look(growing):
    # looks    11     down          45     50
    # lines    1a 12b     13a 31a          44b
    # step     0 closes             1..3   4
    assert growing.at(11, "1,ann,a\n12,bob,b\n") == [(0, [1, 0])]
    position = json.loads(json.dumps(growing.steps[-1].position))
    with growing.path.open("a") as file:
        file.write("13,cy,a\n31,dan,a\n")
    again = Growing(growing.path, 45, Resume(1, position, KEY, []))
    assert again.at(45) == [(1, [1, 1]), (2, [0, 0]), (3, [1, 0])]
    assert again.at(50, "44,eve,b\n") == [(4, [0, 1])]
    again.feed.close()


@pytest.mark.parametrize(
    "position",
    [{"at": 30, "file": "0" * 32}, {"at": 30, "number": 1, "file": "0" * 32, "names": "0" * 32}, {"offsets": {"0": 5}}],
    ids=["a file", "files", "a broker"],
)
def test_a_store_published_from_something_else_goes_on_with_a_growing_file_from_its_beginning(tmp_path, position):
    path = write(tmp_path / "log.csv", [(1, "ann", "a"), (12, "bob", "b")])
    growing = Growing(path, 45, Resume(1, position, KEY, []))
    assert growing.at(45, "31,x,dan,a\n") == [(1, [0, 1]), (2, [0, 0]), (3, [1, 0])]
    assert growing.feed.counters.again == 1
    growing.feed.close()


def test_cells_go_on_with_a_growing_file_whatever_the_store_was_published_from(tmp_path):
    path = write(tmp_path / "log.csv", [(1, "ann", "a"), (12, "bob", "b")])
    feed = feed_of(open_source(path, ManualClock(45 * SECOND), follow=True, one_by_one=True))
    steps = feed.steps(Resume(1, {"at": 30, "file": "0" * 32}, KEY, []))
    assert next(step.counts.tolist() for step in steps if step is not None) == [0, 1]
    feed.close()


@pytest.mark.parametrize("position", [{"files": [{"at": 30, "head": "0" * 32}]}, {"offsets": {"0": 5}}])
def test_a_store_published_from_a_source_that_goes_on_is_not_gone_on_with_by_complete_files(tmp_path, position):
    with pytest.raises(InputError, match=r"from a source that goes on, so complete files cannot .* --follow again"):
        steps_of(open_source(write(tmp_path / "events.csv")), Resume(6, position, KEY, []))


def test_what_a_pipe_kept_of_open_steps_does_not_count_again_when_its_log_is_followed(tmp_path):
    path, kept = write(tmp_path / "log.csv", [(1, "ann", "a"), (12, "bob", "b")]), []
    keep = lambda tallies, _: kept.extend(tallies) or True  # noqa: E731
    with path.open() as lines:
        feed = feed_of(StandardInput(lines.fileno(), ManualClock(15 * SECOND)))
        steps = [step.index for step in feed.steps(Resume(0, None, KEY, [], keep)) if step is not None]
    assert (steps, [step for step, _ in kept]) == ([0], [1])
    growing = Growing(path, 45, Resume(1, None, KEY, kept))
    assert growing.at(45)[0] == (1, [0, 1])
    growing.feed.close()


def test_a_growing_file_may_begin_empty_and_get_its_header_later(tmp_path):
    path = tmp_path / "log.csv"
    path.touch()
    growing = Growing(path)
    assert growing.at(1) == []
    assert growing.at(2, "time,us") == []
    assert growing.at(3, "er,bin\n") == []
    assert growing.at(10, "4,ann,b\n") == [(0, [0, 1])]
    growing.feed.close()


@pytest.mark.parametrize("length", [151, 250, 1000])
@pytest.mark.parametrize("piece", [7, 100, 5000])
def test_a_line_that_is_too_long_does_not_stop_a_growing_file(growing, length, piece):
    text = "1,ann,a\n" + "x" * length + "\n2,bob,b\n" + "y" * length + "\n3,cy,b\n"
    for begin in range(0, len(text), piece):
        assert growing.at(4, text[begin : begin + piece]) == []
    assert growing.at(10) == [(0, [1, 2])]
    assert growing.feed.counters.refused == {"row cannot be read": 2}


def test_a_restart_inside_a_line_that_is_too_long_refuses_the_whole_of_it(growing):
    assert growing.at(10, "1,ann,a\n" + "x" * 1000) == [(0, [1, 0])]
    position = json.loads(json.dumps(growing.steps[-1].position))
    again = Growing(growing.path, 11, Resume(1, position, KEY, []))
    assert again.at(12, "11,ann,a\n11,bob,b\n") == []
    assert again.at(20) == [(1, [0, 1])]
    assert again.feed.counters.refused == {"row cannot be read": 1}
    again.feed.close()


def test_a_file_of_json_lines_grows_too(tmp_path):
    path = tmp_path / "log.jsonl"
    path.touch()
    growing = Growing(path)
    assert growing.at(1, '{"time": 1, "user": 5, "bin": "a"}\n{"time": 2') == []
    assert growing.at(10, ', "user": 5, "bin": "a"}\n') == [(0, [2, 0])]
    growing.feed.close()


# Standard input.


@pytest.fixture
def pipe():
    """A source that reads from a pipe, and what writes into it."""
    output, end = os.pipe()
    with os.fdopen(output, "rb"), os.fdopen(end, "wb", buffering=0) as writer:
        source = StandardInput(output, ManualClock(7))
        reader = reader_of()
        reader.key = KEY
        source.open(None, reader)
        yield source, writer


def test_lines_arrive_when_they_are_read(pipe):
    source, writer = pipe
    assert source.poll(0).seen_until == 7
    writer.write(b'{"time": 1, "user": 5, "bin": "b"}\n{"time": 2, ')
    first = source.poll(0)
    assert (first.events.time.tolist(), first.events.arrival.tolist(), first.position) == ([SECOND], [7], None)
    source._clock.set(9)
    writer.write(b'"user": 6, "bin": "a"}\n')
    second = source.poll(0)
    assert (second.events.time.tolist(), second.events.arrival.tolist(), second.seen_until) == ([2 * SECOND], [9], 9)


def test_standard_input_may_be_csv_and_ends_with_its_writer(pipe):
    source, writer = pipe
    writer.write(b"time,user,bin\n1,ann,a\n2,bob,b\n")
    assert source.poll(0).events.bin.tolist() == [0, 1]
    writer.close()
    assert source.poll(0) is None


@pytest.mark.parametrize(
    "text",
    [b"time,user,bin\n1,ann,a\n2,bob,b", b'{"time": 1, "user": 1, "bin": "a"}\n{"time": 2, "user": 2, "bin": "b"}'],
)
@pytest.mark.parametrize("pieces", [1, 2])
def test_a_last_line_counts_also_without_its_end(pipe, text, pieces):
    source, writer = pipe
    taken = []
    for piece in (text[:-9], text[-9:]) if pieces == 2 else (text,):
        writer.write(piece)
        taken += source.poll(0).events.bin.tolist()
    assert taken == [0]
    writer.close()
    assert source.poll(0).events.bin.tolist() == [1]
    assert source.poll(0) is None


def test_standard_input_with_another_header_is_refused(pipe):
    source, writer = pipe
    writer.write(b"one,two\n1,2\n")
    with pytest.raises(InputError, match="standard input has no column 'time'"):
        source.poll(0)


@pytest.mark.parametrize(
    ("content", "kind"), [(gzip.compress(b"time\n"), "compressed"), (b"PAR1\n", "Parquet")], ids=["gzip", "parquet"]
)
def test_a_pipe_of_no_lines_is_named_as_what_it_is(content, kind):
    with pytest.raises(InputError, match=f"standard input is {kind}.*give the path of the file"):
        event_lines.CsvLineReader(content, "standard input")


@pytest.mark.parametrize("piece", [7, 100, 5000])
def test_a_line_that_is_too_long_does_not_stop_standard_input(pipe, piece):
    source, writer = pipe
    long = b"x" * 1000 + b"\n"
    text = b"time,user,bin\n1,ann,a\n" + long + b"2,bob,b\n" + long + b"3,cy,b\n" + long[:-1]
    bins, refused = [], Counter()
    for begin in range(0, len(text), piece):
        writer.write(text[begin : begin + piece])
        events = source.poll(0).events
        bins += events.bin.tolist()
        refused += events.refused
        assert len(source._torn) <= 151
    writer.close()
    assert bins == [0, 1, 1]
    assert refused + source.poll(0).events.refused == {"row cannot be read": 3}
    assert source.poll(0) is None


def test_a_dash_is_standard_input():
    code = "from eventide.live.sources.open_source import open_source; print(type(open_source('-')).__name__)"
    done = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "StandardInput"
