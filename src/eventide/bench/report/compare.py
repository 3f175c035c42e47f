"""Two results, cell by cell: which errors changed, and is that more than noise? Plain numbers, no drawing.

Ratios of means come with intervals that hold for all cells together with the stated confidence, so that among thousands
of cells none is called changed by chance. Results of one seed share their noise; intervals are then wider than need be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.arrays import Floats
from eventide.bench.report.field import Contest, Field
from eventide.bench.report.ranking import CONFIDENCE, student_quantile
from eventide.errors import InputError


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


def compare(field: Field, other: Field) -> list[Change]:
    """Every cell that both have, in the order of the first."""
    rows = {contest: row for row, contest in enumerate(other.contests)}
    columns = {label: column for column, label in enumerate(other.mechanisms)}
    common = [
        (row, column, rows[contest], columns[label])
        for row, contest in enumerate(field.contests)
        for column, label in enumerate(field.mechanisms)
        if contest in rows and label in columns
    ]
    pairs = np.array(common, dtype=np.int64).reshape(-1, 4).T
    ours, theirs = (pairs[0], pairs[1]), (pairs[2], pairs[3])
    known = ~np.isnan(field.means[ours]) & ~np.isnan(other.means[theirs])
    if not known.any():
        raise InputError("the two results have no cell in common; compare results of one study, or of a changed one")
    return _changes(field, other, pairs[:, known])


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


def _changes(field: Field, other: Field, pairs: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[Change]:
    ours, theirs = (pairs[0], pairs[1]), (pairs[2], pairs[3])
    means, rivals = field.means[ours], other.means[theirs]
    both_zero = (means == 0) & (rivals == 0)
    ratios = np.divide(means, rivals, out=np.where(both_zero, 1.0, np.nan), where=rivals > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.hypot(field.errors[ours] / means, other.errors[theirs] / rivals)
    freedom = min(field.repetitions, other.repetitions) - 1
    reach = np.exp(student_quantile(1 - (1 - CONFIDENCE) / len(ratios), freedom) * spread)
    return [
        Change(field.contests[row], field.mechanisms[column], *map(float, (ratio, ratio / factor, ratio * factor)))
        for row, column, ratio, factor in zip(*ours, ratios, reach, strict=True)
    ]
