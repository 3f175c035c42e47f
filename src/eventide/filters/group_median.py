"""Smoothers for mechanisms that group steps in time: what the measurements of one group say together.

Each releases, bin by bin, one number from the measurements between the first step of the group and the current one;
mechanisms choose by the names in `SMOOTHERS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.errors import StateError
from eventide.filters.base import Filter, PublicFacts
from eventide.privacy.measured import Measured
from eventide.privacy.sorted_groups import SortedGroups


@dataclass(frozen=True, slots=True)
class Grouped(Measured):
    """A measurement that says in which bins, `(R, d)`, its step joins the group of the step before."""

    joins: Bools


class GroupMedian(Filter):
    """Release the median of the group's measurements.

    >>> median, one, yes = GroupMedian().started(replicas=1, size=1), np.ones((1, 1)), np.full((1, 1), True)
    >>> steps = ((4, False), (9, True), (5, True), (80, False))
    >>> [median.step(Grouped(value * one, one, yes, joins & yes)).item() for value, joins in steps]
    [4.0, 6.5, 5.0, 80.0]
    """

    state = ("_values",)

    def begin(self, replicas: int, size: int, **known: Unpack[PublicFacts]) -> None:
        """All groups are empty."""
        self._values = SortedGroups((replicas, size))

    def step(self, measured: Measured | None) -> Array:
        """The medians of the groups that this step is in."""
        grouped = _grouped(measured)
        self._values.erase(~grouped.joins)
        self._values.insert(grouped.values, np.ones_like(grouped.joins))
        low, high = self._values.middle()
        return (low + high) / 2


class GroupAverage(Filter):
    """Release the average of the group's measurements."""

    state = ("_sizes", "_sums")

    def begin(self, replicas: int, size: int, **known: Unpack[PublicFacts]) -> None:
        """All groups are empty."""
        self._sizes: Ints = np.zeros((replicas, size), dtype=np.int64)
        self._sums: Array = np.zeros((replicas, size))

    def step(self, measured: Measured | None) -> Array:
        """The averages of the groups that this step is in."""
        grouped = _grouped(measured)
        self._sizes = np.where(grouped.joins, self._sizes, 0) + 1
        self._sums = np.where(grouped.joins, self._sums, 0) + grouped.values
        return self._sums / self._sizes


class GroupJamesStein(GroupAverage):
    """Release the group's average, drawn towards this step's measurement, the more the shorter the group."""

    def step(self, measured: Measured | None) -> Array:
        """The averages, moved to this step's measurements by one part in the group's size."""
        average = super().step(measured)
        return average + (_grouped(measured).values - average) / self._sizes


SMOOTHERS: dict[str, type[Filter]] = {
    "median": GroupMedian,
    "average": GroupAverage,
    "james-stein": GroupJamesStein,
}


def _grouped(measured: Measured | None) -> Grouped:
    if not isinstance(measured, Grouped):
        raise StateError("this filter smooths groups of steps; use it with a mechanism that groups them, as PeGaSus")
    return measured
