"""A file that is complete: nothing in it is late, in whatever order its rows stand.

Each event arrives when it happens. A first pass over the times finds the earliest one of everything still to come at
each block; a step closes when that lies behind its end. So the rows may be in any order, and memory stays bounded where
they are more or less sorted. A second pass reads the events. Two threads read ahead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import pyarrow as pa

from eventide.errors import InputError
from eventide.events.files.lines import LineFile
from eventide.events.files.parquet_file import ParquetFile
from eventide.events.reader import EventReader, Events
from eventide.events.rows import FileBlock
from eventide.live.sources.base import FOREVER, EventBatch, Position
from eventide.live.sources.file_marks import mark_of_file

THREADS = 2
_Made = TypeVar("_Made")


class CompleteFile:
    """The events of a complete file."""

    complete, replays, records_arrival = True, True, True

    def __init__(self, file: LineFile | ParquetFile) -> None:
        self._file = file
        self._pool = ThreadPoolExecutor(THREADS)
        self._ahead: Iterator[tuple[Events, int]] = iter(())
        self._seen_until: dict[int, int] = {}
        self._looked_through = (
            "",
            list[tuple[int, int]](),
        )  # a mark of the file, and the first time in each of its blocks

    def first_time(self, reader: EventReader) -> int:
        """The time of the earliest event, where a time line may begin; `open` needs no other pass over the times."""
        mark, firsts = mark_of_file(self._file.path, None), list(self._first_times(reader, 0))
        self._looked_through = mark, firsts
        earliest = min((first for first, _ in firsts), default=FOREVER)
        if earliest == FOREVER:
            raise InputError(f"{self._file.name} holds no time that can be read; check the column of times")
        return earliest

    def open(self, position: Position, reader: EventReader) -> None:
        """Look through the times of what comes after a position, then begin to read it."""
        self._mark = mark_of_file(self._file.path, reader.key)
        if position is not None and position["file"] != self._mark:
            raise InputError(
                f"{self._file.name} has changed or is another file since a part of it was published; give the same "
                "file, or publish another one to a store of its own"
            )
        begin = 0 if position is None else position["at"]
        firsts = [(FOREVER, begin), *self._known_first_times(reader, begin)]
        earliest = FOREVER
        for first, end in reversed(firsts):
            self._seen_until[end] = earliest
            earliest = min(earliest, first)
        nothing = iter([(Events.none(), begin)])  # also when nothing is left to read, everything was seen
        self._ahead = self._events(reader, begin) if len(firsts) > 1 else nothing

    def poll(self, timeout: float) -> EventBatch | None:
        """The next block."""
        following = next(self._ahead, None)
        if following is None:
            return None
        events, end = following
        return EventBatch(events, {"at": end, "file": self._mark}, self._seen_until[end])

    def close(self) -> None:
        """Stop reading."""
        self._pool.shutdown(cancel_futures=True)

    def _known_first_times(self, reader: EventReader, begin: int) -> Iterable[tuple[int, int]]:
        """The same as `_first_times`, from what was found before, if it was found in this file and such blocks."""
        mark, firsts = self._looked_through
        is_border = begin in (0, *(end for _, end in firsts))
        if is_border and mark == mark_of_file(self._file.path, None):
            return [(first, end) for first, end in firsts if end > begin]
        return self._first_times(reader, begin)

    def _first_times(self, reader: EventReader, begin: int) -> Iterator[tuple[int, int]]:
        """The earliest time in each block from where one begins, and where it ends."""

        def first(block: FileBlock) -> tuple[int, int]:
            times = reader.times(self._file.rows(block.content, [reader.columns.time]).rows)
            return int(np.min(times, initial=FOREVER)), block.end

        return self._map(first, begin)

    def _events(self, reader: EventReader, begin: int) -> Iterator[tuple[Events, int]]:
        def read(block: FileBlock) -> tuple[Events, int]:
            found = self._file.rows(block.content, reader.wanted)
            return reader.read(found.rows, found.unreadable, raw=found.raw), block.end

        return self._map(read, begin)

    def _map(self, make: Callable[[FileBlock], _Made], begin: int) -> Iterator[_Made]:
        """What is made of each block, in order, by threads that are a few blocks ahead."""
        waiting: deque[Future[_Made]] = deque()
        try:
            for block in self._file.blocks(begin):
                waiting.append(self._pool.submit(make, block))
                if len(waiting) > THREADS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except (pa.ArrowException, OSError, EOFError):
            raise InputError(f"{self._file.name} cannot be read to its end; it is damaged or cut short") from None
