"""What the w-event benchmark found, looked for in the scores of a study; numbers in sentences, no drawing.

Only the mechanisms of that benchmark are looked at (Schaeler, Huetter, Schaeler: Benchmarking the utility of w-event
differential privacy mechanisms, 2022).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from eventide.arrays import Bools, Floats
from eventide.bench.report.comparisons import Weight, influences
from eventide.bench.report.scores import Scores
from eventide.bench.reproduction.reference import WHY
from eventide.bench.study.requirements import BASELINES
from eventide.display.drawings import TextTable

ADAPTIVE = ("bd", "ba", "fast", "dsat", "rescuedp")
NEARBY = 1.1  # a mechanism within a tenth of the best is among the best


class Observed(NamedTuple):
    """What scores show of a finding: in words, and whether the finding holds."""

    words: str
    holds: bool


class PublishedFinding(NamedTuple):
    """A finding of the benchmark, what the public code's figures show of it, what ours show, and why they differ."""

    published: str
    reference: Observed | None
    here: Observed
    why: str


def findings(scores: Scores, reference: Scores | None = None) -> list[PublishedFinding]:
    """Every finding of the benchmark that these results can speak to."""
    ours = scores.only(*WHY)
    found = []
    for published, look, why in FINDINGS:
        here = look(ours)
        if here is not None:
            found.append(PublishedFinding(published, None if reference is None else look(reference), here, why))
    return found


def among(scores: Scores) -> str:
    """Which mechanisms the findings are about, and which take no part in them."""
    left_out = [label for label, name in zip(scores.mechanisms, scores.names, strict=True) if name not in WHY]
    rest = f"; {', '.join(left_out)} {'is' if len(left_out) == 1 else 'are'} left out here" if left_out else ""
    return (
        f"The findings are looked for among the {len(WHY)} mechanisms of that benchmark, as far as they compete{rest}."
    )


def _baselines(scores: Scores) -> Observed | None:
    present = scores.columns(*BASELINES)
    if len(present) < len(BASELINES) or len(scores.mechanisms) == len(present):
        return None
    wins = int(np.isin(scores.winners, present).sum())
    near = int((np.fmin.reduce(scores.deltas[:, present], axis=1) <= NEARBY).sum())
    return Observed(
        f"one is best in {wins} of {_cells(scores)}, within a tenth of the best in {near}", _most(wins, scores)
    )


def _decides(parameter: str, expected: Weight) -> Callable[[Scores], Observed | None]:
    def look(scores: Scores) -> Observed | None:
        for each in influences(scores):
            if each.parameter == parameter:
                words = f"changes distances by a factor of {each.factor:.3g}: {each.weight.value}"
                return Observed(words, each.weight is expected)
        return None

    return look


def _winner_at(amplitude: int, epsilon: float, name: str) -> Callable[[Scores], Observed | None]:
    """Who wins at an amplitude and an epsilon?"""

    def look(scores: Scores) -> Observed | None:
        rows = _rows(scores, lambda given: given.get("amplitude") == amplitude and given["epsilon"] == epsilon)
        if not rows.any() or not scores.columns(name):
            return None
        winners = np.array(scores.names)[scores.winners[rows]]
        names, counts = np.unique(winners, return_counts=True)
        most = names[counts.argmax()]
        return Observed(f"{most} is best in {counts.max()} of {rows.sum()} such cells", bool(most == name))

    return look


def _uniform_at_large(scores: Scores) -> Observed | None:
    """Is Uniform among the best at large amplitudes under the loosest setting?"""
    large = _rows(scores, lambda given: given.get("amplitude", 0) >= 1000)
    if not large.any() or not scores.columns("uniform"):
        return None
    noise = np.array([contest.setting.window / contest.setting.epsilon for contest in scores.contests])
    rows = large & (noise == noise[large].min())
    near = int((scores.deltas[rows][:, scores.columns("uniform")] <= NEARBY).any(axis=1).sum())
    words = f"it is within a tenth of the best in {near} of {rows.sum()} such cells"
    return Observed(words, bool(2 * near > rows.sum()))


def _adaptive(scores: Scores) -> Observed | None:
    """Where adaptive sampling beats Sample, does Uniform as well?"""
    if not (scores.columns(*ADAPTIVE) and scores.columns("uniform") and scores.columns("sample")):
        return None
    adaptive, uniform, sample = (_least(scores, *names) for names in (ADAPTIVE, ("uniform",), ("sample",)))
    beats = adaptive < sample
    both = int((beats & (uniform < sample)).sum())
    words = f"one of them beats Sample in {beats.sum()} of {_cells(scores)}, Uniform does in {both} of these"
    return Observed(words, bool(both >= 0.9 * beats.sum()))


def _grouping(scores: Scores) -> Observed | None:
    """Do PeGaSus and AdaPub beat Uniform?"""
    if not (scores.columns("pegasus") and scores.columns("adapub") and scores.columns("uniform")):
        return None
    uniform = _least(scores, "uniform")
    better = {name: int((_least(scores, name) < uniform).sum()) for name in ("pegasus", "adapub")}
    words = f"PeGaSus beats it in {better['pegasus']}, AdaPub in {better['adapub']} of {_cells(scores)}"
    return Observed(words, not any(_most(number, scores) for number in better.values()))


def _rescuedp(scores: Scores) -> Observed | None:
    """How much of its error does RescueDP lose from the smallest to the largest epsilon, at the largest amplitudes?"""
    rows = _rows(scores, lambda given: given.get("amplitude", 0) > 1000)
    epsilons = np.array([contest.setting.epsilon for contest in scores.contests])
    if not rows.any() or not scores.columns("rescuedp") or len(set(epsilons[rows])) == 1:
        return None
    low, high = epsilons[rows].min(), epsilons[rows].max()
    error = _least(scores, "rescuedp")
    windows = np.array([contest.setting.window for contest in scores.contests])
    rows &= np.isin(windows, windows[rows & (epsilons == low)])
    falls = float(error[rows & (epsilons == low)].mean() / error[rows & (epsilons == high)].mean())
    words = f"{high / low:.3g} times the epsilon divides its error by {falls:.3g}"
    return Observed(words, bool(falls < np.sqrt(high / low)))


FINDINGS: list[tuple[str, Callable[[Scores], Observed | None], str]] = [
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


def _rows(scores: Scores, holds: Callable[[dict[str, float]], bool]) -> Bools:
    return np.array([holds(scores.described(contest)) for contest in scores.contests], dtype=np.bool_)


def _least(scores: Scores, *names: str) -> Floats:
    return np.asarray(np.fmin.reduce(scores.means[:, scores.columns(*names)], axis=1))


def _most(number: int, scores: Scores) -> bool:
    return 2 * number > len(scores.contests)


def _cells(scores: Scores) -> str:
    return f"{len(scores.contests)} cells"


def findings_table(found: Sequence[PublishedFinding]) -> TextTable:
    """The benchmark's findings next to ours."""
    with_reference = any(finding.reference for finding in found)
    rows = []
    for finding in found:
        reference = [_observed(finding.reference)] if with_reference else []
        rows.append([finding.published, *reference, _observed(finding.here), finding.why])
    return TextTable(["published", *(["its public code"] * with_reference), "here", "why we differ"], rows)


def _observed(seen: Observed | None) -> str:
    return "–" if seen is None else f"{'yes' if seen.holds else 'no'}: {seen.words}"
