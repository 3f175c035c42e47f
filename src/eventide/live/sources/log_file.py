"""One file of a log, plain or compressed, whatever its name has become: read line by line, and known again later.

A plain file may grow while it is read. What was seen of it stays as it was, or it was cut: then it is another file in
the same place. A file is known again by keyed digests of what it begins with and of what stands before the place that
was read to, which tell nothing of what is in it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from gzip import GzipFile
from pathlib import Path
from typing import Any

from eventide.errors import InputError
from eventide.events.files.lines import LONGEST_LINE, CsvLineReader, JsonLineReader, is_csv
from eventide.events.rows import ParsedRows
from eventide.live.sources.damage import damage_told
from eventide.live.sources.file_marks import mark_of

BLOCK = 4 << 20  # bytes read at a time
HEAD = 4096  # bytes by which a file is known again, at its beginning and before a place
PACKED = (".gz", ".bz2", ".xz", ".zst", ".Z")  # of which the first can be read
UNKNOWN_LENGTH = 1 << 62  # of a compressed file that was not read to its end


class LogFile:
    """A file of lines that is open; `log` is the name that says of what kind its lines are."""

    def __init__(self, path: Path, log: str) -> None:
        self.path = path
        self.packed = path.suffix in PACKED
        self._file = path.open("rb", buffering=0)
        self._unpacked = GzipFile(fileobj=self._file) if path.suffix == ".gz" else None
        self._last_unpacked = 0, b""  # where it began, and what it was
        self.identity = os.fstat(self._file.fileno())
        self._is_csv = is_csv(log)
        self.place = 0  # where the next line begins
        self.passed = 0  # bytes of a line that is too long
        self.read_until = 0  # with a last line that has no end yet
        self.length = UNKNOWN_LENGTH if self.packed else 0  # at the last look
        self._begins_with = b""
        self._before = self._passed_last = b""  # what stands before the place, and before what was passed
        self._body = 0  # where the first line of events begins
        self._format: CsvLineReader | JsonLineReader | None = None if self._is_csv else JsonLineReader()
        self.look()

    def look(self) -> None:
        """See how long the file is, if it was not cut."""
        size = os.fstat(self._file.fileno()).st_size
        if not self.packed and size > self.length:
            begins_with = self._bytes(0, min(size, HEAD))
            if begins_with.startswith(self._begins_with):
                self.length, self.read_until, self._begins_with = size, self.place + self.passed, begins_with

    def is_cut(self) -> bool:
        """Whether something is gone that was there at the last look: then this is another file in the same place."""
        if self.packed:
            return False
        begins_as_before = self._bytes(0, len(self._begins_with)) == self._begins_with
        return os.fstat(self._file.fileno()).st_size < self.length or not begins_as_before

    @property
    def begins_with(self) -> bytes:
        """The first bytes, as they were at the last look."""
        if self.packed and not self._begins_with:
            self._begins_with = self._bytes(0, HEAD)
        return self._begins_with

    def has_grown(self) -> bool:
        """Whether a look would find something new."""
        return not self.packed and os.fstat(self._file.fileno()).st_size != self.length

    def is_at(self, path: Path) -> bool:
        """Whether a name means this file."""
        try:
            return os.path.samestat(self.identity, path.stat())
        except FileNotFoundError:
            return False

    @property
    def is_read(self) -> bool:
        """Whether everything was read that was there at the last look."""
        return self.read_until >= self.length

    @property
    def is_done(self) -> bool:
        """Whether that was a whole number of lines."""
        return self.is_read and self.place == self.length

    @property
    def is_untouched(self) -> bool:
        """Whether no line of events was read."""
        return self.place <= self._body

    def holds_events(self) -> bool:
        """Whether there was a line of events, at the last look, in what the file is known by."""
        return self.begins_with.count(b"\n") > self._is_csv

    def signature(self) -> bytes:
        """By what the file is told from others that get its number after it: not kept, for it is raw."""
        return b"%d" % self.identity.st_mtime_ns if self.packed else self.begins_with

    def was_there(self, before: Mapping[int, bytes]) -> bool:
        """Whether this is one of some files, by number and signature, and held events then."""
        signature = before.get(self.identity.st_ino)
        if signature is None or not self.signature().startswith(signature):
            return False
        return self.packed or signature.count(b"\n") > self._is_csv

    def read(self, wanted: Sequence[str]) -> ParsedRows:
        """The rows of the next lines below the length of the last look; worth nothing if the file is cut then."""
        begin, _ = self.place + self.passed, self.begins_with
        content = self._bytes(begin, min(BLOCK, self.length - begin))
        if len(content) < BLOCK and self.packed:
            self.length = begin + len(content)
        self.read_until = begin + len(content)
        content, refused = self._behind_long_line(content) if self.passed else (content, 0)
        lines = content[: content.rfind(b"\n") + 1]
        if len(content) > LONGEST_LINE and not lines:
            self.passed, self._passed_last = len(content), content[-HEAD:]
        found = self._rows(lines, wanted) if lines else ParsedRows([], 0)
        self.place += len(lines)
        self._before = (self._before + lines)[-HEAD:]
        return found._replace(unreadable=found.unreadable + refused)

    def position(self, key: bytes | None) -> dict[str, Any]:
        """Where the file was read to, and by what it is known again."""
        return {
            "at": self.place,
            "head": mark_of(self.begins_with[: self.place], key),
            "before": mark_of(self._before, key),
            "inode": self.identity.st_ino,
        }

    def is_known_as(self, position: dict[str, Any], key: bytes | None) -> bool:
        """Whether this is the file of a position."""
        at = position["at"]
        with suppress(InputError):  # what cannot be read is not known again
            return self._is_known_as(position, at, key)
        return False

    def _is_known_as(self, position: dict[str, Any], at: int, key: bytes | None) -> bool:
        if self.length < at or position["head"] != mark_of(self._bytes(0, min(at, HEAD)), key):
            return False
        before = self._bytes_before(at)
        return len(before) == min(at, HEAD) and position.get("before") in (None, mark_of(before, key))

    def go_to(self, place: int) -> None:
        """Read on from a place where a line begins."""
        self.place = self.read_until = place
        self._before = self._bytes_before(place)

    def is_shorter_copy(self, position: dict[str, Any], key: bytes | None) -> bool:
        """Whether this begins as the file of a position, and ends before it: then nothing of it is left to read."""
        head = self.begins_with[: position["at"]]
        if len(head) < min(position["at"], HEAD) or position["head"] != mark_of(head, key):
            return False
        return self._ends_before(position["at"])

    def begins_as(self, other: LogFile) -> bool:
        """Whether this and another begin with the same events."""
        both = min(len(self.begins_with), len(other.begins_with))
        return self.holds_events() and self.begins_with[:both] == other.begins_with[:both]

    def is_copy_of(self, other: LogFile) -> bool:
        """Whether all that is in this file, events and not only a header, also stands at the beginning of another."""
        if self.packed or other.packed or not self.holds_events() or self.length > other.length:
            return False
        places = range(0, self.length, BLOCK)
        return all(self._bytes(at, BLOCK) == other._bytes(at, min(BLOCK, self.length - at)) for at in places)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _ends_before(self, place: int) -> bool:
        """Go to the end, if that comes before a place."""
        if self._unpacked is not None and place and not self._bytes(place - 1, 1):
            self.length = self._unpacked.tell()
        if self.length >= place:
            return False
        self.place = self.read_until = self.length
        return True

    def _bytes_before(self, place: int) -> bytes:
        return self._bytes(max(place - HEAD, 0), min(place, HEAD))

    def _behind_long_line(self, content: bytes) -> tuple[bytes, int]:
        """What comes behind the end of a line that is too long, and that it was one; nothing where that has no end."""
        end = content.find(b"\n") + 1
        if not end:
            self.passed, self._passed_last = self.passed + len(content), (self._passed_last + content)[-HEAD:]
            return b"", 0
        self.place, self.passed = self.place + self.passed + end, 0
        self._before = (self._before + self._passed_last + content[:end])[-HEAD:]
        return content[end:], 1

    def _rows(self, lines: bytes, wanted: Sequence[str]) -> ParsedRows:
        if self._format is None:
            header = self._bytes(0, LONGEST_LINE).split(b"\n")[0]
            self._format, self._body = CsvLineReader(header, self.path.name), len(header) + 1
            if self.place == 0:
                lines = lines[self._body :]
        return self._format.rows(lines, wanted)

    def _bytes(self, begin: int, size: int) -> bytes:
        if self.packed and self._unpacked is None:
            raise InputError(f"{self.path.name} is compressed in a way that cannot be read; compress it with gzip")
        if self._unpacked is None:
            return os.pread(self._file.fileno(), size, begin)
        last_begin, last = self._last_unpacked
        with damage_told(self.path.name):
            if not last_begin <= begin <= last_begin + len(last) <= begin + size:
                last = b""
                self._unpacked.seek(begin)  # back only once in a while: it unpacks from the beginning on
            known = last[begin - last_begin :]
            content = known + self._unpacked.read(size - len(known))
        self._last_unpacked = begin, content
        return content
