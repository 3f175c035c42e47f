"""The events of one open step, as a multiset: what was counted so far, in no order, ready to be joined or stored.

With users, a table of rows (user hash, bin index, occurrences); occurrences are capped, far above what can ever count,
so that nobody fills the memory by repeating an event; at 1 where a person counts once in a bin. Without users, one
count a bin. Either is the same whatever the order and batches its events came in. Raw: it stays in memory, or in a
store until its step closes.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np

from eventide.arrays import Array, Ints
from eventide.errors import StoreError
from eventide.events import bounding_kernels
from eventide.events.cap_memory import CapMemory
from eventide.events.siphash_kernels import key_words

LEAST_CAP = 1024
_FEW_ROWS = 1 << 16


class UserTally:
    """Events with users, at most `most` of each of whom will count; with `once`, one of each in a bin."""

    def __init__(self, size: int, most: int, key: bytes, *, once: bool = False) -> None:
        self._size, self._most, self._key, self._once = size, most, key, once
        self._cap = 1 if once else max(LEAST_CAP, most)
        self._parts: list[tuple[Array, ...]]
        self._parts = [(np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.int64))]
        self._rows, self._limit = 0, _FEW_ROWS
        self._taken = 0

    def add(self, users: Array | None, bins: Array) -> None:
        """Count events."""
        assert users is not None
        self._append(users, bins, np.ones(len(bins), np.int64))

    def join(self, data: bytes) -> None:
        """Count what another tally has counted, as its bytes."""
        users, bins, occurrences = unpacked(data, ("<u8", "<i4", "<i8"))
        if len(bins) and not (0 <= bins.min() <= bins.max() < self._size and occurrences.min() > 0):
            raise foreign()
        self._append(users, bins, occurrences)

    def counts(self, step: int) -> Ints:
        """The bounded counts."""
        return self._bounded(step, np.full(len(self._firsts()), self._most))

    def capped_counts(self, step: int, memory: CapMemory) -> tuple[Ints, bytes]:
        """The counts bounded by a cap besides, and what the step used of it; steps come in their order."""
        users = self._table()[0][self._firsts()]
        rooms = np.minimum(memory.rooms(step, users), self._most)
        return self._bounded(step, rooms), memory.take(step, users, np.minimum(self._of_each(), rooms))

    def countable(self) -> int:
        """How many events would count without a cap. Raw: for operators only."""
        return int(np.minimum(self._of_each(), self._most).sum())

    def left_out(self, counts: Ints) -> int:
        """How many events the bound left out of these counts of them; of what was joined, those that were not capped.

        Somebody's further events in a bin in which they count once are not left out. Raw: for operators only.
        """
        return self.offered() - self.counted(counts)

    def offered(self) -> int:
        """How many events there are to count, without somebody's further ones where they count once. Raw: as above."""
        return len(self._table()[0]) if self._once else self._taken

    def counted(self, counts: Ints) -> int:
        """How many events are in these counts of them. Raw: for operators only."""
        return int(counts.sum())

    def to_bytes(self) -> bytes:
        """The tally as bytes."""
        return _packed(self._table())

    def _bounded(self, step: int, rooms: Ints) -> Ints:
        key = key_words(self._key)
        counts: Ints = bounding_kernels.bounded_counts(*self._table(), key, step, rooms, self._size)
        return counts

    def _of_each(self) -> Ints:
        """How many events each user has."""
        first = self._firsts()
        return np.add.reduceat(self._table()[-1], first) if len(first) else first

    def _firsts(self) -> Ints:
        """The first row of each user."""
        users = self._table()[0]
        return np.flatnonzero(np.append(True, users[1:] != users[:-1])) if len(users) else np.zeros(0, np.int64)

    def _append(self, users: Array, *cells: Array) -> None:
        self._parts.append((users, *cells))
        self._rows += len(users)
        self._taken += int(cells[-1].sum())
        if self._rows > self._limit:
            self._table()
            self._limit = max(_FEW_ROWS, 2 * self._rows)  # so that joining costs as much as what was added

    def _table(self) -> tuple[Array, ...]:
        """All parts as one, sorted by user and bin."""
        if len(self._parts) == 1:
            return self._parts[0]
        *keys, occurrences = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        order = self._sorting(*keys)
        keys = [column[order] for column in keys]
        first = np.ones(len(occurrences), bool)
        first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in keys])
        joined = np.add.reduceat(occurrences[order], np.flatnonzero(first)) if len(order) else occurrences
        table = (*(column[first] for column in keys), self._limited(joined))
        self._parts, self._rows = [table], len(table[0])
        return table

    def _sorting(self, users: Array, *cells: Array) -> Array:
        return _sorting(users, *cells)

    def _limited(self, occurrences: Ints) -> Ints:
        return np.minimum(occurrences, self._cap)


class EventTally:
    """Events without users: each is somebody else's."""

    def __init__(self, size: int) -> None:
        self._counts = np.zeros(size, np.int64)

    def add(self, users: Array | None, bins: Array) -> None:
        """Count events."""
        self._counts += np.bincount(bins, minlength=len(self._counts))

    def join(self, data: bytes) -> None:
        """Count what another tally has counted, as its bytes."""
        (counts,) = unpacked(data, ("<i8",))
        if len(counts) != len(self._counts):
            raise foreign()
        self._counts += counts

    def counts(self, step: int) -> Ints:
        """The counts."""
        return self._counts

    def left_out(self, counts: Ints) -> int:
        """None: every event is somebody else's."""
        return 0

    def offered(self) -> int:
        """None of which anything could be left out."""
        return 0

    def to_bytes(self) -> bytes:
        """The tally as bytes."""
        return _packed((self._counts,))


Tally = UserTally | EventTally
"""What an open step needs."""


def _sorting(users: Array, bins: Array) -> Array:
    """What sorts rows by user and bin; bins are looked at only where a user has several rows, which is rare."""
    order = np.argsort(users)
    same = users[order[1:]] == users[order[:-1]]
    again = np.flatnonzero(np.append(same, False) | np.append(False, same))
    several = order[again]
    order[again] = several[np.lexsort((bins[several], users[several]))]
    return order


def _packed(columns: Sequence[Array]) -> bytes:
    """Columns as .npy members, back to back."""
    file = io.BytesIO()
    for column in columns:
        np.save(file, column, allow_pickle=False)
    return file.getvalue()


def unpacked(data: bytes, kinds: Sequence[str]) -> list[Array]:
    """The columns of these kinds that were packed."""
    file = io.BytesIO(data)
    try:
        columns = [np.load(file, allow_pickle=False) for _ in kinds]
    except (ValueError, EOFError, OSError):
        raise StoreError("events kept for an open step are damaged; restore the store from a backup") from None
    same = {column.shape for column in columns} == {(columns[0].size,)}
    if not same or file.read(1) or [column.dtype.str for column in columns] != list(kinds):
        raise foreign()
    return columns


def foreign() -> StoreError:
    """What is raised where kept events are not such as are counted here."""
    return StoreError("events kept for an open step do not fit the bins; go on with the bins they were kept for")
