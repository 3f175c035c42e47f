"""Tide: rare sharp looks, and the posterior median of every count in between."""

from __future__ import annotations

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.filters.base import Filter
from eventide.filters.posterior_median import PosteriorMedian
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.tide_interval import Interval
from eventide.privacy.amounts import share
from eventide.privacy.measured import Measured
from eventide.privacy.sealed import SealedStep


class Tide(Mechanism):
    state = ("_interval", "_next", "_aside")

    def own_filter(self) -> Filter:
        return PosteriorMedian()

    def begin(self) -> None:
        self._interval = Interval(self.replicas, self.window, self.sensitivity / self.epsilon)
        self._next: Ints = np.zeros((self.replicas, 1), dtype=np.int64)
        self._aside: PosteriorMedian | None = None
        if self._speaking() is None:
            self._aside = PosteriorMedian().started(
                self.replicas, self.size, sensitivity=self.sensitivity, epsilon=self.epsilon, window=self.window
            )

    def _speaking(self) -> PosteriorMedian | None:
        inner = getattr(self._filter, "inner", self._filter)
        return inner if isinstance(inner, PosteriorMedian) else None

    def is_sampling_point(self, step: SealedStep) -> Bools:
        return (self._next <= step.index) & (self.ledger.left_nano() > 0)

    def budget_allocation(self) -> Ints:
        if self.step == 0:
            return np.maximum(share(self.total, 1, 5), share(self.total, 1, self.window)).reshape(1, 1)
        planned = share(self.total, 1, self.window) * self._interval.length
        if self.step < self.window:
            planned = share(planned, 4, 5)
        return np.minimum(planned, self.ledger.left_nano())

    def filtering(self, measured: Measured | None) -> Array:
        values = super().filtering(measured)
        estimate = values if self._aside is None else self._aside.step(measured)
        if measured is not None:
            posterior = self._aside or self._speaking()
            looks = measured.fresh.any(axis=1, keepdims=True)
            self._interval.choose(self.step, looks[:, 0], estimate, posterior)
            wait = self._interval.length
            self._next = np.where(looks, self.step + wait, self._next)
        return values
