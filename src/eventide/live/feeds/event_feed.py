"""From events to the counts of one step after another.

One rule decides everything: an event of step k counts if it arrived before end(k) + late, and step k closes when its
source has seen everything that arrived before then. An event whose time lies too far after its arrival is refused. So
whether an event counts depends on that event and the public clock alone; whatever does not count is counted as late,
come again or refused. What the source offers is either pulled (`steps`) or pushed (`begin`, `take`, `closed`).
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, TypedDict

import numpy as np

from eventide.arrays import Array, Ints
from eventide.errors import InputError
from eventide.events.bin_names import BinNames
from eventide.events.cap_memory import is_memory
from eventide.events.caps import Cap
from eventide.events.clock import JUMP, Clock, SystemClock
from eventide.events.durations import in_words, milliseconds
from eventide.events.numbered_dates import are_plausible
from eventide.events.reader import (
    AFTER_END,
    BEFORE_START,
    IN_THE_FUTURE,
    UNKNOWN_BIN,
    Counters,
    EventReader,
    Events,
    first_fault,
)
from eventide.events.several_statistics import SeveralStatistics, SeveralTallies
from eventide.events.slots import SlotPeople
from eventide.events.statistics import EVENTS, Statistic
from eventide.events.tally import EventTally, Tally
from eventide.events.timeline import MILLISECOND, Timeline, parse_time
from eventide.events.zones import EARLIEST
from eventide.live.feeds.base import ClosedStep, Promise, Resume
from eventide.live.feeds.first_rows import FirstRows, NothingInside
from eventide.live.sources.base import FOREVER, EventBatch, EventSource, OnlyFromNow, Position
from eventide.live.sources.complete_files import CompleteFiles
from eventide.privacy.guarantees import EVERY_EVENT

log = logging.getLogger("eventide.live")

POLL_SECONDS = 0.5
LONGEST_GAP = 1_000_000  # steps without an event in a complete source; more is surely a wrong time


_NO_TIMES: Ints = np.zeros(0, np.int64)
_Columns = tuple[Any, ...]  # users, bins, and values where there are some


class Bounds(TypedDict, total=False):
    """What of the events counts: of one user in a step, until when, and up to which step."""

    max_per_step: int
    late: str | None
    until: str | None


class EventFeed:
    """A feed of events.

    `late` is how long after its end a step waits for events, `ahead` how far an event's time may lie after its arrival
    (clocks differ). `cap` is how many events of a user count in a block of steps. `statistic` is what a step is made
    into, one number for each bin. `until` is where to stop; without it
    a complete source stops after the step of its last event, and a live one never. Without a source, batches are
    pushed. `clock` is there to warn if steps were released that are not over yet.
    """

    tell_operator: Callable[[str], None] | None = None  # about the first rows of a run that nothing may stop
    trusts_bound = False  # whether `max_per_step` is only said, and kept by nobody

    def __init__(
        self,
        source: EventSource | None,
        timeline: Timeline,
        reader: EventReader,
        clock: Clock | None = None,
        *,
        max_per_step: int = 1,
        cap: Cap | None = None,
        statistic: Statistic = EVENTS,
        late: str | None = None,
        ahead: str = "1min",
        until: str | None = None,
    ) -> None:
        if max_per_step < 1:
            raise InputError(f"max_per_step is {max_per_step}; at least one event of a user must count")
        if reader.columns.user is None and max_per_step != 1 and not self.trusts_bound:
            raise InputError("max_per_step bounds the events of a user; name the column of users, or leave it out")
        if cap is not None and reader.columns.user is None:
            raise InputError("a cap bounds the events of a person; name the column of users, or leave it out")
        if cap is not None and cap.events < max_per_step:
            raise InputError(
                f"a cap of {cap} is less than the {max_per_step} events of a user that count in a step; make it larger"
            )
        if statistic.needs_users and reader.columns.user is None:
            raise InputError(f"the statistic {statistic.name} needs people; name the column of users, or leave it out")
        self.timeline, self.reader, self.max_per_step, self.cap = timeline, reader, max_per_step, cap
        if statistic.grid != reader.grid:
            raise InputError("the reader of the events and the statistic have different ranges; give both the same")
        if cap is not None and "cap" not in statistic.takes:
            raise InputError(f"{statistic.name} cannot be published with a cap yet; leave it out")
        self.statistic = statistic
        self._names: BinNames | None = None
        self.counters = Counters()
        self.left_out = 0  # events of closed steps that the bounds on a person left out: raw, for operators only
        self.left_out_by_cap = 0  # those of them that the cap alone left out
        self.read_as_utc = False  # whether there were times without a zone, and nobody said of which they are
        self._outside = np.zeros((len(reader.grids), 2), np.int64)  # of each column of values, and of how many
        self._in_our_days: bool | None = None  # whether any time was, once there was one
        self._in_listed_bin: bool | None = None  # whether any event was, once there was one
        self._left_out_of = np.zeros((len(_parts(statistic)), 2), np.int64)  # of each statistic, and of how many
        if late and source is not None and source.complete:
            raise InputError("nothing in a complete file is late; leave the allowed lateness (--late) out")
        self._source = source
        self._replays = source is None or source.replays
        self._clock = None if source is not None and source.complete else clock
        self.begins_now = timeline.from_clock  # so nobody asked for steps that were over before the first start
        self._late = milliseconds(late) * MILLISECOND if late else 0
        self._ahead = milliseconds(ahead) * MILLISECOND
        self._stop: int | None = None
        self._stop_time = FOREVER
        if until is not None:
            last = np.array([parse_time(until, timeline.zone) - 1])
            self._stop = int(timeline.index(last)[0]) + 1
            self._stop_time = timeline.begin(self._stop)
            if self._stop < 1:
                raise InputError(f"the end {until} is not after the start {timeline.iso(0)}; correct one of them")
            if isinstance(statistic, SlotPeople) and self._stop_time != last[0] + 1:
                raise InputError(
                    f"the end {until} lies inside a slot of {statistic.name}, and a slot is published whole; end at "
                    f"{timeline.iso(self._stop)}"
                )

    @property
    def span(self) -> tuple[int, int]:
        """When the first step begins, and when the last one ends: events outside are refused."""
        return self.timeline.begin(0), self._stop_time

    def describe(self) -> dict[str, Any]:
        """How steps are cut, whether events have users, how they are bounded, and what is made of them."""
        described = {
            "source": "events",
            "start": self.timeline.iso(0),
            "length": self.timeline.length // MILLISECOND,
            "zone": self.timeline.zone.name,
            "users": self._has_users,
            "max_per_step": self.max_per_step,
            "other": self.reader.other,
        }
        return described | self.statistic.described()

    def read_from(self) -> dict[str, str | None] | None:
        """From which columns of its source events are read; None where senders say it anew with each event."""
        return None if self._source is None else self.reader.read_from

    def promise(self) -> Promise:
        """Events are bounded here, so nothing is taken on trust but what the data itself decided."""
        unit = "one person" if self._has_users else EVERY_EVENT
        assumptions = [*self.statistic.assumptions(self.max_per_step)]
        if self.timeline.from_data:
            assumptions.append("the first step was taken from the data")
        if self._source is not None and self._source.complete and self._stop is None:
            assumptions.append("the last step was taken from the data")
        if self.cap is not None:
            first = self.statistic.first_ones(self.cap.events)
            block = in_words(self.cap.block * self.timeline.length // MILLISECOND)
            assumptions.append(f"of each person only {first} in every block of {block}, and the others are left out")
            assumptions.append("a secret hash of a person decides when their blocks begin")
        statistic = self.statistic
        return Promise(
            unit,
            statistic.sensitivity(self.max_per_step),
            tuple(assumptions),
            self.cap,
            counted_in=statistic.unit if statistic.direct else Fraction(1),  # else `tell` says it in full
            of_one=statistic.sensitivity(1),
            adds_up_in_time=statistic.adds_up_in_time,
            exchanged=statistic.exchanged,
            moved=statistic.moved,
            worth=statistic.unit,
        )

    @property
    def left_out_of_each(self) -> dict[str, float]:
        """Of several statistics: which part of each the bounds on a person left out. Raw: for operators only."""
        parts = zip(_parts(self.statistic), self._left_out_of.tolist(), strict=True)
        return {part.name: left_out / offered for part, (left_out, offered) in parts if offered}

    @property
    def cut_to_range(self) -> dict[str, float]:
        """Of each column of values: which part of them lay outside its range. Raw: for operators only."""
        cut = zip(self.reader.grids, self._outside.tolist(), strict=True)
        return dict(sorted((grid.column, outside / read) for grid, (outside, read) in cut if read))

    @property
    def times_are_strange(self) -> bool:
        """Whether all times lie in years of which few people have events, and nobody said how they are written.

        Raw: for operators only.
        """
        return self._in_our_days is False and not self.reader.time_format_is_given

    @property
    def all_in_other(self) -> bool:
        """Whether all events are in the bin for other events, so that surely another column was meant.

        Raw: for operators only.
        """
        return self._in_listed_bin is False and len(self.reader.bins) > 1  # else it was meant: a whole site as one bin

    @property
    def reads_again(self) -> bool:
        """Whether events of open steps come again when it begins anew."""
        return self._replays

    def step_at(self, moment: int) -> int:
        """The step that a moment lies in, -1 before the first."""
        return -1 if moment < self.timeline.start else int(self.timeline.index(np.array([moment]))[0])

    def step_now(self) -> int:
        """The step that has begun last."""
        return self.step_at(self._now())

    def first_to_come(self) -> int:
        """The first step for which events can still arrive, by the clock alone."""
        now = self._source.first_arrival() if isinstance(self._source, OnlyFromNow) else self._now()
        return max(0, self.step_at(now - self._late))

    @property
    def has_no_past(self) -> bool:
        """Whether nothing that comes can belong to steps that were over before the source was opened."""
        return isinstance(self._source, OnlyFromNow)

    @property
    def stop(self) -> int | None:
        """The step to stop before, where somebody said it."""
        return self._stop

    def _now(self) -> int:
        return (self._clock or SystemClock()).now()

    def start_of(self, step: int) -> str | None:
        """The ISO time at which a step begins."""
        return self.timeline.iso(step)

    def steps(self, resume: Resume) -> Iterator[ClosedStep | None]:
        """Pull from the source until it ends or the last step is closed."""
        assert self._source is not None, "a feed without a source is pushed to"
        self.begin(resume)
        self._source.open(resume.position, self.reader)
        tell = None if resume.check_first_rows else self.tell_operator
        first_rows = FirstRows(self.reader, checked=resume.check_first_rows or tell is not None, tell=tell)
        looks = resume.check_first_rows and self._source.complete
        while not self._over and (batch := self._source.poll(POLL_SECONDS)) is not None:
            self.take(batch)
            events = batch.events
            rows = len(events.time) + events.refused.total()
            first_rows.add(rows, events.refused, events.raw, events.in_zone, events.time)
            for step in self.closed():
                first_rows.decide()
                if looks:
                    self._refuse_nothing()
                looks = False
                yield step
            yield None
        first_rows.decide()
        if looks:
            self._refuse_nothing()

    def _refuse_nothing(self) -> None:
        """Refuse complete files that have no event for any step; asked when the first one is over."""
        if self.counters.accepted or self._seen_until < self._stop_time:
            return
        if not (self.counters.late or self.counters.refused):
            raise NothingInside(
                "the source holds no row, so nothing was published or charged. Look whether it was delivered; to "
                "publish nonetheless, give --allow-refused"
            )
        start = self.timeline.iso(0)
        behind = f"behind the start {start}"
        where = (
            behind if self._stop is None else f"between the start {start} and the end {self.timeline.iso(self._stop)}"
        )
        raise NothingInside(
            f"no row that can be counted lies {where}, so nothing was published or charged. Correct --start and "
            "--until, or say with --time-format how times are written; to publish nonetheless, give --allow-refused"
        )

    def check_columns(self) -> None:
        """Refuse columns that complete files do not have, before anything is made or charged."""
        if isinstance(self._source, CompleteFiles):
            self._source.check_columns(self.reader)

    def close(self) -> None:
        """Let go of the source."""
        if self._source is not None:
            self._source.close()

    def know(self, names: BinNames) -> None:
        """Count with these names from now on: what is in a bin that is not open at its step is in none."""
        self.reader.know(names)
        self._names = names

    def begin(self, resume: Resume) -> None:
        """Forget what was open and go on as told."""
        self._key = self.reader.key = resume.key
        self._next = self._first = resume.next_step
        self._position = resume.position
        hands_over_again = self._source is not None and self._source.replays
        self._keep = None if hands_over_again else resume.keep
        self._seen_until = EARLIEST
        self._open: dict[int, Tally] = {}
        self._before: dict[int, Position] = {}  # where the first event of each open step was yet to come, oldest first
        self._memory = self.statistic.memory(self.cap, resume.key, self.timeline, self.max_per_step)
        for step, data in resume.kept:
            if self._memory is not None and is_memory(data):
                self._memory.take_again(data)
            elif not hands_over_again:  # else what a pipe kept would count once more if it is in the file as well
                self._opened(step).join(data)
        self._is_ahead = False
        self._warn_if_ahead()

    def take(self, batch: EventBatch) -> None:
        """Count the events of a batch towards their steps, and look how far its source has seen."""
        self.read_as_utc |= batch.events.in_zone > 0 and not self.reader.zone_is_given
        if batch.events.outside:
            rows = batch.events.time.size + batch.events.refused.total()
            self._outside += np.array([[cut, rows] for cut in batch.events.outside])
        if not self._in_our_days and batch.events.time.size:
            self._in_our_days = are_plausible(batch.events.time)
        if not self._in_listed_bin and batch.events.bin.size:
            self._in_listed_bin = bool(np.any(batch.events.bin != self.reader.elsewhere))
        counters = self._refused(batch.events)
        parts = self._countable(batch.events, counters)
        if self._keep is not None and (parts or batch.key):
            tallies = ((step, self._tally(*columns).to_bytes()) for step, columns in parts)
            if not self._keep(tallies, batch.key):
                return
        for step, columns in parts:
            self._opened(step).add(*columns)
        if self._stop is not None and counters.refused[AFTER_END]:  # a later run may go on behind the end of this one
            self._before.setdefault(self._stop, self._position)
        self._remember_unnamed(batch.events)
        self.counters.add(counters)
        self._position = batch.position
        self._seen_until = max(self._seen_until, batch.seen_until)

    @property
    def is_due(self) -> bool:
        """Whether the next step is over and not closed yet."""
        return self._next < self._end and self._seen_until >= self._deadline(self._next)

    def closed(self, most: float = math.inf) -> Iterator[ClosedStep]:
        """Close the steps that are over, so many at the most; in a complete source more are to come."""
        complete = self._source is not None and self._source.complete
        first, end = self._next, self._end

        def is_next() -> bool:
            return self._next < min(end, first + most) and self._seen_until >= self._deadline(self._next)

        while is_next():
            step = self._next
            self._next += 1
            self._warn_if_ahead()
            self._before.pop(step, None)
            tally = self._open.pop(step, None) or self._tally()
            counts, kept = self._counts_of(step, tally)
            self.left_out += tally.left_out(counts)
            if isinstance(tally, SeveralTallies):
                self._left_out_of += tally.left_out_of_each(counts)
            position = next(iter(self._before.values()), self._position)
            yield ClosedStep(step, counts, position, kept, more=complete or is_next())

    def _refused(self, events: Events) -> Counters:
        """What was refused so far. Whatever lies outside of the steps is refused for that: a later run may take it."""
        counters = Counters(refused=events.refused.copy())
        for reason, times in events.refused_at.items():
            before = int(np.count_nonzero(times < self.timeline.start))
            after = int(np.count_nonzero(times >= self._stop_time))
            counters.refused += Counter({BEFORE_START: before, AFTER_END: after})
            counters.refused[reason] -= before + after
        counters.refused = +counters.refused
        return counters

    def _remember_unnamed(self, events: Events) -> None:
        """Where complete files have events of bins that may get a name before their step is released."""
        if self._names is None or self._source is None or not self._source.complete:
            return
        times = events.refused_at.get(UNKNOWN_BIN, _NO_TIMES)
        inside = times[(times >= self.timeline.begin(self._next)) & (times < self._stop_time)]
        for step in np.unique(self.timeline.index(inside)).tolist():
            self._before.setdefault(step, self._position)

    def _counts_of(self, step: int, tally: Tally) -> tuple[Ints, tuple[int, bytes] | None]:
        """The counts of a step, and what has to be kept of it."""
        if self._memory is None or isinstance(tally, EventTally):
            return tally.counts(step), None
        counts, used = tally.capped_counts(step, self._memory)
        if self.cap is not None:
            self.left_out_by_cap += tally.countable() - tally.counted(counts)
        return counts, self._memory.to_keep(step, used)

    @property
    def _over(self) -> bool:
        return self._stop is not None and self._next >= self._stop

    @property
    def _end(self) -> float:
        """The first step that is not to be closed, however far the source has seen."""
        if self._stop is not None:
            return self._stop
        if self._source is None or not self._source.complete:
            return math.inf
        known = [self._next - 1, *self._open]
        if self._seen_until < FOREVER:
            known.append(max(self._next - 1, int(self.timeline.index(np.array([self._seen_until]))[0])))
        if np.diff(sorted(known)).max(initial=0) > LONGEST_GAP:
            raise InputError(
                f"there are more than {LONGEST_GAP:,} steps without an event, which is surely a wrong time; "
                "correct it, or say where to start and where to stop"
            )
        return self.statistic.whole_slots(max(known) + 1, self.timeline)

    def _countable(self, events: Events, counters: Counters) -> list[tuple[int, _Columns]]:
        """The users and bins of the events that count, and their values if they have some, step by step.

        Why others do not count goes into `counters`.
        """
        good, refused = first_fault(
            {
                BEFORE_START: events.time >= self.timeline.start,
                AFTER_END: events.time < self._stop_time,
                IN_THE_FUTURE: events.time <= events.arrival + self._ahead,
            }
        )
        counters.refused += refused
        time, arrival = events.time, events.arrival
        value = self.statistic.values_of(events.time, events.value, self.timeline)
        columns: _Columns = (events.user, events.bin, *(() if value is None else (value,)))
        if refused:
            time, arrival, columns = time[good], arrival[good], _rows(columns, good)
        if self._source is not None and not self._source.records_arrival:
            arrival = np.minimum(arrival, self._seen_until)
        if self._names is not None:
            time, arrival, columns = self._in_open_bins(self._names, time, arrival, columns, counters)
        return list(self._in_time(time, arrival, columns, counters))

    def _in_open_bins(
        self, names: BinNames, time: Ints, arrival: Ints, columns: _Columns, counters: Counters
    ) -> tuple[Ints, Ints, _Columns]:
        """The events whose bins are open at their steps; others are where those of unknown bins are, or refused."""
        idle = names.idle(self.timeline.index(time), columns[1])
        if not idle.any():
            return time, arrival, columns
        if (elsewhere := self.reader.elsewhere) >= 0:
            return time, arrival, (columns[0], np.where(idle, elsewhere, columns[1]), *columns[2:])
        counters.refused[UNKNOWN_BIN] += int(np.count_nonzero(idle))
        return time[~idle], arrival[~idle], _rows(columns, ~idle)

    def _in_time(
        self, time: Ints, arrival: Ints, columns: _Columns, counters: Counters
    ) -> Iterator[tuple[int, _Columns]]:
        for step, rows in self.timeline.split(time):
            in_time, here = rows, int(time[rows].size)
            early = arrival[rows] < self._deadline(step)
            if not early.all():
                in_time, here = np.arange(len(time))[rows][early], int(np.count_nonzero(early))
                counters.late += early.size - here
            if step < self._first and self._replays:
                counters.again += here
            elif step < self._next:  # which happens only if a clock was wrong
                counters.late += here
            elif here:
                counters.accepted += here
                yield step, _rows(columns, in_time)

    def _warn_if_ahead(self) -> None:
        """Warn, once while it is so, if the clock has not reached the end of the last step that was released."""
        if self._clock is None or self._next == 0:
            return
        is_ahead = self._clock.now() + JUMP < self.timeline.end(self._next - 1)
        if is_ahead and not self._is_ahead:
            log.warning(
                "the store is ahead of this machine's clock: steps are released up to %s, so events until then may not "
                "count; if the clock is wrong, correct it and start again",
                self.timeline.iso(self._next),
            )
        self._is_ahead = is_ahead

    def _deadline(self, step: int) -> int:
        return self.timeline.end(step) + self._late

    def _opened(self, step: int) -> Tally:
        self._before.setdefault(step, self._position)
        return self._open.setdefault(step, self._tally())

    def _tally(self, *columns: Any) -> Tally:
        """A tally of the events in these columns, or of none."""
        tally = self.statistic.tally(len(self.reader.bins), self.max_per_step, self._key, users=self._has_users)
        if columns:
            tally.add(*columns)
        return tally

    @property
    def _has_users(self) -> bool:
        return self.reader.columns.user is not None


def _parts(statistic: Statistic) -> tuple[Statistic, ...]:
    return statistic.parts if isinstance(statistic, SeveralStatistics) else ()


def _rows(columns: _Columns, rows: Array | slice) -> _Columns:
    return tuple(None if column is None else column[rows] for column in columns)
