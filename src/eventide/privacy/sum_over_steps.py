"""The sealed accumulator behind the measurement "sum over steps": it holds true sums, which only the meter reads."""

from __future__ import annotations

import numpy as np

from eventide.arrays import Ints
from eventide.privacy.amounts import fixed
from eventide.privacy.state import Stateful


class SumOverSteps(Stateful):
    """Sums of true counts over several steps, cell by cell, each read once and then begun anew.

    Every step is charged `amount` when it is added and the sum is read with noise of scale sensitivity / amount.
    Private because: a person moves the sum by at most sensitivity for every added step they are in, and the loss of
    that, amount for each such step, is what those steps were charged.
    """

    state = ("_sums", "_steps")

    def __init__(self, amount: Ints, shape: tuple[int, int]) -> None:
        self._amount = fixed(amount)
        self._sums = np.zeros(shape, dtype=np.int64)
        self._steps = np.zeros(shape, dtype=np.int64)

    @property
    def amount(self) -> Ints:
        """What every step is charged when it is added, and the sum is read with."""
        return self._amount

    @property
    def steps(self) -> Ints:
        """How many steps each cell holds (this is public: it follows from the mechanism's decisions)."""
        return self._steps.copy()

    @property
    def holds_raw(self) -> bool:
        """Whether any cell is still open."""
        return bool(self._steps.any())
