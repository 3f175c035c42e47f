"""Two small learners for attacks: a linear score and a decision tree, in array code.

What they learn need not be right: the auditor measures on fresh runs what a score is worth.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eventide.arrays import Array, Floats, Ints

Scorer = Callable[[Floats], Floats]

CUTS = 19  # at which a tree may split a column
DEPTH, LEAST = 4, 50  # of a tree; runs in a leaf


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


def tree_scorer(one: Floats, other: Floats) -> Scorer:
    """A decision tree that splits for the largest gain in likelihood; a leaf's score is its log-ratio of counts.

    Columns are cut at the same quantiles everywhere in the tree, so that each split is one count of all cells.
    """
    columns = np.concatenate([one, other])
    cuts = np.quantile(columns, np.linspace(0, 1, CUTS + 2)[1:-1], axis=0, method="nearest")
    cells = np.stack([np.searchsorted(cuts[:, index], column) for index, column in enumerate(columns.T)], axis=1)
    cells += np.arange(columns.shape[1]) * (CUTS + 1)
    is_other = np.repeat([False, True], [len(one), len(other)])
    grown = _grow(cells, is_other, cuts, DEPTH)

    def score(rows: Floats) -> Floats:
        result = np.empty(len(rows))
        _descend(grown, rows, np.arange(len(rows)), result)
        return result

    return score


Leaf = float
Node = tuple[int, float, "Tree", "Tree"]
Tree = Leaf | Node


def _grow(cells: Ints, is_other: Array, cuts: Floats, depth: int) -> Tree:
    """`cells` says between which cuts each value lies, numbered on from column to column."""
    counts = np.array([np.count_nonzero(~is_other), np.count_nonzero(is_other)])
    leaf = float(np.log((counts[1] + 0.5) / (counts[0] + 0.5)))
    if depth == 0 or counts.sum() < 2 * LEAST:
        return leaf
    size = (CUTS + 1) * cuts.shape[1]
    table = np.stack([np.bincount(cells[side].ravel(), minlength=size) for side in (~is_other, is_other)], axis=-1)
    below = table.reshape(-1, CUTS + 1, 2).cumsum(axis=1)[:, :-1]
    gain = _likelihood(below) + _likelihood(counts - below) - _likelihood(counts)
    gain[(below.sum(axis=-1) < LEAST) | ((counts - below).sum(axis=-1) < LEAST)] = 0
    if gain.max() <= 1e-9:
        return leaf
    column, place = (int(index) for index in np.unravel_index(gain.argmax(), gain.shape))
    left = cells[:, column] - column * (CUTS + 1) <= place
    below_cut, above_cut = (_grow(cells[side], is_other[side], cuts, depth - 1) for side in (left, ~left))
    return column, float(cuts[place, column]), below_cut, above_cut


def _likelihood(counts: Array) -> Floats:
    """The log-likelihood of class counts under their own shares."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.asarray((counts * np.log(np.maximum(counts, 1) / np.maximum(total, 1))).sum(axis=-1))


def _descend(tree: Tree, rows: Floats, which: Array, result: Floats) -> None:
    if isinstance(tree, float):
        result[which] = tree
        return
    column, cut, below, above = tree
    left = rows[which, column] <= cut
    _descend(below, rows, which[left], result)
    _descend(above, rows, which[~left], result)
