"""The threshold test as DSAT and SPAS publish it, kept to compare with. Its privacy is disputed: do not rely on it.

What is wrong: one noise on the threshold serves all tests for ever. The proof of the sparse vector pays for a window by
moving that noise, and the same move changes the positive answers outside the window, of which there is no bound. Put
differently, a long transcript gives the noise away, and from then on every negative answer costs as well. The noise of
DSAT's distances is half of what the proof needs besides, and SPAS compares true counts with true counts, so that one
step enters two tests.

It charges what the papers claim: the whole budget of the tests, once, as a span that never closes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.privacy.meter import Meter
from eventide.privacy.sealed import SealedStep
from eventide.privacy.threshold_test import ThresholdTest


class PublishedThresholdTest(ThresholdTest):
    """The published test of each replica; it holds the true counts of the step before, for tests against them."""

    state = ("_previous",)

    def __init__(self, lane: str, replicas: int, query_factor: int, previous: Ints) -> None:
        super().__init__(lane, replicas)
        self.QUERY_FACTOR = query_factor
        self._previous = previous


class PublishedMeter(Meter):
    """A meter whose threshold test is the published one: `budget` for all runs together, one threshold noise for ever.

    A run opened with budget e is charged nothing more; its distances get noise of scale `query_factor` sensitivity / e.
    With `to_previous_step` they are distances to the true counts of the step before, not to a released vector.
    """

    __slots__ = ("budget", "query_factor", "to_previous_step")

    def __init__(self, *door: Any, budget: int, query_factor: int, to_previous_step: bool) -> None:
        super().__init__(*door)
        self.budget = budget
        self.query_factor = query_factor
        self.to_previous_step = to_previous_step

    def threshold_test(self, lane: str = "disputed test") -> ThresholdTest:  # saved ledgers know the lane by this name
        """A published test; nothing is charged yet."""
        nothing = np.zeros((1, self.shape[1]), dtype=np.int64)
        return PublishedThresholdTest(lane, self.shape[0], self.query_factor, nothing)

    def open_test(self, test: ThresholdTest, amount: Ints) -> None:
        """Begin a run in the replicas where the amount is not 0; the first call charges all runs to come."""
        self._hidden("open test", amount)
        if not self.ledger.open_spans(test.lane).any():
            budget = np.full((self.shape[0], 1), self.budget, dtype=np.int64)
            self.ledger.open_span(budget, test.lane)
            test._threshold_noise = self._draw("test", test.THRESHOLD_FACTOR, budget, (self.shape[0], 1))
        test._budget = np.where(amount > 0, amount, test._budget)

    def above(self, test: ThresholdTest, step: SealedStep, reference: Array, threshold: Array) -> Bools:
        """The meter's comparison, with the published noise and, where asked for, the step before as the reference."""
        if self.to_previous_step and isinstance(test, PublishedThresholdTest):
            reference, test._previous = test._previous, self._open(step)
            self._hide()
        return super().above(test, step, reference, threshold)

    def close_test(self, test: ThresholdTest, where: Bools | None = None) -> None:
        """End open runs; the threshold's noise and the span stay."""
        test._budget = np.where(test.running if where is None else where, 0, test._budget)
