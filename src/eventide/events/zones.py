"""Time zones over arrays: local time to UTC, for any year, by the rules of `zoneinfo`.

Times are int64 microseconds: since 1970-01-01T00:00 UTC, or on a clock on the wall since it showed that. A local time
that the clocks show twice is read as the first of the two; one that they skip, as the moment they were put forward.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from eventide.arrays import Ints
from eventide.errors import InputError

SECOND = 1_000_000
DAY = 86_400 * SECOND
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = -62_135_596_800 * SECOND  # the year 1
LATEST = 253_402_300_800 * SECOND  # the year 10000
_MOST_AHEAD = 2 * DAY  # no zone differs from UTC by more


class Zone:
    """A named time zone.

    >>> Zone("Europe/Berlin").to_utc(np.array([0])) // SECOND
    array([-3600])
    """

    def __init__(self, name: str) -> None:
        try:
            self._zone = ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            raise InputError(f"{name!r} is no time zone; give a name such as Europe/Berlin or UTC") from None
        self.name = name

    def to_utc(self, local: Ints) -> Ints:
        """Read what clocks on the wall show."""
        if not local.size:
            return local
        begins, offsets = self._regimes(int(local.min()) - _MOST_AHEAD, int(local.max()) + _MOST_AHEAD)
        shown_until = begins[1:] + offsets[:-1]
        regime = np.searchsorted(shown_until, local, side="right")
        utc: Ints = np.maximum(local - offsets[regime], begins[regime])
        return utc

    def to_local(self, time: int) -> int:
        """What clocks on the wall show at one moment."""
        return time + _offset(self._zone, time)

    def iso(self, time: int) -> str:
        """A moment as ISO 8601 text with the zone's offset."""
        return _datetime(time).astimezone(self._zone).isoformat()

    def _regimes(self, first: int, last: int) -> tuple[Ints, Ints]:
        """The moments at which the offset to UTC changes, after one that is before them all, and the offsets since."""
        years = range(_year(first), _year(last) + 1)
        changes = [(EARLIEST - DAY, _offset(self._zone, _year_begins(years[0])))]
        for year in years:
            changes += _changes(self._zone, year)
        begins, offsets = zip(*changes, strict=True)
        return np.array(begins, dtype=np.int64), np.array(offsets, dtype=np.int64)


@functools.cache
def _changes(zone: ZoneInfo, year: int) -> list[tuple[int, int]]:
    """The changes of a year: looked for from day to day, then pinned to the second."""
    changes = []
    days = range(_year_begins(year), _year_begins(year + 1) + DAY, DAY)
    offsets = [_offset(zone, day) for day in days]
    for day, before, after in zip(days[:-1], offsets[:-1], offsets[1:], strict=True):
        if before != after:
            low, high = day, day + DAY
            while high - low > SECOND:
                middle = low + (high - low) // (2 * SECOND) * SECOND
                low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
            changes.append((high, after))
    return changes


def _offset(zone: ZoneInfo, time: int) -> int:
    offset = _datetime(time).astimezone(zone).utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)


def _datetime(time: int) -> datetime:
    """A moment, or the first or last that every zone can show."""
    inside = min(max(time, EARLIEST + _MOST_AHEAD), LATEST - _MOST_AHEAD)
    return EPOCH + timedelta(microseconds=inside)


def _year(time: int) -> int:
    return _datetime(time).year


def _year_begins(year: int) -> int:
    if year > datetime.max.year:
        return LATEST
    return (datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
