"""Two small learners for attacks: a linear score and a decision tree, in array code.

What they learn need not be right: the auditor measures on fresh runs what a score is worth. Imports numpy and `arrays`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eventide.arrays import Array, Floats

Scorer = Callable[[Floats], Floats]


def linear_scorer(one: Floats, other: Floats) -> Scorer:
    """Fisher's linear discriminant, with a ridge, on standardised and clipped columns."""
    both = np.concatenate([one, other])
    centre = np.median(both, axis=0)
    spread = np.maximum(np.median(np.abs(both - centre), axis=0), 1e-9)

    def standard(columns: Floats) -> Floats:
        return np.asarray(np.clip((columns - centre) / spread, -8, 8))

    a, b = standard(one), standard(other)
    within = np.cov(a, rowvar=False) + np.cov(b, rowvar=False)
    within = np.atleast_2d(within) + 1e-3 * np.eye(a.shape[1])
    weights = np.linalg.solve(within, b.mean(axis=0) - a.mean(axis=0))
    return lambda columns: np.asarray(standard(columns) @ weights)


def tree_scorer(one: Floats, other: Floats, depth: int = 4, least: int = 50) -> Scorer:
    """A decision tree that splits for the largest gain in likelihood; a leaf's score is its log-ratio of counts."""
    columns = np.concatenate([one, other])
    is_other = np.repeat([False, True], [len(one), len(other)])
    grown = _grow(columns, is_other, depth, least)

    def score(rows: Floats) -> Floats:
        result = np.empty(len(rows))
        _descend(grown, rows, np.arange(len(rows)), result)
        return result

    return score


Leaf = float
Node = tuple[int, float, "Tree", "Tree"]
Tree = Leaf | Node


def _grow(columns: Floats, is_other: Array, depth: int, least: int) -> Tree:
    counts = np.array([np.count_nonzero(~is_other), np.count_nonzero(is_other)])
    leaf = float(np.log((counts[1] + 0.5) / (counts[0] + 0.5)))
    if depth == 0 or counts.sum() < 2 * least:
        return leaf
    best, chosen = 1e-9, None
    whole = _likelihood(counts[None])[0]
    for column in range(columns.shape[1]):
        cuts = np.unique(np.quantile(columns[:, column], np.linspace(0.05, 0.95, 13), method="nearest"))
        place = np.searchsorted(cuts, columns[:, column], side="left")
        table = np.stack([np.bincount(place[side], minlength=len(cuts) + 1) for side in (~is_other, is_other)], axis=1)
        below = table.cumsum(axis=0)[:-1]
        gain = _likelihood(below) + _likelihood(counts - below) - whole
        gain[(below.sum(axis=1) < least) | ((counts - below).sum(axis=1) < least)] = 0
        if gain.max(initial=0) > best:
            best, chosen = float(gain.max()), (column, float(cuts[gain.argmax()]))
    if chosen is None:
        return leaf
    left = columns[:, chosen[0]] <= chosen[1]
    return (
        *chosen,
        _grow(columns[left], is_other[left], depth - 1, least),
        _grow(columns[~left], is_other[~left], depth - 1, least),
    )


def _likelihood(counts: Array) -> Floats:
    """The log-likelihood of class counts under their own shares."""
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray((counts * np.log(np.maximum(counts, 1) / np.maximum(total, 1))).sum(axis=1))


def _descend(tree: Tree, rows: Floats, which: Array, result: Floats) -> None:
    if isinstance(tree, float):
        result[which] = tree
        return
    column, cut, below, above = tree
    left = rows[which, column] <= cut
    _descend(below, rows, which[left], result)
    _descend(above, rows, which[~left], result)
