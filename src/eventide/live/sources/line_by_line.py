"""Lines one at a time, for whoever may hold no more than the event in hand: of a pipe, or of a growing file.

Nothing of a line is held once its event was handed over, and nothing here counts events: how far a file was read is
known to the operating system alone. A line that is not whole yet is in hand. Bytes are read one by one, since whatever
is read ahead is a copy of events that nobody has counted.

A pipe cannot be read again: after a restart the events before it are lost. A file is read again from its beginning, and
so are the files it was rotated into since the oldest open step began, as far as they are not compressed; events of
released steps are passed over. A file that is cut is read from its new beginning, and what was not read before is lost.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from pathlib import Path

from eventide.errors import InputError
from eventide.events.clock import Clock, SystemClock
from eventide.events.files.lines import LONGEST_LINE, STANDARD_INPUT, CsvLineReader, JsonLineReader, is_csv
from eventide.events.reader import EventReader, Events
from eventide.events.zones import EARLIEST
from eventide.live.sources.base import EventBatch, Position
from eventide.live.sources.log_file import PACKED
from eventide.live.sources.rotated_names import files_of_log

STILL_WRITTEN = 2  # files of a log that may grow: the one that has its name, and the one before


class _Lines:
    """The lines behind a file descriptor; `is_csv` is None where the first line says what they are."""

    def __init__(self, descriptor: int, name: str, is_csv: bool | None = None) -> None:
        self.descriptor, self._name = descriptor, name
        self._format: CsvLineReader | JsonLineReader | None = JsonLineReader() if is_csv is False else None
        self._is_csv = is_csv
        self._line = bytearray()
        self.ended = False

    def read(self, reader: EventReader, arrival: int, ready: Callable[[], bool]) -> Events:
        """The event of the next line; none if it is no event, or not whole as long as bytes are `ready`."""
        while ready():
            byte = os.read(self.descriptor, 1)
            self.ended = not byte
            if byte in (b"\n", b""):
                return self._event(reader, arrival)
            if len(self._line) <= LONGEST_LINE:  # of a line that is too long, enough to refuse it
                self._line += byte
        return Events.none()

    def _event(self, reader: EventReader, arrival: int) -> Events:
        line = bytes(self._line)
        self._line[:] = bytes(len(self._line))
        self._line.clear()
        if self._format is None:
            is_json = self._is_csv is None and line.lstrip().startswith(b"{")
            self._format = JsonLineReader() if is_json else CsvLineReader(line, self._name)
            line = line if is_json else b""
        found = self._format.rows(line + b"\n", reader.wanted) if line.strip() else None
        return Events.none() if found is None else reader.read(found.rows, found.unreadable, arrival)


class PipeLines:
    """The lines of a pipe, by its file descriptor. A step closes before the first line that is read after its end."""

    complete, replays, records_arrival = False, False, True
    in_order = True

    def __init__(self, descriptor: int | None = None, clock: Clock | None = None) -> None:
        descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._lines, self._clock = _Lines(descriptor, STANDARD_INPUT), clock or SystemClock()
        self._moment: int | None = None  # when the next line was seen to be there

    def first_arrival(self) -> int:
        """The moment before which no event arrives: a line arrives when it is read, and none was read yet."""
        return self._clock.certain()

    def open(self, position: Position, reader: EventReader) -> None:
        """Begin with the next line."""
        self._reader = reader

    def poll(self, timeout: float) -> EventBatch | None:
        """First the time, then a line that had come by then: it is not in hand while steps are closed."""
        if self._lines.ended:
            return None
        if self._moment is None:
            waits = self._is_ready(timeout)
            self._moment = self._clock.now() if waits else None
            return EventBatch(Events.none(), None, self._clock.certain())
        moment, self._moment = self._moment, None
        return EventBatch(self._lines.read(self._reader, moment, self._is_ready), None, EARLIEST)

    def close(self) -> None:
        """Nothing to let go of: the pipe is not ours."""

    def _is_ready(self, timeout: float = 0.0) -> bool:
        return bool(select.select([self._lines.descriptor], [], [], timeout)[0])


class _File(_Lines):
    """A file that grows. `unread` bytes stood in it at the last look, which the file itself shows as well."""

    def __init__(self, path: Path, log: str) -> None:
        super().__init__(os.open(path, os.O_RDONLY), path.name, is_csv(log))
        self.unread = 0

    def look(self) -> bool:
        """See how much is there to be read, from the beginning if the file was cut; say whether it is anything."""
        size, place = os.fstat(self.descriptor).st_size, os.lseek(self.descriptor, 0, os.SEEK_CUR)
        if size < place:
            place = os.lseek(self.descriptor, 0, os.SEEK_SET)
        self.unread = size - place
        return self.unread > 0

    def is_at(self, path: Path) -> bool:
        """Whether a name means this file; also where it means none."""
        try:
            return os.path.samestat(os.fstat(self.descriptor), path.stat())
        except FileNotFoundError:
            return True

    def next_byte(self) -> bool:
        """Whether another byte stands below the length of the last look."""
        self.unread -= 1
        return self.unread >= 0


class FileLines:
    """The lines of a growing file. Whatever stands below its length at a moment had arrived by then."""

    complete, replays, records_arrival = False, True, False
    in_order = False  # a step is still open when lines of the next are read

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path, self._clock = path, clock or SystemClock()
        self._files: list[_File] = []
        self._marked: int | None = None  # the moment of the last look, until all below it was read
        self._arrival = EARLIEST
        if not path.is_file():
            raise InputError(f"{path} is not a file; check the path")

    def open(self, position: Position, reader: EventReader) -> None:
        """Begin with the files that were written to since the moment in `position`."""
        self.close()
        since = -1 if position is None else position.get("since", -1)
        plain = [path for path in files_of_log(self._path) if path.suffix not in PACKED]
        recent = [path for path in plain if path == self._path or path.stat().st_mtime_ns // 1000 >= since]
        self._reader, self._marked = reader, None
        self._files = [_File(path, self._path.name) for path in recent]

    def poll(self, timeout: float) -> EventBatch:
        """A line; or nothing, and the moment up to which all was read, once it was."""
        for file in self._files:
            if file.unread > 0:
                return EventBatch(file.read(self._reader, self._arrival, file.next_byte), None, EARLIEST)
        if self._marked is not None:
            seen, self._marked = self._marked, None
            return EventBatch(Events.none(), None, seen)
        if not (any(file.look() for file in self._files) or self._has_successor()):
            self._clock.wait(timeout)
        self._marked, self._arrival = self._clock.certain(), self._clock.now()  # before names and lengths are looked at
        if self._has_successor():
            self._files.append(_File(self._path, self._path.name))
        for file in self._files:
            file.look()
        while len(self._files) > STILL_WRITTEN and not self._files[0].unread:
            os.close(self._files.pop(0).descriptor)
        return EventBatch(Events.none(), None, EARLIEST)

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files:
            os.close(file.descriptor)
        self._files = []

    def _has_successor(self) -> bool:
        return not (self._files and self._files[-1].is_at(self._path)) and self._path.exists()
