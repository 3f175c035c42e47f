"""The grouping scan of RescueDP, compiled.

It sees released values only, so that groups cost nothing.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Bools, Floats, Ints
from eventide.compiling import kernel


@kernel()
def scan(  # type: ignore[no-untyped-def]
    looks: Bools,
    small: Bools,
    order: Ints,
    prediction: Floats,
    direction: Floats,
    largest_sum: float,
    least_correlation: float,
    largest_gap: float,
):
    """The group of every bin that is looked at, -1 for the others, and the largest number of groups of a replica.

    The smallest bin left is a pivot; bins join it in ascending order of `prediction` while the group's sum and the gap
    to the pivot allow, if their `direction` has the least correlation with the pivot's. Bins that are not `small` are
    groups of their own. `order` sorts the predictions of each replica.
    """
    replicas, size = prediction.shape
    labels = np.full((replicas, size), -1, np.int64)
    most = 0
    waiting, following = np.empty(size, np.int64), np.empty(size, np.int64)
    for replica in range(replicas):
        group, count = 0, 0
        for rank in range(size):
            current = order[replica, rank]
            if looks[replica, current]:
                if small[replica, current]:
                    waiting[count], following[count] = current, count + 1
                    count += 1
                else:
                    labels[replica, current] = group
                    group += 1
        first = 0
        while first < count:
            pivot = waiting[first]
            labels[replica, pivot] = group
            total = prediction[replica, pivot]
            before, place = first, following[first]
            while place < count and total < largest_sum:
                current = waiting[place]
                if prediction[replica, current] - prediction[replica, pivot] >= largest_gap:
                    break
                correlation = 0.0
                for axis in range(direction.shape[2]):
                    correlation += direction[replica, pivot, axis] * direction[replica, current, axis]
                if correlation > least_correlation:
                    labels[replica, current] = group
                    total += prediction[replica, current]
                    following[before] = following[place]
                else:
                    before = place
                place = following[place]
            group += 1
            first = following[first]
        most = max(most, group)
    return labels, most
