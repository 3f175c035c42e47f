"""Sums from the source to the release: in the units of the values, with the promise that holds for them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from command_words import with_last
from rides import EXACT, NAMES, START, UNTIL, as_lines, frame_of, write_rides
from rides import STREAM as RIDES

import eventide as ev
from eventide.cli import main
from eventide.errors import InputError
from eventide.events.reader import Columns, EventReader
from eventide.events.statistic_names import parse_statistic
from eventide.events.timeline import Timeline
from eventide.live.feeds.base import Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.publisher.setup import check_fit
from eventide.live.sources.base import EventBatch
from eventide.live.stream_spec import StreamSpec

ROWS = [
    ("2026-01-01T00:10", "anna", "north", "12.5"),
    ("2026-01-01T00:20", "anna", "south", "7"),
    ("2026-01-01T00:30", "ben", "north", "1e9"),  # cut to 120
    ("2026-01-01T00:40", "cleo", "north", "much"),  # refused, as the next two are
    ("2026-01-01T01:40", "cleo", "north", ""),
    ("2026-01-01T01:50", "cleo", "north", "inf"),
    ("2026-01-01T02:30", "ben", "south", "-3"),  # cut to 0
    ("2026-01-01T02:40", "anna", "south", "3.26"),
]
SUMS = [[132.5, 7], [0, 0], [0, 3.5]]
FRAME = frame_of(ROWS)
STREAM = RIDES | {"statistic": "sum:fare", "between": "fare=0,120,0.5"}


@pytest.fixture
def source(tmp_path):
    return write_rides(tmp_path, ROWS)


def called(source, *more, between="fare=0,120,0.5"):
    words = ["publish", source, "--epsilon", 1, "--window", 2, "--step", "1h", "--start", START, "--until", UNTIL]
    words += ["--user", "user", "--bins", source.with_name("bins.txt"), "--mechanism", "uniform", "--max-per-step", 2]
    words += ["--statistic", "sum:fare", "--between", between]
    return CliRunner().invoke(main, with_last(*words, *more))


def test_frames_and_files_are_summed_in_the_units_of_their_values(source, tmp_path):
    (tmp_path / "rides.jsonl").write_text(as_lines(ROWS))
    for given in (FRAME, source, tmp_path / "rides.jsonl"):
        released = ev.publish(given, **STREAM, **EXACT)
        assert released.to_arrow()["value"].to_pylist() == [value for row in SUMS for value in row]
        assert released.operators_only.refused == {"value cannot be read": 3}
        assert released.operators_only.cut_to_range == {"fare": 2 / 8}
        assert "25.0% of fare were cut to the range" in str(released.operators_only)
        assert set(released.to_arrow()["scale"].to_pylist()) == {2 * 240.0}  # two fares, over a window of two steps


def test_a_publisher_sums_a_path(source, tmp_path):
    mechanism = ev.Uniform(epsilon=1, window=2, bins=["north", "south"], sensitivity=480, noise=ev.noise.Zero())
    own = {name: STREAM[name] for name in ("step", "start", "until", "user", "statistic", "between")}
    with ev.Publisher(source, mechanism, None, [tmp_path / "out.jsonl"], **own) as publisher:
        publisher.run()
    assert [json.loads(line)["values"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == SUMS
    other = ev.Uniform(epsilon=1, window=2, bins=["north", "south"], sensitivity=2)
    with pytest.raises(InputError, match="one person adds up to 240 to a step and the mechanism's sensitivity is 2"):
        ev.Publisher(source, other, None, **own)


def test_a_pipe_is_summed_through_the_tallies_that_a_store_keeps():
    spec, kept = StreamSpec(**STREAM), []
    feed, again = EventFeed(None, **spec.counting()), EventFeed(None, **spec.counting())
    feed.begin(Resume(0, None, bytes(16), [], lambda tallies, _: kept.extend(tallies) or True))
    for row in ROWS:  # one by one, each kept before it counts
        feed.take(EventBatch(feed.reader.read([dict(zip(NAMES, row, strict=True))]), None, 0))
    again.begin(Resume(0, None, bytes(16), kept))
    again.take(EventBatch(again.reader.read([]), None, again.timeline.end(2)))
    assert [(step.counts / 2).tolist() for step in again.closed()] == SUMS


def test_the_guarantee_says_what_a_unit_is_and_how_values_are_hidden():
    told = str(ev.publish(FRAME, **STREAM).guarantee)
    assert "one person adds at most 240 (480 units of 0.5) to the sums of fare, over all bins together." in told
    assert "Values of fare are cut to the range from 0 to 120 and rounded to units of 0.5." in told
    assert "are hidden with epsilon as well" in told
    narrow = str(ev.publish(FRAME, **STREAM | {"between": "fare=90,120,0.5"}).guarantee)
    assert "it is known that somebody's events happened, their values are hidden with 0.25 times epsilon" in narrow


def test_a_cap_is_worth_for_sums_what_it_is_for_events():
    capped = STREAM | {"window": 9, "cap": "2/9"}
    released = ev.publish(FRAME, **capped, **EXACT)
    assert released.to_arrow()["value"].to_pylist()[:2] == SUMS[0]
    events = StreamSpec(**capped | {"statistic": "events", "between": ""}).build_mechanism()
    sums = StreamSpec(**capped).build_mechanism()
    assert sums.window_sensitivity == 240 * events.window_sensitivity
    assert sums.ledger.nano_epsilon == events.ledger.nano_epsilon
    assert "Of each person only the first 2 events count in every block of 9 hours" in str(released.guarantee)
    assert "the sums of fare change by at most 960 (1920 units of 0.5), over all steps" in str(released.guarantee)
    other = ev.Uniform(1, 9, ["north", "south"], sensitivity=480, window_sensitivity=960)
    promise = EventFeed(None, **StreamSpec(**capped).counting()).promise()
    with pytest.raises(InputError, match=f"this one has 960; make it {sums.window_sensitivity}"):
        check_fit(other, promise)


def test_the_command_publishes_sums_and_a_store_keeps_to_their_range(source, tmp_path):
    places = ("--store", tmp_path / "store.db", "--out", tmp_path / "out.jsonl")
    done = called(source, *places)
    assert done.exit_code == 0, done.output
    assert "sums of fare" in done.stderr
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [2 * value % 1 for line in lines for value in line["values"]] == [0] * 6  # whole units
    assert called(source, *places).exit_code == 0
    other = called(source, *places, "--new-epoch", between="fare=0,60")
    assert other.exit_code == 2
    assert "steps.between (fare=0,120,0.5 before, fare=0,60,0.06 now)" in other.stderr


def test_what_a_store_is_exported_to_holds_the_unit_of_the_values(source, tmp_path):
    """A column `statistic` stands only where there are several."""
    done = called(source, "--epsilon", 10**6, "--store", tmp_path / "store.db", "--out", tmp_path / "out.sqlite")
    assert done.exit_code == 0, done.output
    for name, layout in (("long.parquet", "long"), ("wide.csv", "wide")):
        words = ["export", tmp_path / "store.db", "--layout", layout, "--out", tmp_path / name]
        assert CliRunner().invoke(main, [*map(str, words)]).exit_code == 0
    flat = [value for row in SUMS for value in row]
    with closing(sqlite3.connect(tmp_path / "out.sqlite")) as connection:
        rows = connection.execute("SELECT value FROM releases ORDER BY step, bin").fetchall()
    assert [value for (value,) in rows] == flat
    table = pq.read_table(tmp_path / "long.parquet")
    assert table["value"].to_pylist() == flat
    assert "statistic" not in table.column_names
    lines = (tmp_path / "wide.csv").read_text().splitlines()[1:]
    assert [list(map(float, line.split(",")[2:4])) for line in lines] == SUMS


def test_a_dry_run_predicts_errors_in_the_units_of_values(source):
    told = json.loads(called(source, "--dry-run", "--json").stdout)
    assert told["smallest_error_of_a_look"] == 480


def test_without_people_every_value_is_somebody_elses():
    released = ev.publish(FRAME, **STREAM | {"user": None, "max_per_step": 1}, **EXACT)
    assert released.to_arrow()["value"].to_pylist() == [value for row in SUMS for value in row]
    assert "every event is taken for a person of its own" in str(released.guarantee)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"between": ""}, "sum:fare needs the range of fare; give it with between, such as fare=0,100"),
        ({"between": "tip=0,9"}, "between is about tip, and sum:fare is not"),
        ({"statistic": "events"}, "between is about fare, and events is not"),
        ({"between": "fare=9,0"}, "is no range"),
        ({"levels": {}}, "levels: sum:fare cannot be published with it"),
        ({"queries": [ev.Query(2, 1)], "queries_epsilon": 0.5}, "queries: sum:fare cannot be published with it"),
    ],
)
def test_what_does_not_go_together_is_refused(change, says):
    with pytest.raises(InputError, match=says):
        StreamSpec(**STREAM | change)


def test_a_feed_refuses_a_statistic_whose_values_nobody_reads():
    reader = EventReader(["north"], Columns(user="user"))
    with pytest.raises(InputError, match="the reader of the events and the statistic have different ranges"):
        EventFeed(None, Timeline(START, "1h"), reader, statistic=parse_statistic("sum:fare", "fare=0,1"))


def test_a_column_that_is_missing_is_named():
    with pytest.raises(InputError, match="fare"):
        ev.publish({name: FRAME[name] for name in NAMES[:3]}, **STREAM)
