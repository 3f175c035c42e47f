"""When steps close and which events count, on drawn time lines; positions, kept events, and files of counts."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from eventide.errors import InputError
from eventide.events.reader import Columns, EventReader, Events
from eventide.events.timeline import Timeline
from eventide.live.feeds.base import ClosedStep, Promise, Resume
from eventide.live.feeds.count_feed import CountFeed
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.base import FOREVER, EventBatch
from eventide.streams.count_files import open_counts

KEY = bytes(range(16))
SECOND = 1_000_000


def reader_of(user: str | None = None) -> EventReader:
    return EventReader(["a", "b"], Columns("time", user))


def pushed(resume: Resume | None = None, *, user: str | None = None, **options) -> EventFeed:
    """A feed of steps of ten seconds from 1970 on that is pushed to."""
    feed = EventFeed(None, Timeline("1970-01-01", "10s"), reader_of(user), **options)
    feed.begin(resume or Resume(0, None, KEY, []))
    return feed


def events_of(feed: EventFeed, *rows: tuple[float, str], arrival: float | None = None, user: object = "ann") -> Events:
    """Events (time in seconds, bin) that arrive at one moment, or each when it happens."""
    named = [{"time": str(time), "bin": place, "user": user} for time, place in rows]
    return feed.reader.read(named, arrival=None if arrival is None else round(arrival * SECOND))


def push(
    feed: EventFeed, *rows: tuple[float, str], arrival: float | None = None, seen: float
) -> list[tuple[int, list]]:
    """Push events and give the steps that close."""
    feed.take(EventBatch(events_of(feed, *rows, arrival=arrival), None, round(seen * SECOND)))
    return [(step.index, step.counts.tolist()) for step in feed.closed()]


def test_a_step_closes_when_everything_that_arrived_before_its_end_was_seen():
    # time    0         10        20        30
    # step    |----0----|----1----|----2----|
    # events     a  a      b
    # seen             9   12         20
    feed = pushed()
    assert push(feed, (3, "a"), (6, "a"), seen=9) == []
    assert push(feed, (12, "b"), seen=12) == [(0, [2, 0])]
    assert push(feed, seen=19.999999) == []
    assert push(feed, seen=20) == [(1, [0, 1])]


def test_what_the_bound_leaves_out_is_counted_for_operators():
    feed = pushed(user="user", max_per_step=2)
    ((_, counts),) = push(feed, (3, "a"), (4, "a"), (5, "b"), (6, "b"), (13, "b"), seen=10)
    assert sum(counts) == 2
    assert feed.left_out == 2
    assert push(feed, seen=20) == [(1, [0, 1])]
    assert feed.left_out == 2
    often = [(21.0, "a")] * 3000  # more of one cell than a tally keeps
    push(feed, *often, seen=30)
    assert feed.left_out == 2 + 2998
    everybody = pushed()
    push(everybody, (3, "a"), (4, "a"), (5, "b"), seen=10)
    assert everybody.left_out == 0


def test_an_idle_stream_closes_its_steps_on_time():
    # time    0         10        20        30        40
    # step    |----0----|----1----|----2----|----3----|
    # events     a
    # seen              10            25          37
    feed = pushed()
    assert push(feed, (3, "a"), seen=10) == [(0, [1, 0])]
    assert push(feed, seen=25) == [(1, [0, 0])]
    assert push(feed, seen=37) == [(2, [0, 0])]


def test_equal_times_all_count_and_so_do_those_that_go_back():
    # time    0         10        20
    # step    |----0----|----1----|
    # events      aaa   bb              three at 5, two at 10, in the order 10 5 5 10 5
    feed = pushed(late="1s")
    push(feed, (10, "b"), (5, "a"), (5, "a"), (10, "b"), (5, "a"), arrival=10, seen=10)
    assert push(feed, seen=21) == [(0, [3, 0]), (1, [0, 2])]


def test_an_event_that_arrives_too_late_does_not_count_whether_or_not_its_step_has_closed():
    # time     0         10   13    20
    # step 0   |---------|....|            waits 3 s
    # arrives          a   a  a            at 9, 12.999999 and 13, all happened at 5
    feed = pushed(late="3s")
    feed.take(EventBatch(events_of(feed, (5, "a"), arrival=9), None, 0))
    feed.take(EventBatch(events_of(feed, (5, "a"), arrival=12.999999), None, 0))
    feed.take(EventBatch(events_of(feed, (5, "a"), arrival=13), None, 0))
    assert push(feed, seen=13) == [(0, [2, 0])]
    assert push(feed, (5, "a"), arrival=14, seen=14) == []
    assert (feed.counters.accepted, feed.counters.late) == (2, 2)


def test_a_time_in_the_far_future_is_refused_and_moves_nothing():
    # time    0         10        20                        year 9000
    # step    |----0----|----1----|                             |
    # events      a                                             a
    feed = pushed(ahead="5s")
    assert push(feed, (221_845_392_000, "a"), (4, "a"), arrival=4, seen=4) == []
    assert push(feed, (9, "b"), (9.000001, "b"), arrival=4, seen=9) == []
    assert push(feed, (6, "b"), arrival=8, seen=10) == [(0, [1, 2])]
    assert feed.counters.refused == {"in the future": 2}


def test_what_happened_before_the_start_or_after_the_end_is_refused():
    # time   -10        0         10        20
    #                   |----0----|----1----|
    # events       a    a                  a a
    feed = pushed(until="1970-01-01T00:00:20")
    assert push(feed, (-0.5, "a"), (0, "a"), (19.9, "a"), (20, "a"), seen=1000) == [(0, [1, 0]), (1, [1, 0])]
    assert feed.counters.refused == {"before the start": 1, "after the end": 1}


def test_steps_are_not_closed_twice_when_a_source_sees_less_than_before():
    feed = pushed()
    assert push(feed, seen=20) == [(0, [0, 0]), (1, [0, 0])]
    assert push(feed, (25, "a"), seen=12) == []
    assert push(feed, seen=30) == [(2, [1, 0])]


def test_calendar_days_close_at_local_midnight():
    #           30 March         31 March (23 h)      Berlin
    # UTC  23:00 ------- 23:00 ------------ 22:00
    feed = EventFeed(None, Timeline("2024-03-30", "1d", "Europe/Berlin"), reader_of())
    feed.begin(Resume(0, None, KEY, []))
    seen = [Timeline(text, "1s").start for text in ("2024-03-30T22:59:59", "2024-03-30T23:00", "2024-03-31T22:00")]
    closed = []
    for moment in seen:
        feed.take(EventBatch(Events.none(), None, moment))
        closed.append([step.index for step in feed.closed()])
    assert closed == [[], [0], [1]]


class Scripted:
    """A source that hands over given batches."""

    def __init__(
        self, *batches: EventBatch, complete: bool = False, replays: bool = True, records_arrival: bool = True
    ):
        self.complete, self.replays, self.records_arrival = complete, replays, records_arrival
        self._batches = deque(batches)

    def open(self, position, reader):
        self.opened_at = position

    def poll(self, timeout):
        return self._batches.popleft() if self._batches else None

    def close(self):
        self.opened_at = "closed"


def batch(position: int, seen: float, *rows: tuple[float, str], arrival: float | None = None) -> EventBatch:
    events = events_of(pushed(), *rows, arrival=arrival)
    return EventBatch(events, {"at": position}, round(seen * SECOND))


def pulled(source: Scripted, resume: Resume | None = None, **options) -> list[ClosedStep]:
    feed = EventFeed(source, Timeline("1970-01-01", "10s"), reader_of(), **options)
    return [step for step in feed.steps(resume or Resume(0, None, KEY, [])) if step is not None]


def test_the_position_is_that_of_the_oldest_event_of_a_step_still_open():
    # batch      1       2       3       4       5
    # step 0     a       a
    # step 1                     a
    # step 2             a
    # seen       0       0      10      20      30
    steps = pulled(
        Scripted(
            batch(1, 0, (1, "a")),
            batch(2, 0, (2, "a"), (25, "a"), arrival=2),
            batch(3, 10, (12, "a")),
            batch(4, 20),
            batch(5, 30),
        ),
        late=None,
        ahead="1min",
    )
    assert [(step.index, step.position) for step in steps] == [(0, {"at": 1}), (1, {"at": 1}), (2, {"at": 5})]


def test_a_replay_gives_what_was_open_and_nothing_that_was_released():
    batches = [batch(1, 0, (1, "a"), (15, "b")), batch(2, 10, (3, "b")), batch(3, 20, (16, "a")), batch(4, 30)]
    first, second, third = pulled(Scripted(*batches))
    assert first.position is None  # the first batch has an event of step 1, which is open
    source = Scripted(*batches)
    again = pulled(source, Resume(1, first.position, KEY, []))
    assert source.opened_at is None
    assert [step.counts.tolist() for step in again] == [second.counts.tolist(), third.counts.tolist()]
    assert [step.position for step in again] == [second.position, third.position]


def test_what_comes_again_after_a_restart_and_what_comes_after_its_release_are_counted_apart():
    # step 0 was released before this run, step 1 is in it, and then an event of it comes that had arrived in time
    source = Scripted(batch(1, 0, (1, "a"), (2, "b"), (15, "b")), batch(2, 20), batch(3, 21, (16, "a"), (21, "a")))
    feed = EventFeed(source, Timeline("1970-01-01", "10s"), reader_of())
    assert [step.counts.tolist() for step in feed.steps(Resume(1, None, KEY, [])) if step] == [[0, 1]]
    counters = feed.counters
    assert (counters.again, counters.accepted, counters.late) == (2, 2, 1)


def test_what_comes_after_its_release_and_cannot_come_again_is_late():
    source = Scripted(batch(1, 12, (1, "a"), (12, "b")), replays=False)
    feed = EventFeed(source, Timeline("1970-01-01", "10s"), reader_of())
    assert list(feed.steps(Resume(1, None, KEY, []))) == [None]
    assert (feed.counters.again, feed.counters.accepted, feed.counters.late) == (0, 1, 1)


def test_a_source_that_records_no_arrival_lets_count_what_may_have_come_in_time():
    # looks       8            14          16
    # found       a(5)         a(5) b(12)  a(5)
    # step 0  |---------|  closes at the look at 14, after what was found there
    steps = pulled(
        Scripted(
            batch(1, 8, (5, "a"), arrival=8),
            batch(2, 14, (5, "a"), (12, "b"), arrival=14),
            batch(3, 16, (5, "a"), arrival=16),
            batch(4, 20),
            records_arrival=False,
        )
    )
    assert [(step.index, step.counts.tolist()) for step in steps] == [(0, [2, 0]), (1, [0, 1])]


def test_a_complete_source_ends_with_the_step_of_its_last_event():
    source = Scripted(
        batch(1, 12, (1, "a")), batch(2, 0, (12, "a"), (35, "b"))._replace(seen_until=FOREVER), complete=True
    )
    assert [step.counts.tolist() for step in pulled(source)] == [[1, 0], [1, 0], [0, 0], [0, 1]]


def test_a_complete_source_may_be_told_to_end_later_or_earlier():
    def source() -> Scripted:
        return Scripted(batch(1, 0, (1, "a"), (12, "b"))._replace(seen_until=FOREVER), complete=True)

    assert len(pulled(source(), until="1970-01-01T00:00:45")) == 5
    assert len(pulled(source(), until="1970-01-01T00:00:10")) == 1
    assert pulled(source(), Resume(2, None, KEY, [])) == []


def test_a_complete_source_with_a_wrong_time_is_not_followed_through_the_ages():
    far = Scripted(batch(1, 0, (1, "a"), (100_000_000, "b"))._replace(seen_until=FOREVER), complete=True)
    with pytest.raises(InputError, match="surely a wrong time"):
        pulled(far)


def test_a_wrong_time_before_the_start_is_refused_and_only_keeps_steps_open_for_longer():
    early = batch(1, -60_000_000_000, (5, "a"))
    last = batch(2, 0, (-60_000_000_000, "a"), (7, "b"))._replace(seen_until=FOREVER)
    assert [step.counts.tolist() for step in pulled(Scripted(early, last, complete=True))] == [[1, 1]]


def test_nothing_in_a_complete_source_is_late():
    with pytest.raises(InputError, match="nothing in a complete file is late"):
        EventFeed(Scripted(complete=True), Timeline("1970-01-01", "10s"), reader_of(), late="1s")


def test_open_events_of_a_source_that_cannot_replay_are_kept_before_they_count():
    kept: list[tuple[int, bytes]] = []

    def keep(tallies, key):
        kept.extend(tallies)
        return True

    feed = pushed(Resume(0, None, KEY, [], keep), user="user", max_per_step=2)
    push(feed, (1, "a"), (2, "b"), (11, "a"), arrival=2, seen=2)
    push(feed, (3, "b"), (12, "b"), arrival=3, seen=3)
    assert sorted(step for step, _ in kept) == [0, 0, 1, 1]
    whole = push(feed, (4, "a"), arrival=4, seen=30)
    again = pushed(Resume(0, None, KEY, kept), user="user", max_per_step=2)
    assert push(again, seen=30) == whole
    assert sum(whole[0][1]) == 2


def test_a_batch_that_was_kept_before_is_not_counted_again():
    names: set[str | None] = set()

    def keep(tallies, key):
        known = key in names
        names.add(key)
        return not known

    feed = pushed(Resume(0, None, KEY, [], keep))
    again = EventBatch(events_of(feed, (1, "a")), None, 0, "batch 7")
    feed.take(again)
    feed.take(again)
    assert feed.counters.accepted == 1
    assert push(feed, seen=10) == [(0, [1, 0])]


def test_what_could_not_be_kept_does_not_count():
    def keep(tallies, key):
        raise OSError

    feed = pushed(Resume(0, None, KEY, [], keep))
    with pytest.raises(OSError):
        push(feed, (1, "a"), seen=5)
    feed._keep = None
    assert push(feed, seen=10) == [(0, [0, 0])]
    assert feed.counters.accepted == 0


def test_nothing_is_kept_for_a_source_that_replays_or_is_idle():
    kept = []

    def keep(tallies, key):
        kept.append(key)
        return True

    pulled(Scripted(batch(1, 10, (1, "a"))), Resume(0, None, KEY, [], keep))
    push(pushed(Resume(0, None, KEY, [], keep)), seen=10)
    assert kept == []


def test_the_bound_holds_over_batches_of_one_user():
    feed = pushed(user="user", max_per_step=2)
    for _ in range(5):
        push(feed, (1, "a"), (2, "b"), seen=3)
    ((_, counts),) = push(feed, seen=10)
    assert sum(counts) == 2


def test_a_feed_says_what_its_counts_promise():
    with_users, without = pushed(user="user", max_per_step=3), pushed()
    assert with_users.promise() == Promise("one person", 3, ())
    assert without.promise() == Promise("one person, taking every event for a person of its own", 1, ())
    assert with_users.start_of(2) == "1970-01-01T00:00:20+00:00"
    from_data = EventFeed(Scripted(complete=True), Timeline.around(0, "10s"), reader_of())
    assert from_data.promise().assumptions == (
        "the first step was taken from the data",
        "the last step was taken from the data",
    )
    told = EventFeed(Scripted(complete=True), Timeline("1970-01-01", "10s"), reader_of(), until="1970-01-02")
    assert told.promise().assumptions == ()


def test_a_description_differs_where_steps_or_bounds_do():
    alike = [pushed(), pushed(late="5s")]
    others = [
        pushed(user="user"),
        pushed(user="user", max_per_step=2),
        EventFeed(None, Timeline("1970-01-02", "10s"), reader_of()),
        EventFeed(None, Timeline("1970-01-01", "1min"), reader_of()),
        EventFeed(None, Timeline("1970-01-01", "10s"), EventReader(["a", "b"], Columns("time", None), other="b")),
    ]
    assert alike[0].describe() == alike[1].describe()
    descriptions = [str(feed.describe()) for feed in (alike[0], *others)]
    assert len(set(descriptions)) == len(descriptions)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"max_per_step": 0, "user": "user"}, "at least one event"),
        ({"max_per_step": 2}, "name the column of users"),
        ({"late": "soon"}, "is no duration"),
        ({"until": "later"}, "is no time"),
    ],
)
def test_a_feed_that_makes_no_sense_is_refused(options, fault):
    with pytest.raises(InputError, match=fault):
        pushed(**options)


def test_closing_a_feed_closes_its_source():
    source = Scripted()
    EventFeed(source, Timeline("1970-01-01", "10s"), reader_of()).close()
    assert source.opened_at == "closed"
    pushed().close()


def test_a_file_of_counts_is_a_feed_that_goes_on_where_it_was(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("t,a,b\n0,1,2\n1,3,4\n2,5,6\n")
    feed = CountFeed(open_counts(path))
    steps = list(feed.steps(Resume(1, None, KEY, [])))
    assert [(step.index, step.counts.tolist(), step.position) for step in steps] == [
        (1, [3, 4], None),
        (2, [5, 6], None),
    ]
    assert feed.start_of(1) is None
    assert feed.promise().most is None
    assert len(list(feed.steps(Resume(0, None, KEY, [])))) == 3
    assert isinstance(steps[0].counts, np.ndarray)
    feed.close()
