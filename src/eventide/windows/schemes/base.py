"""What every planner returns: slots to release, and the variance with which a window is answered from them.

A scheme is a `Nested`, answered by least squares over all slots, or a `Layers` or `Cover`, answered by adding up the
slots of a chain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.errors import InputError
from eventide.windows.schemes.slots import Partition, Slots
from eventide.windows.workload import Workload, cut_at_cycle, sums


class Scheme(Protocol):
    """Slots over the ticks [0, length), repeated for ever if `periodic`."""

    length: int
    periodic: bool

    @property
    def slots(self) -> Slots:
        """What is released."""

    def variance(self, begin: Ints, end: Ints, step: Ints) -> Floats:
        """The variance of the on-time answers to the windows [begin, end) of queries with the given steps."""

    @property
    def partitions(self) -> list[Partition]:
        """The levels, each a partition of [0, length); slots without a budget are not released."""

    def divided(self, parts: int) -> Scheme:
        """The same slots with one of `parts` equal parts of every budget."""


class Cyclic(ABC):
    """A scheme that answers any interval of one cycle, and a longer window by adding up its pieces."""

    length: int
    periodic: bool

    @abstractmethod
    def variance_within(self, begin: Ints, end: Ints) -> Floats:
        """The variance of intervals of [0, length)."""

    def variance(self, begin: Ints, end: Ints, step: Ints) -> Floats:
        """The variance of each window's answer, whatever the step of its query."""
        if not self.periodic:
            return self.variance_within(begin, end)
        pieces = cut_at_cycle(begin, end, self.length)
        return pieces.add_up(self.variance_within(pieces.begin, pieces.end), len(begin))


def positions(nodes: Ints, ticks: Ints) -> Ints:
    """Where `ticks` stand among `nodes`; a tick that is no boundary of the plan is refused."""
    found = np.minimum(np.searchsorted(nodes, ticks), len(nodes) - 1)
    if not np.array_equal(nodes[found], ticks):
        raise InputError("a window begins or ends where no slot of the plan does; add its query and plan again")
    return found


def query_errors(workload: Workload, scheme: Scheme) -> Floats:
    """The mean variance over its windows, for each distinct query."""
    variance = scheme.variance(workload.begin, workload.end, workload.step[workload.owner])
    return sums(workload.owner, variance, len(workload.count)) / np.bincount(workload.owner)


def workload_error(workload: Workload, scheme: Scheme) -> float:
    """The sum of the errors of all queries, equal ones counted as often as they are asked."""
    return float(workload.count @ query_errors(workload, scheme))
