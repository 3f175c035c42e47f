"""The sparse-vector grouper behind the measurement "test" over deviations: it holds true counts of open groups."""

from __future__ import annotations

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.privacy.amounts import fixed
from eventide.privacy.sorted_groups import SortedGroups
from eventide.privacy.state import Stateful

LARGEST_GROUP = 512  # so that no deviation of counts up to 2^53 leaves 62 bits


class GroupTest(Stateful):
    """Time groups for each bin: does this step still belong to the open group, by its deviation around the median?

    With budget e for every step the threshold carries noise of scale 2 sensitivity / e, drawn when a group opens, and
    each deviation noise of scale 4 sensitivity / e. Private because: the deviation around the median is a minimum of
    functions that one step moves by at most sensitivity each, a step enters exactly one group (the step that closes a
    group stands alone), and a group is one AboveThreshold run; so an event costs e, charged to its step. Without
    budget no group ever opens.

    The true counts of an open group are kept sorted, at most `longest` of them; the group closes when it is full.
    """

    THRESHOLD_FACTOR, QUERY_FACTOR = 2, 4
    state = ("_counts", "_deviation", "_threshold_noise")

    def __init__(self, amount: Ints, shape: tuple[int, int], longest: int) -> None:
        self._amount = fixed(amount)
        self.longest = longest
        self._counts = SortedGroups(shape)
        self._deviation: Ints = np.zeros(shape, dtype=np.int64)
        self._threshold_noise: Array = np.zeros(shape, dtype=np.int64)

    @property
    def amount(self) -> Ints:
        """What every step is charged."""
        return self._amount

    @property
    def holds_raw(self) -> bool:
        """Whether any group is open."""
        return bool(self._counts.sizes.any())

    @property
    def open(self) -> Bools:
        """Which bins have an open group."""
        return self._counts.sizes > 0

    def deviation_with(self, counts: Ints) -> Ints:
        """The deviation of each open group when this step joins it: the distance to its median interval is added."""
        low, high = self._counts.middle()
        outside: Ints = np.maximum(0, np.maximum(low - counts, counts - high))
        return self._deviation + outside

    def begin(self, counts: Ints, where: Bools, threshold_noise: Array) -> None:
        """Open a group that holds this step alone, in the bins of `where` that have a budget."""
        opening = where & (self.amount > 0)
        self._counts.begin(counts, opening)
        self._threshold_noise = np.where(opening, threshold_noise, self._threshold_noise)

    def join(self, counts: Ints, where: Bools, deviation: Ints) -> None:
        """Put this step into the open group, in the bins of `where`."""
        self._counts.insert(counts, where)
        self._deviation = np.where(where, deviation, self._deviation)

    def close(self, where: Bools) -> None:
        """Erase the groups of the bins in `where`."""
        self._counts.erase(where)
        self._deviation = np.where(where, 0, self._deviation)
        self._threshold_noise = np.where(where, 0, self._threshold_noise)
