"""What the w-event benchmark found, looked for in a field; numbers in sentences, no drawing.

Of a field only the mechanisms of that benchmark are looked at (Schaeler, Huetter, Schaeler: Benchmarking the utility of
w-event differential privacy mechanisms, 2022).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eventide.arrays import Bools, Floats
from eventide.bench.report.field import Field
from eventide.bench.report.influence import Weight, influences
from eventide.bench.reproduction.reference import WHY
from eventide.bench.study.requirements import BASELINES

ADAPTIVE = ("bd", "ba", "fast", "dsat", "rescuedp")
NEARBY = 1.1  # a mechanism within a tenth of the best is among the best


class Observed(NamedTuple):
    """What a field shows of a finding: in words, and whether the finding holds."""

    words: str
    holds: bool


class Finding(NamedTuple):
    """A finding of the benchmark, what the public code's figures show of it, what ours show, and why they differ."""

    published: str
    reference: Observed | None
    here: Observed
    why: str


def findings(field: Field, reference: Field | None = None) -> list[Finding]:
    """Every finding of the benchmark that these results can speak to."""
    ours = field.only(*WHY)
    found = []
    for published, look, why in FINDINGS:
        here = look(ours)
        if here is not None:
            found.append(Finding(published, None if reference is None else look(reference), here, why))
    return found


def _baselines(field: Field) -> Observed | None:
    present = field.columns(*BASELINES)
    if len(present) < len(BASELINES) or len(field.mechanisms) == len(present):
        return None
    wins = int(np.isin(field.winners, present).sum())
    near = int((np.fmin.reduce(field.deltas[:, present], axis=1) <= NEARBY).sum())
    return Observed(
        f"one is best in {wins} of {_cells(field)}, within a tenth of the best in {near}", _most(wins, field)
    )


def _decides(parameter: str, expected: Weight) -> Callable[[Field], Observed | None]:
    def look(field: Field) -> Observed | None:
        for each in influences(field):
            if each.parameter == parameter:
                words = f"changes distances by a factor of {each.factor:.3g}: {each.weight.value}"
                return Observed(words, each.weight is expected)
        return None

    return look


def _winner_at(amplitude: int, epsilon: float, name: str) -> Callable[[Field], Observed | None]:
    """Who wins at an amplitude and an epsilon?"""

    def look(field: Field) -> Observed | None:
        rows = _rows(field, lambda given: given.get("amplitude") == amplitude and given["epsilon"] == epsilon)
        if not rows.any() or not field.columns(name):
            return None
        winners = np.array(field.names)[field.winners[rows]]
        names, counts = np.unique(winners, return_counts=True)
        most = names[counts.argmax()]
        return Observed(f"{most} is best in {counts.max()} of {rows.sum()} such cells", bool(most == name))

    return look


def _uniform_at_large(field: Field) -> Observed | None:
    """Is Uniform among the best at large amplitudes under the loosest setting?"""
    large = _rows(field, lambda given: given.get("amplitude", 0) >= 1000)
    if not large.any() or not field.columns("uniform"):
        return None
    noise = np.array([contest.setting.window / contest.setting.epsilon for contest in field.contests])
    rows = large & (noise == noise[large].min())
    near = int((field.deltas[rows][:, field.columns("uniform")] <= NEARBY).any(axis=1).sum())
    words = f"it is within a tenth of the best in {near} of {rows.sum()} such cells"
    return Observed(words, bool(2 * near > rows.sum()))


def _adaptive(field: Field) -> Observed | None:
    """Where adaptive sampling beats Sample, does Uniform as well?"""
    if not (field.columns(*ADAPTIVE) and field.columns("uniform") and field.columns("sample")):
        return None
    adaptive, uniform, sample = (_least(field, *names) for names in (ADAPTIVE, ("uniform",), ("sample",)))
    beats = adaptive < sample
    both = int((beats & (uniform < sample)).sum())
    words = f"one of them beats Sample in {beats.sum()} of {_cells(field)}, Uniform does in {both} of these"
    return Observed(words, bool(both >= 0.9 * beats.sum()))


def _grouping(field: Field) -> Observed | None:
    """Do PeGaSus and AdaPub beat Uniform?"""
    if not (field.columns("pegasus") and field.columns("adapub") and field.columns("uniform")):
        return None
    uniform = _least(field, "uniform")
    better = {name: int((_least(field, name) < uniform).sum()) for name in ("pegasus", "adapub")}
    words = f"PeGaSus beats it in {better['pegasus']}, AdaPub in {better['adapub']} of {_cells(field)}"
    return Observed(words, not any(_most(number, field) for number in better.values()))


def _rescuedp(field: Field) -> Observed | None:
    """How much of its error does RescueDP lose from the smallest to the largest epsilon, at the largest amplitudes?"""
    rows = _rows(field, lambda given: given.get("amplitude", 0) > 1000)
    epsilons = np.array([contest.setting.epsilon for contest in field.contests])
    if not rows.any() or not field.columns("rescuedp") or len(set(epsilons[rows])) == 1:
        return None
    low, high = epsilons[rows].min(), epsilons[rows].max()
    error = _least(field, "rescuedp")
    windows = np.array([contest.setting.window for contest in field.contests])
    rows &= np.isin(windows, windows[rows & (epsilons == low)])
    falls = float(error[rows & (epsilons == low)].mean() / error[rows & (epsilons == high)].mean())
    words = f"{high / low:.3g} times the epsilon divides its error by {falls:.3g}"
    return Observed(words, bool(falls < np.sqrt(high / low)))


FINDINGS: list[tuple[str, Callable[[Field], Observed | None], str]] = [
    (
        "Uniform or Sample is among the best nearly everywhere.",
        _baselines,
        "Repaired mechanisms win some cells that they could not win in the public code.",
    ),
    ("The amplitude decides which mechanism is good.", _decides("amplitude", Weight.DECIDES), ""),
    ("The length of the season does not.", _decides("season", Weight.DOES_NOT), ""),
    ("Sample is best at amplitude 10 and epsilon 0.1.", _winner_at(10, 0.1, "sample"), ""),
    (
        "AdaPub is best at amplitude 10,000 and epsilon 1.",
        _winner_at(10_000, 1.0, "adapub"),
        "AdaPub pays a fifth of the budget for finding groups; a stream that moves at every step has none.",
    ),
    ("Uniform is among the best at amplitudes from 1,000 under loose privacy.", _uniform_at_large, ""),
    (
        "Adaptive sampling beats Sample only where Uniform does as well.",
        _adaptive,
        "It also wins in between, where Uniform is too noisy and Sample too stale; repaired mechanisms more often.",
    ),
    (
        "PeGaSus and AdaPub are not better than Uniform, whose noise they smooth.",
        _grouping,
        "The public code switches their grouping off; with it they smooth wherever the stream stands still.",
    ),
    (
        "RescueDP hardly gains from more budget at amplitudes above 1,000.",
        _rescuedp,
        WHY["rescuedp"],
    ),
]


def _rows(field: Field, holds: Callable[[dict[str, float]], bool]) -> Bools:
    return np.array([holds(field.described(contest)) for contest in field.contests], dtype=np.bool_)


def _least(field: Field, *names: str) -> Floats:
    return np.asarray(np.fmin.reduce(field.means[:, field.columns(*names)], axis=1))


def _most(number: int, field: Field) -> bool:
    return 2 * number > len(field.contests)


def _cells(field: Field) -> str:
    return f"{len(field.contests)} cells"
