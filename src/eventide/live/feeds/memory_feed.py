"""Counts that are in memory already, as a feed: for code that has them, and for trying things out.

The rows are trusted and have no clock; those that a store has released already are passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from eventide.live.feeds.base import ClosedStep, Promise, Resume


class MemoryFeed:
    """Rows of counts, one a step; those that are published already are passed over."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = rows

    def describe(self) -> dict[str, Any]:
        """Counts without a clock."""
        return {"source": "counts"}

    def promise(self) -> Promise:
        """The counts are trusted."""
        return Promise("one person", None, ())

    def steps(self, resume: Resume) -> Iterator[ClosedStep | None]:
        """Give the rows."""
        for index, row in enumerate(self._rows):
            if index >= resume.next_step:
                yield ClosedStep(index, np.asarray(row), None)

    def start_of(self, step: int) -> str | None:
        """There is no clock."""
        return None

    def close(self) -> None:
        """Nothing to let go of."""
