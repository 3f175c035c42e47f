"""The shape of a filter, and the plainest one.

A filter sees what the meter gave and nothing else, so whatever it makes of it is private and free.
"""

from __future__ import annotations

import abc
import copy
from typing import Self, TypedDict, Unpack

import numpy as np

from eventide.arrays import Array, Floats
from eventide.parameters import Parametrised
from eventide.privacy.measured import Measured
from eventide.privacy.state import Stateful


class PublicFacts(TypedDict, total=False):
    """What a filter is told about the releases it works on; all of it is public."""

    sensitivity: int
    epsilon: float
    window: int


class Filter(Parametrised, Stateful, abc.ABC):
    """Turns the measurement of each step, or none, into the values to release.

    A filter is given to a mechanism as a plain description and may be given to several: each works on its own
    `started` copy. The constructor only stores; `begin` builds the state. `low` and `high` are the ends of an interval
    around the values of the last step, where a filter knows them.
    """

    low: Floats | None = None
    high: Floats | None = None

    def over(self, own: Filter) -> Filter:
        """The filter to use where a mechanism would use `own`: this one takes its place."""
        return self

    def started(self, replicas: int, size: int, **known: Unpack[PublicFacts]) -> Self:
        """A working copy for `replicas` streams of `size` bins."""
        working = copy.copy(self)
        working.begin(replicas, size, **known)
        return working

    def begin(self, replicas: int, size: int, **known: Unpack[PublicFacts]) -> None:
        """Build the state before the first step."""

    @abc.abstractmethod
    def step(self, measured: Measured | None) -> Array:
        """The values `(R, d)` to release at this step."""

    def windows(self, histogram: Array) -> Array:
        """The histogram `(R, d)` to release of a sliding window; as it is, unless a filter says otherwise."""
        return histogram


class Repeat(Filter):
    """Release what was measured last; 0 before the first measurement."""

    state = ("_values",)

    def begin(self, replicas: int, size: int, **known: Unpack[PublicFacts]) -> None:
        """Start from zeros."""
        self._values: Array = np.zeros((replicas, size))

    def step(self, measured: Measured | None) -> Array:
        """The last measurement of each bin."""
        if measured is not None:
            fresh = measured.fresh
            self._values = measured.values if fresh.all() else np.where(fresh, measured.values, self._values)
        return self._values
