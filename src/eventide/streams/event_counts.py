"""A file of events as counts per step and bin, for studies on data one may look at.

One row an event, with the columns of its time (ISO 8601, without an offset; a Parquet file may hold timestamps) and of
its bin, in any order. Every event counts 1: whose it is plays no part, and nothing is bounded. So this is no way to
publish; that is what `eventide publish` is for. The file is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import Ints
from eventide.errors import InputError
from eventide.events.durations import milliseconds
from eventide.streams.matrices import Matrix, text
from eventide.streams.tables import Table, open_table

MOST_CELLS = 2**28  # steps times bins; more is surely a step that is too short
_TIME = pa.timestamp("us")


def count_events(
    path: str | Path,
    step: str,
    start: str | None = None,
    until: str | None = None,
    bins: Sequence[str] = (),
    time: str = "timestamp",
    bin: str = "bin",
) -> Matrix:
    """Count the events of each step, such as "1h", from `start` to before `until`, by default the first and last event.

    The bins are those that occur and those of `bins`, sorted. `time` and `bin` name the columns.
    """
    length = 1000 * milliseconds(step)
    times, names = _columns(open_table(path), time, bin)
    begin = int(times.min()) // length * length if start is None else _moment(start, "start")
    end = int(times.max()) + 1 if until is None else _moment(until, "until")
    if end <= begin:
        raise InputError(f"until {until} does not lie after the start; give a later end")
    known = np.unique(np.concatenate([names.dictionary.to_pylist(), list(bins)]).astype(str))
    steps = -(-(end - begin) // length)
    if steps * len(known) > MOST_CELLS:
        raise InputError(f"{steps:,} steps of {step} and {len(known):,} bins are too many; use a longer step")
    inside = (times >= begin) & (times < end)
    columns = np.searchsorted(known, np.array(names.dictionary.to_pylist(), dtype=str))[names.indices.to_numpy()]
    cells = (times[inside] - begin) // length * len(known) + columns[inside]
    counts = np.bincount(cells, minlength=steps * len(known)).reshape(steps, len(known))
    return Matrix(counts, tuple(map(str, known)))


def _columns(table: Table, time: str, bin: str) -> tuple[Ints, Any]:
    """The times of all events in microseconds, and their bins as a dictionary array."""
    for column in (time, bin):
        if column not in table.columns:
            raise InputError(f"{table.path.name} has no column {column!r}; its columns are {', '.join(table.columns)}")
    times, names = [], []
    for first_row, (moments, places) in table.batches([time, bin]):
        times.append(_times(moments, first_row, f"{table.path.name}: column {time!r}"))
        names.append(text(places))
    return np.concatenate(times), pa.chunked_array(names).combine_chunks().dictionary_encode()


def _times(column: Any, first_row: int, place: str) -> Ints:
    try:
        if not pa.types.is_temporal(column.type):
            column = pc.utf8_trim_whitespace(column)
        moments = pc.cast(pc.cast(column, _TIME, safe=False), pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if len(column) > 1:  # look for the row that is wrong
            middle = len(column) // 2
            _times(column[:middle], first_row, place)
            return _times(column[middle:], first_row + middle, place)
        raise InputError(f"{place} in row {first_row} is no time; write 2026-01-31 or 2026-01-31 23:59") from None
    if moments.null_count:
        raise InputError(f"{place} in row {first_row + np.argmax(moments.is_null())} is empty; every event has a time")
    return np.asarray(moments, dtype=np.int64)


def _moment(given: str, name: str) -> int:
    try:
        return int(pc.cast(pa.scalar(str(given)), _TIME).value)
    except pa.ArrowInvalid:
        raise InputError(f"{name} is {given!r}; write 2026-01-31 or 2026-01-31 23:59") from None
