"""The audit from events to releases: neighbouring lists of events, counted by the feed that publishes them.

So what stands before the counts (the clock, the bounding) is attacked together with the mechanism behind them. Which
events of a person count is decided by a secret key. The guarantee holds for every key, so the attacker is given it: a
list of events is then one stream of counts, and two neighbouring lists are a pair of streams.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Unpack

import numpy as np

from eventide.audit.auditor import AuditOptions, Verdict
from eventide.audit.mechanisms import audit_mechanism
from eventide.audit.pairs import SHORT_TAIL, Pair
from eventide.errors import InputError
from eventide.events.caps import Cap
from eventide.events.durations import milliseconds
from eventide.events.reader import EventReader
from eventide.events.slots import SlotPeople, slots_met
from eventide.events.statistic_names import parse_statistic, with_step
from eventide.events.statistics import EVENTS, SLOTS, Statistic
from eventide.events.timeline import Timeline
from eventide.live.feeds.base import Feed, Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.base import EventBatch, Position

_START = datetime(2024, 1, 1, tzinfo=UTC)
_STEP, HOUR = timedelta(hours=1), "1h"
ALL_STEPS_UP_TO = 3  # of a window: any of them are changed


class Event(NamedTuple):
    """Somebody did something.

    Parameters
    ----------
    time
        When, in steps from the start: 2 is the beginning of step 2, and 2.5 its middle.
    user
        Who did it.
    bin
        The index of the bin it counts in.
    value
        What the column `value` holds, for sums of it.
    """

    time: float
    user: str
    bin: int
    value: float = 1.0


@dataclass(frozen=True)
class EventPair:
    """Two lists of events that one person may turn into one another.

    Parameters
    ----------
    name
        What is special about them.
    events, neighbour
        The two lists. They differ in what one person did at some steps of one window: at each of those steps,
        everything that person did is in one list, and nothing of it in the other.
    steps
        How many steps are published.
    """

    name: str
    events: Sequence[Event]
    neighbour: Sequence[Event]
    steps: int

    def check(self, window: int, bins: int) -> None:
        """Refuse lists that are not neighbours for that many steps, or that do not fit the bins."""
        for event in (*self.events, *self.neighbour):
            if not (0 <= event.time < self.steps and 0 <= event.bin < bins):
                raise InputError(f"{self.name}: {event} lies outside of {self.steps} steps and {bins} bins")
        ours, theirs = _rows(self.events), _rows(self.neighbour)
        changed = [row for row in ours.keys() | theirs.keys() if ours.get(row) != theirs.get(row)]
        if len({user for user, _ in changed}) > 1:
            raise InputError(f"{self.name}: the lists differ in events of several people; neighbours differ in one")
        steps = [step for _, step in changed]
        if not steps or max(steps) - min(steps) >= window:
            raise InputError(f"{self.name}: the lists must differ, and inside {window} consecutive steps only")
        if shared := [step for row, step in zip(changed, steps, strict=True) if row in ours and row in theirs]:
            raise InputError(
                f"{self.name}: at step {min(shared)} the person is in both lists, with different events; of a step a "
                "neighbour has all that the person did, or nothing"
            )

    def counted(
        self,
        bins: int,
        max_per_step: int,
        key: bytes,
        feed: Callable[..., Feed] = EventFeed,
        statistic: Statistic = EVENTS,
    ) -> Pair:
        """The two streams of counts that a feed makes of the lists."""
        slot = statistic.slot if isinstance(statistic, SlotPeople) else HOUR
        timeline = Timeline(_START.isoformat(), slot)
        steps = -(-self.steps // (milliseconds(slot) // milliseconds(HOUR)))
        streams = []
        for events in (self.events, self.neighbour):
            source = _Listed(events)
            reader = EventReader([str(index) for index in range(bins)], grid=statistic.grid)
            bounds: dict[str, Any] = {"max_per_step": max_per_step, "until": timeline.iso(steps)}
            bounds |= {} if statistic is EVENTS else {"statistic": statistic}
            counting = feed(source, timeline, reader, **bounds)
            closed = [step for step in counting.steps(Resume(0, None, key, [])) if step is not None]
            counting.close()
            streams.append(np.stack([step.counts for step in closed]))
        return Pair(self.name, *streams)


def event_pairs(window: int, bins: int, max_per_step: int = 1) -> Iterator[EventPair]:
    """Pairs of event lists worth trying against any bounding.

    In the window a person does as much as counts, far more than that in one bin, or far more in every bin; at all steps
    of one list, or in turn in the one list and the other; and nothing or the same outside of the window.
    """
    before, steps = 2 * window, 3 * window + SHORT_TAIL
    others = _others(steps, bins, max_per_step)
    habits = {"as much as counts": [0] * max_per_step, "far more in one bin": [0] * (5 * max_per_step)}
    if bins > 1:
        habits["far more in every bin"] = [*range(bins)] * (5 * max_per_step)
    for habit, in_bins in habits.items():
        rows = [[Event(step + 0.25, "somebody", bin_) for bin_ in in_bins] for step in range(steps)]
        inside, outside = rows[before : before + window], rows[:before] + rows[before + window :]
        for presence, common in {"otherwise absent": others, "always there": others + _all(outside)}.items():
            yield EventPair(f"{habit}, added, {presence}", common, common + _all(inside), steps)
            if window > 1:
                one, other = common + _all(inside[1::2]), common + _all(inside[::2])
                yield EventPair(f"{habit}, in turn, {presence}", one, other, steps)


def capped_event_pairs(window: int, bins: int, cap: Cap, max_per_step: int = 1) -> Iterator[EventPair]:
    """Pairs of event lists worth trying against any cap, with the window at every place in the blocks of the person.

    In one list the person does nothing at some steps of the window, in the other nothing at some others, so that later
    events count instead: any steps, if the window is short; otherwise at its beginning, and once more at any step and a
    block later. Or the person acts twice as often as counts, for ever, and the first events are in one list only: where
    one event decides about the next, that does not stop behind the window.
    """
    enough = -(-cap.events // max_per_step)  # steps at which a whole block can be used up
    steps = 3 * cap.block + window + SHORT_TAIL
    others = _others(steps, bins, max_per_step)
    rows = [[Event(step + 0.25, "somebody", step % bins)] * max_per_step for step in range(steps)]
    for begin in range(cap.block, 2 * cap.block):
        inside = range(begin, begin + window)
        often = [step for step in range(begin, steps) if (step - begin) % cap.block < 2 * enough]
        ways: list[tuple[str, Iterable[int], Collection[int], Collection[int]]]
        ways = [("twice as often as counts", often, inside[:enough], ())]
        for name, here, there in _one_sided(inside, cap.block, enough):
            ways.append((name, range(begin, steps), here, there))
        for name, acts, here, there in ways:
            one, other = (_all(rows[step] for step in acts if step not in missing) for missing in (there, here))
            yield EventPair(f"{name}, window from step {begin} on", others + one, others + other, steps)


def _one_sided(inside: range, block: int, enough: int) -> Iterator[tuple[str, Collection[int], Collection[int]]]:
    """Steps of a window at which somebody acts in the first list only, and in the second only, in several ways."""
    if len(inside) <= ALL_STEPS_UP_TO:
        for pattern in itertools.product("=+-", repeat=len(inside)):
            here, there = ([step for step, sign in zip(inside, pattern, strict=True) if sign == one] for one in "-+")
            if here or there:
                yield "".join(pattern), here, there
        return
    first = inside[:enough]
    for again in inside:
        second = [step for step in inside if step >= again and (step - again) % block < enough]
        yield f"left out at first and from step {again} on", {*first, *second}, ()
        if again not in first:
            yield f"left out at first, and in the other list from step {again} on", first, second


def audit_events(
    cls: Callable[..., Any],
    epsilon: float,
    window: int,
    bins: int,
    pairs: Iterable[EventPair] | None = None,
    *,
    max_per_step: int = 1,
    cap: Cap | None = None,
    statistic: str | Sequence[str] = "events",
    between: str | Sequence[str] = "",
    feed: Callable[..., Feed] = EventFeed,
    secure: bool = False,
    parameters: dict[str, Any] | None = None,
    **options: Unpack[AuditOptions],
) -> Verdict:
    """Attack everything between events and releases.

    Parameters
    ----------
    cls
        A mechanism, or a class of your own as `audit_mechanism` takes it.
    epsilon, window, bins
        The claim, and how many bins there are.
    pairs
        Pairs of event lists, by default `event_pairs`, and `capped_event_pairs` where there is a cap.
    max_per_step
        How many events of a person may count in a step. It is the sensitivity of the mechanism.
    cap
        How many events of a person may count in a block of steps, if that is bounded. The mechanism's
        `window_sensitivity` is what the cap is worth, unless `parameters` have another.
    statistic, between
        What is published of the events, as a `StreamSpec` has it; their values are in the column `value`. Several
        statistics are attacked with a class that publishes them together. Steps are hours, so `people/2h` are people
        of slots of two steps.
    feed
        What counts the events, built like `eventide.live.feeds.event_feed.EventFeed`.
    secure, parameters, **options
        As in `audit_mechanism`. The key of the bounding follows from the seed.
    """
    key = np.random.default_rng(np.random.SeedSequence(options.get("seed", 0), spawn_key=(1,))).bytes(16)
    if pairs is None:
        of_cap = () if cap is None else capped_event_pairs(window, bins, cap, max_per_step)
        pairs = [*event_pairs(window, bins, max_per_step), *of_cap]
    slots = isinstance(statistic, str) and statistic.startswith(SLOTS)
    written = f"{statistic}/{HOUR}" if slots else with_step(statistic, HOUR)
    made = parse_statistic(written, between).for_bins(bins)
    if cap is not None:
        feed = functools.partial(feed, cap=cap)
        parameters = {"window_sensitivity": made.window_sensitivity(cap, window, max_per_step)} | (parameters or {})
    counted = []
    for pair in pairs:
        pair.check(window, bins)
        counted.append(pair.counted(bins, max_per_step, key, feed, made))
    told = [pair for pair in counted if (pair.stream != pair.neighbour).any()]
    if not told:
        raise InputError("no pair of event lists differs once it is counted, so there is nothing to attack")
    return audit_mechanism(
        cls,
        epsilon,
        slots_met(window, HOUR, made.slot) if isinstance(made, SlotPeople) else window,
        bins,
        sensitivity=made.sensitivity(max_per_step),
        secure=secure,
        parameters=parameters,
        pairs=told,
        **options,
    )


def _others(steps: int, bins: int, max_per_step: int) -> list[Event]:
    """People who are there in both lists, each of them once."""
    return [
        Event(step + 0.5, f"{step}/{bin_}/{number}", bin_)
        for step in range(steps)
        for bin_ in range(bins)
        for number in range(4 * max_per_step)
    ]


def _all(rows: Iterable[list[Event]]) -> list[Event]:
    return [event for row in rows for event in row]


def _rows(events: Iterable[Event]) -> dict[tuple[str, int], list[Event]]:
    """What each person did at each step, in order."""
    rows = defaultdict(list)
    for event in sorted(events):
        rows[event.user, int(event.time)].append(event)
    return dict(rows)


class _Listed:
    """A source of events that are all there."""

    complete = replays = records_arrival = True

    def __init__(self, events: Iterable[Event]) -> None:
        self._rows: list[dict[str, Any]] = [
            {"timestamp": (_START + event.time * _STEP).isoformat(), "user": event.user, "bin": str(event.bin)}
            | {"value": event.value}
            for event in events
        ]
        self._read = False

    def open(self, position: Position, reader: EventReader) -> None:
        """Get ready for the one batch there is."""
        self._reader = reader

    def poll(self, timeout: float) -> EventBatch | None:
        """Everything, and then nothing any more."""
        if self._read:
            return None
        self._read = True
        return EventBatch.last(self._reader.read(self._rows))

    def close(self) -> None:
        """Nothing to let go of."""
