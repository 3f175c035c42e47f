"""BA, budget absorption. Imports the frame and `privacy`."""

from __future__ import annotations

import numpy as np

from eventide.arrays import Bools, Ints
from eventide.mechanisms.dissimilarity import DissimilarityMechanism
from eventide.privacy.amounts import NANO, share
from eventide.privacy.sealed import SealedStep


class BudgetAbsorption(DissimilarityMechanism):
    """Looks where the stream changed; each look takes the budget of the quiet steps before it.

    Idea: every step owns one unit of budget for looks. A step at which nothing changed leaves its unit to the next
    look, which absorbs all units left since the last one; after a look that took n units, n - 1 steps are silent, so
    that no unit is used twice within a window.

    Guarantee: w-event privacy with epsilon, for people who move between bins.

    Epsilon: epsilon / (2w) to the distance of each step that is not silent; a unit of epsilon / (2w) for looks to each
    step.

    Cost: O(d) a step, O(w + d) memory.

    Use: where many bins change together, in spells of calm and change; the safest of the published ones to start with.

    Departures: amounts are whole nano-epsilon, rounded down. The distance is the integer L1 sum instead of the mean,
    which is the same test. The first step always looks; its distance (to zeros) is charged like any other. Silent
    steps draw nothing, and what their distances do not use is never given to looks. Behind a filter the distance is
    taken to the last release, rounded.

    Reference: Kellaris, Papadopoulos, Xiao, Papadias: Differentially private event sequences over infinite streams.
    PVLDB 7(12), 2014.

    >>> import eventide as ev
    >>> ba = ev.BudgetAbsorption(epsilon=1.0, window=4, bins=1, noise=ev.noise.Zero())
    >>> [float(ba.release([count]).values[0]) for count in (5, 6, 40, 41)]
    [5.0, 5.0, 40.0, 40.0]
    """

    state = ("_silent_until",)

    def begin(self) -> None:
        """One unit a step, none used yet."""
        super().begin()
        self._unit = share(self._look_pool, 1, self.window)
        self._silent_until: Ints = np.full((self.replicas, 1), -1, dtype=np.int64)

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Has the stream moved further than the absorbed units would blur it? Silent steps do not ask."""
        free = self._silent_until < step.index
        self._units = np.clip(step.index - self._silent_until, 0, self.window)
        looks = self.worth_looking(step, self._units * self._unit, free)
        self._silent_until = np.where(looks, step.index + self._units - 1, self._silent_until)
        return looks

    def budget_allocation(self) -> Ints:
        """All units left since the last look."""
        return self._units * self._unit

    def noise_range(self) -> tuple[float, float]:
        """From a look that absorbed a whole window to one that absorbed nothing."""
        look = self.sensitivity * NANO / float(self._unit) if self._unit else np.inf
        return look / self.window, look

    def error_bound(self, absorbed: int, silent_error: float) -> float:
        """A bound on the mean absolute error (Theorem 7 of the paper).

        absorbed: units that a look takes over from quiet steps. silent_error: mean error of the steps after a look.
        """
        unit_noise = 2 * self.window * self.sensitivity / self.epsilon
        harmonic = sum(1 / n for n in range(1, absorbed + 2))
        looks = (unit_noise * harmonic + absorbed * silent_error) / (2 * absorbed + 1)
        return looks + unit_noise / self.size
