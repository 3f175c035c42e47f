"""Variances and flows of windows in a nested plan, compiled, O(levels) per window: numba and numpy only.

A plan is drawn as a network: boundaries are nodes, a released slot is a resistor as strong as its variance. Tables are
indexed [level, node]: `left` and `right` are the boundaries of the level around a node, `chain` the sum of the fused
resistances of the level's slots up to a boundary, `conductance` one over the variance of the slot that begins there
(0 if it is not released). The best on-time answer for [b, e) has the variance of the effective resistance from b to e
in the network of the nodes up to e.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from eventide.arrays import Floats, Ints


@njit(cache=True)
def chain_down(left: Ints, chain: Floats, level: int, low: int, end: int) -> float:
    """The resistance from `low`, a boundary of `level`, to `end`, along the largest slots that end by then."""
    total = 0.0
    for below in range(level, -1, -1):
        high = left[below, end]
        total += chain[below, high] - chain[below, low]
        low = high
    return total


@njit(cache=True)
def climb(left: Ints, right: Ints, chain: Floats, conductance: Floats, begin: int, end: int):  # type: ignore[no-untyped-def]
    """The star around `begin` inside the largest slot [low, high) around it that ends by `end`.

    Returns level, high and the star's three arms: the centre to begin, to low and to high. At a boundary of the top
    level all arms are 0. `level` is the highest level of which `high` is a boundary and whose slots were used.
    """
    low, high = begin, begin
    to_begin, to_low, to_high = 0.0, 0.0, 0.0
    for level in range(1, len(left)):
        further = right[level, begin]
        if further > end:
            return level - 1, high, to_begin, to_low, to_high
        if further == begin:
            continue
        to_low += chain[level - 1, low] - chain[level - 1, left[level, begin]]
        to_high += chain[level - 1, further] - chain[level - 1, high]
        low, high = left[level, begin], further
        parallel = conductance[level, low]
        share = 1.0 / (1.0 + parallel * (to_low + to_high))
        to_begin += parallel * to_low * to_high * share
        to_low *= share
        to_high *= share
    return len(left) - 1, high, to_begin, to_low, to_high


@njit(cache=True)
def decompose(  # type: ignore[no-untyped-def]
    left: Ints, right: Ints, chain: Floats, conductance: Floats, begin: Ints, end: Ints
):
    """For each window: its variance, the top boundaries it reaches (or -1, -1), arms of its star, the rest at its end."""
    top = len(left) - 1
    variance, to_begin, to_high, rest = np.empty((4, len(begin)))
    first, last = np.full((2, len(begin)), -1)
    for i in range(len(begin)):
        level, high, to_begin[i], _, to_high[i] = climb(left, right, chain, conductance, begin[i], end[i])
        variance[i] = to_begin[i] + to_high[i] + chain_down(left, chain, level, high, end[i])
        if level == top:
            first[i], last[i] = high, left[top, end[i]]
            rest[i] = chain_down(left, chain, top, last[i], end[i])
    return variance, first, last, to_begin, to_high, rest


@njit(cache=True)
def squared_flows(  # type: ignore[no-untyped-def]
    left: Ints, right: Ints, chain: Floats, conductance: Floats, begin: Ints, end: Ints, weight: Floats
):
    """For each slot: the weighted sum over windows of the squared current when 1 flows from begin to end.

    This is how much the weighted variance grows with the slot's own. The current of a window leaves its star at `high`
    and is followed down again, level by level: part of it takes the slot, the rest the chains left and right of begin.
    """
    levels, nodes = left.shape
    slot, fused = np.zeros((levels, nodes)), np.zeros((levels, nodes + 1))
    lows, highs = np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64)
    to_lows, to_highs = np.empty(levels), np.empty(levels)
    for i in range(len(begin)):
        b, e, w = begin[i], end[i], weight[i]
        low, high, to_low, to_high, level = b, b, 0.0, 0.0, 0
        for level in range(levels):
            lows[level], highs[level] = low, high
            if level + 1 == levels or right[level + 1, b] > e:
                break
            low, high = left[level + 1, b], right[level + 1, b]
            to_low += chain[level, lows[level]] - chain[level, low]
            to_high += chain[level, high] - chain[level, highs[level]]
            to_lows[level + 1], to_highs[level + 1] = to_low, to_high
            share = 1.0 / (1.0 + conductance[level + 1, low] * (to_low + to_high))
            to_low *= share
            to_high *= share
        low = high
        for below in range(level, -1, -1):
            high = left[below, e]
            fused[below, low] += w
            fused[below, high] -= w
            low = high
        over_low, over_high = 0.0, 1.0
        for upper in range(level, 0, -1):
            low, high = lows[upper], highs[upper]
            if low == high:
                break
            parallel = conductance[upper, low]
            current = parallel * (to_highs[upper] * over_high - to_lows[upper] * over_low)
            current /= 1.0 + parallel * (to_lows[upper] + to_highs[upper])
            over_low += current
            over_high -= current
            slot[upper, low] += w * current**2
            fused[upper - 1, low] += w * over_low**2
            fused[upper - 1, lows[upper - 1]] -= w * over_low**2
            fused[upper - 1, highs[upper - 1]] += w * over_high**2
            fused[upper - 1, high] -= w * over_high**2
    return slot, fused
