"""The values of one open group per cell, kept in order so that their median is at hand.

Promises the exact median after every insertion, for all cells at once. Holds whatever it is given: true counts inside
`privacy`, noisy ones inside filters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.privacy.state import Stateful


class SortedGroups(Stateful):
    """Groups of cells of `shape`, all empty at first; values are whole numbers within 60 bits, or floats.

    Row i holds the i-th smallest value of every cell, and the top value of its type where the cell holds fewer. So one
    insertion for all cells is two passes over the rows in use: row i becomes the middle one of row i - 1, row i and
    the new value. Rows have the narrowest type that fits what is held: narrow rows make these passes fast.

    Memory: cells times the largest group held, twice that during an insertion.
    """

    state = ("_rows", "sizes")

    def __init__(self, shape: tuple[int, int]) -> None:
        self.sizes: Ints = np.zeros(shape, dtype=np.int64)
        self._cells = np.arange(self.sizes.size).reshape(shape)
        self._rows = self._one_empty_row()

    def begin(self, values: Array, where: Bools) -> None:
        """Put the first value into the empty groups of the cells in `where`; as `insert` would, in less time."""
        self._widen_for(values)
        self.sizes = self.sizes + where
        self._rows[0] = np.where(where, values, self._rows[0])

    def insert(self, values: Array, where: Bools) -> None:
        """Add one value to the groups of the cells in `where`."""
        self._widen_for(values)
        self.sizes = self.sizes + where
        rows = int(self.sizes.max(initial=1))
        held = self._rows[:rows]
        entering = np.where(where, values, _top(held)).astype(held.dtype)  # where the top enters, nothing changes
        grown = np.empty((rows, *entering.shape), dtype=held.dtype)
        np.minimum(held, entering, out=grown[: len(held)])
        grown[len(held) :] = entering
        np.maximum(grown[1:], held[: rows - 1], out=grown[1:])
        self._rows = grown

    def erase(self, where: Bools) -> None:
        """Empty the groups of the cells in `where`."""
        self.sizes = np.where(where, 0, self.sizes)
        if self.sizes.any():
            top = _top(self._rows)
            np.maximum(self._rows, np.where(where, top, -top).astype(self._rows.dtype), out=self._rows)
        else:
            self._rows = self._one_empty_row()  # its type, too, may tell how large the values were

    def middle(self) -> tuple[Array, Array]:
        """The ends of the median interval of every group, equal where its size is odd; anything where it is empty."""
        places = np.maximum(self.sizes - 1, 0) // 2, self.sizes // 2
        wide = np.float64 if self._rows.dtype.kind == "f" else np.int64
        low, high = (self._rows.take(place * self.sizes.size + self._cells).astype(wide) for place in places)
        return low, high

    def _one_empty_row(self) -> Array:
        return np.full((1, *self.sizes.shape), np.iinfo(np.int16).max, dtype=np.int16)

    def _widen_for(self, values: Array) -> None:
        """Choose a type that has room for the values below its top and above the negative of that."""
        is_float = values.dtype.kind == "f"
        fits = self._rows.dtype.kind == "f" or (not is_float and np.abs(values).max() < _top(self._rows))
        if not fits:
            needed = values.dtype if is_float else np.min_scalar_type(-2 - int(np.abs(values).max()))
            empty = self._rows == _top(self._rows)
            self._rows = self._rows.astype(np.promote_types(needed, self._rows.dtype))
            self._rows[empty] = _top(self._rows)


def _top(rows: Array) -> Any:
    return np.inf if rows.dtype.kind == "f" else (1 << (8 * rows.itemsize - 1)) - 1
