"""Estimates of several levels made to add up: weighted least squares, then whole numbers. Free, as all filters are.

Each level has estimates of its own, with their variances. The bins x that fit all of them best make

    sum over levels l and groups g of (y_lg - sum of x_i in g)^2 / v_lg

smallest; the bins are a level too. With y of the bins and V their variances, A the matrix that adds bins up to groups,
z and W the groups' estimates and variances, that is x = y + V A' (A V A' + W)^-1 (z - A y): a system with a row for
each group, whether groups of one level lie inside those of another or cut across them. For independent Gaussian errors
nothing is better. Where bins err together, since they were measured at the same time and have moved since, V is no
longer diagonal: each group adds a part that its bins have in common. Bins that come out negative are held at 0 and the
rest is solved again.

Then bins are rounded together, so that the sum of every cell of bins that share all their groups is rounded as it
stands and its units go to the bins with the largest remainders. The value of a group is the sum of its bins: releases
add up exactly, also as binary fractions, since all values are multiples of a power of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints

LEAST_VARIANCE, LARGEST_VARIANCE = 1e-6, 1e15
LEAST_PART = (
    1e-10  # of the variance of its bins that a group has at least: a surer one would leave no digits to solve by
)
ROUNDS = 8  # of holding negative bins at 0
FINE = 2.0**-10  # what values are multiples of where they need not be whole
DIGITS = 52  # that sums may have; a double holds one more, for what rounding adds


class Estimate(NamedTuple):
    """Values `(R, k)` of the k groups of a level, and how far each may be off."""

    values: Floats
    variance: Floats


class AddingUp:
    """Makes the estimates of levels add up over `labels`, which give the group of every bin, one array a level."""

    def __init__(self, labels: Sequence[Ints]) -> None:
        self._labels = [np.asarray(each) for each in labels]
        self._sizes = [int(each.max()) + 1 for each in self._labels]
        self._offsets = np.cumsum([0, *self._sizes])
        self._sorted = [Runs(each) for each in self._labels]
        self._pairs = [
            (k, m, Runs(self._labels[k] * self._sizes[m] + self._labels[m]))
            for k in range(len(labels))
            for m in range(k, len(labels))
        ]
        cell = np.zeros(len(self._labels[0]), dtype=np.int64)
        for each, size in zip(reversed(self._labels), reversed(self._sizes), strict=True):
            cell = np.unique(cell * size + each, return_inverse=True)[1]  # bins of a large group stand together
        self._cells = Runs(cell)

    def fit(
        self,
        bins: Estimate,
        groups: Sequence[Estimate],
        *,
        common: float = 0.0,
        natural: bool = False,
        idle: Bools | None = None,
    ) -> Floats:
        """The bins `(R, d)` that fit best.

        common: by how much the bins of a group err together: on top of its own error, a bin has with each of its groups
        one in common, of so many times the variance of its own. natural: hold what would be negative at 0. idle: bins
        `(d,)` that are known to be 0.
        """
        known = False if idle is None else idle
        values = np.where(known, 0.0, bins.values)
        variance = np.where(known, 0.0, np.clip(bins.variance, LEAST_VARIANCE, LARGEST_VARIANCE))
        measured = np.concatenate([each.values for each in groups], axis=1)
        noise = np.clip(np.concatenate([each.variance for each in groups], axis=1), LEAST_VARIANCE, LARGEST_VARIANCE)
        for _ in range(ROUNDS):
            deviation = np.sqrt(common * variance)
            together = self._shared(deviation)
            system = self._shared(variance) + together @ together
            of_bins = np.diagonal(system, axis1=1, axis2=2)
            system = system + np.maximum(noise, LEAST_PART * of_bins)[:, :, None] * np.eye(noise.shape[1])
            gap = measured - np.concatenate(self.sums(values), axis=1)
            pull = np.linalg.solve(system, gap[:, :, None])
            moved = variance * self._spread(pull) + deviation * self._spread(together @ pull)
            negative = (values + moved < 0) & (variance > 0)
            if not natural or not negative.any():
                break
            variance, values = np.where(negative, 0.0, variance), np.where(negative, 0.0, values)
        fitted: Floats = values + moved
        return np.maximum(fitted, 0) if natural else fitted

    def sums(self, bins: Array) -> list[Floats]:
        """The sums of the groups of each level."""
        return [each.sums(bins) for each in self._sorted]

    def rounded(self, bins: Floats, *, whole: bool, idle: Bools | None = None) -> Floats:
        """Bins rounded together: to whole numbers, or to fractions that add up exactly; idle ones stay 0."""
        largest = np.abs(bins).sum(axis=1).max(initial=1.0)
        unit = max(1.0 if whole else FINE, 2.0 ** (np.ceil(np.log2(largest)) - DIGITS))
        scaled = bins / unit
        floor = np.floor(scaled)
        runs = self._cells
        upto = np.floor(np.cumsum(runs.sums(scaled), axis=1) + 0.5)
        due = np.diff(upto, axis=1, prepend=0) - runs.sums(floor)  # units of each cell that are still to be given
        remainder = (scaled - floor - (0.0 if idle is None else idle / 2))[:, runs.order]
        turn = np.argsort(runs.places[None, :] - remainder / 2, axis=1, kind="stable")
        rank = np.arange(bins.shape[1]) - runs.starts[runs.places]
        given = np.empty_like(floor)
        np.put_along_axis(given, runs.order[turn], (rank < due[:, runs.places]).astype(np.float64), axis=1)
        return np.asarray((floor + given) * unit)

    def _shared(self, variance: Floats) -> Floats:
        """The variance that each pair of groups has in common, `(R, G, G)`: that of the bins in both."""
        size = self._offsets[-1]
        shared: Floats = np.zeros((len(variance), size, size))
        for k, m, runs in self._pairs:
            row, column = np.divmod(runs.values, self._sizes[m])
            row, column, sums = row + self._offsets[k], column + self._offsets[m], runs.sums(variance)
            shared[:, row, column] = sums
            shared[:, column, row] = sums
        return shared

    def _spread(self, groups: Floats) -> Floats:
        """For each bin the sum over its groups, of which there is a column `(R, G, 1)`."""
        places = zip(self._offsets[:-1], self._labels, strict=True)
        return np.asarray(sum(groups[:, offset + each, 0] for offset, each in places))


class Runs:
    """Bins sorted by a label: sums of runs of equal labels in one operation."""

    def __init__(self, labels: Ints) -> None:
        self.order: Ints = np.argsort(labels, kind="stable")
        self.values, self.starts = np.unique(labels[self.order], return_index=True)
        self.places: Ints = np.repeat(np.arange(len(self.starts)), np.diff([*self.starts, len(labels)]))

    def sums(self, bins: Array) -> Floats:
        """The sum of each run, `(R, runs)`."""
        return np.add.reduceat(bins[:, self.order], self.starts, axis=1)
