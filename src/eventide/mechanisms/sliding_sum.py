"""The sum of the last few vectors of an endless row, of which the latest may still be revised.

Promises O(d) a step, however long the window is, and no rounding error that builds up. Holds released values only.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.privacy.state import Stateful


class SlidingSum(Stateful):
    """The sum of the last `span` vectors of `shape`; zeros stand for those before the first.

    Memory: span vectors, in a ring. A new vector is added and the one it replaces taken off; each time the ring has
    been gone round, the sum is made afresh.

    >>> window = SlidingSum(span=2, shape=(1, 1))
    >>> for value in (1, 2, 3):
    ...     window.push(np.array([[value]]))
    >>> window.total
    array([[5.]])
    >>> window.revise(np.array([[10]]), latest=np.array([[1]]))
    >>> window.total
    array([[12.]])
    """

    state = ("_vectors", "_next", "total")

    def __init__(self, span: int, shape: tuple[int, int]) -> None:
        self.span = span
        self._vectors = np.zeros((span, *shape))
        self._next = 0
        self.total: Floats = np.zeros(shape)

    def push(self, values: Array) -> None:
        """Append a vector."""
        self.total = self.total + (values - self._vectors[self._next])
        self._vectors[self._next] = values
        self._next = (self._next + 1) % self.span
        if self._next == 0:
            self.total = self._vectors.sum(axis=0)

    def revise(self, values: Array, latest: Ints) -> None:
        """Put `values` in the place of what the `latest` vectors hold; `latest` says how many, cell by cell."""
        for back in range(1, min(int(latest.max()), self.span) + 1):
            vector = self._vectors[self._next - back]
            revised = np.where(latest >= back, values, vector)
            self.total += revised - vector
            vector[:] = revised
