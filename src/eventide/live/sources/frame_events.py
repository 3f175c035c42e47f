"""The events of a frame: complete, so nothing in it is late, in whatever order its rows stand.

Each event arrives when it happens. A step closes when no row that is still to come can belong to it, and how that is
known depends on the frame. One in memory is looked through first, as a complete file is. A query, such as a DuckDB
relation, is sorted by whoever computes it, if its times are of a type that sorts. Of a stream that is said to be in
order, the earliest time in the following batch tells; a row that breaks the order is an error, never left out. Of
anything else all rows are counted before the first step closes. So no event decides whether another one counts: rows
outside `span`, which are refused, say nothing about the order either, so that every row is read before the last step
closes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from eventide.arrays import Ints
from eventide.errors import InputError
from eventide.events.reader import EventReader, Events
from eventide.events.rows import ParsedRows, UnparsedRows
from eventide.events.times import no_time
from eventide.events.zones import EARLIEST
from eventide.live.sources.base import FOREVER, EventBatch, Position
from eventide.streams.frames import Frame

ROWS = 1 << 17  # of a batch


class FrameEvents:
    """The events of a frame; `ordered` says that the rows of a stream are sorted by time.

    There is nothing to go back to: after a restart a frame is read from its first row, and events of steps that were
    released are passed over.
    """

    complete, replays, records_arrival = True, True, True

    def __init__(self, frame: Frame, *, ordered: bool = False) -> None:
        self._frame, self.ordered = frame, ordered
        self.span = (EARLIEST, FOREVER)  # what the feed counts
        self._batches: Iterator[EventBatch] = iter(())

    def first_time(self, reader: EventReader) -> int:
        """The time of the earliest event, where a time line may begin."""
        if not self._frame.again:
            raise InputError("start is missing; a stream is read once, so say when its first step begins")
        earliest = min(self._first_times(reader), default=FOREVER)
        if earliest == FOREVER:
            has_rows = any(rows.num_rows for rows in self._frame.read([reader.columns.time], ROWS))
            form = reader.read_from["time_format"]
            raise InputError(no_time(self._frame.name, reader.columns.time, form, has_rows=has_rows))
        return earliest

    def open(self, position: Position, reader: EventReader) -> None:
        """Get ready to read from the first row on."""
        ordered = self._frame.sorted_by(reader.columns.time)
        if self._frame.held:
            self._batches = self._looked_through(reader)
        elif ordered is not None:
            self._batches = self._in_order(_events(ordered, reader))
        elif self.ordered:
            self._batches = self._in_order(_events(self._frame, reader))
        else:
            self._batches = self._at_the_end(_events(self._frame, reader))

    def poll(self, timeout: float) -> EventBatch | None:
        """The next batch."""
        return next(self._batches, None)

    def close(self) -> None:
        """Nothing to let go of: the frame is not ours."""
        self._batches = iter(())

    def _looked_through(self, reader: EventReader) -> Iterator[EventBatch]:
        """What was found in a first pass over the times says from when on nothing is to come."""
        firsts = [*self._first_times(reader), FOREVER]
        still_to_come: Ints = np.minimum.accumulate(firsts[::-1])[::-1]
        events = chain(_events(self._frame, reader), [Events.none()])
        for number, each in enumerate(events, start=1):
            yield EventBatch(each, None, int(still_to_come[min(number, len(firsts) - 1)]))

    def _in_order(self, following: Iterator[Events]) -> Iterator[EventBatch]:
        """Nothing is earlier than the earliest of the batch that follows."""
        seen_until, held = EARLIEST, Events.none()
        begin, end = self.span
        for events in following:
            inside = (events.time >= begin) & (events.time < end)
            first = int(np.min(events.time[inside], initial=FOREVER))
            if first < seen_until:
                raise InputError(
                    "the rows are not sorted by time; sort them, or leave ordered out: then all of them are counted "
                    "before the first step is released"
                )
            seen_until = seen_until if first == FOREVER else first
            yield EventBatch(held, None, seen_until)
            held = events
        yield EventBatch(held, None, FOREVER)

    def _at_the_end(self, following: Iterator[Events]) -> Iterator[EventBatch]:
        """Everything may still come until nothing does."""
        for events in following:
            yield EventBatch(events, None, EARLIEST)
        yield EventBatch(Events.none(), None, FOREVER)

    def _first_times(self, reader: EventReader) -> Iterator[int]:
        for rows in self._frame.read([reader.columns.time], ROWS):
            yield int(np.min(reader.times(rows), initial=FOREVER))


def _events(frame: Frame, reader: EventReader) -> Iterator[Events]:
    for rows in frame.read(reader.wanted, ROWS):
        yield reader.read(rows, raw=UnparsedRows(partial(_count, rows), partial(_first, rows)))


def _count(rows: Any) -> int:
    return int(rows.num_rows)


def _first(rows: Any, number: int) -> ParsedRows:
    return ParsedRows(rows.slice(0, number), 0)
