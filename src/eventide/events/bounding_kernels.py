"""The rule that bounds what one user adds to a step, compiled.

Of each user's events in a step those count that have the smallest keyed hash of (user, step, bin, occurrence), where
the n events of a user in one bin are the occurrences 0 to n - 1. So no more of them count than the user has room for,
and with less room the first of the same ones; which ones depends on that user's events alone, is random to whoever does
not know the key, and is the same in whatever order, batches or engine they came. Two users whose 64-bit hashes agree
would be bounded as one; with a secret key nobody can arrange it.
"""

from __future__ import annotations

import numpy as np

from eventide.compiling import kernel
from eventide.events.siphash_kernels import hash_four


@kernel(nogil=True)
def bounded_counts(users, bins, occurrences, key, step, rooms, size):  # type: ignore[no-untyped-def]
    """The counts of a step, so many events of each user as `rooms` says, which has one number for each in turn.

    Rows are sorted by user and bin.
    """
    counts = np.zeros(size, np.int64)
    most = rooms.max() if len(rooms) else 0
    ranks, chosen, which = np.empty(most, np.uint64), np.empty(most, np.int64), np.empty(most, np.int64)
    begin, rows, user = 0, len(users), 0
    while begin < rows:
        room = rooms[user]
        user += 1
        end, total = begin, 0
        while end < rows and users[end] == users[begin]:
            total += occurrences[end]
            end += 1
        if total <= room:
            for row in range(begin, end):
                counts[bins[row]] += occurrences[row]
        elif room > 0:
            _choose(users[begin], bins[begin:end], occurrences[begin:end], key, step, ranks[:room], chosen, which)
            for place in range(room):
                counts[bins[begin + chosen[place]]] += 1
        begin = end
    return counts


@kernel(nogil=True)
def bounded_sums(users, bins, values, occurrences, places, key, step, rooms, ranked, size):  # type: ignore[no-untyped-def]
    """The sums of a step, of so many events of each user as `rooms` says; of those in a bin so many are ranked.

    The value of a row is added at its place, and `size` is how many places there are. Rows are sorted by user, bin and
    value (or what it follows from), and events of a user and bin are numbered in that order.
    """
    sums = np.zeros(size, np.int64)
    most = rooms.max() if len(rooms) else 0
    ranks, chosen, which = np.empty(most, np.uint64), np.empty(most, np.int64), np.empty(most, np.int64)
    begin, rows, user = 0, len(users), 0
    while begin < rows:
        room = rooms[user]
        user += 1
        end, total, cells = begin, 0, 0
        while end < rows and users[end] == users[begin]:
            total += occurrences[end]
            cells += end == begin or bins[end] != bins[end - 1]
            end += 1
        if total <= room:
            for row in range(begin, end):
                sums[places[row]] += occurrences[row] * values[row]
        elif room > 0:
            first, own, numbers = np.empty(cells, np.int64), np.empty(cells, np.int32), np.zeros(cells, np.int64)
            cell = -1
            for row in range(begin, end):
                if row == begin or bins[row] != bins[row - 1]:
                    cell += 1
                    first[cell], own[cell] = row, bins[row]
                numbers[cell] += occurrences[row]
            few = np.minimum(numbers, ranked)
            _choose(users[begin], own, few, key, step, ranks[:room], chosen, which)
            for place in range(room):
                cell = chosen[place]
                left, row = which[place] * numbers[cell] // few[cell], first[cell]
                while left >= occurrences[row]:
                    left -= occurrences[row]
                    row += 1
                sums[places[row]] += values[row]
        begin = end
    return sums


@kernel(nogil=True)
def bin_ranks(users, bins, key, step):  # type: ignore[no-untyped-def]
    """The keyed hash of each user and bin at a step, as of the first event there."""
    ranks = np.empty(len(users), np.uint64)
    for row in range(len(users)):
        ranks[row] = hash_four(key, users[row], step, bins[row], 0)
    return ranks


@kernel(nogil=True)
def block_ends(users, key, step, block):  # type: ignore[no-untyped-def]
    """The last step of the block in which each user is at a step; blocks of a user are shifted by a hash of the user.

    What is hashed is told from events by a step that no event has.
    """
    ends = np.empty(len(users), np.int64)
    for row in range(len(users)):
        offset = np.int64(hash_four(key, users[row], -1, 0, 0) % np.uint64(block))
        ends[row] = step + block - 1 - (step + offset) % block
    return ends


@kernel(nogil=True)
def _choose(user, bins, occurrences, key, step, ranks, chosen, which):  # type: ignore[no-untyped-def]
    """Put the rows of the events with the smallest ranks into `chosen`, and which of its row's each is into `which`.

    There are more events than these hold.
    """
    most, held = len(ranks), 0
    for row in range(len(bins)):
        for occurrence in range(occurrences[row]):
            rank = hash_four(key, user, step, bins[row], occurrence)
            if held == most and rank >= ranks[most - 1]:
                continue
            place = held if held < most else most - 1
            held = min(most, held + 1)
            while place > 0 and ranks[place - 1] > rank:
                ranks[place], chosen[place], which[place] = ranks[place - 1], chosen[place - 1], which[place - 1]
                place -= 1
            ranks[place], chosen[place], which[place] = rank, row, occurrence
