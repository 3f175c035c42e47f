"""The planner `emd`: a few representative steps, chosen by earth mover's distance (Cao et al., EDBT 2013).

The sorted steps are cut into groups, one cut at a time, always the cut whose representatives' queries are distributed
most like all queries. Representatives get a layer each with equal budgets; the shortest one is also split at the
boundaries of all other steps, so that every window has a chain of slots, and takes the cheapest. Ten thresholds of the
distance are tried, and distances are compared exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np

from eventide.arrays import Ints
from eventide.windows.schemes.cover import Cover
from eventide.windows.schemes.scheme import noise_variance, partition, stacked, workload_error
from eventide.windows.workload import Workload

THRESHOLDS = [Fraction(i, 10) for i in range(10)]


def distance(steps: list[int], queries: list[int], chosen: list[int]) -> Fraction:
    """Earth mover's distance between all queries and those of the chosen positions, 0 for a single step.

    >>> distance([3, 4, 6], [2, 1, 1], [0, 2])
    Fraction(1, 9)
    """
    kept = [0] * len(steps)
    for i in chosen:
        kept[i] = queries[i]
    total, part = sum(queries), sum(kept)
    ahead = accumulate(total * k - part * q for k, q in zip(kept, queries, strict=True))
    work = sum((long - short) * abs(a) for (short, long), a in zip(pairwise(steps), ahead, strict=False))
    return Fraction(work, total * part * max(steps[-1] - steps[0], 1))


def cut_sequence(steps: list[int], queries: list[int]) -> list[tuple[Fraction, list[int]]]:
    """The distance and the representatives (as positions) with no cut, one cut, and so on until all steps are taken.

    >>> [representatives for _, representatives in cut_sequence([3, 4, 6], [2, 1, 1])]
    [[0], [0, 2], [0, 1, 2]]
    """
    cuts, chosen = [0, len(steps)], [max(range(len(steps)), key=lambda i: (queries[i], i))]
    sequence = [(distance(steps, queries, chosen), chosen)]
    while len(chosen) < len(steps):
        choices = _choices_with_one_more_cut(queries, cuts, chosen)
        near = _nearly_closest(np.array(steps), np.array(queries), list(choices.values()))
        measured = [(distance(steps, queries, choices[cut]), cut) for cut in np.array(list(choices))[near].tolist()]
        nearest, cut = min(measured)  # of equals the first position, as published
        cuts, chosen = sorted([*cuts, cut]), choices[cut]
        sequence.append((nearest, chosen))
    return sequence


def _choices_with_one_more_cut(queries: list[int], cuts: list[int], chosen: list[int]) -> dict[int, list[int]]:
    """The representatives for every place of one more cut: the busiest step of each group, the longest of equals."""

    def busier(i: int, j: int) -> int:
        return max(i, j, key=lambda position: (queries[position], position))

    choices = {}
    for group, (start, stop) in enumerate(pairwise(cuts)):
        heads = list(accumulate(range(start, stop), busier))
        tails = list(accumulate(range(stop - 1, start - 1, -1), busier))[::-1]
        for cut in range(start + 1, stop):
            two = [heads[cut - 1 - start], tails[cut - start]]
            choices[cut] = chosen[:group] + two + chosen[group + 1 :]
    return choices


def _nearly_closest(steps: Ints, queries: Ints, choices: list[list[int]]) -> Ints:
    """Which choices have, up to the rounding of floats, the least distance."""
    kept = np.zeros((len(choices), len(steps)))
    np.put_along_axis(kept, np.array(choices), 1.0, axis=1)
    kept *= queries
    ahead = np.cumsum(kept / kept.sum(axis=1, keepdims=True) - queries / queries.sum(), axis=1)
    work = np.abs(ahead[:, :-1]) @ (np.diff(steps) / (steps[-1] - steps[0]))
    return np.flatnonzero(work <= work.min() + 1e-9)


def representative_cover(workload: Workload, chosen: Sequence[int], budget: int) -> Cover:
    """The layers of the chosen steps, the shortest of them split at the boundaries of all others."""
    steps = workload.steps.sizes
    layers = [partition(steps[i], workload) for i in chosen]
    others = [partition(step, workload) for i, step in enumerate(steps) if i not in chosen]
    layers[0] = np.unique(np.concatenate([layers[0], *others]))
    return Cover(stacked(layers, budget), workload.length, workload.periodic)


def design(workload: Workload, budget: int) -> Cover:
    """The best plan over all thresholds, within `budget` nano-epsilon."""
    sequence = cut_sequence(workload.steps.sizes, workload.steps.queries)
    choices = {tuple(next(chosen for found, chosen in sequence if found <= limit)) for limit in THRESHOLDS}
    fewest, *others = sorted(choices, key=len)
    best = representative_cover(workload, fewest, budget)
    least = workload_error(workload, best)
    for chosen in others:
        one_slot = noise_variance(np.array(budget // len(chosen)))
        if workload.count.sum() * one_slot >= least:  # not even windows of one slot each would do
            break
        cover = representative_cover(workload, chosen, budget)
        error = workload_error(workload, cover)
        if error < least:
            best, least = cover, error
    return best
