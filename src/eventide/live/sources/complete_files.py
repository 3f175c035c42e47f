"""Files that are complete: nothing in them is late, in whatever order their rows stand, within a file and over all.

Each event arrives when it happens. A first pass over the times, or over what a file says of its row groups, finds the
earliest one of everything still to come at each block; a step closes when that lies behind its end. So the rows may be
in any order, and memory stays bounded where they are more or less sorted. A second pass reads the events. Two threads
read ahead. Several files are read one after the other as if they were one; where reading stands is the number of a file
and a place in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np

from eventide.errors import InputError
from eventide.events.files.members import SourceFile
from eventide.events.files.open_file import EventFile
from eventide.events.reader import EventReader, Events
from eventide.events.times import no_time
from eventide.events.zones import EARLIEST
from eventide.live.sources.base import FOREVER, EventBatch, Position
from eventide.live.sources.damage import damage_told
from eventide.live.sources.file_marks import mark_of_files, mark_of_names

THREADS = 2
_Made = TypeVar("_Made")


class Place(NamedTuple):
    """Where a block begins or ends: the number of the file, and the place in it."""

    number: int
    at: int


class Block(NamedTuple):
    """A piece of one of the files that is still to be read into rows, and where it ends."""

    file: EventFile
    name: str
    content: Any
    end: Place


class CompleteFiles:
    """The events of complete files, in the order of their names."""

    complete, replays, records_arrival = True, True, True

    def __init__(self, members: Sequence[SourceFile]) -> None:
        self._members, self._several = members, len(members) > 1
        self._pool = ThreadPoolExecutor(THREADS)
        self._ahead: Iterator[tuple[Events, Place]] = iter(())
        self._seen_until: dict[Place, int] = {}
        self._looked_through = ("", list[tuple[int, Place]]())  # a mark of the files, and the first time in each block

    def check_columns(self, reader: EventReader) -> None:
        """Refuse columns that the first file does not have, by its header or schema alone."""
        with damage_told(self._members[0].name):
            file = self._members[0].open()
            if file.columns and any(file.columns.count(name) != 1 for name in reader.wanted):
                for block in file.blocks(0):
                    file.rows(block.content, reader.wanted)  # which refuses it in its own words
                    return

    def first_time(self, reader: EventReader) -> int:
        """The time of the earliest event, where a time line may begin; `open` needs no other pass over the times."""
        mark, firsts = mark_of_files(self._members, None), list(self._first_times(reader, Place(0, 0)))
        self._looked_through = mark, firsts
        earliest = min((first for first, _ in firsts), default=FOREVER)
        if earliest == FOREVER:
            column = reader.columns.time
            found = self._map(lambda block: block.file.rows(block.content, [column]), Place(0, 0))
            has_rows = any(len(each.rows) or each.unreadable for each in found)
            raise InputError(no_time(self._name, column, reader.read_from["time_format"], has_rows=has_rows))
        return earliest

    def open(self, position: Position, reader: EventReader) -> None:
        """Look through the times of what comes after a position, then begin to read it."""
        self._mark = {"file": mark_of_files(self._members, reader.key)}
        if self._several:
            self._mark["names"] = mark_of_names(self._members, reader.key)
        begin = Place(0, 0)
        if position is not None:
            self._refuse_others(position)
            begin = Place(position.get("number", 0), position["at"])
        firsts = [(FOREVER, begin), *self._known_first_times(reader, begin)]
        self._firsts = {end: first for first, end in firsts}
        earliest = FOREVER
        for first, end in reversed(firsts):
            self._seen_until[end] = earliest
            earliest = min(earliest, first)
        if len(firsts) > 1:  # when nothing is left to read, everything was seen
            self._seen_until[begin] = EARLIEST
        self._ahead = chain([(Events.none(), begin)], self._events(reader, begin))  # by the first the files are known

    def poll(self, timeout: float) -> EventBatch | None:
        """The next block."""
        following = next(self._ahead, None)
        if following is None:
            return None
        events, end = following
        number = {"number": end.number} if self._several else {}
        return EventBatch(events, {"at": end.at, **number, **self._mark}, self._seen_until[end])

    def close(self) -> None:
        """Stop reading."""
        self._pool.shutdown(cancel_futures=True)

    @property
    def _name(self) -> str:
        return "the source" if self._several else self._members[0].name

    def _refuse_others(self, position: dict[str, Any]) -> None:
        """Refuse files that are not those of which a part was published."""
        if "file" not in position:
            raise InputError(
                "this store was published from a source that goes on, so complete files cannot be read in its place; "
                "give a file that was followed with --follow again, or the address of the broker"
            )
        if position["file"] == self._mark["file"]:
            return
        changed = f"{self._name} has changed or is another file since a part of it was published; give the same file"
        if self._several:
            changed = "files were added, removed or renamed"
            if position.get("names") == self._mark["names"]:
                changed = "one of the files has changed"
            changed += " since a part of them was published; give the same files"
        raise InputError(
            f"{changed}. If events come day by day, append them to one file and publish it with --follow and --until; "
            "a store of their own spends epsilon once more, unless both draw from one account"
        )

    def _known_first_times(self, reader: EventReader, begin: Place) -> Iterable[tuple[int, Place]]:
        """The same as `_first_times`, from what was found before, if it was found in these files and such blocks."""
        mark, firsts = self._looked_through
        is_border = begin in (Place(0, 0), *(end for _, end in firsts))
        if is_border and mark == mark_of_files(self._members, None):
            return [(first, end) for first, end in firsts if end > begin]
        return self._first_times(reader, begin)

    def _first_times(self, reader: EventReader, begin: Place) -> Iterator[tuple[int, Place]]:
        """The earliest time in each block from where one begins, and where it ends."""

        def first(block: Block) -> tuple[int, Place]:
            told = block.file.earliest(block.content, reader.columns.time)
            rows = block.file.rows(block.content, [reader.columns.time]).rows if told is None else told
            return int(np.min(reader.times(rows), initial=FOREVER)), block.end

        return self._map(first, begin)

    def _events(self, reader: EventReader, begin: Place) -> Iterator[tuple[Events, Place]]:
        def read(block: Block) -> tuple[Events, Place]:
            found = block.file.rows(block.content, reader.wanted)
            raw = found.raw._replace(file=block.name) if found.raw and self._several else found.raw
            events = reader.read(found.rows, found.unreadable, raw=raw)
            if np.min(events.time, initial=FOREVER) < self._firsts[block.end]:
                raise InputError(f"{block.name} says wrong times of its row groups; write it anew, and publish that")
            return events, block.end

        return self._map(read, begin)

    def _map(self, make: Callable[[Block], _Made], begin: Place) -> Iterator[_Made]:
        """What is made of each block, in order, by threads that are a few blocks ahead."""

        def told(block: Block) -> _Made:
            with damage_told(block.name):
                return make(block)

        waiting: deque[Future[_Made]] = deque()
        for block in self._blocks(begin):
            waiting.append(self._pool.submit(told, block))
            if len(waiting) > THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _blocks(self, begin: Place) -> Iterator[Block]:
        """The blocks of all files from a place on; a file is open while its blocks are read."""
        for number, member in enumerate(self._members[begin.number :], start=begin.number):
            with damage_told(member.name):
                file = member.open()
                for block in file.blocks(begin.at if number == begin.number else 0):
                    yield Block(file, member.name, block.content, Place(number, block.end))
