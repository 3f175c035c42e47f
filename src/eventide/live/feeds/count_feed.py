"""A file of counts as a feed: its steps are its rows, and there is no clock.

The file can be read again from its beginning, so nothing of it is kept in a store.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from eventide.live.feeds.base import ClosedStep, Promise, Resume
from eventide.streams.count_files import CountFile

LENGTH_IS_PUBLIC = "the first and the last step are those of the file, which is taken to be no secret"


class CountFeed:
    """The steps of a file of counts; how much one person adds to them is taken on trust."""

    def __init__(self, file: CountFile) -> None:
        self.file = file

    def describe(self) -> dict[str, Any]:
        """Counts without a clock."""
        return {"source": "counts"}

    def promise(self) -> Promise:
        """The counts come ready-made."""
        return Promise("one person", None, (LENGTH_IS_PUBLIC,))

    def steps(self, resume: Resume) -> Iterator[ClosedStep | None]:
        """Give the steps that are not published yet."""
        for index, counts in islice(enumerate(self.file.steps()), resume.next_step, None):
            yield ClosedStep(index, counts, None)

    def start_of(self, step: int) -> str | None:
        """There is no clock."""
        return None

    def close(self) -> None:
        """The file is open only while it is read."""
