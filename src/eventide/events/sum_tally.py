"""The values of one open step, as a multiset: what was added so far, in no order, ready to be joined or stored.

With users, a table of rows (user hash, bin index, value, occurrences). What an event with a value adds to the numbers
of its bin, `spread` says. Which events count is decided as for counts: by users, bins and numbers of events alone. The
n events of a user in a bin stand in the order of their values, so a value that was another one moves the sum by no more
than the two are apart. Raw: it stays in memory, or in a store until its step closes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eventide.arrays import Array, Ints
from eventide.events import bounding_kernels
from eventide.events.siphash_kernels import key_words
from eventide.events.tally import LEAST_CAP, EventTally, UserTally, foreign, unpacked

Spread = list[tuple[Ints, Ints]]
"""For all events: to which number of their bins they add, and how much; again where they add to several."""


def as_they_are(values: Ints) -> Spread:
    """The values, to the only number of a bin."""
    return [(np.zeros(len(values), np.int64), values)]


class UserSums(UserTally):
    """Values of events with users, at most `most` of each of whom will count.

    Private because: at most `most` values of a person count in a step, and each is at most `largest` away from 0.
    """

    def __init__(
        self,
        size: int,
        most: int,
        key: bytes,
        largest: int,
        columns: int = 1,
        spread: Callable[[Ints], Spread] = as_they_are,
    ) -> None:
        super().__init__(size, most, key)
        self._largest, self._counted = largest, 0
        self._columns, self._spread = columns, spread
        self._parts = [(np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))]

    def add(self, users: Array | None, bins: Array, values: Array | None = None) -> None:
        """Add values."""
        assert users is not None
        assert values is not None
        self._append(users, bins, values, np.ones(len(bins), np.int64))

    def join(self, data: bytes) -> None:
        """Add what another tally holds, as its bytes."""
        users, bins, values, occurrences = unpacked(data, ("<u8", "<i4", "<i8", "<i8"))
        if len(bins) and not (
            0 <= bins.min() <= bins.max() < self._size
            and np.abs(values).max() <= self._largest
            and occurrences.min() > 0
        ):
            raise foreign()
        self._append(users, bins, values, occurrences)

    def counted(self, counts: Ints) -> int:
        """How many values are in the last sums. Raw: for operators only."""
        return self._counted

    def _bounded(self, step: int, rooms: Ints) -> Ints:
        self._counted = int(np.minimum(self._of_each(), rooms).sum())
        ranked, key = max(LEAST_CAP, self._most), key_words(self._key)
        users, bins, values, occurrences = self._table()
        sums: Ints = np.zeros(self._size * self._columns, np.int64)
        for columns, added in self._spread(values):
            places, rows = bins * np.int64(self._columns) + columns, (users, bins, added, occurrences)
            sums += bounding_kernels.bounded_sums(*rows, places, key, step, rooms, ranked, len(sums))
        return sums

    def _sorting(self, users: Array, *cells: Array) -> Array:
        return np.lexsort((*reversed(cells), users))

    def _limited(self, occurrences: Ints) -> Ints:
        return occurrences  # their number decides which are ranked, so none is forgotten


class EventSums(EventTally):
    """Values of events without users: each is somebody else's."""

    def __init__(self, size: int, columns: int = 1, spread: Callable[[Ints], Spread] = as_they_are) -> None:
        super().__init__(size * columns)
        self._columns, self._spread = columns, spread

    def add(self, users: Array | None, bins: Array, values: Array | None = None) -> None:
        """Add values."""
        assert values is not None
        for columns, added in self._spread(values):
            np.add.at(self._counts, bins * np.int64(self._columns) + columns, added)
