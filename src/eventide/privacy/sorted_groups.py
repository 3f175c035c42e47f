"""The values of one open group per cell, kept in order so that their median is at hand.

Promises the exact median after every insertion, for all cells at once. Holds whatever it is given: true counts inside
`privacy`, noisy ones inside filters. Imports numpy, `arrays` and `state`.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.privacy.state import Stateful


class SortedGroups(Stateful):
    """Groups of cells of `shape`, all empty at first. `nothing` is larger than any value and fixes their type.

    Row i holds the i-th smallest value of every cell, `nothing` where the cell holds fewer. So one insertion for all
    cells is two passes over the rows in use: row i becomes the middle one of row i - 1, row i and the new value.
    Memory: cells times the largest group held, twice that during an insertion.
    """

    state = ("_rows", "sizes")

    def __init__(self, shape: tuple[int, int], nothing: np.int64 | np.float64) -> None:
        self._nothing = nothing
        self._rows: Array = np.full((1, *shape), nothing)
        self.sizes: Ints = np.zeros(shape, dtype=np.int64)

    def begin(self, values: Array, where: Bools) -> None:
        """Put one value into the empty groups of the cells in `where`."""
        self._rows[0][where] = values[where]
        self.sizes = np.where(where, 1, self.sizes)

    def insert(self, values: Array, where: Bools) -> None:
        """Add one value to the groups of the cells in `where`, empty or not."""
        self.sizes = self.sizes + where
        rows = int(self.sizes.max(initial=1))
        entering = np.where(where, values, self._nothing)  # where nothing enters, every row stays what it is
        held = self._rows[:rows]
        grown = np.empty((rows, *entering.shape), dtype=held.dtype)
        np.minimum(held, entering, out=grown[: len(held)])
        grown[len(held) :] = entering
        np.maximum(grown[1:], held[: rows - 1], out=grown[1:])
        self._rows = grown

    def erase(self, where: Bools) -> None:
        """Empty the groups of the cells in `where`."""
        self._rows[:, where] = self._nothing
        self.sizes = np.where(where, 0, self.sizes)

    def middle(self) -> tuple[Array, Array]:
        """The ends of the median interval of every group, equal where its size is odd; `nothing` where it is empty."""
        low = np.take_along_axis(self._rows, np.maximum(self.sizes - 1, 0)[None] // 2, axis=0)[0]
        high = np.take_along_axis(self._rows, self.sizes[None] // 2, axis=0)[0]
        return low, high
