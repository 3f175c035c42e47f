"""A log that others append to: its lines are read as they become complete, over all the files that it is rotated into.

A file does not record when a line arrived, but its length does: whatever stands below the length seen at a moment had
arrived by then. So each look at the log is a mark (a moment, and the length of every file that may still grow),
everything below the mark is read, and only then has the source seen until that moment. After a restart the first mark
is taken at reopening: steps that fell due in the meantime wait for it. A last line without its end stays until it is
complete; one that is too long is refused when its end has come, and not kept until then.

The log is followed by its name. When that means another file, the one before is read on besides, since a program may
still write to it, until the name has changed once more. After a restart reading goes on in whichever file was read
before, plain or compressed by now, and then in all that came behind it. Events of steps that were released are passed
over, so that reading too much is no harm; where the file that was read before is not to be found, somebody has to say
with which one to go on. The same is done where a file was cut: what stood in it is read from the copy made before.
Where the store was published from something else before, such as the same file without --follow, all is read.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from eventide.errors import InputError
from eventide.events.clock import Clock, SystemClock
from eventide.events.reader import EventReader, Events
from eventide.events.rows import ParsedRows
from eventide.events.zones import EARLIEST
from eventide.live.sources.base import EventBatch, Position, ReadAgain
from eventide.live.sources.log_file import LogFile
from eventide.live.sources.rotated_names import files_of_log

DAY = 86_400_000_000  # microseconds
STILL_WRITTEN = 2  # files of a log that may grow: the one that has its name, and the one before
NOT_THERE = "check the path, or make an empty file if the log has yet to begin"
PATIENCE = 5.0  # seconds in which files that are being renamed must have come to rest


class GrowingFile:
    """The events of a growing CSV or JSONL file, and of the files it was rotated into.

    `continue_with` is the file to begin with where the one that was read before is not to be found.
    """

    complete, replays, records_arrival = False, True, False

    def __init__(self, path: Path, clock: Clock | None = None, *, continue_with: Path | None = None) -> None:
        self._path, self._continue_with = path, continue_with
        self._clock = clock or SystemClock()
        self._begin = EARLIEST
        self._seen_until = EARLIEST
        self._files: list[LogFile] = []  # oldest first
        self._known: dict[tuple[str, int], bytes] = {}  # by name and number, what was there when it was last looked for
        self._folder_changed = 0
        for file in self._files_there():
            file.close()

    def begin_at(self, moment: int) -> None:
        """Say that no event before a moment counts: files that were complete long before it need not be read."""
        self._begin = moment

    def open(self, position: Position, reader: EventReader) -> None:
        """Find the file that was read before, and those behind it."""
        self.close()
        self._reader, self._caught_up, self._files = reader, True, []
        found = self._files_there()
        try:
            self._files = self._from_position(_entries(position), found)
        finally:
            _close(file for file in found if file not in self._files)

    def poll(self, timeout: float) -> EventBatch:
        """Some lines below the last mark; when all were read, a new mark is taken, after a while if nothing was new."""
        if self._caught_up:
            self._mark(timeout)
        events = self._events(self._next_rows())
        self._caught_up = all(file.is_read for file in self._files)
        if self._caught_up:
            self._seen_until = self._certain
        return EventBatch(events, self._position(), self._seen_until)

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files:
            file.close()

    def _mark(self, timeout: float) -> None:
        if not (self._has_successor() or any(file.has_grown() for file in self._files)):
            self._clock.wait(timeout)
        # before names and lengths, so that what arrived before stands in these files and lies below these lengths
        self._certain, self._marked_at = self._clock.certain(), self._clock.now()
        if self._has_successor():
            self._files += self._successors()
        else:
            self._look_for_copies()
        for file in self._files:
            file.look()
            if file.is_cut():
                raise self._cut(file)

    def _has_successor(self) -> bool:
        """Whether the log, or where it is away the youngest of its predecessors, is another file than the last one."""
        youngest = [self._path] if self._path.exists() else files_of_log(self._path)[-1:]
        return any(not self._files[-1].is_at(path) for path in youngest)

    def _next_rows(self) -> ParsedRows:
        """Read on in the oldest file that is not read; let go of those that nobody writes to any more."""
        refused = 0
        while len(self._files) > STILL_WRITTEN and self._files[0].is_read:
            refused += self._files[0].read_until > self._files[0].place  # a last line that never got its end
            self._files.pop(0).close()
        place = next((place for place, file in enumerate(self._files) if not file.is_read), None)
        if place is None:
            return ParsedRows([], refused)
        file, later = self._files[place], self._files[place + 1 :]
        if file.is_untouched and any(file.is_copy_of(other) for other in later):
            self._files.pop(place).close()
            return ParsedRows([], refused)
        rows = file.read(self._reader.wanted)
        for other in (file, *later):
            if other.is_cut():  # then it was not what this was compared with
                raise self._cut(other)
        return rows._replace(unreadable=rows.unreadable + refused)

    def _events(self, found: ParsedRows) -> Events:
        return self._reader.read(found.rows, found.unreadable, self._marked_at, found.raw)

    def _position(self) -> Position:
        """Where each file stands up to the last in which a line was read; those behind are read from the beginning."""
        begun = max((place for place, file in enumerate(self._files, 1) if not file.is_untouched), default=0)
        entries: list[dict[str, Any]] = [
            {"at": 0} if file.is_untouched else file.position(self._reader.key) for file in self._files[:begun]
        ]
        for entry, file in zip(entries, self._files[:-1], strict=False):
            if file.is_done and entry["at"]:
                entry["done"] = True
        return {"files": entries} if begun else None

    def _files_there(self) -> list[LogFile]:
        """All files of the log, oldest first, as they are at one moment."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            files: list[LogFile] = []
            try:
                paths = files_of_log(self._path)
                files += (self._opened(path) for path in paths)
                if all(file.is_at(file.path) for file in files) and files_of_log(self._path) == paths:
                    break
            except FileNotFoundError:  # renamed meanwhile
                pass
            except BaseException:
                _close(files)
                raise
            _close(files)
            time.sleep(0.001)
        else:
            raise InputError(f"the files of {self._path} are renamed again and again; start when that is over")
        if not files:
            raise InputError(f"{self._path} is not a file; {NOT_THERE}")
        self._known = {(file.path.name, file.identity.st_ino): file.signature() for file in files}
        return files

    def _opened(self, path: Path) -> LogFile:
        try:
            return LogFile(path, self._path.name)
        except FileNotFoundError:
            raise
        except OSError:
            raise InputError(f"{path} cannot be opened; check its permissions") from None

    def _from_position(self, entries: Sequence[dict[str, Any]], files: list[LogFile]) -> list[LogFile]:
        """The files from the first one of a position on, each where it was read to."""
        begin, behind, unread = None, 0, 0
        for entry in entries:
            if not entry["at"]:  # nothing was in it yet
                unread += 1
                continue
            place = self._place_of(entry, files, behind)
            if place is None and (elsewhere := self._found_elsewhere(entry)) is not None:
                files.insert(behind, elsewhere)
                place = behind
            if place is not None:
                begin, behind = max(place - unread, 0) if begin is None else begin, place + 1
            elif not entry.get("done"):  # it may hold more than was read
                return self._from_chosen(files, "is not the file that was followed before")
        if entries:
            return files[begin or 0 :]
        if self._continue_with is not None:
            return self._from_chosen(files)
        recent = (place for place, file in enumerate(files) if file.identity.st_mtime_ns >= 1000 * (self._begin - DAY))
        return files[next(recent, len(files) - 1) :]

    def _place_of(self, entry: dict[str, Any], files: list[LogFile], behind: int) -> int | None:
        """Which of the files from the place `behind` on is the one of a position, gone on to where it was read to."""
        key, places = self._reader.key, range(behind, len(files))
        alike = [place for place in places if files[place].is_known_as(entry, key)]
        certain = [place for place in alike if files[place].identity.st_ino == entry.get("inode")] or alike
        if len(certain) == 1:
            files[certain[0]].go_to(entry["at"])
        elif not certain:  # a copy that was made before the last lines came ends before them
            copies = [place for place in places if files[place].path != self._path]
            certain = [place for place in copies if files[place].is_shorter_copy(entry, key)][-1:]
        return certain[0] if certain else None  # of several alike, all are read from their beginning

    def _found_elsewhere(self, entry: dict[str, Any]) -> LogFile | None:
        """The file of a position under a name that rotation does not give."""
        for path in self._path.parent.iterdir():
            if path.is_file() and path.stat().st_ino == entry.get("inode"):
                file = self._opened(path)
                if file.is_known_as(entry, self._reader.key):
                    file.go_to(entry["at"])
                    return file
                file.close()
        return None

    def _from_chosen(self, files: list[LogFile], problem: str = "") -> list[LogFile]:
        """The files from the one on that somebody has chosen."""
        if self._continue_with is None:
            raise self._gone(problem)
        for place, file in enumerate(files):
            if file.is_at(self._continue_with):
                return files[place:]
        raise InputError(
            f"{self._continue_with} is neither {self._path} nor one of the files beside it that it was rotated into; "
            "name one of them"
        )

    def _successors(self) -> list[LogFile]:
        """The files behind the last one that is known, which is read on besides."""
        last, known = self._files[-1], self._known
        last.look()
        found = self._files_there()
        places = [place for place, file in enumerate(found) if file.identity.st_ino == last.identity.st_ino]
        before = {number: signature for (_, number), signature in known.items()}
        behind = found[places[-1] + 1 :] if places else [file for file in found if not file.was_there(before)]
        _close(file for file in found if file not in behind)
        if not places and any(file.packed or file.begins_as(last) for file in behind):  # or as somebody wrote it anew
            _close(behind)
            raise ReadAgain
        return behind

    def _look_for_copies(self) -> None:
        """Notice that a log which was empty at the last look was filled, copied and cut since."""
        changed = self._path.parent.stat().st_mtime_ns
        if changed != self._folder_changed and not self._files[-1].holds_events():
            known = self._known.keys()
            _close(self._files_there())
            if self._known.keys() != known:
                raise ReadAgain
        self._folder_changed = changed

    def _cut(self, file: LogFile) -> Exception:
        """What to do when a file was cut: read from the last position on, if there is a copy of what stood in it."""
        found = self._files_there()
        others = [other for other in found if other.identity.st_ino != file.identity.st_ino]
        copied = not file.holds_events() or any(other.begins_as(file) for other in others)
        _close(found)
        return ReadAgain() if copied else self._gone("was cut, and there is no copy beside it of what stood in it")

    def _gone(self, what: str) -> InputError:
        return InputError(
            f"{self._path.name} {what}, so events may be missing; put the file that was followed back beside it, or "
            "say with --continue-with FILE from which file on to read"
        )


def _entries(position: Position) -> list[dict[str, Any]]:
    """What is known of each file; older versions knew one. Of a position in another kind of source nothing is."""
    if position is None:
        return []
    entries: list[dict[str, Any]] = position.get("files", [position] if "head" in position else [])
    return entries


def _close(files: Iterable[LogFile]) -> None:
    for file in files:
        file.close()
