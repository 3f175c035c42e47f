"""Answers from released slots. What goes in and what comes out is private.

Tables are those of nested_kernels, on a line of nodes that may span several cycles; `released[level, node]` is the
noisy count of the slot that begins there. Values have a last axis of cells (bins of replicas), which are alike in all
but their values, so that everything about a window is worked out once for all cells.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.compiling import kernel
from eventide.windows.schemes.nested_kernels import chain_down, climb


@kernel()
def fuse(
    left: Ints, conductance: Floats, released: Floats, chain: Floats, prefix: Floats, closed: int, node: int
) -> None:
    """Fuse the slots that end after node `closed` and up to `node` with those below them, as running sums.

    `prefix` is for the estimates what `chain` is for their variances: at a boundary of a level, the sum of that
    level's fused slots so far.
    """
    for end in range(closed + 1, node + 1):
        for level in range(len(left)):
            if left[level, end] != end:
                break
            begin = left[level, end - 1]
            own = conductance[level, begin]
            if level == 0:
                chain[0, end] = chain[0, begin] + 1.0 / own
            else:
                below = chain[level - 1, end] - chain[level - 1, begin]
                share = 1.0 / (1.0 + own * below)
                chain[level, end] = chain[level, begin] + below * share
            for cell in range(released.shape[2]):
                if level == 0:
                    prefix[0, end, cell] = prefix[0, begin, cell] + released[0, begin, cell]
                    continue
                parts = prefix[level - 1, end, cell] - prefix[level - 1, begin, cell]
                surprise = released[level, begin, cell] - parts
                prefix[level, end, cell] = prefix[level, begin, cell] + parts + (1.0 - share) * surprise


@kernel()
def fused_answers(  # type: ignore[no-untyped-def]
    left: Ints,
    right: Ints,
    chain: Floats,
    conductance: Floats,
    released: Floats,
    prefix: Floats,
    begin: Ints,
    end: Ints,
):
    """The best on-time estimate of each window, and its variance, in O(levels) steps."""
    cells = released.shape[2]
    arms = np.empty((len(left), 2))
    below_begin, values, variance = np.empty(cells), np.empty((len(begin), cells)), np.empty(len(begin))
    for i in range(len(begin)):
        b, e, value = begin[i], end[i], values[i]
        top, to_begin, _, to_high = climb(left, right, chain, conductance, b, e, arms)
        variance[i] = to_begin + to_high + chain_down(left, chain, top, right[top, b], e)
        below_begin[:] = 0.0
        value[:] = 0.0
        low = high = b
        for level in range(1, top + 1):
            new_low, new_high = left[level, b], right[level, b]
            own = conductance[level, new_low]
            gain = own / (1.0 + own * (arms[level, 0] + arms[level, 1]))
            for cell in range(cells):
                below_begin[cell] += prefix[level - 1, low, cell] - prefix[level - 1, new_low, cell]
                value[cell] += prefix[level - 1, new_high, cell] - prefix[level - 1, high, cell]
                surprise = gain * (released[level, new_low, cell] - below_begin[cell] - value[cell])
                below_begin[cell] += arms[level, 0] * surprise
                value[cell] += arms[level, 1] * surprise
            low, high = new_low, new_high
        for level in range(top, -1, -1):
            last = left[level, e]
            for cell in range(cells):
                value[cell] += prefix[level, last, cell] - prefix[level, high, cell]
            high = last
    return values, variance


@kernel()
def spread(left: Ints, right: Ints, chain: Floats, prefix: Floats, refined: Floats, begin: int, end: int) -> None:
    """Make `refined` the running sum of estimates that use all slots, between two boundaries of the top level.

    A slot's estimate is handed down to the slots below it: what it differs from their sum by, they take in proportion
    to their variances.
    """
    top = len(left) - 1
    node = begin
    while node <= end:
        for cell in range(refined.shape[1]):
            refined[node, cell] = prefix[top, node, cell]
        node = right[top, node + 1] if node < end else end + 1
    for level in range(top - 1, -1, -1):
        node = begin
        while node < end:
            after, low, high = right[level, node + 1], left[level + 1, node], right[level + 1, node + 1]
            share = (chain[level, after] - chain[level, node]) / (chain[level, high] - chain[level, low])
            if after < high:
                for cell in range(refined.shape[1]):
                    parts = prefix[level, high, cell] - prefix[level, low, cell]
                    own = prefix[level, after, cell] - prefix[level, node, cell]
                    surprise = refined[high, cell] - refined[low, cell] - parts
                    refined[after, cell] = refined[node, cell] + own + share * surprise
            node = after


@kernel()
def refined_variance(  # type: ignore[no-untyped-def]
    left: Ints, right: Ints, chain: Floats, conductance: Floats, begin: Ints, end: Ints
):
    """The variance of each window's estimate from all slots around it, all of which have ended."""
    top = len(left) - 1
    arms = np.empty((len(left), 2))
    variance = np.empty(len(begin))
    for i in range(len(begin)):
        b, e = begin[i], end[i]
        if right[top, b] <= left[top, e]:
            _, to_begin, _, to_high = climb(left, right, chain, conductance, b, left.shape[1], arms)
            _, to_end, to_low, _ = climb(left, right, chain, conductance, e, left.shape[1], arms)
            variance[i] = to_begin + to_high + chain[top, left[top, e]] - chain[top, right[top, b]] + to_low + to_end
        else:
            variance[i] = _within_one_slot(left, right, chain, conductance, b, e, arms)
    return variance


@kernel()
def _within_one_slot(  # type: ignore[no-untyped-def]
    left: Ints, right: Ints, chain: Floats, conductance: Floats, b: int, e: int, arms: Floats
):
    """The same for a window inside a slot of the top level.

    Going down, `outside` is the conductance of all that joins the ends of the slot from without, its own included,
    until b and e are no longer in one slot. There the slots below form a loop with it: one arc from the star around b
    to that around e, and another through the ends of the slot.
    """
    outside = 0.0
    for level in range(len(left) - 1, -1, -1):
        low, high = left[level, b], right[level, b + 1]
        outside += conductance[level, low]
        if level == 0:
            return 1.0 / outside
        inner_low, inner_high = left[level - 1, b], right[level - 1, b + 1]
        if e > inner_high:
            break
        before, after = chain[level - 1, inner_low] - chain[level - 1, low], chain[level - 1, high]
        outside = outside / (1.0 + outside * (before + after - chain[level - 1, inner_high]))
    below = level - 1
    tables = left[:level], right[:level], chain[:level], conductance[:level]
    _, to_begin, begin_low, begin_high = climb(*tables, b, left.shape[1], arms)
    _, to_end, end_low, end_high = climb(*tables, e, left.shape[1], arms)
    between = begin_high + chain[below, left[below, e]] - chain[below, right[below, b]] + end_low
    around = begin_low + chain[below, left[below, b]] - chain[below, low]
    around += end_high + chain[below, high] - chain[below, right[below, e]]
    return to_begin + to_end + between * (1.0 + outside * around) / (1.0 + outside * (around + between))


@kernel()
def chain_answers(  # type: ignore[no-untyped-def]
    left: Ints, right: Ints, resistance: Floats, released: Floats, begin: Ints, end: Ints, only: Ints
):
    """The sum of the cheapest chain of slots from begin to end, and its variance; of level `only` unless that is -1."""
    levels, nodes, cells = released.shape
    distance, from_node, from_level = np.empty(nodes), np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    values, variance = np.zeros((len(begin), cells)), np.empty(len(begin))
    for i in range(len(begin)):
        b, e = begin[i], end[i]
        first, last = (0, levels) if only[i] < 0 else (only[i], only[i] + 1)
        distance[b : e + 1] = np.inf
        distance[b] = 0.0
        for node in range(b, e):
            if distance[node] < np.inf:
                for level in range(first, last):
                    after = right[level, node + 1]
                    cost = distance[node] + resistance[level, node]
                    if left[level, node] == node and after <= e and cost < distance[after]:
                        distance[after], from_node[after], from_level[after] = cost, node, level
        variance[i] = distance[e]
        node = e
        while node > b and variance[i] < np.inf:
            for cell in range(cells):
                values[i, cell] += released[from_level[node], from_node[node], cell]
            node = from_node[node]
    return values, variance
