"""Which mechanism is best, and how sure is that? Plain numbers, no drawing.

Two questions, two answers. Is a mechanism worse than the best of a cell? Student's intervals over the repetitions say.
How far from the best is it typically, on streams like these? A bootstrap over streams says: a stream is drawn with all
of its settings, since cells of one stream go together.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from eventide.arrays import Bools, Floats
from eventide.bench.report.field import Field

CONFIDENCE = 0.95
RESAMPLES = 2000
FEWEST_REPETITIONS = 4  # with fewer, intervals are too wide to mean anything, and their formula too rough
FEWEST_STREAMS = 3


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


def ranking(field: Field) -> list[Rank]:
    """Mechanisms by their typical distance from the best."""
    known = ~np.isnan(field.logs)
    typical = np.exp(_column_means(np.nansum(field.logs, axis=0), known.sum(axis=0)))
    low, high = _over_streams(field)
    wins, tied = field.wins(), as_good_as_best(field).sum(axis=0)
    cells = np.count_nonzero(~np.isnan(field.means), axis=0)
    worst = np.fmax.reduce(field.deltas, axis=0)
    ranks = [
        Rank(label, int(cells[m]), wins[label], int(tied[m]), *map(float, (typical[m], low[m], high[m], worst[m])))
        for m, label in enumerate(field.mechanisms)
    ]
    return sorted(ranks, key=lambda rank: rank.typical)


def as_good_as_best(field: Field) -> Bools:
    """Whether a mechanism's mean cannot be told from the least of its contest; with few repetitions, if it is least."""
    rows = np.arange(len(field.contests))
    best_error = field.errors[rows, field.winners][:, None]
    reach = student_quantile(CONFIDENCE, field.repetitions - 1) * np.hypot(field.errors, best_error)
    nearby = field.means - field.least[:, None] <= np.nan_to_num(reach)
    return np.asarray(nearby | (np.arange(len(field.mechanisms)) == field.winners[:, None]))


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


def _over_streams(field: Field) -> Floats:
    """Both ends of the interval of each mechanism's geometric mean, had the streams been drawn anew."""
    labels = list(field.streams)
    ends = np.full((2, len(field.mechanisms)), np.nan)
    if len(labels) < FEWEST_STREAMS:
        return ends
    member = np.array([[contest.stream == label for contest in field.contests] for label in labels], dtype=np.float64)
    draws = np.random.default_rng(0).multinomial(len(labels), [1 / len(labels)] * len(labels), RESAMPLES)
    sums = draws @ (member @ np.nan_to_num(field.logs))
    counts = draws @ (member @ ~np.isnan(field.logs))
    tail = (1 - CONFIDENCE) / 2
    known = counts.any(axis=0)
    ends[:, known] = np.nanquantile(_column_means(sums, counts)[:, known], [tail, 1 - tail], axis=0)
    return np.asarray(np.exp(ends))


def _column_means(sums: Floats, counts: Floats) -> Floats:
    return np.asarray(np.divide(sums, counts, out=np.full(np.shape(sums), np.nan), where=np.asarray(counts) > 0))
