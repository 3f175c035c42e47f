"""Disjoint groups of bins, one division for each replica.

Promises that a bin is in one group at most, on which the scale of group sums rests.
"""

from __future__ import annotations

from typing import final

import numpy as np

from eventide.arrays import Array, Ints
from eventide.errors import InputError
from eventide.privacy.amounts import fixed


@final
class Partition:
    """`labels` `(1 or R, d)` name the group 0..groups-1 of every bin; -1 puts a bin in none.

    A bin is in at most one group, so one person in one bin touches at most one group sum.
    """

    def __init__(self, labels: Ints, groups: int) -> None:
        self.labels = fixed(np.atleast_2d(labels))
        self.groups = groups
        if self.labels.min() < -1 or self.labels.max() >= groups:
            raise InputError(f"a bin's group must lie between -1 and {groups - 1}")

    def sums(self, values: Ints) -> Ints:
        """The sum of each group, shape `(R, groups)`; terms are cut so that no sum leaves 64 bits."""
        values = np.minimum(values, 2**62 // values.shape[1])
        replicas = max(len(values), len(self.labels))
        labels, values = np.broadcast_arrays(self.labels, np.broadcast_to(values, (replicas, values.shape[1])))
        inside = labels >= 0
        sums = np.zeros((replicas, self.groups), dtype=np.int64)
        np.add.at(sums, (np.nonzero(inside)[0], labels[inside]), values[inside])
        return sums

    def spread(self, values: Array) -> Array:
        """The value of each bin's group, 0 for a bin in none, shape `(R, d)`."""
        replicas = max(len(values), len(self.labels))
        labels = np.broadcast_to(self.labels, (replicas, self.labels.shape[1]))
        values = np.broadcast_to(values, (replicas, self.groups))
        return np.where(labels >= 0, np.take_along_axis(values, np.maximum(labels, 0), axis=1), values.dtype.type(0))
