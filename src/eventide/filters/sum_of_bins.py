"""What all bins do together: their sum, filtered like a stream of a single bin.

Noise hides much less of a sum than of its parts, so it shows soon how all of them move, and at which hours. Reads looks
and public facts alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints
from eventide.filters.posterior_season_kernels import Together
from eventide.privacy.measured import Measured
from eventide.privacy.state import Stateful

if TYPE_CHECKING:
    from eventide.filters.posterior_median import PosteriorMedian

MOST_UNSURE = 1.0  # variance of a sum, relative to its square
MEMORY = 1000  # steps of which the mean is the usual sum


class SumOfBins(Stateful):
    """The sum of the bins of each replica, `now` as a column `(R, 1)`, by a `filter` that was started for it."""

    state = ("filter", "_before", "_usual", "_steps")  # all else is told anew by `foresee`, at each step

    def __init__(self, filter: PosteriorMedian, bins: int) -> None:
        self.filter, self.bins = filter, bins
        replicas = filter.shape[0]
        self._before: Floats = np.ones((replicas, 1))
        self._usual: Floats = np.ones((replicas, 1))
        self._steps: Ints = np.zeros((replicas, 1), np.int64)
        self.now: Floats = np.ones((replicas, 1))
        self._foreseen, self._gain, self._unsure = self.now, np.zeros((replicas, 1)), np.zeros((replicas, 1))
        self._looked: Bools | None = None

    def foresee(self) -> None:
        """What the sum is expected to be at the next step."""
        self.now, self._unsure = self._told(*self.filter.foreseen())
        self._foreseen, self._gain, self._looked = self.now, np.zeros_like(self.now), None
        self._steps = self._steps + (self._steps > 0)
        lately = np.clip(self._steps, 1, MEMORY)
        self._usual = np.where(self._steps > 0, self._usual + (self.now - self._usual) / lately, self._usual)

    def take(self, look: Array, scale: Floats, fresh: Bools) -> None:
        """Take looks `(R, bins)` in. Replicas of which some bins were not looked at, or less sharply, are left out."""
        even = fresh.all(axis=1, keepdims=True) & (scale == scale[:, :1]).all(axis=1, keepdims=True)
        whole = np.where(even, look.sum(axis=1, keepdims=True), 0.0)
        noise = np.where(even, math.sqrt(self.bins) * scale[:, :1], np.inf)
        values = self.filter.step(Measured(whole, noise, even))
        told = self._told(self.filter.low, values, self.filter.high)
        self.now, self._unsure = (np.where(even, *each) for each in zip(told, (self.now, self._unsure), strict=True))
        surprise = np.where(even & (whole != self._foreseen), whole - self._foreseen, np.inf)
        self._gain = np.clip((self.now - self._foreseen) / surprise, 0.0, 1.0)
        self._looked = np.asarray(fresh.any(axis=1, keepdims=True))
        first = self._looked & (self._steps == 0)
        self._usual, self._steps = np.where(first, self.now, self._usual), self._steps + first

    def advance(self) -> None:
        """The step is over."""
        if self._looked is None:
            self.filter.step(None)
        else:
            self._before = np.where(self._looked, self._usual, self._before)

    @property
    def together(self) -> Together:
        """What it says of the bins of each replica at this step."""
        columns = self._before, self._usual, self._foreseen, self.now, self._gain, self._unsure
        return Together(*(np.ascontiguousarray(column[:, 0]) for column in columns))

    def _told(self, low: Array, middle: Array, high: Array) -> tuple[Floats, Floats]:
        """The sum, and its variance relative to its square."""
        now = np.maximum(middle, self.filter.least_scale)
        return now, np.minimum(((high - low) / (self.filter.width * now)) ** 2, MOST_UNSURE)
