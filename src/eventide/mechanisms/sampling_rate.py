"""Which part of the events to sample when a count is only to be watched. Imports numpy, `arrays` and `privacy`."""

from __future__ import annotations

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.privacy.amounts import NANO
from eventide.privacy.amplification import amplified


class SamplingRates:
    """The best sampling rate, in whole percent, for a count of about N that is watched with a budget of `charge`.

    A sample at rate b, measured with the amplified budget e' and divided by b, has the expected squared error
    N (1 - b) / b for the events left out and 2 / (b e')^2 for the noise. That is a straight line in N for each rate:
    the best rates are the lower envelope of a hundred lines, worked out once.

    Both parts fall as b grows, since amplification gives less than division by b takes. So the best rate is 100 %
    whatever N, except for charges of a few nano-epsilon, of which rounding takes less when they are amplified.

    >>> rates = SamplingRates(charge=10_000_000, sensitivity=1)
    >>> percent, error = rates.best(np.array([0.0, 1000.0]))
    >>> percent
    array([100, 100])
    """

    def __init__(self, charge: int, sensitivity: int) -> None:
        budgets = amplified(np.array([charge]), np.arange(101), sensitivity)
        lines: list[tuple[float, int, float, float]] = []  # from which N on, percent, slope, value at N = 0
        for percent in range(1, 101):
            slope, budget = 100 / percent - 1, percent / 100 * int(budgets[percent]) / NANO
            noise = 2 / budget**2 if budget else float("inf")
            begin = 0.0
            while lines:
                *_, steeper, lower = lines[-1]
                begin = (noise - lower) / (steeper - slope)
                if begin > lines[-1][0]:
                    break
                lines.pop()
                begin = 0.0
            lines.append((begin, percent, slope, noise))
        begins, percents, slopes, noises = zip(*lines, strict=True)
        self._begins, self._percents = np.array(begins), np.array(percents)
        self._slopes, self._noises = np.array(slopes), np.array(noises)

    def best(self, counts: Array) -> tuple[Ints, Floats]:
        """The best rate and the expected squared error of what is then measured, for counts of at least 0.

        Where one rate is best for all counts, it comes as a single cell.
        """
        several = len(self._begins) > 1
        line = np.searchsorted(self._begins, counts, side="right") - 1 if several else np.zeros((1, 1), dtype=np.int64)
        return self._percents[line], counts * self._slopes[line] + self._noises[line]
