"""What people have used of the room that a cap gives them: kept until their blocks are over.

Where a person's blocks begin follows from a keyed hash of the person alone, so that the beginning of a block falls on
every time of the week alike. Steps must come in order: a step is decided when it is closed, and not before. What each
step used can be kept as bytes, and those of the last steps of a block build the memory anew. Raw: it says of whom
anything counted.
"""

from __future__ import annotations

import io
import struct

import numpy as np

from eventide.arrays import Array, Ints
from eventide.errors import StoreError
from eventide.events import bounding_kernels
from eventide.events.caps import Cap
from eventide.events.siphash_kernels import key_words

_MARK = b"counted "  # what no tally begins with
_STEP = struct.Struct("<q")


class CapMemory:
    """The room that people have left in their blocks; who is not known here has all of it.

    Memory: a row for each person of whom anything counted in a block that is not over.
    """

    def __init__(self, cap: Cap, key: bytes) -> None:
        self.cap, self._key = cap, key_words(key)
        self._users, self._ends, self._used = np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int64)

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
        file = io.BytesIO()
        file.write(_MARK + _STEP.pack(step))
        for column in (users[present], counted[present]):
            np.save(file, column, allow_pickle=False)
        return file.getvalue()

    def take_again(self, data: bytes) -> None:
        """Use the room that a step before this life used; steps in their order."""
        try:
            file = io.BytesIO(data.removeprefix(_MARK))
            (step,) = _STEP.unpack(file.read(_STEP.size))
            users, counted = (np.load(file, allow_pickle=False) for _ in range(2))
        except (ValueError, EOFError, OSError, struct.error):
            raise StoreError("what a store kept of a cap is damaged; restore it from a backup") from None
        self._add(step, users, counted)

    def last_needed(self, step: int) -> int:
        """The last step at which it matters what counted at a step."""
        return step + self.cap.block - 1

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
    return data.startswith(_MARK)
