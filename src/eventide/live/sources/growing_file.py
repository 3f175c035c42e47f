"""A file that others append to: lines are read as they become complete.

A file does not record when a line arrived, but its length does: whatever stands below the length seen at a moment had
arrived by then. So each look at the file is a mark (moment, length), everything below the mark is read, and only then
has the source seen until that moment. After a restart the first mark is taken at reopening: steps that fell due in the
meantime wait for it. A last line without its end stays until it is complete; one that is too long is refused when its
end has come, and not kept until then.
"""

from __future__ import annotations

import os
from pathlib import Path

from eventide.errors import InputError
from eventide.events.clock import Clock, SystemClock
from eventide.events.files.lines import LONGEST_LINE, CsvLineReader, JsonLineReader, is_csv
from eventide.events.reader import EventReader, Events
from eventide.events.rows import ParsedRows
from eventide.events.zones import EARLIEST
from eventide.live.sources.base import EventBatch, Position
from eventide.live.sources.file_marks import mark_of

BLOCK = 4 << 20  # bytes read at a time
HEAD = 4096  # bytes by which a file is known again


class GrowingFile:
    """The events of a growing CSV or JSONL file."""

    complete, replays, records_arrival = False, True, False

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._format: CsvLineReader | JsonLineReader | None = None if is_csv(path.name) else JsonLineReader()
        self._seen_until = EARLIEST
        try:
            self._file = path.open("rb", buffering=0)
        except OSError:
            raise InputError(f"{path} cannot be opened; check the path") from None

    def open(self, position: Position, reader: EventReader) -> None:
        """Go to where the next line begins."""
        self._reader = reader
        self._place = self._length = 0 if position is None else position["at"]
        self._passed = 0  # bytes of a line that is too long
        self._caught_up = True
        if position is not None and position["head"] != self._head():
            raise self._replaced()

    def poll(self, timeout: float) -> EventBatch:
        """Some lines below the last mark; when all were read, a new mark is taken, after a while if nothing was new."""
        if self._caught_up:
            self._mark(timeout)
        begin = self._place + self._passed
        content = self._bytes(begin, min(BLOCK, self._length - begin))
        self._caught_up = begin + len(content) == self._length
        content, refused = self._behind_long_line(content) if self._passed else (content, 0)
        lines = content[: content.rfind(b"\n") + 1]
        if len(content) > LONGEST_LINE and not lines:
            self._passed = len(content)
        events = self._events(lines, refused)
        self._place += len(lines)
        if self._caught_up:
            self._seen_until = self._certain
        return EventBatch(events, {"at": self._place, "head": self._head()}, self._seen_until)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _mark(self, timeout: float) -> None:
        if self._size() == self._length:
            self._clock.wait(timeout)
        # before the length, so that what arrived before lies below it
        self._certain, self._marked_at = self._clock.certain(), self._clock.now()
        self._length = self._size()

    def _size(self) -> int:
        """The length of the file, if it still is the one that was opened."""
        ours = os.fstat(self._file.fileno())
        try:
            named = self._path.stat()
        except OSError:
            raise self._replaced() from None
        if not os.path.samestat(ours, named) or named.st_size < self._length:
            raise self._replaced()
        return named.st_size

    def _behind_long_line(self, content: bytes) -> tuple[bytes, int]:
        """What comes behind the end of a line that is too long, and that it was one; nothing where that has no end."""
        end = content.find(b"\n") + 1
        if not end:
            self._passed += len(content)
            return b"", 0
        self._place, self._passed = self._place + self._passed + end, 0
        return content[end:], 1

    def _events(self, lines: bytes, refused: int) -> Events:
        found = self._rows(lines) if lines else ParsedRows([], 0)
        return self._reader.read(found.rows, refused + found.unreadable, self._marked_at, found.raw)

    def _rows(self, lines: bytes) -> ParsedRows:
        if self._format is None:
            header = self._bytes(0, min(self._length, LONGEST_LINE)).split(b"\n")[0]
            self._format = CsvLineReader(header, self._path.name)
            if self._place == 0:
                lines = lines[len(header) + 1 :]
        return self._format.rows(lines, self._reader.wanted)

    def _bytes(self, begin: int, size: int) -> bytes:
        content = os.pread(self._file.fileno(), size, begin)
        if len(content) < size:
            raise self._replaced()
        return content

    def _head(self) -> str:
        """By what the file is known again after a restart."""
        return mark_of(self._bytes(0, min(self._place, HEAD)), self._reader.key)

    def _replaced(self) -> InputError:
        return InputError(
            f"{self._path.name} was cut, moved away or replaced while it was followed, so events may be missing; "
            "follow a file that only grows"
        )
