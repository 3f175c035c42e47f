"""Files of events as counts: every event in its step and bin, and a sentence for what is no event."""

from __future__ import annotations

import datetime
import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.errors import InputError
from eventide.events.files import lines
from eventide.streams.event_files import count_events

START = datetime.datetime(2024, 2, 28, 22, 30)


@pytest.fixture
def events(tmp_path):
    """A thousand events of two days around a leap day in CSV, and the same as (time, bin) pairs."""
    random = np.random.default_rng(4)
    times = [START + datetime.timedelta(seconds=int(second)) for second in random.integers(0, 2 * 86_400, 1000)]
    pairs = list(zip(times, random.choice(["north", "south", "85123A"], 1000).tolist(), strict=True))
    path = tmp_path / "events.csv"
    path.write_text("timestamp,user,bin\n" + "".join(f"{time},someone,{place} \n" for time, place in pairs))
    return path, pairs


@pytest.mark.parametrize(("step", "seconds"), [("1h", 3600), ("7min", 420), ("1d", 86_400)])
def test_every_event_counts_in_its_step_and_bin(events, monkeypatch, step, seconds):
    monkeypatch.setattr(lines, "BLOCK", 2000)  # so that the file comes in several batches
    path, pairs = events
    counts, bins, _ = count_events(path, step, start="2024-02-28", until="2024-03-03", bins=["west"])
    assert bins == ("85123A", "north", "south", "west")
    expected = np.zeros((-(-4 * 86_400 // seconds), 4), dtype=int)
    for time, place in pairs:
        passed = (time - datetime.datetime(2024, 2, 28)).total_seconds()
        expected[int(passed // seconds), bins.index(place)] += 1
    assert np.array_equal(counts, expected)


def test_without_ends_the_first_and_last_event_are_inside(events):
    path, pairs = events
    counts, *_ = count_events(path, "1h")
    first, last = min(pairs)[0], max(pairs)[0]
    begin = first.replace(minute=0, second=0)
    assert len(counts) == (last - begin).total_seconds() // 3600 + 1
    assert counts.sum() == 1000
    assert counts[0].any()
    assert counts[-1].any()


def test_what_lies_outside_is_left_out(events):
    path, pairs = events
    counts, *_ = count_events(path, "1h", start="2024-02-29", until="2024-02-29 12:00")
    noon, midnight = datetime.datetime(2024, 2, 29, 12), datetime.datetime(2024, 2, 29)
    assert len(counts) == 12
    assert counts.sum() == sum(midnight <= time < noon for time, _ in pairs)


def test_the_start_is_inside_and_the_end_is_not(tmp_path):
    times = ("06:00", "07:59:59.9", "08:00")
    rows = [f"2024-01-01 {time},a\n" for time in times]
    (tmp_path / "events.csv").write_text("timestamp,bin\n" + "".join(rows))
    counts, *_ = count_events(tmp_path / "events.csv", "1h", "2024-01-01 06:00", "2024-01-01 08:00")
    assert counts.tolist() == [[1], [1]]


def test_a_parquet_file_may_hold_timestamps_and_other_names(tmp_path, events):
    _, pairs = events
    table = pa.table({"when": [time for time, _ in pairs], "where": [place for _, place in pairs]})
    pq.write_table(table, tmp_path / "events.parquet")
    read = count_events(tmp_path / "events.parquet", "1h", time="when", bin="where")
    written = count_events(events[0], "1h")
    assert np.array_equal(read.counts, written.counts)


@pytest.mark.parametrize(
    ("text", "keywords", "words"),
    [
        ("timestamp,bin\n2024-01-01,a\nyesterday,a\n2024-01-02,a\n", {}, "row 2 has no time in column 'timestamp'"),
        ("timestamp,bin\n2024-01-01,a\n,a\n", {}, "row 2 has no time in column 'timestamp'"),
        ("timestamp,bin\n2024-01-01,a\n\nnever,a\n", {}, "row 3 has no time in column 'timestamp'"),
        ("timestamp,bin\n2024-01-01,a\n2024-01-01,a,b\n2024-01-01,a\n", {}, "row 2 cannot be read"),
        ("timestamp,bin\n", {}, "has no rows"),
        ("time,bin\n2024-01-01,a\n", {}, "no column 'timestamp'. Its first line"),
        ("timestamp,bin\n20240101,a\n20240102,a\n", {}, "numbers that read like dates"),
        ("time;bin\n2024-01-01;a\n", {}, "semicolons between names and no comma, and only commas are read"),
        ("timestamp,bin\n2024-01-01,a\n", {"start": "soon"}, "'soon' is no time"),
        ("timestamp,bin\n2024-01-01,a\n", {"until": "2023-01-01"}, "until 2023-01-01 does not lie after the start"),
        ("timestamp,bin\n2024-01-01,a\n2024-01-02,a\n", {"step": "0h"}, "no duration"),
        ("timestamp,bin\n1024-01-01,a\n2024-01-02,a\n", {"step": "1ms"}, "are too many; use a longer step"),
    ],
)
def test_what_is_no_event_is_refused(tmp_path, text, keywords, words):
    (tmp_path / "events.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        count_events(tmp_path / "events.csv", **{"step": "1h"} | keywords)


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-20], lambda data: data[:40] + b"?" * 20 + data[60:], bytes.lower]
)
def test_a_damaged_file_is_refused(tmp_path, events, damage):
    whole = gzip.compress(events[0].read_bytes(), mtime=0)
    (tmp_path / "events.csv.gz").write_bytes(whole)
    assert count_events(tmp_path / "events.csv.gz", "1h").counts.sum() == 1000
    (tmp_path / "events.csv.gz").write_bytes(damage(whole))
    with pytest.raises(InputError, match="damaged or cut short"):
        count_events(tmp_path / "events.csv.gz", "1h")


def test_json_lines_and_offsets_are_read_as_the_publisher_reads_them(tmp_path):
    rows = [{"timestamp": "2024-01-01T01:30+01:00", "bin": "b"}, {"timestamp": "2024-01-01 01:30", "bin": "a"}]
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts, bins, _ = count_events(tmp_path / "events.jsonl", "1h")
    assert bins == ("a", "b")
    assert counts.tolist() == [[0, 1], [1, 0]]


def test_an_empty_time_of_a_parquet_file_is_refused(tmp_path):
    pq.write_table(pa.table({"timestamp": [START, None], "bin": ["a", "a"]}), tmp_path / "events.parquet")
    with pytest.raises(InputError, match="row 2 has no time"):
        count_events(tmp_path / "events.parquet", "1h")
