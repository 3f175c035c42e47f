"""Variances and flows of windows in a nested plan, O(levels) per window.

A plan is drawn as a network: boundaries are nodes, a released slot is a resistor as strong as its variance. Tables are
indexed [level, node]: `left` and `right` are the boundaries of the level around a node, `chain` the sum of the fused
resistances of the level's slots up to a boundary, `conductance` one over the variance of the slot that begins there
(0 if it is not released). The best on-time answer for [b, e) has the variance of the effective resistance from b to e
in the network of the nodes up to e.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.compiling import kernel


@kernel()
def climb(  # type: ignore[no-untyped-def]
    left: Ints, right: Ints, chain: Floats, conductance: Floats, begin: int, end: int, arms: Floats
):
    """From `begin` up to the largest slot [low, high) around it that ends by `end`.

    Returns that slot's level and the variances of the arms of the star that stands for the network inside it: from the
    centre to begin, to low and to high. `arms[level]` are those to low and high before the slot itself is fused in.
    """
    low, high = begin, begin
    to_begin, to_low, to_high = 0.0, 0.0, 0.0
    for level in range(1, len(left)):
        if right[level, begin] > end:
            return level - 1, to_begin, to_low, to_high
        to_low += chain[level - 1, low] - chain[level - 1, left[level, begin]]
        to_high += chain[level - 1, right[level, begin]] - chain[level - 1, high]
        low, high = left[level, begin], right[level, begin]
        arms[level, 0], arms[level, 1] = to_low, to_high
        parallel = conductance[level, low]
        share = 1.0 / (1.0 + parallel * (to_low + to_high))
        to_begin += parallel * to_low * to_high * share
        to_low *= share
        to_high *= share
    return len(left) - 1, to_begin, to_low, to_high


@kernel()
def chain_down(left: Ints, chain: Floats, level: int, low: int, end: int) -> float:
    """The resistance from `low`, a boundary of `level`, to `end`, along the largest slots that end by then."""
    total = 0.0
    for below in range(level, -1, -1):
        high = left[below, end]
        total += chain[below, high] - chain[below, low]
        low = high
    return total


@kernel()
def decompose(  # type: ignore[no-untyped-def]
    left: Ints, right: Ints, chain: Floats, conductance: Floats, begin: Ints, end: Ints
):
    """For each window: variance, last top boundary inside (-1 if none), arms of its star, rest after that boundary."""
    top = len(left) - 1
    arms = np.empty((len(left), 2))
    variance, to_begin, to_high, rest = np.zeros((4, len(begin)))
    last = np.full(len(begin), -1)
    for i in range(len(begin)):
        level, to_begin[i], _, to_high[i] = climb(left, right, chain, conductance, begin[i], end[i], arms)
        high = right[level, begin[i]]
        variance[i] = to_begin[i] + to_high[i] + chain_down(left, chain, level, high, end[i])
        if level == top:
            last[i] = left[top, end[i]]
            rest[i] = chain_down(left, chain, top, last[i], end[i])
    return variance, last, to_begin, to_high, rest


@kernel()
def squared_flows(  # type: ignore[no-untyped-def]
    left: Ints, right: Ints, chain: Floats, conductance: Floats, begin: Ints, end: Ints, weight: Floats
):
    """The weighted sum of squared currents when 1 flows through each window: through slots, and through fused slots.

    The current of a window leaves its star at high and is followed down: at each level one part takes the slot, the
    rest the fused slots left and right of begin. Fused flows are given as changes from boundary to boundary.
    """
    slot, fused = np.zeros((2, *left.shape))
    arms = np.empty((len(left), 2))
    for i in range(len(begin)):
        b, e, w = begin[i], end[i], weight[i]
        level, _, _, _ = climb(left, right, chain, conductance, b, e, arms)
        low = right[level, b]
        for below in range(level, -1, -1):
            fused[below, low] += w
            low = left[below, e]
            fused[below, low] -= w
        over_low, over_high = 0.0, 1.0
        for upper in range(level, 0, -1):
            low, high = left[upper, b], right[upper, b]
            parallel = conductance[upper, low]
            current = parallel * (arms[upper, 1] * over_high - arms[upper, 0] * over_low)
            current /= 1.0 + parallel * (arms[upper, 0] + arms[upper, 1])
            over_low += current
            over_high -= current
            slot[upper, low] += w * current**2
            fused[upper - 1, low] += w * over_low**2
            fused[upper - 1, left[upper - 1, b]] -= w * over_low**2
            fused[upper - 1, right[upper - 1, b]] += w * over_high**2
            fused[upper - 1, high] -= w * over_high**2
    return slot, fused
