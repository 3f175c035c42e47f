"""Intervals that tell the truth: widened until no more looks fall outside than should.

A look is a count and noise of a known scale. How often it should lie outside of the interval foreseen for the count
follows from both; how often it does is seen. Where noise hides everything the two agree, and nothing is learned.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from eventide.arrays import Array, Bools, Floats
from eventide.privacy.state import Stateful

PACE = 0.2  # by so much, as a logarithm, a look that lies outside widens
WIDEST = 8.0
NARROWEST = 1e-6  # an interval: none at all is left as it is
BLUR = np.geomspace(0.05, 50, 80)  # scale of the noise in deviations of the count


class Calibration(Stateful):
    """How many times wider than the models say the intervals of each replica are: `stretch`, a column `(R, 1)`."""

    state = ("stretch",)

    def __init__(self, replicas: int, coverage: float) -> None:
        self.stretch: Floats = np.ones((replicas, 1))
        self._half = NormalDist().inv_cdf((1 + coverage) / 2)
        self._outside = np.array([_outside(self._half, blur) for blur in BLUR.tolist()])

    def learn(self, low: Array, high: Array, look: Array, scale: Array, fresh: Bools) -> None:
        """Take in looks at counts for which an interval was foreseen; all are `(R, bins)`."""
        low, high = low - 0.5, high + 0.5  # of whole counts
        blur = np.where(fresh, scale, 1.0) / ((high - low) / (2 * self._half))
        expected = np.interp(blur, BLUR, self._outside)
        telling = np.where(fresh, 1 - expected, 0.0)
        surplus = (telling * ((look < low) | (look > high)) - telling * expected).sum(axis=1, keepdims=True)
        mean = surplus / np.maximum(fresh.sum(axis=1, keepdims=True), 1)
        self.stretch = np.clip(self.stretch * np.exp(PACE * mean), 1.0, WIDEST)

    def stretched(self, low: Array, middle: Array, high: Array, scale: Array) -> tuple[Array, Array]:
        """The ends of intervals around the values, where a look at this very step had this scale; infinite is no look.

        What was foreseen too narrowly is stretched; what the look says is not, since its noise is known.
        """
        known = (2 * self._half / np.maximum(high - low, NARROWEST)) ** 2  # one over a variance, as the next
        seen = np.minimum(1 / (2 * scale**2), known)
        stretch = np.sqrt(known / ((known - seen) / self.stretch**2 + seen))
        return np.maximum(middle - stretch * (middle - low), 0.0), middle + stretch * (high - middle)


def _outside(half: float, blur: float) -> float:
    """The chance that a standard normal and Laplace noise of scale `blur` together are further than `half` from 0."""
    rise = math.exp(0.5 / blur**2)
    above = math.exp(-half / blur) * _below(half - 1 / blur) - math.exp(half / blur) * _below(-half - 1 / blur)
    return min(1.0, 2 * _below(-half) + rise * above)


def _below(place: float) -> float:
    """The chance that a standard normal is below `place`, exact also far down where `NormalDist` rounds to 0."""
    return 0.5 * math.erfc(-place / math.sqrt(2))
