"""How mechanisms compare: which is best, what decides that, what changed against other results. Plain numbers.

Is a mechanism worse than the best of a cell? Student's intervals over the repetitions say. How far from the best is it
typically, on streams like these? A bootstrap over streams says: a stream is drawn with all of its settings, since cells
of one stream go together.

A parameter of streams or settings *decides* which mechanism is good if a change of it alone changes a mechanism's
distance from the best by a factor of DECISIVE or more (geometric mean over mechanisms and pairs of cells), and does not
if by less than HARMLESS.

Ratios of two results come with intervals that hold for all cells together with the stated confidence, so that among
thousands of cells none is called changed by chance. Results of one seed share their noise; intervals are then wider
than need be.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from itertools import combinations
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Bools, Floats, Ints
from eventide.bench.report.scores import Contest, Scores
from eventide.errors import InputError

CONFIDENCE = 0.95
RESAMPLES = 2000
FEWEST_REPETITIONS = 4  # with fewer, intervals are too wide to mean anything, and their formula too rough
FEWEST_STREAMS = 3
DECISIVE, HARMLESS = 2.0, 1.5


class Rank(NamedTuple):
    """How a mechanism fares: cells it competes in, wins, or cannot be told from the winner of.

    typical: its error divided by the best, as a geometric mean over cells, with its interval (NaN where there are too
    few streams); worst: the same in its worst cell.
    """

    mechanism: str
    cells: int
    best: int
    as_good: int
    typical: float
    low: float
    high: float
    worst: float


def ranking(scores: Scores) -> list[Rank]:
    """Mechanisms by their typical distance from the best."""
    typical = np.exp(means_of_known(scores.logs))
    low, high = _over_streams(scores)
    wins, tied = scores.wins(), as_good_as_best(scores).sum(axis=0)
    cells = np.count_nonzero(~np.isnan(scores.means), axis=0)
    worst = np.fmax.reduce(scores.deltas, axis=0)
    ranks = [
        Rank(label, int(cells[m]), wins[label], int(tied[m]), *map(float, (typical[m], low[m], high[m], worst[m])))
        for m, label in enumerate(scores.mechanisms)
    ]
    return sorted(ranks, key=lambda rank: rank.typical)


def as_good_as_best(scores: Scores) -> Bools:
    """Whether a mechanism's mean cannot be told from the least of its contest; with few repetitions, if it is least."""
    rows = np.arange(len(scores.contests))
    best_error = scores.errors[rows, scores.winners][:, None]
    reach = student_quantile(CONFIDENCE, scores.repetitions - 1) * np.hypot(scores.errors, best_error)
    nearby = scores.means - scores.least[:, None] <= np.nan_to_num(reach)
    return np.asarray(nearby | (np.arange(len(scores.mechanisms)) == scores.winners[:, None]))


def student_quantile(confidence: float, freedom: int) -> float:
    """How many standard errors an interval of that confidence reaches to each side; NaN for too few repetitions.

    An expansion around the normal quantile: at 0.95, off by less than a hundredth from 3 degrees of freedom on.
    """
    if freedom < FEWEST_REPETITIONS - 1:
        return float("nan")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(sum(term / freedom**power for power, term in enumerate(terms)))


def _over_streams(scores: Scores) -> Floats:
    """Both ends of the interval of each mechanism's geometric mean, had the streams been drawn anew."""
    labels = list(scores.streams)
    ends = np.full((2, len(scores.mechanisms)), np.nan)
    if len(labels) < FEWEST_STREAMS:
        return ends
    member = np.array([[contest.stream == label for contest in scores.contests] for label in labels], dtype=np.float64)
    draws = np.random.default_rng(0).multinomial(len(labels), [1 / len(labels)] * len(labels), RESAMPLES)
    sums = draws @ (member @ np.nan_to_num(scores.logs))
    counts = draws @ (member @ ~np.isnan(scores.logs))
    tail = (1 - CONFIDENCE) / 2
    known = counts.any(axis=0)
    ends[:, known] = np.nanquantile(_column_means(sums, counts)[:, known], [tail, 1 - tail], axis=0)
    return np.asarray(np.exp(ends))


def means_of_known(rows: Floats) -> Floats:
    """The mean of each column over the rows in which it is not NaN."""
    return _column_means(np.nansum(rows, axis=0), (~np.isnan(rows)).sum(axis=0))


def _column_means(sums: Floats, counts: Floats) -> Floats:
    return np.asarray(np.divide(sums, counts, out=np.full(np.shape(sums), np.nan), where=np.asarray(counts) > 0))


class Weight(Enum):
    """What a parameter has to say about which mechanism is good."""

    DECIDES = "decides"
    MATTERS = "matters less"
    DOES_NOT = "does not decide"


class Influence(NamedTuple):
    """What a change of one parameter alone does: pairs of cells, factor on distances, part with the same winner."""

    parameter: str
    pairs: int
    factor: float
    same_winner: float

    @property
    def weight(self) -> Weight:
        """By the factor."""
        if self.factor >= DECISIVE:
            return Weight.DECIDES
        return Weight.MATTERS if self.factor >= HARMLESS else Weight.DOES_NOT


def influences(scores: Scores) -> list[Influence]:
    """Every numeric parameter that some pair of cells differs in and nothing else, the strongest first."""
    described = [scores.described(contest) for contest in scores.contests]
    keys = dict.fromkeys(key for each in described for key, value in each.items() if isinstance(value, int | float))
    found = []
    for key in keys:
        alike: dict[object, list[int]] = {}
        for place, each in enumerate(described):
            rest = tuple((name, str(value)) for name, value in each.items() if name != key)
            alike.setdefault(rest, []).append(place)
        pairs = [pair for places in alike.values() for pair in combinations(places, 2)]
        changes = [np.abs(scores.logs[one] - scores.logs[other]) for one, other in pairs]
        if changes and not np.isnan(changes).all():
            same = np.mean([scores.winners[one] == scores.winners[other] for one, other in pairs])
            found.append(Influence(key, len(pairs), float(np.exp(np.nanmean(changes))), float(same)))
    return sorted(found, key=lambda influence: -influence.factor)


def best_by(scores: Scores, parameter: str) -> dict[Any, Counter[str]]:
    """How often each mechanism is best, by the value of a parameter."""
    found: dict[Any, Counter[str]] = {}
    for contest, winner in zip(scores.contests, scores.winners, strict=True):
        value = scores.described(contest).get(parameter)
        if value is not None:
            found.setdefault(value, Counter())[scores.mechanisms[winner]] += 1
    return dict(sorted(found.items()))


class Change(NamedTuple):
    """The mean error of a mechanism in a contest, divided by that of the other results, with its interval."""

    contest: Contest
    mechanism: str
    ratio: float
    low: float
    high: float

    @property
    def kind(self) -> str:
        """What may be said of it."""
        if self.ratio == 1:
            return "same"
        if self.high < 1:
            return "better"
        return "worse" if self.low > 1 else "unclear"


class Shift(NamedTuple):
    """All changes of a mechanism: the geometric mean of its ratios, and how many cells are of each kind."""

    mechanism: str
    cells: int
    ratio: float
    same: int
    better: int
    worse: int
    unclear: int


def compare(scores: Scores, other: Scores) -> list[Change]:
    """Every cell that both have, in the order of the first."""
    rows = {contest: row for row, contest in enumerate(other.contests)}
    columns = {label: column for column, label in enumerate(other.mechanisms)}
    common = [
        (row, column, rows[contest], columns[label])
        for row, contest in enumerate(scores.contests)
        for column, label in enumerate(scores.mechanisms)
        if contest in rows and label in columns
    ]
    pairs = np.array(common, dtype=np.int64).reshape(-1, 4).T
    ours, theirs = (pairs[0], pairs[1]), (pairs[2], pairs[3])
    known = ~np.isnan(scores.means[ours]) & ~np.isnan(other.means[theirs])
    if not known.any():
        raise InputError("the two results have no cell in common; compare results of one study, or of a changed one")
    return _changes(scores, other, pairs[:, known])


def geometric_mean(ratios: Floats) -> float:
    """Of those that exist; 0 if any is."""
    known = ratios[~np.isnan(ratios)]
    with np.errstate(divide="ignore"):
        return float(np.exp(np.log(known).mean())) if known.size else float("nan")


def shifts(changes: list[Change]) -> list[Shift]:
    """The changes by mechanism, the most improved first."""
    by_mechanism: dict[str, list[Change]] = {}
    for change in changes:
        by_mechanism.setdefault(change.mechanism, []).append(change)
    found = []
    for label, each in by_mechanism.items():
        kinds = [change.kind for change in each]
        ratio = geometric_mean(np.array([change.ratio for change in each]))
        found.append(
            Shift(label, len(each), ratio, *(kinds.count(kind) for kind in ("same", "better", "worse", "unclear")))
        )
    return sorted(found, key=lambda shift: shift.ratio)


def _changes(scores: Scores, other: Scores, pairs: Ints) -> list[Change]:
    ours, theirs = (pairs[0], pairs[1]), (pairs[2], pairs[3])
    means, rivals = scores.means[ours], other.means[theirs]
    both_zero = (means == 0) & (rivals == 0)
    ratios = np.divide(means, rivals, out=np.where(both_zero, 1.0, np.nan), where=rivals > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.hypot(scores.errors[ours] / means, other.errors[theirs] / rivals)
    freedom = min(scores.repetitions, other.repetitions) - 1
    reach = np.exp(student_quantile(1 - (1 - CONFIDENCE) / len(ratios), freedom) * spread)
    return [
        Change(scores.contests[row], scores.mechanisms[column], *map(float, (ratio, ratio / factor, ratio * factor)))
        for row, column, ratio, factor in zip(*ours, ratios, reach, strict=True)
    ]
