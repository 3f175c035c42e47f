"""Intervals that tell the truth: widened until no more looks fall outside than should, or narrowed until no fewer do.

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
        self.narrowest = 1.0  # as in `Algorithm`
        self._half = NormalDist().inv_cdf((1 + coverage) / 2)
        self._outside = np.array([_outside(self._half, blur) for blur in BLUR.tolist()])

    def learn(
        self, low: Array, high: Array, look: Array, scale: Array, fresh: Bools, often: Bools | bool = True
    ) -> None:
        """Take in looks at counts for which an interval was foreseen; all are `(R, bins)`.

        Only replicas that were looked at `often`, a column `(R, 1)`, have intervals narrower than the models say.
        """
        low, high = low - 0.5, high + 0.5  # of whole counts
        blur = np.where(fresh, scale, 1.0) / ((high - low) / (2 * self._half))
        expected = np.interp(blur, BLUR, self._outside)
        telling = np.where(fresh, 1 - expected, 0.0)
        surplus = (telling * ((look < low) | (look > high)) - telling * expected).sum(axis=1, keepdims=True)
        mean = surplus / np.maximum(fresh.sum(axis=1, keepdims=True), 1)
        least = np.where(often, self.narrowest, 1.0)
        self.stretch = np.clip(self.stretch * np.exp(PACE * mean), least, WIDEST)

    def stretched(self, low: Array, middle: Array, high: Array, scale: Array) -> tuple[Array, Array]:
        """The ends of intervals around the values, where a look at this very step had this scale; infinite is no look.

        What was foreseen too narrowly is stretched; what the look says is not, since its noise is known.
        """
        known = (2 * self._half / np.maximum(high - low, NARROWEST)) ** 2  # one over a variance, as the next
        seen = np.minimum(1 / (2 * scale**2), known)
        stretch = np.sqrt(known / ((known - seen) / self.stretch**2 + seen))
        low, high = np.maximum(middle - stretch * (middle - low), 0.0), middle + stretch * (high - middle)
        shrunk = self.stretch < 1  # outwards to whole counts, or small ones would be cut off
        return np.where(shrunk, np.floor(low), low), np.where(shrunk, np.ceil(high), high)


def _outside(half: float, blur: float) -> float:
    """The chance that a standard normal and Laplace noise of scale `blur` together are further than `half` from 0."""
    rise = math.exp(0.5 / blur**2)
    above = math.exp(-half / blur) * _below(half - 1 / blur) - math.exp(half / blur) * _below(-half - 1 / blur)
    return min(1.0, 2 * _below(-half) + rise * above)


def _below(place: float) -> float:
    """The chance that a standard normal is below `place`, exact also far down where `NormalDist` rounds to 0."""
    return 0.5 * math.erfc(-place / math.sqrt(2))
