"""The sealed sums behind slots: "sum over steps", for many steps at once and several levels of slots.

A slot is a run of steps; slots of one level follow each other without overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eventide.arrays import Ints
from eventide.errors import StateError
from eventide.privacy.state import Stateful

LARGEST = 2**62  # of a sum


class Cut(NamedTuple):
    """How one level cuts the steps to come: after how many of them slots end (ascending), and the budget of each slot.

    Where the last slot does not end with the last step it stays open, and `budgets` is one longer than `ends`.
    """

    ends: Ints
    budgets: Ints

    def charges(self, steps: int) -> Ints:
        """What each of `steps` steps is charged; a cut that does not fit them is refused."""
        lengths = np.diff(self.ends, prepend=0, append=steps)
        if lengths[-1] == 0:
            lengths = lengths[:-1]
        if len(lengths) != len(self.budgets) or (lengths < 1).any():
            raise StateError(f"slots that are cut like this do not fit {steps} steps")
        return np.repeat(self.budgets, lengths)


class SlotSums(Stateful):
    """The open slot of every level: a sum of true counts, read once when the slot ends.

    A slot with budget b charges b to each of its steps and is read with noise of scale sensitivity / b; without a
    budget it is neither summed nor read. Private because: a person moves the sum by at most sensitivity for every step
    of the slot they are in, and the loss of that, b for each such step, is what those steps were charged. What several
    levels, or several of these sums, lose adds up, and so do their charges.
    """

    state = ("_sums", "_budgets", "_open")

    def __init__(self, levels: int, size: int) -> None:
        self.size = size
        self._sums: Ints = np.zeros((levels, size), dtype=np.int64)
        self._budgets: Ints = np.zeros(levels, dtype=np.int64)
        self._open = np.zeros(levels, dtype=np.bool_)

    @property
    def holds_raw(self) -> bool:
        """Whether any slot with a budget is open."""
        return bool(self._budgets[self._open].any())

    def checked(self, cuts: Sequence[Cut], steps: int, most: int) -> Ints:
        """What each of `steps` steps is charged by all levels, each at most `most`.

        Refused are cuts that do not fit, and an open slot that would go on with another budget than it began with.
        """
        if len(cuts) != len(self._budgets):
            raise StateError(f"{len(cuts)} levels were cut where there are {len(self._budgets)}")
        total = np.zeros(steps, dtype=np.int64)
        for level, cut in enumerate(cuts):
            charges = cut.charges(steps)
            if cut.budgets.min() < 0 or cut.budgets.max() > most:
                raise StateError("the budget of a slot lies between 0 and epsilon")
            if self._open[level] and charges[0] != self._budgets[level]:
                raise StateError("an open slot cannot change its budget; end it first")
            total += charges
        return total

    def _totals(self, level: int, counts: Ints, cut: Cut) -> Ints:
        """The true sums `(slots, d)` of a level's slots, of which the first was perhaps open. Only for the meter.

        What would leave 64 bits is cut, not wrapped: that never moves a sum further.
        """
        begins = np.append(0, cut.ends)[: len(cut.budgets)]
        within = np.minimum(counts, LARGEST // len(counts))
        totals = np.add.reduceat(within, begins, axis=0) * (cut.budgets > 0)[:, None]
        totals[0] = np.minimum(totals[0] + self._sums[level], LARGEST)
        return totals

    def _keep(self, rests: Sequence[Ints], cuts: Sequence[Cut]) -> None:
        """Hold the sums of the slots that stay open, and nothing of those that ended. Only for the meter."""
        for level, (rest, cut) in enumerate(zip(rests, cuts, strict=True)):
            self._open[level] = len(rest) > 0
            self._sums[level] = rest[0] if len(rest) else 0
            self._budgets[level] = cut.budgets[-1] if len(rest) else 0
