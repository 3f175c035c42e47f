"""Distinguishers: functions that give a run a score, high when it looks like the neighbour's.

An attack is trained on transcripts of both streams and returns a score function for further ones. None of them has to
be right: the auditor measures on fresh runs what they are worth. Imports numpy and `audit`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eventide.arrays import Array, Floats
from eventide.audit.learned import linear_scorer, tree_scorer
from eventide.audit.pairs import Pair
from eventide.audit.subjects import Transcript

Score = Callable[[Transcript], Floats]
Attack = Callable[[Pair, Transcript, Transcript], Score | None]


def likelihood_ratio(pair: Pair, one: Transcript, other: Transcript) -> Score | None:
    """The exact log-likelihood ratio of the looks, from their published scales; blind to when looks happened."""
    if one.scale is None:
        return None

    def score(seen: Transcript) -> Floats:
        assert seen.scale is not None
        assert seen.fresh is not None
        nearer = np.abs(seen.values - pair.stream) - np.abs(seen.values - pair.neighbour)
        return np.asarray(np.where(seen.fresh, nearer / seen.scale, 0.0).sum(axis=(1, 2)))

    return score


def timing(pair: Pair, one: Transcript, other: Transcript) -> Score | None:
    """When looks happened, and nothing else: the learned log-ratio of each pattern of fresh steps."""
    if one.fresh is None:
        return None
    last = min(one.fresh.shape[1], 24)
    weights = 1 << np.arange(last)

    def pattern(seen: Transcript) -> Array:
        assert seen.fresh is not None
        looked: Array = np.asarray(np.any(seen.fresh, axis=2))[:, -last:]
        return np.asarray(looked @ weights)

    ours, theirs = pattern(one), pattern(other)
    known = np.unique(np.concatenate([ours, theirs]))
    counted = [np.bincount(np.searchsorted(known, seen), minlength=len(known)) for seen in (ours, theirs)]
    ratio = np.log((counted[1] + 0.5) / (counted[0] + 0.5))

    def score(seen: Transcript) -> Floats:
        seen_pattern = pattern(seen)
        place = np.minimum(np.searchsorted(known, seen_pattern), len(known) - 1)
        return np.where(known[place] == seen_pattern, ratio[place], 0.0)

    return score


def looks_and_timing(pair: Pair, one: Transcript, other: Transcript) -> Score | None:
    """The likelihood ratio of the looks and the learned one of their timing, added."""
    looks, when = likelihood_ratio(pair, one, other), timing(pair, one, other)
    if looks is None or when is None:
        return None
    return lambda seen: looks(seen) + when(seen)


def total_of_changes(pair: Pair, one: Transcript, other: Transcript) -> Score:
    """The sum of the changed cells, each with the sign of its change."""
    signs = np.sign(pair.neighbour - pair.stream)
    return lambda seen: np.asarray((seen.values * signs).sum(axis=(1, 2)))


def single_cell(pair: Pair, one: Transcript, other: Transcript) -> Score:
    """The one cell of the release whose median differs the most between the two streams."""
    gap = np.median(other.values, axis=0) - np.median(one.values, axis=0)
    step, bin_ = np.unravel_index(int(np.abs(gap).argmax()), gap.shape)
    return lambda seen: seen.values[:, step, bin_]


def shared_noise(pair: Pair, one: Transcript, other: Transcript) -> Score | None:
    """Do the residuals of different cells agree exactly? They do on the right stream when a draw was used twice."""
    steps, bins = pair.changed
    if pair.stream.size < 2:
        return None

    def coincidences(seen: Transcript, stream: Array) -> Floats:
        residual = (seen.values - stream).reshape(len(seen.values), -1)
        cell = (residual[:, steps * pair.stream.shape[1] + bins])[:, :, None]
        return np.asarray((np.abs(cell - residual[:, None, :]) < 1e-9).sum(axis=(1, 2)), dtype=np.float64)

    return lambda seen: coincidences(seen, pair.neighbour) - coincidences(seen, pair.stream)


def grid(pair: Pair, one: Transcript, other: Transcript) -> Score:
    """How fine is the grid of doubles under the changed cells? Noise added in floating point gives itself away."""
    steps, bins = pair.changed

    def score(seen: Transcript) -> Floats:
        mantissa, exponent = np.frexp(seen.values[:, steps, bins])
        bits = np.abs(mantissa * 2.0**53).astype(np.int64)
        lowest = np.log2(np.maximum(bits & -bits, 1)) + exponent - 53.0
        return np.asarray(-np.where(bits == 0, 0.0, lowest).min(axis=1))

    return score


def linear(pair: Pair, one: Transcript, other: Transcript) -> Score:
    """A learned linear score of everything seen, clipped around the changes where Laplace noise tells most."""

    def features(seen: Transcript) -> Floats:
        middle = (pair.stream + pair.neighbour) / 2
        half = np.maximum(np.abs(pair.neighbour - pair.stream) / 2, 0.5)
        clipped = np.clip(seen.values - middle, -half, half)[:, pair.begin :].reshape(len(seen.values), -1)
        return np.concatenate([clipped, seen.columns(pair.begin)], axis=1)

    score = linear_scorer(features(one), features(other))
    return lambda seen: score(features(seen))


def tree(pair: Pair, one: Transcript, other: Transcript) -> Score:
    """A learned tree over everything seen."""
    score = tree_scorer(one.columns(pair.begin), other.columns(pair.begin))
    return lambda seen: score(seen.columns(pair.begin))


ATTACKS: dict[str, Attack] = {
    "likelihood ratio of looks": likelihood_ratio,
    "timing of looks": timing,
    "looks and their timing": looks_and_timing,
    "total of changes": total_of_changes,
    "single cell": single_cell,
    "shared noise": shared_noise,
    "grid of doubles": grid,
    "linear": linear,
    "tree": tree,
}
