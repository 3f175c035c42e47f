"""A file of events as counts per step and bin, or one by one with their people, for studies on data one may look at.

Events are read as the publisher reads them, with times in UTC where they name no offset. But in counts every event
counts 1, whoever did it (or every person once, or every value), and a row that cannot be read is refused with its
number: this is no way to publish.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from eventide.arrays import Floats, Ints
from eventide.errors import InputError
from eventide.events import numbered_dates
from eventide.events.durations import milliseconds
from eventide.events.files.open_file import open_file
from eventide.events.rows import ParsedRows
from eventide.events.statistics import OfValues
from eventide.events.texts import named, texts
from eventide.events.timeline import MILLISECOND, parse_time
from eventide.events.times import parse_times
from eventide.events.value_grid import numbers
from eventide.events.zones import Zone
from eventide.streams.count_files import Matrix, text
from eventide.streams.event_numbers import numbers_of, studied_statistic

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
    user: str | None = None,
    statistic: str = "events",
    between: str = "",
    edges: str = "",
    quantiles: Sequence[float] = (),
) -> Matrix:
    """Count the events of each step, such as "1h", from `start` to before `until`, by default the first and last event.

    The bins are those that occur and those of `bins`, sorted. `time`, `bin` and `user` name the columns. `statistic`,
    `between`, `edges` and `quantiles` are as a stream has them; nobody is bounded, and sums are in units.
    """
    length = milliseconds(step) * MILLISECOND
    made = studied_statistic(statistic, between, edges, tuple(quantiles))
    column = made.grid.column if isinstance(made, OfValues) else None
    if made.needs_users and user is None:
        raise InputError(f"{statistic} need a person; name the column of people, as user")
    more = [*([user] if made.needs_users else []), *([] if column is None else [column])]
    times, names, *others = _columns(path, time, bin, *map(str, more))
    begin = int(times.min()) // length * length if start is None else parse_time(str(start), UTC)
    end = int(times.max()) + 1 if until is None else parse_time(str(until), UTC)
    if end <= begin:
        raise InputError(f"until {until} does not lie after the start; give a later end")
    known = np.unique(np.concatenate([names.dictionary.to_pylist(), list(bins)]).astype(str))
    steps = -(-(end - begin) // length)
    if steps * len(known) * made.columns > MOST_CELLS:
        raise InputError(f"{steps:,} steps of {step} and {len(known):,} bins are too many; use a longer step")
    inside = (times >= begin) & (times < end)
    columns = np.searchsorted(known, np.array(names.dictionary.to_pylist(), dtype=str))[names.indices.to_numpy()]
    cells = (times[inside] - begin) // length * len(known) + columns[inside]
    people = others[0].indices.to_numpy().astype(np.int64)[inside] if made.needs_users else None
    values = None if column is None else _values(others[-1], column, Path(path).name)[inside]
    return numbers_of(made, cells, steps, tuple(map(str, known)), people, values)


def _values(column: Any, name: str, file: str) -> Floats:
    """The values of a column of text."""
    values, places = numbers(column.dictionary), column.indices.to_numpy()
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values)[places])[0]) + 1
        raise InputError(f"{file}: row {row} has no number in column {name!r}; correct that row")
    return np.asarray(values[places])


class EventRows(NamedTuple):
    """Events one by one: the step, the person and the bin of each as numbers from 0, and what they are numbers of."""

    step: Ints
    person: Ints
    bin: Ints
    steps: int
    bins: tuple[str, ...]


def read_event_rows(
    path: str | Path, step: str, user: str, time: str = "timestamp", bin: str | None = None
) -> EventRows:
    """Read the events that have a person; step 0 holds the first event. Without a column of bins there is one bin."""
    length = milliseconds(step) * MILLISECOND
    times, *columns = _columns(path, time, user, *([] if bin is None else [bin]))
    steps = times // length - int(times.min()) // length
    if (last := int(steps.max())) >= MOST_CELLS:
        raise InputError(f"{last:,} steps of {step} are too many; use a longer step")
    people, *places = (column.indices.to_numpy().astype(np.int64) for column in columns)
    bins = ["all events"] if bin is None else columns[1].dictionary.to_pylist()
    place = places[0] if places else np.zeros_like(steps)
    known = (np.array(columns[0].dictionary.to_pylist()) != "")[people]
    return EventRows(steps[known], people[known], place[known], last + 1, tuple(bins))


def _columns(path: str | Path, time: str, *names: str) -> tuple[Any, ...]:
    """The times of all events in microseconds, and columns of text as dictionary arrays."""
    path = Path(path)
    try:
        return _read(path, time, names)
    except (pa.ArrowException, OSError, EOFError, zlib.error):
        raise InputError(f"{path.name} cannot be read to its end; it is damaged or cut short") from None


def _read(path: Path, time: str, names: Sequence[str]) -> tuple[Any, ...]:
    file, before = open_file(path), 0
    times: list[Ints] = []
    columns: list[list[Any]] = [[] for _ in names]
    for block in file.blocks(0):
        rows = file.rows(block.content, [time, *names])
        assert rows.raw is not None
        size, first = rows.raw.size(), rows.raw.first
        found = _events(rows, time, names)
        if isinstance(found, str):
            row = bisect_left(
                range(size), True, key=lambda number: isinstance(_events(first(number), time, names), str)
            )
            raise InputError(f"{path.name}: row {before + row} {found}")
        if not times and not numbered_dates.are_plausible(found[0]):
            _refuse_dates(rows, time, path.name)
        times.append(found[0])
        for column, part in zip(columns, found[1], strict=True):
            column.append(part)
        before += size
    if not sum(map(len, times)):
        raise InputError(f"{path.name} has no rows; give a file with at least one event")
    return np.concatenate(times), *(pa.chunked_array(each).combine_chunks().dictionary_encode() for each in columns)


def _refuse_dates(rows: ParsedRows, time: str, name: str) -> None:
    """Refuse dates that are written as numbers: they would be read as seconds since 1970."""
    column = named(rows.rows, time)
    if isinstance(column, pa.Array | pa.ChunkedArray) and pa.types.is_temporal(column.type):
        return
    if numbered_dates.form_of(texts(column).to_pylist()):
        raise InputError(
            f"{name}: column {time!r} has numbers that read like dates and would be taken for numbers since 1970; "
            "write them as 2026-01-31"
        )


def _events(rows: ParsedRows, time: str, names: Sequence[str]) -> tuple[Ints, list[Any]] | str:
    """The times and texts of rows, or what is wrong with one of them."""
    if rows.unreadable:
        return "cannot be read; correct that row"
    times, readable = parse_times(named(rows.rows, time), UTC)
    if not readable.all():
        return f"has no time in column {time!r}; write 2026-01-31 or 2026-01-31 23:59"
    columns = []
    for name in names:
        try:
            columns.append(text(texts(named(rows.rows, name))))
        except pa.ArrowInvalid:
            return f"has no text in UTF-8 in column {name!r}; correct that row"
    return times, columns
