"""The rule that bounds what one user adds to a step, compiled.

Of each user's events in a step those count that have the smallest keyed hash of (user, step, bin, occurrence), where
the n events of a user in one bin are the occurrences 0 to n - 1. So at most `most` of them count, which ones depends on
that user's events alone, is random to whoever does not know the key, and is the same in whatever order, batches or
engine they came. Two users whose 64-bit hashes agree would be bounded as one; with a secret key nobody can arrange it.
"""

from __future__ import annotations

import numpy as np

from eventide.compiling import kernel
from eventide.events.siphash_kernels import hash_four


@kernel(nogil=True)
def bounded_counts(users, bins, occurrences, key, step, most, size):  # type: ignore[no-untyped-def]
    """The counts of a step, at most `most` events of each user; rows are sorted by user and bin."""
    counts = np.zeros(size, np.int64)
    ranks, chosen = np.empty(most, np.uint64), np.empty(most, np.int64)
    begin, rows = 0, len(users)
    while begin < rows:
        end, total = begin, 0
        while end < rows and users[end] == users[begin]:
            total += occurrences[end]
            end += 1
        if total <= most:
            for row in range(begin, end):
                counts[bins[row]] += occurrences[row]
        else:
            _choose(users[begin], bins[begin:end], occurrences[begin:end], key, step, ranks, chosen)
            for place in range(most):
                counts[chosen[place]] += 1
        begin = end
    return counts


@kernel(nogil=True)
def _choose(user, bins, occurrences, key, step, ranks, chosen):  # type: ignore[no-untyped-def]
    """Put the bins of the events with the smallest ranks into `chosen`; there are more events than it holds."""
    most, held = len(ranks), 0
    for row in range(len(bins)):
        for occurrence in range(occurrences[row]):
            rank = hash_four(key, user, step, bins[row], occurrence)
            if held == most and rank >= ranks[most - 1]:
                continue
            place = held if held < most else most - 1
            held = min(most, held + 1)
            while place > 0 and ranks[place - 1] > rank:
                ranks[place], chosen[place] = ranks[place - 1], chosen[place - 1]
                place -= 1
            ranks[place], chosen[place] = rank, bins[row]
