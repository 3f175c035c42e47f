"""Counts that are ready-made, as feeds: rows in memory, or those of a file.

How much one person adds to them is taken on trust, and there is no clock. They can be read again from their beginning,
so nothing is kept in a store; steps that it has released already are passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from itertools import islice
from typing import Any

from eventide.events.bin_names import BinNames
from eventide.live.feeds.base import ClosedStep, Promise, Resume
from eventide.streams.count_files import CountFile
from eventide.streams.frames import Frame

LENGTH_IS_PUBLIC = "the first and the last step are those of the file: its length is taken to be public"


class MemoryFeed:
    """Rows of counts, one a step: for code that has them, and for trying things out.

    Parameters
    ----------
    rows
        One row for each step, from step 0 on, as a mechanism takes them, with or without names; those that a store has
        already are passed over.
    """

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = rows
        self._at_hand = isinstance(rows, Sized)  # others may be made as time goes by

    def describe(self) -> dict[str, Any]:
        """Counts without a clock."""
        return {"source": "counts"}

    def promise(self) -> Promise:
        """The counts are trusted."""
        return Promise("one person", None, ())

    def know(self, names: BinNames) -> None:
        """Rows may have names, or one count for each place."""

    def steps(self, resume: Resume) -> Iterator[ClosedStep | None]:
        """Give the rows that are not published yet."""
        for index, row in islice(enumerate(self._read()), resume.next_step, None):
            yield ClosedStep(index, row, None, more=self._at_hand)

    def _read(self) -> Iterable[Any]:
        return self._rows

    def start_of(self, step: int) -> str | None:
        """There is no clock."""
        return None

    def close(self) -> None:
        """Nothing to let go of: a file is open only while it is read."""


class CountFeed(MemoryFeed):
    """The rows of a file or frame of counts."""

    def __init__(self, file: CountFile) -> None:
        self.file = file
        self._named, self._at_hand = False, True

    def promise(self) -> Promise:
        """The counts are trusted, and so is the length of the file or frame."""
        is_frame = isinstance(self.file.table, Frame)
        return Promise(
            "one person", None, (LENGTH_IS_PUBLIC.replace("file", "frame") if is_frame else LENGTH_IS_PUBLIC,)
        )

    def _read(self) -> Iterable[Any]:
        rows: Iterable[Any] = self.file.steps()
        if self._named:
            rows = (dict(zip(self.file.bins, row.tolist(), strict=True)) for row in rows)
        return rows

    def know(self, names: BinNames) -> None:
        """Hand out the rows with the names that the file has, which may be fewer than there are places."""
        self._named = True
