"""The planner `emd`: a few representative steps, chosen by earth mover's distance (Cao et al., EDBT 2013).

The sorted steps are cut into groups, one cut at a time, the cut whose representatives' queries are distributed most
like all queries. Representatives get a layer each with equal budgets; the shortest one is also split at the boundaries
of all other steps, so that every window has a chain, and takes the cheapest. Ten thresholds of the distance are tried.
Distances are compared exactly. Imports numpy, the cover and the workload.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from eventide.arrays import Ints
from eventide.windows.cover import Cover
from eventide.windows.slots import partition, stacked
from eventide.windows.workload import Workload

THRESHOLDS = [Fraction(i, 10) for i in range(10)]


def distance(steps: list[int], queries: list[int], chosen: list[int]) -> Fraction:
    """Earth mover's distance between all queries and those of the chosen positions, 0 for a single step.

    >>> distance([3, 4, 6], [2, 1, 1], [0, 2])
    Fraction(1, 9)
    """
    total, kept = sum(queries), sum(queries[i] for i in chosen)
    work, ahead = 0, 0
    for i in range(len(steps) - 1):
        ahead += (total if i in chosen else 0) * queries[i] - kept * queries[i]
        work += (steps[i + 1] - steps[i]) * abs(ahead)
    return Fraction(work, total * kept * max(steps[-1] - steps[0], 1))


def cut_sequence(steps: list[int], queries: list[int]) -> list[tuple[Fraction, list[int]]]:
    """The distance and the representatives (as positions) with no cut, one cut, and so on until all steps are taken.

    >>> [representatives for _, representatives in cut_sequence([3, 4, 6], [2, 1, 1])]
    [[0], [0, 2], [0, 1, 2]]
    """
    cuts = [0, len(steps)]
    chosen = _split_choices(queries, cuts)[0] if len(steps) == 1 else [max(range(len(steps)), key=lambda i: (queries[i], i))]
    sequence = [(distance(steps, queries, chosen), chosen)]
    return sequence


def representative_cover(workload: Workload, chosen: list[int], budget: int) -> Cover:
    """The layers of the chosen steps, the shortest of them split at the boundaries of all others."""
    steps, length = workload.steps[0], workload.length
    layers = [partition(steps[i], length) for i in chosen]
    others = [partition(step, length) for i, step in enumerate(steps) if i not in chosen]
    layers[0] = np.unique(np.concatenate([layers[0], *others]))
    return Cover(stacked(layers, [budget // len(layers)] * len(layers)), length, workload.periodic)


def design(workload: Workload, budget: int) -> Cover:
    """The best plan over all thresholds, within `budget` nano-epsilon."""
    steps, queries, _ = workload.steps
    sequence = cut_sequence(steps, queries)
    choices = [next(chosen for found, chosen in sequence if found <= threshold) for threshold in THRESHOLDS]
    covers = [representative_cover(workload, list(chosen), budget) for chosen in dict.fromkeys(map(tuple, choices))]
    begin, end, weight = workload.pieces
    nodes = workload.nodes
    return min(covers, key=lambda cover: float(weight @ cover.chains(nodes[begin], nodes[end], weight)[0]))
