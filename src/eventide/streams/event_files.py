"""A file of events as counts per step and bin, for studies on data one may look at.

Events are read as the publisher reads them, with times in UTC where they name no offset. But every event counts 1,
whose it is plays no part, and a row that cannot be read is refused with its number: this is no way to publish.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.arrays import Ints
from eventide.errors import InputError
from eventide.events.durations import milliseconds
from eventide.events.files.open_file import open_file
from eventide.events.rows import ParsedRows
from eventide.events.texts import named, texts
from eventide.events.timeline import MILLISECOND, parse_time
from eventide.events.times import parse_times
from eventide.events.zones import Zone
from eventide.streams.count_files import Matrix, text

MOST_CELLS = 2**28  # steps times bins; more is surely a step that is too short
UTC = Zone("UTC")


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
    length = milliseconds(step) * MILLISECOND
    path = Path(path)
    try:
        times, names = _columns(path, time, bin)
    except (pa.ArrowException, OSError, EOFError, zlib.error):
        raise InputError(f"{path.name} cannot be read to its end; it is damaged or cut short") from None
    begin = int(times.min()) // length * length if start is None else parse_time(str(start), UTC)
    end = int(times.max()) + 1 if until is None else parse_time(str(until), UTC)
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


def _columns(path: Path, time: str, bin: str) -> tuple[Ints, Any]:
    """The times of all events in microseconds, and their bins as a dictionary array."""
    file, before = open_file(path), 0
    times, names = [], []
    for block in file.blocks(0):
        rows = file.rows(block.content, [time, bin])
        assert rows.raw is not None
        size, first = rows.raw.size(), rows.raw.first
        found = _events(rows, time, bin)
        if isinstance(found, str):
            row = bisect_left(range(size), True, key=lambda number: isinstance(_events(first(number), time, bin), str))
            raise InputError(f"{path.name}: row {before + row} {found}")
        times.append(found[0])
        names.append(found[1])
        before += size
    if not sum(map(len, times)):
        raise InputError(f"{path.name} has no rows; give a file with at least one event")
    return np.concatenate(times), pa.chunked_array(names).combine_chunks().dictionary_encode()


def _events(rows: ParsedRows, time: str, bin: str) -> tuple[Ints, Any] | str:
    """The times and bins of rows, or what is wrong with one of them."""
    if rows.unreadable:
        return "cannot be read; correct that row"
    times, readable = parse_times(named(rows.rows, time), UTC)
    if not readable.all():
        return f"has no time in column {time!r}; write 2026-01-31 or 2026-01-31 23:59"
    try:
        return times, text(texts(named(rows.rows, bin)))
    except pa.ArrowInvalid:
        return f"has no text in UTF-8 in column {bin!r}; correct that row"
