"""The smoother of mechanisms that group steps in time: what a group's measurements say together.

Every group is smoothed bin by bin, over the measurements from its first step to the current one. Imports numpy and
`privacy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.errors import InputError, StateError
from eventide.filters.base import Filter
from eventide.privacy.measured import Measured
from eventide.privacy.sorted_groups import SortedGroups

SMOOTHERS = ("median", "average", "james-stein")


@dataclass(frozen=True, slots=True)
class Grouped(Measured):
    """A measurement that says in which bins its step joins the group of the step before; elsewhere it begins one."""

    joins: Bools


class GroupSmoother(Filter):
    """Release the median of the measurements of the group that this step is in, bin by bin.

    smoother: "median"; "average"; or "james-stein", the average drawn towards this step's measurement, the more the
    shorter the group.

    >>> from eventide.privacy.measured import Measured
    >>> group = GroupSmoother().started(replicas=1, size=1)
    >>> scale, fresh = np.ones((1, 1)), np.ones((1, 1), dtype=bool)
    >>> joining = zip((4, 9, 5, 80), (False, True, True, False))
    >>> [float(group.step(Grouped(value * scale, scale, fresh, joins & fresh))[0, 0]) for value, joins in joining]
    [4.0, 6.5, 5.0, 80.0]
    """

    state = ("_values", "_sizes", "_sums")

    def __init__(self, smoother: str = "median") -> None:
        if smoother not in SMOOTHERS:
            raise InputError(f"there is no smoother {smoother!r}; choose one of {', '.join(SMOOTHERS)}")
        self.smoother = smoother

    def begin(self, replicas: int, size: int, **known: Any) -> None:
        """Every group is empty."""
        shape = (replicas, size)
        self._values = SortedGroups(shape, np.float64(np.inf))
        self._sizes: Ints = np.zeros(shape, dtype=np.int64)
        self._sums: Array = np.zeros(shape)

    def step(self, measured: Measured | None) -> Array:
        """The smoothed measurements of the groups that this step is in."""
        if not isinstance(measured, Grouped):
            raise StateError("a group smoother needs a mechanism that groups its steps")
        if self.smoother == "median":
            return self._median(measured)
        return self._average(measured)

    def _median(self, measured: Grouped) -> Array:
        self._values.erase(~measured.joins)
        self._values.insert(measured.values, np.True_)
        low, high = self._values.middle()
        return (low + high) / 2

    def _average(self, measured: Grouped) -> Array:
        joins, values = measured.joins, measured.values
        self._sizes = np.where(joins, self._sizes, 0) + 1
        self._sums = np.where(joins, self._sums, 0) + values
        average = self._sums / self._sizes
        return average if self.smoother == "average" else average + (values - average) / self._sizes
