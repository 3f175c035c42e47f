"""Lines from another program: `tail -F log.jsonl | eventide publish -`.

An event arrives when it is read. Nothing can be read twice, so open events are kept in the store. The first line says
what the lines are: a JSON object, or the header of a CSV. A last line needs no end.
"""

from __future__ import annotations

import os
import select
import sys

from eventide.events.clock import Clock, SystemClock
from eventide.events.files.lines import LONGEST_LINE, STANDARD_INPUT, CsvLineReader, JsonLineReader
from eventide.events.reader import EventReader, Events
from eventide.live.sources.base import EventBatch, Position

CHUNK = 1 << 20  # bytes read at a time, at the most


class StandardInput:
    """The events of a pipe, by its file descriptor."""

    complete, replays, records_arrival = False, False, True

    def __init__(self, descriptor: int | None = None, clock: Clock | None = None) -> None:
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._clock = clock or SystemClock()
        self._format: CsvLineReader | JsonLineReader | None = None
        self._torn = b""

    def first_arrival(self) -> int:
        """The moment before which no event arrives: a line arrives when it is read, and none was read yet."""
        return self._clock.certain()

    def open(self, position: Position, reader: EventReader) -> None:
        """Begin with the next line."""
        self._reader = reader

    def poll(self, timeout: float) -> EventBatch | None:
        """What has come, up to the last complete line; at the end of the input all of it."""
        if not select.select([self._descriptor], [], [], timeout)[0]:
            return EventBatch(Events.none(), None, self._clock.certain())
        content, now = os.read(self._descriptor, CHUNK), self._clock.now()
        if not content and not self._torn:
            return None
        lines, end, torn = (self._torn + (content or b"\n")).rpartition(b"\n")
        self._torn = torn[: LONGEST_LINE + 1]  # of a line that is too long, enough to refuse it
        return EventBatch(self._events(lines + end, now) if end else Events.none(), None, self._clock.certain())

    def close(self) -> None:
        """Nothing to let go of: the pipe is not ours."""

    def _events(self, lines: bytes, now: int) -> Events:
        if self._format is None:
            header, _, following = lines.partition(b"\n")
            is_json = header.lstrip().startswith(b"{")
            self._format = JsonLineReader() if is_json else CsvLineReader(header, STANDARD_INPUT)
            lines = lines if is_json else following
        found = self._format.rows(lines, self._reader.wanted)
        return self._reader.read(found.rows, found.unreadable, now, found.raw)
