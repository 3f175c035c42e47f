"""The sparse-vector grouper behind the measurement "test" over deviations. Imports numpy, `arrays` and `state`."""

from __future__ import annotations

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.privacy.state import Stateful


class GroupTest(Stateful):
    """Time groups for each bin: does this step still belong to the open group, by its deviation around the median?

    With budget e for every step the threshold carries noise of scale 2 sensitivity / e, drawn when a group opens, and
    each deviation noise of scale 4 sensitivity / e. Private because: the deviation around the median is a minimum of
    functions that one step moves by at most sensitivity each, a step enters exactly one group (the step that closes a
    group stands alone), and a group is one AboveThreshold run; so an event costs e, charged to its step.

    The true counts of an open group are kept sorted, at most `longest` of them; the group closes when it is full.
    """

    THRESHOLD_FACTOR, QUERY_FACTOR = 2, 4
    state = ("_sorted", "_size", "_deviation", "_threshold_noise")

    def __init__(self, amount: Ints, shape: tuple[int, int], longest: int) -> None:
        self.amount = np.array(amount, dtype=np.int64)
        self.amount.flags.writeable = False
        self.longest = longest
        self._sorted = np.zeros((*shape, 1), dtype=np.int64)
        self._size: Ints = np.zeros(shape, dtype=np.int64)
        self._deviation: Ints = np.zeros(shape, dtype=np.int64)
        self._threshold_noise: Array = np.zeros(shape, dtype=np.int64)

    @property
    def holds_raw(self) -> bool:
        """Whether any group is open."""
        return bool(self._size.any())

    @property
    def open(self) -> Bools:
        """Which bins have an open group."""
        return self._size > 0

    def deviation_with(self, counts: Ints) -> Ints:
        """The deviation of each open group when this step joins it: the distance to its median interval is added."""
        size = np.maximum(self._size, 1)[..., None]
        low = np.take_along_axis(self._sorted, (size - 1) // 2, axis=2)[..., 0]
        high = np.take_along_axis(self._sorted, size // 2, axis=2)[..., 0]
        outside: Ints = np.maximum(0, np.maximum(low - counts, counts - high))
        return self._deviation + outside

    def begin(self, counts: Ints, where: Bools, threshold_noise: Array) -> None:
        """Open a group that holds this step alone, in the bins of `where`."""
        self._sorted[..., 0] = np.where(where, counts, self._sorted[..., 0])
        self._size = np.where(where, 1, self._size)
        self._deviation = np.where(where, 0, self._deviation)
        self._threshold_noise = np.where(where, threshold_noise, self._threshold_noise)

    def join(self, counts: Ints, where: Bools, deviation: Ints) -> None:
        """Put this step into the open group, in the bins of `where`, keeping the counts sorted."""
        longest = int(self._size.max(initial=0)) + 1
        if longest > self._sorted.shape[2]:
            extra = min(max(longest, 2 * self._sorted.shape[2]), self.longest) - self._sorted.shape[2]
            self._sorted = np.concatenate([self._sorted, np.zeros((*self._size.shape, extra), dtype=np.int64)], axis=2)
        held = self._sorted[..., :longest]
        slots = np.arange(longest)
        place = ((held < counts[..., None]) & (slots < self._size[..., None])).sum(axis=2)[..., None]
        moved = np.concatenate([counts[..., None], held[..., :-1]], axis=2)
        grown = np.where(slots < place, held, np.where(slots == place, counts[..., None], moved))
        self._sorted[..., :longest] = np.where(where[..., None], grown, held)
        self._size = self._size + where
        self._deviation = np.where(where, deviation, self._deviation)

    def close(self, where: Bools) -> None:
        """Erase the groups of the bins in `where`."""
        self._size = np.where(where, 0, self._size)
        self._sorted[where] = 0

    def __repr__(self) -> str:
        return f"<sealed groups of {self._size.shape[1]} bins>"
