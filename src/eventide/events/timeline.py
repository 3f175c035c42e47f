"""How time is cut into steps: step k goes from `begin(k)` up to, but not including, `end(k)`.

Steps have one length and begin at a public start. Whole days and weeks are those of the calendar in the zone, so a day
is 23 or 25 hours long when the clocks change; shorter lengths are exact. Times are int64 microseconds UTC. Which step a
time belongs to depends on nothing but the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from eventide.arrays import Ints
from eventide.errors import InputError
from eventide.events.durations import milliseconds
from eventide.events.times import parse_times
from eventide.events.zones import DAY, Zone

MILLISECOND = 1_000
_MOST_SHIFT = 2  # steps by which a calendar may differ from exact days: a zone once skipped a whole one


class Timeline:
    """Steps of one length from a start.

    `start` is ISO text, read in the zone where it names none; `length` is a duration such as 10min or 1d.

    >>> days = Timeline("2024-03-30", "1d", "Europe/Berlin")
    >>> (days.end(1) - days.begin(1)) // 3_600_000_000
    23
    >>> days.iso(2)
    '2024-04-01T00:00:00+02:00'
    """

    def __init__(self, start: str, length: str, zone: str = "UTC") -> None:
        self.zone = Zone(zone)
        self.from_data = self.from_clock = False
        self.length = milliseconds(length) * MILLISECOND
        self.start = parse_time(start, self.zone)
        self._civil = self.length % DAY == 0
        self._start_local = self.zone.to_local(self.start)

    @classmethod
    def around(cls, first: int, length: str, zone: str = "UTC") -> Timeline:
        """The time line whose step 0 holds the earliest event, with steps counted from the midnight before it."""
        named = Zone(zone)
        local = named.to_local(first)
        midnight, exact = local // DAY * DAY, milliseconds(length) * MILLISECOND
        begin = int(named.to_utc(np.array([midnight]))[0])
        timeline = cls(named.iso(begin + (first - begin) // exact * exact), length, zone)
        timeline.from_data = True
        return timeline

    def cut(self, length: str) -> Timeline:
        """The time line of shorter steps from the same start."""
        finer = Timeline(self.iso(0), length, self.zone.name)
        finer.from_data = self.from_data
        return finer

    def index(self, times: Ints) -> Ints:
        """The step of each time; negative before the start."""
        steps = (times - self.start) // self.length
        if not self._civil or not times.size:
            return steps
        near = np.unique(np.unique(steps) + np.arange(-_MOST_SHIFT, _MOST_SHIFT + 2)[:, None])
        return np.asarray(near[np.searchsorted(self.begins(near), times, side="right") - 1], dtype=np.int64)

    def split(self, times: Ints) -> Iterator[tuple[int, Ints | slice]]:
        """The steps in which some times are, in order, and which of them; sorted times are cut at few borders."""
        if not len(times):
            return
        first, last = self.index(times[[0, -1]]).tolist()
        if last - first < len(times) and (times[1:] >= times[:-1]).all():
            begins = self.begins(np.arange(first + 1, last + 1))
            edges = [0, *np.searchsorted(times, begins).tolist(), len(times)]
            for step, (begin, end) in enumerate(pairwise(edges), start=first):
                if begin < end:
                    yield step, slice(begin, end)
            return
        steps = self.index(times)
        order = np.argsort(steps, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(steps[order])) + 1):
            yield int(steps[rows[0]]), rows

    def begin(self, step: int) -> int:
        """The first moment of a step."""
        return int(self.begins(np.array([step]))[0]) if self._civil else self.start + step * self.length

    def end(self, step: int) -> int:
        """The first moment after a step."""
        return self.begin(step + 1)

    def iso(self, step: int) -> str:
        """The first moment of a step as ISO 8601 text."""
        return self.zone.iso(self.begin(step))

    def begins(self, steps: Ints) -> Ints:
        """The first moments of steps."""
        if not self._civil:
            return self.start + steps * self.length
        return self.zone.to_utc(self._start_local + steps * self.length)


def parse_time(text: str, zone: Zone) -> int:
    """One moment from ISO text, as events are read."""
    times, good = parse_times([text], zone)
    if not good[0]:
        raise InputError(f"{text!r} is no time; write it as 2024-03-31T14:30 or 2024-03-31T14:30:00+02:00")
    return int(times[0])
