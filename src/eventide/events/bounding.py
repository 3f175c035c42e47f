"""The rule that bounds what one user adds to a step, in plain form: the reference for the kernels.

Of each user's events in a step those count that have the smallest keyed hash of (user, step, bin, occurrence), where
the n events of a user in one bin are the occurrences 0 to n - 1. So at most `most` of them count, which ones depends on
that user's events alone, is random to whoever does not know the key, and is the same in whatever order, batches or
engine they came. Two users whose 64-bit hashes agree would be bounded as one; with a secret key nobody can arrange it.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Array, Ints
from eventide.events.siphash import rank_message, siphash


def bounded_counts(users: Array, bins: Array, occurrences: Ints, key: bytes, step: int, most: int, size: int) -> Ints:
    """The counts `(size,)` of a step from rows (user, bin, occurrences)."""
    user = np.repeat(users, occurrences)
    bin_index = np.repeat(bins, occurrences)
    occurrence = np.concatenate([np.arange(0), *(np.arange(count) for count in occurrences)])
    messages = [
        rank_message(int(who), step, int(where), int(which))
        for who, where, which in zip(user, bin_index, occurrence, strict=True)
    ]
    order = np.lexsort((siphash(key, messages), user))
    place_of_first = np.searchsorted(user[order], user[order])
    kept = order[np.arange(len(order)) - place_of_first < most]
    return np.bincount(bin_index[kept], minlength=size).astype(np.int64)
