"""The dynamic program that puts the best new level on a nested plan.

A new slot merges the top level's slots from boundary u to boundary v, takes the fraction y of the budget and leaves
1 - y to everything below. With k and m the first and last top boundary in a window, the windows' parts in it cost

    boost * (fixed + (linear + gain * square) / (1 + gain * series)),  boost = 1 / (1 - y)^2,  gain = boost * y^2 / 2

    series  the resistance from u to v below the new slot
    linear  sum of w * series over windows that pass (k <= u, v <= m), and of w * arm over those that begin inside
            (u < k, v <= m), the arm being the resistance from the centre of the window's star to v
    square  sum of w * arm * (series - arm) over windows that begin inside
    fixed   what no slot can lower: centre to begin, windows that end inside (m < v), windows without a top boundary

Sums for (u, v) come from those for (u + 1, v) in O(1), so the whole costs O(slots * reach * fractions + windows).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.compiling import kernel


class Parts(NamedTuple):
    """Windows as the top level sees them, in order of begin; for group[k] to group[k + 1], boundary k comes next.

    `last` is the node of the last top boundary inside, and `place` the number of the boundary at a node; a window
    without any has -1, and nothing but its variance counts.
    """

    group: Ints
    place: Ints
    last: Ints
    weight: Floats
    variance: Floats
    to_begin: Floats
    to_high: Floats
    rest: Floats


PASSING, ARM, ARM_SQUARED, FIXED = range(4)


@kernel()
def best_level(  # type: ignore[no-untyped-def]
    chain: Floats, parts: Parts, fractions: Floats, damping: float, reach: int, single: bool
):
    """What all windows will cost; and where the new slot from each top boundary ends, with its fraction, 0 for none.

    A new slot has at most `reach` old ones, and more than one unless `single`. `damping` scales what passing windows
    count: a level that still gets one above it should not be built for them.
    """
    count = len(chain) - 1
    boost = 1.0 / (1.0 - fractions) ** 2
    gain = boost * fractions**2 / 2.0
    cost = np.zeros(count + 1)
    until, chosen = np.empty(count, np.int64), np.zeros(count)
    crossing, ending, end_cost, inner = by_boundary(chain, parts)
    sums, fresh = np.zeros((4, count + 1)), np.zeros((5, count + 2))
    for u in range(count - 1, -1, -1):
        top = min(u + reach, count)
        add_begins(chain, parts, u, top, sums, fresh, ending, end_cost)
        ends_inside = 0.0
        cost[u] = np.inf
        for v in range(u + 1, top + 1):
            ends_inside += end_cost[v - 1] - chain[u] * ending[v - 1]
            series = chain[v] - chain[u]
            fixed = sums[FIXED, v] + ends_inside + inner[v] - inner[u]
            linear = damping * (crossing[v] - sums[PASSING, v]) * series + sums[ARM, v]
            square = series * sums[ARM, v] - sums[ARM_SQUARED, v]
            least, fraction = np.inf, 0.0
            if v == u + 1:
                least = fixed + linear
            if v > u + 1 or single:
                for i in range(len(fractions)):
                    merged = boost[i] * (fixed + (linear + gain[i] * square) / (1.0 + gain[i] * series))
                    if merged < least:
                        least, fraction = merged, fractions[i]
            if least + cost[v] < cost[u]:
                cost[u], until[u], chosen[u] = least + cost[v], v, fraction
    return cost[0], until, chosen


@kernel()
def by_boundary(chain: Floats, parts: Parts):  # type: ignore[no-untyped-def]
    """For each boundary: the weight of windows over or at it; of those whose last it is, and what these cost from 0;
    and what the windows without a boundary cost up to it.
    """
    count = len(chain) - 1
    crossing, ending, end_cost, inner = np.zeros((4, count + 2))
    for k in range(count + 1):
        for i in range(parts.group[k], parts.group[k + 1]):
            w = parts.weight[i]
            if parts.last[i] < 0:
                inner[k] += w * parts.variance[i]
                continue
            m = parts.place[parts.last[i]]
            crossing[k] += w
            crossing[m + 1] -= w
            ending[m] += w
            end_cost[m] += w * (chain[m] + parts.rest[i])
    return np.cumsum(crossing), ending, end_cost, np.cumsum(inner)


@kernel()
def add_begins(  # type: ignore[no-untyped-def]
    chain: Floats, parts: Parts, u: int, top: int, sums: Floats, fresh: Floats, ending: Floats, end_cost: Floats
):
    """Turn the windows whose first boundary is u + 1 from passing into beginning inside, for slots from u to v <= top.

    `fresh` is scratch space of zeros, and is left so.
    """
    k = u + 1
    for i in range(parts.group[k], parts.group[k + 1]):
        if parts.last[i] < 0:
            continue
        m, w = parts.place[parts.last[i]], parts.weight[i]
        ending[m] -= w
        end_cost[m] -= w * (chain[m] + parts.rest[i])
        v = min(m, top)
        fresh[PASSING, v] += w
        fresh[ARM, v] += w * parts.to_high[i]
        fresh[ARM_SQUARED, v] += w * parts.to_high[i] ** 2
        fresh[FIXED, v] += w * parts.to_begin[i]
        if m < top:
            fresh[-1, m + 1] += w * (parts.to_begin[i] + parts.to_high[i] + chain[m] - chain[k] + parts.rest[i])
    weight, arm, squared, centre, inside = 0.0, 0.0, 0.0, 0.0, 0.0
    for v in range(top, u, -1):
        weight += fresh[PASSING, v]
        arm += fresh[ARM, v]
        squared += fresh[ARM_SQUARED, v]
        centre += fresh[FIXED, v]
        further = chain[v] - chain[k]
        sums[PASSING, v] += weight
        sums[ARM, v] += arm + further * weight
        sums[ARM_SQUARED, v] += squared + 2.0 * further * arm + further**2 * weight
        sums[FIXED, v] += centre
    for v in range(k, top + 1):
        inside += fresh[-1, v]
        sums[FIXED, v] += inside
        fresh[:, v] = 0.0
