"""The people of one open slot: of each person and bin the first step of the slot at which they were there.

A slot is several steps long, such as a day of hours. Where its steps are published as well, each has a tally of its
own, and the memory of the slot takes the people of a step when it closes. What comes out is the same whatever the order
and batches that events came in. Raw: it stays in memory, or in a store until its slot closes.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Array, Ints
from eventide.events import bounding_kernels
from eventide.events.cap_memory import packed_step, unpacked_step
from eventide.events.siphash_kernels import key_words
from eventide.events.slot_times import SlotTimes
from eventide.events.tally import UserTally, foreign, unpacked


class UserFirsts(UserTally):
    """People who count once in a bin of a slot, in at most `most` bins: the first by step, then by a keyed hash.

    Private because: of each person at most `most` bins count, each by 1, whatever they did at which step.
    """

    def __init__(self, size: int, most: int, key: bytes) -> None:
        super().__init__(size, most, key, once=True)
        self._parts = [(np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))]

    def add(self, users: Array | None, bins: Array, steps: Array | None = None) -> None:
        """Count events, each with its step."""
        assert users is not None
        assert steps is not None
        self._append(users, bins, steps, np.ones(len(bins), np.int64))

    def join(self, data: bytes) -> None:
        """Count what another tally has counted, as its bytes."""
        users, bins, steps, ones = unpacked(data, ("<u8", "<i4", "<i8", "<i8"))
        if len(bins) and not (0 <= bins.min() <= bins.max() < self._size and ones.min() == ones.max() == 1):
            raise foreign()
        self._append(users, bins, steps, ones)

    def _bounded(self, step: int, rooms: Ints) -> Ints:
        users, bins, steps, _ = self._table()
        ranks = bounding_kernels.bin_ranks(users, bins, key_words(self._key), step)
        order, first = np.lexsort((ranks, steps, users)), self._firsts()
        numbers = np.diff(np.append(first, len(users)))
        place = np.arange(len(users)) - np.repeat(first, numbers)  # among the bins of its person
        return np.bincount(bins[order[place < np.repeat(rooms, numbers)]], minlength=self._size)

    def _table(self) -> tuple[Array, ...]:
        """All parts as one, sorted by user and bin, with the first step of each."""
        if len(self._parts) > 1:
            users, bins, steps, ones = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
            order = np.lexsort((steps, bins, users))
            users, bins = users[order], bins[order]
            new = np.ones(len(order), np.bool_)
            new[1:] = (users[1:] != users[:-1]) | (bins[1:] != bins[:-1])
            self._parts = [(users[new], bins[new], steps[order][new], ones[order][new])]
            self._rows = len(self._parts[0][0])
        return self._parts[0]


class SlotMemory:
    """The people of the slot that is open, from steps that are closed; steps come in their order."""

    def __init__(self, times: SlotTimes, size: int, most: int, key: bytes) -> None:
        self._times, self._made_with = times, (size, most, key)
        self._slot, self._people = -1, UserFirsts(size, most, key)

    def take(self, step: int, users: Array, bins: Array) -> bytes:
        """Take the people of a step and the bins they were in; the same as bytes, to be kept."""
        self._add(step, users, bins)
        return packed_step(step, users, bins)

    def take_again(self, data: bytes) -> None:
        """Take the people of a step before this life."""
        step, users, bins = unpacked_step(data)
        self._add(step, users, bins.astype(np.int32))

    def counts(self, step: int) -> Ints:
        """The numbers of the slot whose last step this is; zeros at other steps, at which nobody may measure them."""
        size, *_ = self._made_with
        return self._people.counts(self._slot) if self._times.ends(step) else np.zeros(size, np.int64)

    def offered(self, step: int) -> int:
        """How many bins its people were in, once the slot is over. Raw: for operators only."""
        return self._people.offered() if self._times.ends(step) else 0

    def to_keep(self, step: int, used: bytes) -> tuple[int, bytes] | None:
        """What a step took, with the last step at which it matters; None if that is this one."""
        last = self._times.last(step)
        return (last, used) if last > step else None

    def _add(self, step: int, users: Array, bins: Array) -> None:
        if (slot := self._times.slot_of(step)) != self._slot:
            self._slot, self._people = slot, UserFirsts(*self._made_with)
        self._people.add(users, bins, np.full(len(users), step, np.int64))


class StepOfSlot(UserTally):
    """The people of one step, each once in a bin: they count when their slot is over."""

    _offered = 0  # of the slot, if it is over

    def capped_counts(self, step: int, memory: SlotMemory) -> tuple[Ints, bytes]:  # type: ignore[override]
        """Give the people to the slot; its numbers if it is over, and what the step gave."""
        users, bins, _ = self._table()
        used = memory.take(step, users, bins)
        self._offered = memory.offered(step)
        return memory.counts(step), used

    def offered(self) -> int:
        """Those of the slot that ends with this step, behind `capped_counts`. Raw: for operators only."""
        return self._offered
