"""Distinguishers: functions that give a run a score, high when it looks like the neighbour's.

An attack is trained on transcripts of both streams and returns a score function for further ones. None of them has to
be right: the auditor measures on fresh runs what they are worth.
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
    """The log-likelihood ratio of Laplace looks, of published or else learned scales; blind to when looks happened."""
    if one.fresh is None:
        return None
    learned = _scales(pair, one, other) if one.scale is None else None

    def score(seen: Transcript) -> Floats:
        assert seen.fresh is not None
        nearer = np.abs(seen.values - pair.stream) - np.abs(seen.values - pair.neighbour)
        scale = learned if seen.scale is None else seen.scale
        return np.asarray(np.where(seen.fresh, nearer / scale, 0.0).sum(axis=(1, 2)))

    return score


def _scales(pair: Pair, one: Transcript, other: Transcript) -> Floats:
    """The mean distance of fresh values from the truth, cell by cell: of Laplace noise that is its scale."""
    away = np.concatenate([np.abs(one.values - pair.stream), np.abs(other.values - pair.neighbour)])
    fresh = np.concatenate([np.asarray(one.fresh), np.asarray(other.fresh)])
    total, count = np.where(fresh, away, 0).sum(axis=0), fresh.sum(axis=0)
    return np.asarray(np.maximum(total / np.maximum(count, 1), 1e-3))


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


def waiting(pair: Pair, one: Transcript, other: Transcript) -> Score | None:
    """The learned log-ratio of looking or not, step by step from the change on, until the first look behind it.

    It is learned for every step, and for which changed step was the last to be looked at; behind the change for
    stretches of 1, 2, 4, ... steps. What goes on to depend on the true count of a look shows here, however late.
    """
    if one.fresh is None:
        return None
    width, steps = pair.end - pair.begin, np.arange(len(pair.stream) - pair.begin)
    changed = steps < width
    phase = np.where(changed, steps, width + np.log2(np.maximum(steps - width, 0) + 1).astype(np.int64))
    situations = (int(phase.max()) + 1) * (width + 1)

    def asked(seen: Transcript) -> tuple[Array, Array]:
        """Which step was looked at, and the number of the situation at each; the last number once all is over."""
        looked: Array = np.asarray(np.any(np.asarray(seen.fresh), axis=2))[:, pair.begin :]
        before = np.zeros_like(looked, dtype=np.int64)
        before[:, 1:] = np.maximum.accumulate(np.where(looked & changed, steps + 1, 0), axis=1)[:, :-1]
        over = np.zeros_like(looked)
        over[:, 1:] = np.logical_or.accumulate(looked & ~changed, axis=1)[:, :-1]
        return looked, np.where(over, situations, phase * (width + 1) + before)

    def chance(seen: Transcript) -> Floats:
        looked, situation = asked(seen)
        yes, all_ = (np.bincount(which, minlength=situations + 1) for which in (situation[looked], situation.ravel()))
        return np.asarray((yes + 0.5) / (all_ + 1))

    ours, theirs = chance(one), chance(other)
    ratio = np.stack([np.log((1 - theirs) / (1 - ours)), np.log(theirs / ours)])
    ratio[:, situations] = 0

    def score(seen: Transcript) -> Floats:
        looked, situation = asked(seen)
        return np.asarray(ratio[looked.astype(np.int64), situation].sum(axis=1))

    return score


def together(*attacks: Attack) -> Attack:
    """The scores of several attacks, added."""

    def attack(pair: Pair, one: Transcript, other: Transcript) -> Score | None:
        scores = [each(pair, one, other) for each in attacks]
        if None in scores:
            return None
        return lambda seen: np.sum([score(seen) for score in scores if score is not None], axis=0)

    return attack


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
    """A learned linear score of everything seen; changed cells also clipped, where Laplace noise tells most."""
    steps, bins = pair.changed
    here, there = pair.stream[steps, bins], pair.neighbour[steps, bins]
    middle, half = (here + there) / 2, np.abs(here - there) / 2

    def features(seen: Transcript) -> Floats:
        clipped = np.clip(seen.values[:, steps, bins] - middle, -half, half)
        return np.concatenate([clipped, seen.columns(pair.begin)], axis=1)

    score = linear_scorer(features(one), features(other))
    return lambda seen: score(features(seen))


def tree(pair: Pair, one: Transcript, other: Transcript) -> Score:
    """A learned tree over everything seen."""
    score = tree_scorer(one.columns(pair.begin), other.columns(pair.begin))
    return lambda seen: score(seen.columns(pair.begin))


GRID = "grid of doubles"
ATTACKS: dict[str, Attack] = {
    "likelihood ratio of looks": likelihood_ratio,
    "timing of looks": timing,
    "looks and their timing": together(likelihood_ratio, timing),
    "waiting for looks": waiting,
    "looks and waiting for them": together(likelihood_ratio, waiting),
    "total of changes": total_of_changes,
    "single cell": single_cell,
    "shared noise": shared_noise,
    GRID: grid,
    "linear": linear,
    "tree": tree,
}
