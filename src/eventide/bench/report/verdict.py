"""The verdict of a report: what the numbers say, in plain words. Each word follows from them, also the opposite one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from eventide.arrays import Floats
from eventide.bench.report.comparisons import (
    FEWEST_REPETITIONS,
    Influence,
    Rank,
    Shift,
    Weight,
    as_good_as_best,
    best_by,
    geometric_mean,
    influences,
    ranking,
)
from eventide.bench.report.scores import Scores
from eventide.bench.study.requirements import BASELINES

METRIC_NAMES = {
    "mae": "mean absolute error",
    "mse": "mean squared error",
    "tse": "total squared error",
    "mre": "mean relative error",
    "workload_error": "workload error",
}


def verdict(scores: Scores) -> list[str]:
    """Sentences about the mechanisms with these scores, the most important first."""
    ranks, found = ranking(scores), influences(scores)
    return [
        _size(scores),
        _wins(scores),
        *_baselines(scores),
        *_leader(scores, ranks),
        *_decisions(found),
        *(_by_value(scores, each.parameter) for each in found if each.weight is Weight.DECIDES),
        _close_calls(scores),
    ]


def effect(scores: Scores, name: str) -> str:
    """What a mechanism adds to the others, in a sentence."""
    ratios = against_others(scores, name)
    known = np.flatnonzero(~np.isnan(ratios))
    if not known.size:
        return f"{capital(name)} meets no other mechanism."
    worst = known[ratios[known].argmax()]
    contest = scores.contests[worst]
    wins = (ratios[known] < 1).sum()
    typical = geometric_mean(ratios[known])
    return (
        f"{capital(name)} beats the best of all others in {wins} of {known.size} cells; its error is {typical:.3g} "
        f"times theirs in the geometric mean, and {ratios[worst]:.3g} times in its worst cell "
        f"({scores.place(contest)})."
    )


def against_others(scores: Scores, name: str) -> Floats:
    """The least error of a mechanism over the least of all others, for each contest; NaN where there is none."""
    ours = scores.columns(name)
    others = [column for column in range(len(scores.names)) if column not in ours]
    if not ours or not others:
        return np.full(len(scores.contests), np.nan)
    least, rivals = (np.fmin.reduce(scores.means[:, columns], axis=1) for columns in (ours, others))
    return np.asarray(np.divide(least, rivals, out=np.full(least.shape, np.nan), where=rivals > 0))


def about_zeros(scores: Scores, zeros: dict[str, float]) -> list[str]:
    """Where nothing is better than to release zeros for ever, by the error of that on each stream; none if unknown."""
    each = zip(scores.contests, scores.least, strict=True)
    known = [(least, zeros[contest.stream]) for contest, least in each if contest.stream in zeros]
    if not known:
        return []
    useless = sum(error <= least for least, error in known)
    return [f"Releasing zeros for ever would be no worse than the best mechanism in {useless} of {len(known)} cells."]


def about_requirements(requirements: Sequence[dict[str, Any]]) -> str:
    """Which of the benchmark's requirements the study misses."""
    missed = [f"{each['code']} ({each['sentence']})" for each in requirements if not each["met"]]
    total = f"{len(requirements)} requirements of the w-event benchmark"
    if missed:
        return f"The study misses {len(missed)} of {total}: {listed(missed)}."
    return f"The study meets all {total}."


def about_changes(shifts: Sequence[Shift]) -> str:
    """What two results have in common and what not, over all mechanisms."""
    cells, same, better, worse, unclear = np.sum([[s.cells, *s[3:]] for s in shifts], axis=0).tolist()
    return (
        f"Both results hold {counted(cells, 'error')} of a mechanism in a cell: {same:,} are the same to the last "
        f"digit, {better:,} got better, {worse:,} got worse, and {unclear:,} differ so little that it may be noise."
    )


def _size(scores: Scores) -> str:
    streams = {contest.stream for contest in scores.contests}
    different = len({(setting.epsilon, setting.window) for setting in scores.settings})
    twice = ""
    if different < len(scores.settings):
        twice = f" ({different:,} different ones: what stands in two experiments is measured twice and counts twice)"
    return (
        f"{counted(len(scores.mechanisms), 'mechanism')} compete in {counted(len(scores.contests), 'cell')}: "
        f"{counted(len(streams), 'stream')} under {counted(len(scores.settings), 'privacy setting')}{twice}, each run "
        f"{counted(scores.repetitions, 'time')}, judged by the {METRIC_NAMES.get(scores.metric, scores.metric)}."
    )


def _wins(scores: Scores) -> str:
    by_number: dict[int, list[str]] = {}
    for label, number in scores.wins().items():
        by_number.setdefault(number, []).append(label)
    losers = by_number.pop(0, [])
    (most, leaders), *others = by_number.items()
    verb = "are each" if len(leaders) > 1 else "is"
    first = f"{capital(listed(leaders))} {verb} best in {most} of {counted(len(scores.contests), 'cell')}"
    rest = [f"{listed(labels)} in {number}{' each' * (len(labels) > 1)}" for number, labels in others]
    return ", ".join([first, *rest]) + (f"; {listed(losers)} in none." if losers else ".")


def _baselines(scores: Scores) -> list[str]:
    present = scores.columns(*BASELINES)
    if not present or len(present) == len(scores.mechanisms):
        return []
    wins, total = int(np.isin(scores.winners, present).sum()), len(scores.contests)
    most = "win" if 2 * wins > total else "do not win"
    names = " or ".join(scores.mechanisms[column] for column in present)
    return [f"A baseline ({names}) is best in {wins} of {total} cells: the baselines {most} most cells."]


def _leader(scores: Scores, ranks: list[Rank]) -> list[str]:
    """Who is nearest to the best, of those that compete in every cell; nothing to add about one that wins them all."""
    everywhere = [rank for rank in ranks if rank.cells == len(scores.contests)]
    if not everywhere or everywhere[0].best == len(scores.contests):
        return []
    leader = everywhere[0]
    interval = "" if np.isnan(leader.low) else f" (95 % interval {leader.low:.3g} to {leader.high:.3g})"
    return [
        f"{capital(leader.mechanism)} comes nearest to the best over all cells, with {leader.typical:.3g} times its "
        f"error in the geometric mean{interval}; in its worst cell it has {leader.worst:.3g} times the best error."
    ]


def _decisions(found: Sequence[Influence]) -> list[str]:
    """Which parameters decide and which do not, and by how much."""
    if not found:
        return []
    groups = {weight: [each.parameter for each in found if each.weight == weight] for weight in Weight}
    clauses = [f"{_with_verb(groups[Weight.DECIDES] or ['no parameter'], 'decides')} which mechanism is good"]
    if groups[Weight.MATTERS]:
        clauses.append(f"{_with_verb(groups[Weight.MATTERS], 'matters')} less")
    if groups[Weight.DOES_NOT]:
        clauses.append(f"{_with_verb(groups[Weight.DOES_NOT], 'does')} not decide")
    sizes = listed(f"{each.factor:.3g} with {each.parameter}" for each in found)
    return [
        f"{capital('; '.join(clauses))}.",
        f"All else the same, a mechanism's distance from the best changes by a factor of {sizes}.",
    ]


def _with_verb(subjects: Sequence[str], verb: str) -> str:
    several = {"decides": "decide", "matters": "matter", "does": "do"}
    return f"{listed(subjects)} {verb if len(subjects) == 1 else several[verb]}"


def _by_value(scores: Scores, parameter: str) -> str:
    parts = []
    for value, counter in best_by(scores, parameter).items():
        most = max(counter.values())
        labels = [label for label, number in counter.items() if number == most]
        each = " each" * (len(labels) > 1)
        parts.append(f"{value:,g} {listed(labels)} ({most} of {counter.total()}{each})")
    return f"Most often best by {parameter}: {', '.join(parts)}."


def _close_calls(scores: Scores) -> str:
    if scores.repetitions < FEWEST_REPETITIONS:
        return f"{counted(scores.repetitions, 'repetition')} cannot tell whether a winner won by chance."
    shared = int((as_good_as_best(scores).sum(axis=1) > 1).sum())
    if not shared:
        return "In every cell it is clear which mechanism is best (95 % confidence)."
    return f"In {shared} of {len(scores.contests)} cells the best two are too close to tell apart (95 % confidence)."


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "cell"), counted(1980, "cell")
    ('1 cell', '1,980 cells')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def listed(words: Iterable[str]) -> str:
    """Words as a list in a sentence.

    >>> listed(["bd", "ba", "fast"])
    'bd, ba and fast'
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def capital(text: str) -> str:
    """The text as the beginning of a sentence.

    >>> capital("uniform is best")
    'Uniform is best'
    """
    return text[:1].upper() + text[1:]
