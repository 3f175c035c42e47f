"""From rows to events: when, who (as a keyed hash), where (the index of a bin), and when it arrived.

Rows are an Arrow table with the named columns, or a list of dicts. A row that cannot be read is left out and counted by
reason; it never stops the others. What the counters say is raw, for operators only: it is never logged or published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import Array, Bools, Ints
from eventide.events import siphash_kernels
from eventide.events.bin_names import BinNames
from eventide.events.bins import checked_names, with_other
from eventide.events.rows import UnparsedRows
from eventide.events.texts import buffers, distinct_texts, named
from eventide.events.time_formats import TimeFormat
from eventide.events.times import ReadTimes, read_times
from eventide.events.value_edges import ValueEdges
from eventide.events.value_grid import ValueGrid, numbers, outside
from eventide.events.zones import Zone

UNREADABLE_ROW = "row cannot be read"
UNREADABLE_TIME = "time cannot be read"
WITHOUT_USER = "without a user"
UNKNOWN_BIN = "bin is not in the list"
UNREADABLE_VALUE = "value cannot be read"
BEFORE_START = "before the start"
AFTER_END = "after the end"
IN_THE_FUTURE = "in the future"


class Columns(NamedTuple):
    """The names of the columns; `user` is None where every event is its own user."""

    time: str = "timestamp"
    user: str | None = "user"
    bin: str = "bin"


class Events(NamedTuple):
    """Events as arrays of one length, how many rows were refused, by reason, and perhaps what all were read from.

    `in_zone` says how many rows have a time that names no zone. `value` is in units of the reader's grid,
    with a column for each where it has several; `outside` says for each how many values were cut to its range.
    `refused_at` are the times of refused rows, where they can be read, by reason.
    """

    time: Ints
    user: Array | None  # uint64
    bin: Array  # int32
    arrival: Ints
    refused: Counter[str]
    raw: UnparsedRows | None = None
    in_zone: int = 0
    value: Ints | None = None
    outside: tuple[int, ...] = ()
    refused_at: Mapping[str, Ints] = MappingProxyType({})

    def __repr__(self) -> str:
        return "<events>"

    def of(self, rows: Array) -> Events:
        """Those of some rows; what was refused is none of them, and is not theirs."""
        user, value = (None if column is None else column[rows] for column in (self.user, self.value))
        return Events(self.time[rows], user, self.bin[rows], self.arrival[rows], Counter(), value=value)

    @classmethod
    def none(cls) -> Events:
        """No events."""
        times = np.zeros(0, np.int64)
        return cls(times, np.zeros(0, np.uint64), np.zeros(0, np.int32), times, Counter())


@dataclass(repr=False)
class Counters:
    """What became of the events of this run, each of which is counted once: raw numbers, for operators only.

    `late` came after their step's deadline or, if a clock was wrong, after its release. `again` are those that a source
    hands over once more after a restart, of steps that were released before it.
    """

    accepted: int = 0
    late: int = 0
    again: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counters) -> None:
        """Count what another has counted."""
        self.accepted += other.accepted
        self.late += other.late
        self.again += other.again
        self.refused += other.refused


class EventReader:
    """Reads rows for one list of bins. Users are hashed with `key`, which the store gives.

    Parameters
    ----------
    bins
        The names of the bins.
    columns
        The names of the columns.
    other
        The bin for rows whose bin is not in the list; it is added to the list if need be. None refuses them.
    zone
        Where times without a zone are read; None is UTC that nobody chose, so that mixed zones are a mistake.
    time_format
        How text and numbers tell a time, as `TimeFormat` takes it; None for ISO 8601 and numbers since 1970.
    grid
        Which column holds values, and how they are read; several of them as a tuple, None where there are none.
    """

    def __init__(
        self,
        bins: Sequence[str],
        columns: Columns | None = None,
        *,
        other: str | None = None,
        zone: str | None = None,
        time_format: str | None = None,
        grid: ValueGrid | ValueEdges | tuple[ValueGrid | ValueEdges, ...] | None = None,
    ) -> None:
        self.bins = with_other(checked_names(bins, "the list of bins", "bin"), other)
        self.columns = columns or Columns()
        self.zone, self.zone_is_given = Zone(zone or "UTC"), zone is not None
        self.other, self.grid = other, grid
        self._time_format = None if time_format is None else TimeFormat(time_format)
        self.key: bytes | None = None
        self._look_up({name: place for place, name in enumerate(self.bins)})

    def know(self, names: BinNames) -> None:
        """Read these names from now on; spare bins without a name are no bins that an event could be in."""
        self.bins = names.places
        self._look_up(names.known())

    @property
    def time_format_is_given(self) -> bool:
        """Whether somebody said how times are written."""
        return self._time_format is not None

    @property
    def read_from(self) -> dict[str, str | None]:
        """The columns and the time format that tell events from rows."""
        told = None if self._time_format is None else self._time_format.given
        return {**self.columns._asdict(), "time_format": told}

    @property
    def elsewhere(self) -> int:
        """The place of the bin for other events, -1 where there is none."""
        return -1 if self.other is None else self.bins.index(self.other)

    def _look_up(self, places: Mapping[str, int]) -> None:
        names = pa.array([name.encode() for name in places], pa.binary())
        where = pa.array([*places.values()], pa.int32())
        self._places = names, where, self.elsewhere  # at once: rows may be read by several threads

    @property
    def wanted(self) -> list[str]:
        """The names of the columns to read."""
        values = [each.column for each in self.grids]
        return list(dict.fromkeys(name for name in (*self.columns, *values) if name is not None))

    @property
    def grids(self) -> tuple[ValueGrid | ValueEdges, ...]:
        """Which columns hold values, and how they are read."""
        if isinstance(self.grid, ValueGrid | ValueEdges):
            return (self.grid,)
        return self.grid or ()

    def times(self, rows: Any) -> Ints:
        """The readable times of rows."""
        times, readable, _ = self._times(rows)
        return times[readable]

    def read(
        self, rows: Any, unreadable: int = 0, arrival: int | Ints | None = None, raw: UnparsedRows | None = None
    ) -> Events:
        """The events of rows that arrived at one moment, or each at its own; without it each when it happens.

        `unreadable` says how many rows got lost on the way here, `raw` is what all of them were read from.
        """
        time, readable, in_zone = self._times(rows)
        names, each = distinct_texts(named(rows, self.columns.bin))
        bins = self._bins(names)[each]
        user, has_user = None, np.ones(len(time), bool)
        if self.columns.user is not None:
            assert self.key is not None, "a feed gives its reader the store's key"
            names, each = distinct_texts(named(rows, self.columns.user))
            hashes, missing = siphash_kernels.hash_texts(siphash_kernels.key_words(self.key), *buffers(names))
            user, has_user = hashes[each], ~missing[each]
        checks = {UNREADABLE_TIME: readable, WITHOUT_USER: has_user, UNKNOWN_BIN: bins >= 0}
        value, outside = None, tuple[int, ...]()
        if self.grid is not None:
            value, checks[UNREADABLE_VALUE], outside = self._values(rows)
        good, refused = first_fault(checks)
        refused_at = _times_of_refused(checks, time) if refused else {}
        if unreadable:
            refused[UNREADABLE_ROW] = unreadable
        if not good.all():
            time, bins, user = time[good], bins[good], None if user is None else user[good]
            value = None if value is None else value[good]
        arrived = time if arrival is None else np.broadcast_to(arrival, good.shape)[good]
        zoneless = int(np.count_nonzero(in_zone))
        return Events(time, user, bins, arrived, refused, raw, zoneless, value, outside, refused_at)

    def _values(self, rows: Any) -> tuple[Ints, Bools, tuple[int, ...]]:
        """The values of rows, in which of these all of them can be read, and how many of each lie outside its range."""
        found = [numbers(named(rows, each.column)) for each in self.grids]
        values, readable = zip(*(each.read(one) for each, one in zip(self.grids, found, strict=True)), strict=True)
        beyond = tuple(outside(one, each) for each, one in zip(self.grids, found, strict=True))
        if isinstance(self.grid, ValueGrid | ValueEdges):
            return values[0], readable[0], beyond
        return np.stack(values, axis=1), np.logical_and.reduce(readable), beyond

    def _times(self, rows: Any) -> ReadTimes:
        return read_times(named(rows, self.columns.time), self.zone, self._time_format)

    def _bins(self, names: Any) -> Array:
        known, places, elsewhere = self._places
        found = pc.index_in(names, value_set=known)
        if found.null_count:
            found = pc.if_else(found.is_valid(), found, pc.index_in(_trimmed(names), value_set=known))
        return np.asarray(pc.fill_null(places.take(found), elsewhere))


def _trimmed(names: Any) -> Any:
    return pc.ascii_trim_whitespace(names.view(pa.string())).view(pa.binary())


def _times_of_refused(checks: dict[str, Bools], time: Ints) -> dict[str, Ints]:
    """The times of rows that were refused for each reason but their time."""
    good, found = checks[UNREADABLE_TIME], {}
    for reason, passed in checks.items():
        if (failed := good & ~passed).any():
            found[reason] = time[failed]
            good = good & passed
    return found


def first_fault(checks: dict[str, Bools]) -> tuple[Bools, Counter[str]]:
    """Which rows pass all checks, and how many fail each one first."""
    good, refused = np.ones(len(next(iter(checks.values()))), bool), Counter[str]()
    for reason, passed in checks.items():
        if failed := int(np.count_nonzero(good & ~passed)):
            refused[reason] = failed
            good &= passed
    return good, refused
