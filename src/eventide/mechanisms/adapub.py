"""AdaPub: perturb groups of bins, group steps under a threshold that a controller sets, smooth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.errors import InputError
from eventide.filters.group_median import Grouped
from eventide.mechanisms.parameters import check_choice
from eventide.mechanisms.pegasus import LARGEST_THRESHOLD, GroupingParameters, PeGaSus
from eventide.mechanisms.pid import PID
from eventide.privacy.amounts import Amount, number
from eventide.privacy.as_published.deviation import PublishedGroupTest
from eventide.privacy.group_test import GroupTest
from eventide.privacy.ledger import positive_integer
from eventide.privacy.measured import Measured
from eventide.privacy.partition import Partition
from eventide.privacy.sealed import SealedStep

GOLDEN_RATIO = (math.sqrt(5) - 1) / 2


class AdaPub(PeGaSus):
    """Like PeGaSus, but bins of like size share a look, and groups may grow longer where releases are uncertain.

    Idea: pivots cut the range of the last release into cells; bins in one cell are measured as one sum, so each gets
    a part of one noise. A test groups steps, bin by bin, as in PeGaSus; a controller raises its threshold where the
    measurements jump about relative to the releases. What is released is the median of the group's measurements.

    Guarantee: w-event privacy with epsilon, for people who move between bins. The form as published is disputed.

    Epsilon: every step gets epsilon / w, of which 80 % measure the counts and 20 % pay for the test. Cells and
    thresholds are made from releases and cost nothing.

    Cost: that of PeGaSus, and O(d log pivots) for the cells.

    Use: few bins under much noise; or many, most of them alike, such as nearly empty ones with some hot spots. Bins
    that differ by less than a twentieth of the range are averaged together: with many busy bins PeGaSus is better.

    Departures: the paper asks for a group's deviation at every step anew, with fresh noise and an exact threshold;
    each count then influences many answers and pays for one. Here steps are grouped by the sparse-vector test of
    PeGaSus at the same budget. Its threshold does not fall below theta, the level of the test's own noise: the
    published level of about 1 lies so far below it that the test would toss a coin. Bins that share looks get the same
    releases and would never part again, until all have become one; so every second step measures each bin alone.
    Pivots follow an even sequence of public numbers instead of random ones, the same for all replicas. The median is
    taken over measurements, not over earlier medians. Public benchmark code puts a fixed value in the place of the
    deviation, which closes every group at once; it never smooths.

    Reference: Wang, Yang, Ren, Zhao, Lam: Adaptive differentially private data stream publishing in spatio-temporal
    monitoring of IoT. IEEE IPCCC 2019.

    Parameters
    ----------
    pivots
        How many values cut the range of the last release into cells of bins that share a measurement.
    gains
        The gains of the controller: proportional, integral and derivative.
    least_value
        Errors are relative to the measurement, or to this where it is smaller.
    as_published
        Keep the disputed test, its threshold of at least 1 and cells at every step.
    group_share, theta, smoother, max_group, **grouping
        As in `PeGaSus`.
    epsilon, window, bins
        As in `Mechanism`.

    >>> import eventide as ev
    >>> from eventide.mechanisms.adapub import AdaPub
    >>> adapub = AdaPub(epsilon=1.0, window=1, bins=3, noise=ev.noise.Zero())
    >>> [adapub.release(counts).values.tolist() for counts in ([0, 4, 900], [0, 4, 900])]
    [[0.0, 4.0, 900.0], [1.0, 3.0, 900.0]]
    """

    state = ("_control",)

    def __init__(
        self,
        epsilon: Amount,
        window: int,
        bins: int | Sequence[str],
        *,
        pivots: int = 20,
        gains: Sequence[float] = (0.9, 0.1, 0.0),
        least_value: float = 1.0,
        as_published: bool = False,
        **grouping: Unpack[GroupingParameters],
    ) -> None:
        if not 0 < number(least_value) < math.inf:
            raise InputError(f"least_value is {least_value!r}; it must be above 0, since errors are divided by it")
        self.pivots = positive_integer(pivots, "pivots")
        self.gains = gains
        self.least_value = least_value
        check_choice(as_published, "as_published", True, False)
        self.as_published = as_published
        super().__init__(epsilon, window, bins, **grouping)

    def begin(self) -> None:
        """As PeGaSus, with a controller for every bin."""
        super().begin()
        self._control = PID(self.meter.shape, self.gains, memory=None)

    def grouper(self) -> GroupTest:
        """The test of PeGaSus, or the disputed one."""
        if not self.as_published:
            return super().grouper()
        return PublishedGroupTest(np.array([[self._test]]), self.meter.shape, self.max_group)

    def perturbation(self, step: SealedStep, amount: Ints) -> Grouped:
        """As PeGaSus; a new group begins with a controller that remembers nothing."""
        measured = super().perturbation(step, amount)
        self._control.restart(~measured.joins)
        return measured

    def noisy_counts(self, step: SealedStep, amount: Ints) -> Measured:
        """The mean count of each cell of bins, or every bin by itself."""
        apart = step.index == 0 if self.as_published else step.index % 2 == 0
        if apart or self.size == 1:
            return super().noisy_counts(step, amount)
        cells = self._cells(step.index)
        sums, sizes = self.meter.counts(step, amount, cells), np.maximum(cells.sums(np.ones_like(cells.labels)), 1)
        return Measured(*(cells.spread(part) for part in (sums.values / sizes, sums.scale / sizes, sums.fresh)))

    def threshold(self, measured: Measured) -> Ints:
        """Higher where measurements lie far from the last release."""
        error: Floats = np.abs(self._released - measured.values) / np.maximum(measured.values, self.least_value)
        level = self._control.update(error, self.step) ** 2 / self.shared_epsilon
        least = 1 if self.as_published else super().threshold(measured)
        return np.maximum(np.ceil(np.minimum(level, LARGEST_THRESHOLD)).astype(np.int64), least)

    def noise_range(self) -> tuple[float, float]:
        """From a look that all bins share to one of a bin alone."""
        _, look = super().noise_range()
        return look / self.size, look

    def not_proven(self) -> str | None:
        """What the proof of the published form does not cover."""
        disputed = "the test is as published: what a count adds to later answers of its group is not covered by a proof"
        return disputed if self.as_published else None

    def _cells(self, index: int) -> Partition:
        """The bins between the same two pivots, by the last release."""
        low, high = (edge(self._released, axis=1, keepdims=True) for edge in (np.min, np.max))
        place = (self._released - low) / np.maximum(high - low, np.finfo(float).tiny)
        pivots = np.sort((index * self.pivots + np.arange(self.pivots)) * GOLDEN_RATIO % 1)
        return Partition(np.searchsorted(pivots, place), self.pivots + 1)
