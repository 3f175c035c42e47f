"""PeGaSus. Imports the frame, `filters` and `privacy`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Unpack

import numpy as np

from eventide.arrays import Bools, Ints
from eventide.errors import InputError
from eventide.filters.base import Filter
from eventide.filters.group_median import Grouped, GroupSmoother
from eventide.mechanisms.base import Common, Mechanism
from eventide.privacy.amounts import NANO, Amount, exact
from eventide.privacy.group_test import LARGEST_GROUP
from eventide.privacy.ledger import positive_integer
from eventide.privacy.measured import Measured
from eventide.privacy.sealed import SealedStep


class PeGaSus(Mechanism):
    """x."""

    state = ("_groups",)

    def __init__(
        self,
        epsilon: Amount,
        window: int,
        bins: int | Sequence[str],
        *,
        grouping: Amount = 0.2,
        theta: Amount = 5,
        smoother: str = "median",
        max_group: int = 64,
        **common: Unpack[Common],
    ) -> None:
        self.grouping, self.theta, self.smoother = grouping, theta, smoother
        self.max_group = positive_integer(max_group, "max_group")
        super().__init__(epsilon, window, bins, **common)

    def own_filter(self) -> Filter:
        return GroupSmoother(self.smoother)

    def begin(self) -> None:
        part = exact(self.grouping)
        self._look = math.floor(self.total * (1 - part) / self.window)
        test = math.floor(self.total * part / self.window)
        self._threshold = math.ceil(exact(self.theta) * self.sensitivity * NANO / max(test, 1))
        self._groups = self.meter.group_test(np.array([[test]]), self.max_group)

    def is_sampling_point(self, step: SealedStep) -> Bools:
        return np.ones((self.replicas, 1), dtype=np.bool_)

    def budget_allocation(self) -> Ints:
        return np.array([[self._look]])

    def perturbation(self, step: SealedStep, amount: Ints) -> Measured:
        measured = self.meter.counts(step, amount)
        joins, _ = self.meter.grouped(self._groups, step, np.array([[self._threshold]]))
        return Grouped(measured.values, measured.scale, measured.fresh, joins)

    @property
    def holds_raw(self) -> bool:
        return self._groups.holds_raw
