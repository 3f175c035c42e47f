"""What every planner returns: slots to release, and the variance with which a window is answered from them.

A scheme is a `Nested`, answered by least squares over all slots, or a `Layers` or `Cover`, answered by adding up the
slots of a chain. Imports eventide.arrays, the slots and the workload.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.windows.slots import Slots
from eventide.windows.workload import Workload


class Scheme(Protocol):
    """Slots over the ticks [0, length), repeated for ever if `periodic`."""

    length: int
    periodic: bool

    @property
    def slots(self) -> Slots:
        """What is released."""

    def variance(self, begin: Ints, end: Ints, step: Ints) -> Floats:
        """The variance of the on-time answers to the windows [begin, end) of queries with the given steps."""


def query_errors(workload: Workload, scheme: Scheme) -> Floats:
    """The mean variance over its windows, for each distinct query."""
    variance = scheme.variance(workload.begin, workload.end, workload.step[workload.owner])
    return np.bincount(workload.owner, variance) / np.bincount(workload.owner)


def workload_error(workload: Workload, scheme: Scheme) -> float:
    """The sum of the errors of all queries, equal ones counted as often as they are asked."""
    return float(workload.count @ query_errors(workload, scheme))
