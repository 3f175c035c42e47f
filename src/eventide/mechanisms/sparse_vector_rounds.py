"""The rounds that DSAT and SPAS share: a sparse-vector run, and the look that ends it.

Promises that every look can be paid for: a round opens only where the window has both its budgets left, and until it
ends nothing else is charged, so what the window has left can only grow.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import ClassVar, Unpack

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.errors import InputError
from eventide.mechanisms.base import CommonParameters, Mechanism
from eventide.mechanisms.parameters import check_choice
from eventide.privacy.amounts import NANO, Amount, exact
from eventide.privacy.as_published.threshold import PublishedMeter
from eventide.privacy.sealed import SealedStep


class SparseVectorMechanism(Mechanism):
    """Looks when a sparse-vector run finds the last release too far from the truth, or when its round is due.

    A round that is one of c in a window gets a c-th of both parts of epsilon, fixed when it opens. One that is due as
    it opens has no use for a run, and its look gets both.

    With `as_published` the test is the disputed one of the papers: its part of epsilon is charged once and for ever, so
    a round is charged its look only.
    """

    takes_window_sensitivity = True
    state: ClassVar[tuple[str, ...]] = ("_test", "_look", "_latest")
    published_query_factor: ClassVar[int]
    published_compares_steps: ClassVar[bool] = False

    def __init__(
        self,
        epsilon: Amount,
        window: int,
        bins: int | Sequence[str],
        *,
        test_share: float,
        as_published: bool = False,
        **common: Unpack[CommonParameters],
    ) -> None:
        if not 0 < exact(test_share) < 1:
            raise InputError(f"test_share is {test_share!r}; it is the part of epsilon for tests, between 0 and 1")
        self.test_share = test_share
        check_choice(as_published, "as_published", True, False)
        self.as_published = as_published
        super().__init__(epsilon, window, bins, **common)

    def begin(self) -> None:
        """Fix the two parts of epsilon; no round is open."""
        self._test_pool = math.floor(self.shared_nano_epsilon * exact(self.test_share))
        self._look_pool = self.shared_nano_epsilon - self._test_pool
        if self.as_published:
            self.meter = PublishedMeter(
                *(self.ledger, self.source, self.size, self.sensitivity),
                budget=self._test_pool,
                query_factor=self.published_query_factor,
                to_previous_step=self.published_compares_steps,
            )
        self._test = self.meter.threshold_test()
        self._look: Ints = np.zeros((self.replicas, 1), dtype=np.int64)  # budget of the open round's look; 0: none open
        self._latest: Ints = np.zeros((self.replicas, 1), dtype=np.int64)  # the step at which that look is due

    @abc.abstractmethod
    def rounds_per_window(self) -> Ints:
        """A round that opens now: one of how many?"""

    @abc.abstractmethod
    def due(self, index: int, rounds: Ints) -> Ints:
        """A round that opens now, at step `index`: when does it look in any case?"""

    def may_open(self, index: int, latest: Ints) -> Bools:
        """May a round that is due at step `latest` open now?"""
        return np.ones((1, 1), dtype=np.bool_)

    def tolerance(self) -> Array:
        """How far is too far, in multiples of the error that the noise of a look brings?"""
        return np.ones((1, 1))

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Has the stream moved too far from the last release, or is the round due?"""
        self._open_rounds(step.index)
        due = (self._look > 0) & (self._latest <= step.index)
        if due.any():
            self.meter.close_test(self._test, due)
        looks = due | self.meter.above(self._test, step, self._released, self._threshold())
        self._amount, self._look = self._look, np.where(looks, 0, self._look)
        return looks

    def budget_allocation(self) -> Ints:
        """What the round put aside for its look."""
        return self._amount

    def not_proven(self) -> str | None:
        """Why the published form is not private where its tests alone do not lose all of epsilon."""
        return self._published_fault if self.as_published and self._published_loss <= self.epsilon else None

    def refuted(self) -> str | None:
        """Why the published form breaks its promise."""
        return self._published_fault if self.as_published and self._published_loss > self.epsilon else None

    @property
    def _published_loss(self) -> float:
        """What the tests of a window lose once the noise of the threshold is known.

        Answers far outside the window narrow it down as far as one likes. Then every unlikely negative answer in the
        window has the log-ratio of one event in noise of scale factor * sensitivity / budget.
        """
        steps = self.window if self.window_sensitivity is None else self.shared_steps
        return steps * self._test_pool / NANO / self.published_query_factor

    @property
    def _published_fault(self) -> str:
        steps = ", and each compares with the true counts of the step before" if self.published_compares_steps else ""
        fault = f"as published, one noise on the threshold serves all tests for ever{steps}"
        reckoned = self._test_pool / NANO
        if self._published_loss <= reckoned:
            return f"{fault}, which no proof covers"
        return (
            f"{fault}; on a long stream it becomes known, and the tests of a window then lose "
            f"{self._published_loss:.3g} where {reckoned:.3g} is reckoned for them"
        )

    @property
    def holds_raw(self) -> bool:
        """While a run is open: the noise of its threshold hides what it answered; as published, one run never ends."""
        return bool(np.any(self._test.running)) or (self.as_published and self.step > 0)

    def _open_rounds(self, index: int) -> None:
        """Open a round where none is and the window can pay for it; without budget for its run or look none opens."""
        rounds = self.rounds_per_window()
        latest = self.due(index, rounds)
        run, look = self._test_pool // rounds, self._look_pool // rounds
        cost = look if self.as_published else run + look
        possible = (run > 0) & (look > 0) & (cost <= self.ledger.left_nano())
        opens = (self._look == 0) & possible & self.may_open(index, latest)
        tested = opens & (latest > index)
        self.meter.open_test(self._test, np.where(tested, run, 0))
        self._look = np.where(tested, look, np.where(opens, cost, self._look))
        self._latest = np.where(opens, latest, self._latest)

    def _noise_between(self, fewest: int, most: int) -> tuple[float, float]:
        """The noise of a look with both budgets among `fewest` rounds, and of one with its own budget among `most`."""
        largest = self._look_pool if self.as_published else self.shared_nano_epsilon
        return self.sensitivity * NANO * fewest / largest, self.look_scale(self._look_pool // most)

    def _threshold(self) -> Ints:
        """The L1 distance, a whole number, from which on the last release is too far away."""
        noise = self.size * self.sensitivity * NANO / np.maximum(self._look, 1)
        return np.minimum(np.rint(self.tolerance() * noise), 2.0**60).astype(np.int64)
