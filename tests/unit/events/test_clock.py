"""The machine's clock when it jumps: nothing of the future is sealed, nothing that arrives goes uncounted."""

from __future__ import annotations

import logging
import os

import pytest

from eventide.events.clock import BELIEVED_AFTER, JUMP, SECOND, ManualClock, SystemClock, steady_nanoseconds
from eventide.events.reader import Columns, EventReader, Events
from eventide.events.timeline import Timeline
from eventide.live.feeds.base import Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.base import EventBatch
from eventide.live.sources.growing_file import GrowingFile
from eventide.live.sources.standard_input import StandardInput
from eventide.service import pushed_feed
from eventide.service.pushed_feed import PushedFeed
from eventide.service.step_notices import StepNotices

HOUR = 3_600 * SECOND
KEY = bytes(range(16))


class Machine:
    """A machine whose clock can be set, and the clock that lives on it; `true` is what time it is."""

    def __init__(self, now: int = 0) -> None:
        self.true, self.wrong_by, self.slept = now, 0, 0
        self.clock = SystemClock(lambda: (self.true + self.wrong_by) * 1_000, lambda: (self.true - self.slept) * 1_000)

    def after(self, microseconds: int, wrong_by: int | None = None) -> tuple[int, int]:
        """Let time pass and perhaps set the clock; then what time it is, and what is certain."""
        self.true += microseconds
        if wrong_by is not None:
            self.wrong_by = wrong_by
        return self.clock.now(), self.clock.certain()


@pytest.fixture
def said(caplog):
    """The warnings so far."""
    caplog.set_level(logging.WARNING, "eventide.live")
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_clock_that_runs_evenly_is_told_as_it_is(said):
    machine = Machine(100)
    assert machine.clock.certain() == 100
    assert machine.after(7) == (107, 107)
    assert machine.after(HOUR) == (107 + HOUR, 107 + HOUR)
    assert said() == []


def test_small_corrections_are_followed_and_the_time_never_goes_back(said):
    # true       1 h    1 h    1 h + 2 s   2 h
    # shown     -1 s   -2 s    -3 s        -3 s + 1 s
    machine = Machine()
    assert machine.after(HOUR, -SECOND) == (HOUR - SECOND,) * 2
    assert machine.after(0, -2 * SECOND) == (HOUR - SECOND,) * 2
    assert machine.after(2 * SECOND, -3 * SECOND) == (HOUR - SECOND,) * 2
    assert machine.after(HOUR, -2 * SECOND) == (2 * HOUR,) * 2
    assert said() == []


@pytest.mark.parametrize(("jump", "word"), [(HOUR, "forward"), (-HOUR, "back")])
def test_a_jump_that_is_taken_back_changes_nothing_but_that_steps_wait(said, jump, word):
    machine = Machine(HOUR)
    assert machine.after(SECOND, jump) == (HOUR + SECOND, HOUR)
    assert machine.after(8 * SECOND) == (HOUR + 9 * SECOND, HOUR)
    assert machine.after(SECOND, 0) == (HOUR + 10 * SECOND,) * 2
    first, second = said()
    assert first.startswith(f"the machine's clock was set {word} by 3600 seconds; no step is released until")
    assert "is back where it was" in second


def test_a_jump_forward_that_stays_is_believed_after_a_while(said):
    machine = Machine()
    assert machine.after(SECOND, HOUR) == (SECOND, 0)
    assert machine.after(BELIEVED_AFTER - 1) == (SECOND + BELIEVED_AFTER - 1, 0)
    assert machine.after(1) == (HOUR + SECOND + BELIEVED_AFTER,) * 2
    assert "is trusted again" in said()[-1]


def test_a_jump_back_that_stays_is_believed_and_time_stands_still_until_it_is_reached_again(said):
    machine = Machine(HOUR)
    machine.after(0, -HOUR)
    assert machine.after(BELIEVED_AFTER - 1) == (HOUR + BELIEVED_AFTER - 1, HOUR)
    assert machine.after(1) == (HOUR, HOUR)
    assert "steps until 1970-01-01T01:00:00+00:00 are released already" in said()[-1]
    assert machine.after(HOUR - BELIEVED_AFTER - 1) == (HOUR, HOUR)
    assert machine.after(2) == (HOUR + 1, HOUR + 1)


def test_a_clock_that_jumps_about_is_not_believed(said):
    machine = Machine()
    for minute in range(20):
        now, certain = machine.after(60 * SECOND, HOUR + 2 * JUMP * (minute % 2))
        assert (now, certain) == ((minute + 1) * 60 * SECOND, 0)
    assert len(said()) == 1


def test_where_the_steady_clock_stops_while_the_machine_sleeps_that_is_a_jump_which_is_believed():
    machine = Machine()
    machine.slept = HOUR
    assert machine.after(HOUR + SECOND) == (SECOND, 0)
    assert machine.after(BELIEVED_AFTER) == (HOUR + SECOND + BELIEVED_AFTER,) * 2


def test_the_steady_clock_of_this_machine_runs_on():
    assert 0 < steady_nanoseconds() <= steady_nanoseconds()


# Feeds on such a clock.


def reader() -> EventReader:
    return EventReader(["a"], Columns("time", None))


def event(moment: int) -> dict:
    return {"time": f"{moment // SECOND}.{moment % SECOND:06}", "bin": "a"}


class Pushed:
    """The service's feed of steps of a second, and all steps that it has closed."""

    def __init__(self, machine: Machine, next_step: int = 0) -> None:
        self.closed: list[tuple[int, int]] = []
        self.feed = PushedFeed(Timeline("1970-01-01", "1s"), reader(), machine.clock, StepNotices(next_step - 1))
        self._steps = self.feed.steps(Resume(next_step, None, KEY, []))
        self.look()

    def look(self) -> None:
        """Close what is due, and find that nothing more is."""
        before = None
        while before != (before := len(self.closed)):
            while (closed := next(self._steps)) is not None:
                self.closed.append((closed.index, closed.counts.tolist()[0]))

    def send(self, *moments: int) -> None:
        with self.feed.arrivals.stamp() as arrival:
            self.feed.submit(self.feed.reader.read([event(moment) for moment in moments]), arrival)
            self.look()


@pytest.fixture
def pushed(monkeypatch):
    monkeypatch.setattr(pushed_feed, "LOOK_UP", 0.001)
    return Pushed


def test_an_hour_forward_for_eight_seconds_releases_nothing_of_the_future(pushed):
    # true     0 ....... 10 ........ 18 ........ 20 s
    # clock    right     an hour on   right
    machine = Machine()
    service = pushed(machine)
    for second in range(1, 20):
        machine.after(SECOND, HOUR if 10 <= second < 18 else 0)
        service.send(machine.true)
        if second < 18:
            assert service.closed[-1:] == [(min(second, 9) - 1, int(second > 1))]
    assert service.closed == [(0, 0), *((step, 1) for step in range(1, 19))]
    machine.after(SECOND)
    service.send(*(machine.true + number for number in range(20)))
    machine.after(SECOND)
    service.look()
    assert service.closed[-2:] == [(19, 1), (20, 20)]
    assert (service.feed.totals.accepted, service.feed.totals.late, service.feed.totals.refused) == (39, 0, {})


def test_a_store_that_is_ahead_of_the_clock_is_told_of_and_every_event_is_counted_somewhere(pushed, said):
    machine = Machine(100 * SECOND)
    service = pushed(machine, next_step=3_600)
    (warning,) = said()
    assert warning.startswith("the store is ahead of this machine's clock: steps are released up to 1970-01-01T01:00")
    service.send(*(machine.true + number for number in range(20)))
    service.send(machine.true, machine.true + HOUR)
    assert (service.feed.totals.accepted, service.feed.totals.late) == (0, 21)
    assert service.feed.totals.refused == {"in the future": 1}
    assert len(said()) == 1
    machine.after(HOUR)
    service.send(machine.true)
    assert service.feed.totals.accepted == 1


def test_a_source_that_is_ahead_of_the_clock_is_told_of_once(said):
    feed = EventFeed(None, Timeline("1970-01-01", "10s"), reader(), ManualClock(30 * SECOND))
    feed.begin(Resume(3, None, KEY, []))
    for seconds in (40, 50, 60):
        feed.take(EventBatch(Events.none(), None, seconds * SECOND))
        assert len(list(feed.closed())) == 1
    (warning,) = said()
    assert warning.startswith(
        "the store is ahead of this machine's clock: steps are released up to 1970-01-01T00:00:40"
    )


class Doubted(ManualClock):
    """A clock of which no more is certain than what it was set to at first."""

    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.certain_until: int | None = now

    def certain(self) -> int:
        return self.now() if self.certain_until is None else self.certain_until


def test_a_growing_file_waits_while_the_clock_is_in_doubt_and_misses_nothing(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("time,bin\n")
    clock = Doubted(5 * SECOND)
    source = GrowingFile(path, clock)
    feed = EventFeed(source, Timeline("1970-01-01", "10s"), reader(), clock)
    feed.begin(Resume(0, None, KEY, []))
    source.open(None, feed.reader)
    closed = []
    for seconds in (6, 12, 200):
        clock.set(seconds * SECOND)
        with path.open("a") as file:
            file.write(f"{seconds - 1},a\n")
        feed.take(source.poll(0))
        closed.append([step.index for step in feed.closed()])
    clock.certain_until = None
    feed.take(source.poll(0))
    assert closed == [[], [], []]
    assert [step.index for step in feed.closed() if step.counts.any()] == [0, 1, 19]
    assert feed.counters.accepted == 3
    feed.close()


def test_standard_input_waits_while_the_clock_is_in_doubt():
    reading, writing = os.pipe()
    clock = Doubted(5 * SECOND)
    source = StandardInput(reading, clock)
    source.open(None, reader())
    clock.set(12 * SECOND)
    assert source.poll(0).seen_until == 5 * SECOND
    os.write(writing, b"time,bin\n11,a\n")
    batch = source.poll(10)
    assert (batch.seen_until, batch.events.arrival.tolist()) == (5 * SECOND, [12 * SECOND])
    os.close(reading)
    os.close(writing)
