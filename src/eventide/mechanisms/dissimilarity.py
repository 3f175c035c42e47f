"""The decision that BD and BA share: is repeating worse than looking? Imports the frame and `privacy`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from eventide.arrays import Bools, Ints
from eventide.mechanisms.base import Common, Mechanism
from eventide.privacy.amounts import NANO, Amount, share
from eventide.privacy.sealed import SealedStep


class DissimilarityMechanism(Mechanism):
    """Looks when the last release is further from the truth than the noise of a look would be.

    Half of epsilon pays for the distances, an equal part at every step, the other half for looks. With `shift_budget`
    and at least twice as many bins as steps in a window the distances get only epsilon / d a step: their noise, spread
    over d bins, is then still small, and looks gain what they leave.
    """

    def __init__(
        self,
        epsilon: Amount,
        window: int,
        bins: int | Sequence[str],
        *,
        shift_budget: bool = False,
        **common: Unpack[Common],
    ) -> None:
        self.shift_budget = shift_budget
        super().__init__(epsilon, window, bins, **common)

    def begin(self) -> None:
        """Fix the two parts of epsilon."""
        shifted = self.shift_budget and self.size >= 2 * self.window
        self._distance_share = share(self.total, 1, self.size if shifted else 2 * self.window).reshape(1, 1)
        self._look_pool = share(self.total, self.size - self.window, self.size) if shifted else share(self.total, 1, 2)

    def worth_looking(self, step: SealedStep, planned: Ints, asked: Bools) -> Bools:
        """Whether the noisy distance to the last release exceeds the noise that `planned` would bring.

        The distance is charged and drawn where `asked`; at the first step its outcome is ignored and every replica
        with budget looks. A plan of 0 never looks.
        """
        distance = self.meter.distance(step, self._released, np.where(asked, self._distance_share, 0))
        possible = asked & (planned > 0)
        if step.index == 0:
            return possible
        return possible & (distance > self._noise_of(np.maximum(planned, 1)))

    def _noise_of(self, planned: Ints) -> Ints:
        """The L1 error that noise of budget `planned` brings over all bins, rounded down: d * sensitivity / planned."""
        whole = self.size * self.sensitivity * NANO
        exact = planned if whole < 2**63 else planned.astype(object)
        return np.asarray(np.minimum(whole // exact, 2**62), dtype=np.int64)
