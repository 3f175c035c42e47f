"""What people have used of the room that a cap gives them: kept until their blocks are over.

Where a person's blocks begin follows from a keyed hash of the person alone, so that the beginning of a block falls on
every time of the week alike. Steps must come in order: a step is decided when it is closed, and not before. What each
step used can be kept as bytes, and those of the last steps of a block build the memory anew. Raw: it says of whom
anything counted.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable

import numpy as np

from eventide.arrays import Array, Ints
from eventide.errors import StoreError
from eventide.events import bounding_kernels
from eventide.events.caps import Cap
from eventide.events.siphash_kernels import key_words

MARK = b"counted "  # what no tally begins with
_STEP = struct.Struct("<q")
_NOBODY = np.zeros(0, np.uint64), np.zeros(0, np.int64)


class CapMemory:
    """The room that people have left in their blocks; who is not known here has all of it.

    Memory: a row for each person of whom anything counted in a block that is not over.
    """

    def __init__(self, cap: Cap, key: bytes) -> None:
        self.cap, self._key = cap, key_words(key)
        self._users, self._used = _NOBODY
        self._ends = np.zeros(0, np.int64)

    def rooms(self, step: int, users: Array) -> Ints:
        """How many events of each of these users may still count at a step."""
        if not len(self._users):
            return np.full(len(users), self.cap.events)
        place = np.minimum(np.searchsorted(self._users, users), len(self._users) - 1)
        known = (self._users[place] == users) & (self._ends[place] >= step)
        return np.asarray(self.cap.events - np.where(known, self._used[place], 0))

    def take(self, step: int, users: Array, counted: Ints) -> bytes:
        """Use room at a step: so many events of each of these users, who are sorted; the same as bytes, to be kept."""
        present = counted > 0
        self._add(step, users[present], counted[present])
        return packed_step(step, users[present], counted[present])

    def take_together(self, step: int, parts: Iterable[bytes]) -> bytes:
        """Use the room at a step that memories of different users took, by their bytes; all of it as bytes."""
        taken = [_NOBODY, *(unpacked_step(part)[1:] for part in parts)]
        users, counted = (np.concatenate(columns) for columns in zip(*taken, strict=True))
        order = np.argsort(users)
        return self.take(step, users[order], counted[order])

    def take_again(self, data: bytes) -> None:
        """Use the room that a step before this life used; steps in their order."""
        self._add(*unpacked_step(data))

    def divided(self, step: int, parts: int) -> list[bytes]:
        """What matters at a step and later of all that was used before it, divided by the hashes of users.

        Each part is as if all had been used at the step before, which lies in all blocks that are not over then.
        """
        open_still = self._ends >= step
        users, used = self._users[open_still], self._used[open_still]
        return [packed_step(step - 1, users[rows], used[rows]) for rows in rows_of_parts(users, parts)]

    def to_keep(self, step: int, used: bytes) -> tuple[int, bytes] | None:
        """What a step used, with the last step at which it matters, until which it has to be kept; None if it does not.

        That is the last one of a block which begins with the step.
        """
        last = step + self.cap.block - 1
        return (last, used) if last > step else None

    def _add(self, step: int, users: Array, counted: Ints) -> None:
        """Blocks that were over before this step are forgotten; a person has one that is not."""
        open_still = self._ends >= step
        ends = bounding_kernels.block_ends(users, self._key, step, self.cap.block)
        every = [
            np.concatenate([held[open_still], added])
            for held, added in ((self._users, users), (self._ends, ends), (self._used, counted))
        ]
        order = np.argsort(every[0], kind="stable")
        users, ends, used = (column[order] for column in every)
        first = np.ones(len(users), np.bool_)
        first[1:] = users[1:] != users[:-1]
        used = np.add.reduceat(used, np.flatnonzero(first)) if len(users) else used
        self._users, self._ends, self._used = users[first], ends[first], used


def is_memory(data: bytes) -> bool:
    """Whether kept bytes are what a step used of a cap, and not the events of an open step."""
    return data.startswith(MARK)


def rows_of_parts(users: Array, parts: int) -> list[Array]:
    """The rows of each of so many parts, in their order; a user belongs to one, by the user's hash."""
    part_of = (users % np.uint64(parts)).astype(np.uint16)
    order = np.argsort(part_of, kind="stable")
    return np.split(order, np.searchsorted(part_of[order], np.arange(1, parts)))


def packed_step(step: int, users: Array, counted: Ints) -> bytes:
    """A step, users and a number for each of them, as bytes to be kept."""
    file = io.BytesIO()
    file.write(MARK + _STEP.pack(step))
    for column in (users, counted):
        np.save(file, column, allow_pickle=False)
    return file.getvalue()


def unpacked_step(data: bytes) -> tuple[int, Array, Ints]:
    """The step, the users and the numbers that were kept."""
    try:
        file = io.BytesIO(data.removeprefix(MARK))
        (step,) = _STEP.unpack(file.read(_STEP.size))
        users, counted = (np.load(file, allow_pickle=False) for _ in range(2))
    except (ValueError, EOFError, OSError, struct.error):
        raise StoreError("what a store kept of people who counted is damaged; restore it from a backup") from None
    return step, users, counted
