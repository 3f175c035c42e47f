"""BD, budget distribution. Imports the frame and `privacy`."""

from __future__ import annotations

import numpy as np

from eventide.arrays import Bools, Ints
from eventide.mechanisms.dissimilarity import DissimilarityMechanism
from eventide.privacy.amounts import NANO
from eventide.privacy.sealed import SealedStep


class BudgetDistribution(DissimilarityMechanism):
    """Looks where the stream changed; each look takes half of what is left.

    Idea: a private distance tells whether the last release still describes the stream. If not, a look gets half of the
    budget that the window has left for looks, so the first changes are seen sharply and later ones less so, until old
    looks fall out of the window and their budget comes back.

    Guarantee: w-event privacy with epsilon, for people who move between bins.

    Epsilon: epsilon / (2w) to the distance of each step; epsilon / 2 to looks, each half of what is left of it.

    Cost: O(d) a step, O(w + d) memory.

    Use: where many bins change together and rarely, a few times in a window.

    Departures: amounts are whole nano-epsilon, rounded down, and a look that would get none repeats. The distance is
    the integer L1 sum instead of the mean, which is the same test. The first step always looks; its distance (to zeros)
    is charged like any other. Behind a filter the distance is taken to the last release, rounded.

    Reference: Kellaris, Papadopoulos, Xiao, Papadias: Differentially private event sequences over infinite streams.
    PVLDB 7(12), 2014.

    >>> import eventide as ev
    >>> bd = ev.BudgetDistribution(epsilon=1.0, window=4, bins=1, noise=ev.noise.Zero())
    >>> [float(bd.release([count]).values[0]) for count in (5, 6, 40, 41)]
    [5.0, 5.0, 40.0, 40.0]
    """

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Has the stream moved further than half of the remaining budget would blur it?"""
        asked = np.ones((self.replicas, 1), dtype=np.bool_)
        self._planned = self._left_for_looks() // 2
        return self.worth_looking(step, self._planned, asked)

    def budget_allocation(self) -> Ints:
        """Half of what the window has left for looks."""
        return self._planned

    def noise_range(self) -> tuple[float, float]:
        """From the first look of a window on without bound: each look halves what is left."""
        return 2 * self.sensitivity * NANO / float(self._look_pool), np.inf

    def error_bound(self, publications: int) -> float:
        """A bound on the mean absolute error with that many looks in every window (Theorem 6 of the paper)."""
        looks: float = 4 * (2.0**publications - 1) / (publications * self.epsilon)
        return self.sensitivity * (looks + 2 * self.window / (self.epsilon * self.size))

    def _left_for_looks(self) -> Ints:
        """The pool less the looks inside the window: all that was charged there, but for one distance a step."""
        past = min(self.ledger.step, self.window - 1)
        looks = self.total - self.ledger.left_nano() - past * self._distance_share
        return np.maximum(self._look_pool - looks, 0)
