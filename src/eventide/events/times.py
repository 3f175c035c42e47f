"""When an event happened, from whatever a column holds, as int64 microseconds UTC.

Text is ISO 8601: a date, perhaps with a time of day after T or a blank, perhaps with Z or an offset; without one it is
read in the zone. A number, also one written as text, counts since 1970 in seconds below 10^11, in milliseconds below
10^14, in microseconds below 10^17, and else in nanoseconds: so seconds reach the year 5138, and milliseconds are
understood from 1973 on. Dates and timestamps of Arrow or Python are taken as they are, in the zone where they name
none. What lies outside the years 1 to 9999 is unreadable. A `TimeFormat` says of text and numbers how else they are
written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import Bools, Ints
from eventide.errors import InputError
from eventide.events import time_kernels as kernels
from eventide.events.texts import buffers, texts
from eventide.events.time_formats import TimeFormat
from eventide.events.zones import EARLIEST, LATEST, Zone


class ReadTimes(NamedTuple):
    """The time of each cell, whether it could be read, and whether it was read in the zone, since it names none."""

    times: Ints
    readable: Bools
    in_zone: Bools


def read_times(column: Any, zone: Zone, form: TimeFormat | None = None) -> ReadTimes:
    """The times of a column, which are written in a form."""
    if isinstance(column, pa.Array | pa.ChunkedArray) and isinstance(column.type, pa.BaseExtensionType):
        raise InputError(
            f"a column of type {_plain_name(column.type)} holds no points in time; of periods in pandas give "
            "series.dt.to_timestamp()"
        )
    if isinstance(column, pa.Array | pa.ChunkedArray) and pa.types.is_temporal(column.type):
        times, readable, local = _temporal(column)
    else:
        held = buffers(texts(column))
        times, kinds = kernels.read(*held) if form is None else form.read(*held)
        readable, local = kinds != kernels.UNREADABLE, kinds == kernels.LOCAL
    if local.all():
        times = zone.to_utc(times)
    elif local.any():
        times[local] = zone.to_utc(times[local])
    readable &= (times >= EARLIEST) & (times < LATEST)
    return ReadTimes(times, readable, local & readable)


def no_time(place: str, column: str, form: str | None, *, has_rows: bool) -> str:
    """What is said where no time can be read: there is no row, none is written in the form, or none in any."""
    if not has_rows:
        return (
            f"{place} has no rows; look whether all of it was delivered (to publish steps without events, give "
            "--start, --until and --allow-refused)"
        )
    if form is not None:
        return (
            f"column {column!r} of {place} holds no time that --time-format {form!r} describes; correct the format, "
            "which must describe the whole cell, or name another column"
        )
    return (
        f"column {column!r} of {place} holds no time that can be read; say how times are written with --time-format, "
        "such as %d.%m.%Y %H:%M, or name another column"
    )


def _plain_name(kind: Any) -> str:
    return f"period[{kind.freq}]" if hasattr(kind, "freq") else str(kind)


def parse_times(column: Any, zone: Zone) -> tuple[Ints, Bools]:
    """The time of each cell, and whether it could be read."""
    return read_times(column, zone)[:2]


def _temporal(column: Any) -> tuple[Ints, Bools, Bools]:
    zone = getattr(column.type, "tz", None)
    try:
        numbers = pc.cast(pc.cast(column, pa.timestamp("us", zone), safe=False), pa.int64())
    except pa.ArrowNotImplementedError:
        raise InputError(f"a column of type {column.type} holds no points in time; give dates with times") from None
    readable = np.asarray(numbers.is_valid())
    times = np.asarray(pc.fill_null(numbers, 0), dtype=np.int64).copy()  # Arrow's own may be read-only
    return times, readable, readable if zone is None else np.zeros(len(times), dtype=bool)
