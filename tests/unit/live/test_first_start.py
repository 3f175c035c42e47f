"""A live source whose start nobody gave is measured from its first start on: the clock decides it, never its events."""

import os
from contextlib import closing

import pytest

import eventide as ev
from eventide.errors import InputError
from eventide.events.clock import ManualClock
from eventide.events.reader import Columns, EventReader
from eventide.events.timeline import Timeline
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.publisher.setup import passed_over, past_of_pipe
from eventide.live.sources.line_by_line import PipeLines
from eventide.live.sources.standard_input import StandardInput
from eventide.live.stores.open_store import open_store
from eventide.releases.lines import read_line

MINUTE = 60_000_000
MIDNIGHT = 20_500 * 1_440 * MINUTE  # of some day
PAST = '{"timestamp": "2026-02-16T00:01:30Z", "bin": "a"}\n'
HOW = {"step": "1min", "follow": True}


def published(log, store, minutes, until, **options):
    """Follow a log from so many minutes past midnight on, up to a step."""
    clock = ManualClock(MIDNIGHT + round(minutes * MINUTE))
    mechanism = ev.Uniform(epsilon=1, window=3, bins=["a", "b"])
    with ev.Publisher(log, mechanism, store, clock=clock, **HOW, **options) as publisher:
        said = passed_over(publisher.feed, publisher.next_step, publisher.measured_from)
        publisher.run(until=until)
    with closing(open_store(store, read_only=True)) as kept:
        fresh = [read_line(release).fresh for _, release in kept.releases()]
        return fresh, sorted({entry.step for entry in kept.entries()}), said


#  0     1     2     3     4        a minute each; late by half of one
#  |-----|-----|-----|-----|
#                 ^ started here: step 1 is over, and events of step 2 may still come
@pytest.mark.parametrize("lines", ["", PAST])
@pytest.mark.parametrize(("late", "first"), [(None, 3), ("30s", 2)])
def test_steps_that_were_over_at_the_first_start_are_not_measured(tmp_path, lines, late, first):
    (tmp_path / "log.jsonl").write_text(lines)
    fresh, charged, said = published(tmp_path / "log.jsonl", tmp_path / "s.db", 3.25, 5, late=late)
    assert fresh == [False] * first + [True] * (5 - first)
    assert charged == list(range(first, 5))
    assert f"steps before step {first} (2026-02-16T00:0{first}:00+00:00) are not measured and cost no budget" in said


def test_a_start_that_was_given_asks_for_the_past(tmp_path):
    (tmp_path / "log.jsonl").write_text(PAST)
    fresh, charged, said = published(tmp_path / "log.jsonl", tmp_path / "s.db", 3.25, 5, start="2026-02-16")
    assert fresh == [True] * 5
    assert charged == [0, 1, 2, 3, 4]
    assert said is None


def test_a_store_that_was_begun_measures_what_it_missed(tmp_path):
    (tmp_path / "log.jsonl").touch()
    assert published(tmp_path / "log.jsonl", tmp_path / "s.db", 0.5, 2)[1] == [0, 1]
    fresh, charged, said = published(tmp_path / "log.jsonl", tmp_path / "s.db", 9.5, 8)
    assert all(fresh)
    assert charged == list(range(8))
    assert said is None


def test_a_check_says_where_measuring_begins(tmp_path):
    (tmp_path / "log.jsonl").touch()
    clock = ManualClock(MIDNIGHT + 7 * MINUTE)
    found = ev.Publisher.check(tmp_path / "log.jsonl", ev.Uniform(epsilon=1, window=3, bins=2), clock=clock, **HOW)
    assert (found.next_step, found.epoch.measured_from) == (0, 7)


@pytest.fixture
def history():
    """A pipe that holds an event of the past."""
    reading, writing = os.pipe()
    os.write(writing, PAST.encode())
    os.close(writing)
    yield reading
    os.close(reading)


def of_pipe(pipe, minutes, until, kind=StandardInput):
    clock = ManualClock(MIDNIGHT + round(minutes * MINUTE))
    reader = EventReader(["a", "b"], Columns("timestamp", None, "bin"))
    return EventFeed(kind(pipe, clock), Timeline("2026-02-16", "1min"), reader, clock, until=until)


@pytest.mark.parametrize("kind", [StandardInput, PipeLines])
def test_a_pipe_that_is_opened_when_all_is_over_is_refused_before_anything_is_charged(tmp_path, history, kind):
    def begin(until, store=tmp_path / "s.db"):
        feed = of_pipe(history, 3.25, f"2026-02-16T00:0{until}", kind)
        return ev.Publisher(feed, ev.Uniform(epsilon=1, window=3, bins=["a", "b"]), store)

    with pytest.raises(InputError, match="were over before standard input was opened"):
        begin(3)
    with closing(open_store(tmp_path / "s.db", read_only=True)) as kept:
        assert kept.epochs() == []
    assert past_of_pipe(of_pipe(history, 3.25, None), 0).startswith("steps before step 3 (2026-02-16T00:03:00+00:00) ")
    assert past_of_pipe(of_pipe(history, 3.25, None), 3) is None


def test_what_was_over_before_a_pipe_was_opened_costs_nothing(history):
    feed = of_pipe(history, 3.25, "2026-02-16T00:05")
    with ev.Publisher(feed, ev.Uniform(epsilon=1, window=3, bins=["a", "b"])) as publisher:
        assert (publisher.next_step, publisher.measured_from) == (0, 3)
