"""The audit: try to break a guarantee, and say with confidence how much of epsilon is really used.

Three stages, each on runs of its own. Explore: every pair under every attack, few runs. Train: the best few, more runs,
which fix score, threshold and direction. Measure: fresh runs count how often the chosen event happens on either
stream; exact confidence limits, shared among the finalists, give a lower bound on epsilon. Only the last stage speaks.
Imports numpy and `audit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from eventide.arrays import Floats
from eventide.audit.attacks import ATTACKS, Attack, Score
from eventide.audit.bounds import epsilon_bound
from eventide.audit.pairs import Pair
from eventide.audit.subjects import Subject

BATCH_CELLS = 4_000_000  # how many released numbers are held at a time


class Finding(NamedTuple):
    """Epsilon is at least `bound`: measured by a finalist, or the exact log-ratio of one possible transcript."""

    pair: str
    attack: str
    bound: float


@dataclass(frozen=True)
class Verdict:
    """The outcome of an audit: with `confidence`, the subject's epsilon is at least `bound`.

    `proof`, where likelihoods are known, is the transcript that tells most: its log-ratio needs no confidence.
    """

    epsilon: float
    bound: float
    confidence: float
    pair: str
    attack: str
    runs: int
    findings: list[Finding] = field(repr=False)
    proof: Finding | None = None

    @property
    def proven(self) -> bool:
        """Whether a single possible transcript tells more than epsilon, beyond the rounding of logarithms."""
        return self.proof is not None and self.proof.bound > self.epsilon * (1 + 1e-9)

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted."""
        return self.proven or self.bound > self.epsilon

    def __str__(self) -> str:
        claim = "BROKEN" if self.broken else "not refuted"
        sentence = (
            f"epsilon is at least {self.bound:.3f} with confidence {self.confidence:.7g}; the claim of "
            f"{self.epsilon:g} is {claim} (best attack: {self.attack}; streams: {self.pair}; {self.runs:,} runs each)"
        )
        if self.proof is not None:
            sentence += f"; the transcript that tells most has an exact log-ratio of {self.proof.bound:.3f}"
        return sentence


class _Event(NamedTuple):
    """A score, and which of its values count as a hit: those at least (or at most) the threshold."""

    score: Score
    threshold: float
    upward: bool
    neighbour_first: bool  # whether the event is more frequent on the neighbour


def audit(
    subject: Subject,
    pairs: Iterable[Pair],
    epsilon: float,
    *,
    runs: int = 200_000,
    alpha: float = 0.05,
    seed: int = 0,
    finalists: int = 6,
    attacks: dict[str, Attack] | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Verdict:
    """Attack `subject` on every pair; `runs` runs on each stream of a finalist are what the bound rests on."""
    chosen = ATTACKS if attacks is None else attacks
    seeds = iter(range(seed * 1_000_003, (seed + 1) * 1_000_003))
    ranked = []
    for pair in pairs:
        progress(f"exploring: {pair.name}")
        ranked += _explore(subject, pair, chosen, max(1000, runs // 50), alpha, seeds)
    ranked.sort(key=lambda entry: -entry[0])
    findings = []
    final = ranked[:finalists]
    for _, pair, name in final:
        progress(f"measuring: {name} on {pair.name}")
        event = _train(subject, pair, chosen[name], max(2000, runs // 4), runs, alpha / len(final), seeds)
        bound = _measure(subject, pair, event, runs, alpha / len(final), seeds)
        findings.append(Finding(pair.name, name, bound))
    best = max(findings, key=lambda finding: finding.bound)
    return Verdict(epsilon, best.bound, 1 - alpha, best.pair, best.attack, runs, findings)


def _explore(
    subject: Subject, pair: Pair, attacks: dict[str, Attack], runs: int, alpha: float, seeds: Iterator[int]
) -> list[tuple[float, Pair, str]]:
    """How promising each attack looks on this pair, trained and judged on either half of a few runs."""
    seen = [subject.observe(stream, runs, next(seeds)) for stream in (pair.stream, pair.neighbour)]
    learn, judge = ([side.part(half) for side in seen] for half in (slice(runs // 2), slice(runs // 2, runs)))
    ranked = []
    for name, attack in attacks.items():
        score = attack(pair, *learn)
        if score is not None:
            ranked.append((_choose_event(score, score(judge[0]), score(judge[1]), runs, alpha)[0], pair, name))
    return ranked


def _train(
    subject: Subject, pair: Pair, attack: Attack, runs: int, later: int, alpha: float, seeds: Iterator[int]
) -> _Event:
    """Fix score, threshold and direction: the score on one half of the runs, the event on the other."""
    halves = [
        [subject.observe(stream, max(1, runs // 2), next(seeds)) for stream in (pair.stream, pair.neighbour)]
        for _ in range(2)
    ]
    score = attack(pair, *halves[0])
    assert score is not None, "an attack that does not apply is never a finalist"
    return _choose_event(score, score(halves[1][0]), score(halves[1][1]), later, alpha)[1]


def _choose_event(score: Score, one: Floats, other: Floats, later: int, alpha: float) -> tuple[float, _Event]:
    """The threshold and direction that promise the largest bound when measured with `later` runs."""
    tail = np.geomspace(1e-4, 0.005, 12)
    shares_of_runs = np.concatenate([tail, np.linspace(0, 1, 201), 1 - tail])
    cuts = np.unique(np.quantile(np.concatenate([one, other]), shares_of_runs, method="nearest"))
    best, event = -1.0, _Event(score, float(cuts[0]), True, True)
    deviations = np.sqrt(-2 * np.log(alpha / 2))
    for upward in (True, False):
        shares = [_share_beyond(scores, cuts, upward) for scores in (one, other)]
        for neighbour_first in (True, False):
            often, seldom = shares[::-1] if neighbour_first else shares
            doubt = deviations * np.sqrt((often + 1 / len(one)) / later)
            low = np.maximum(often - doubt - deviations**2 / later, 1e-12)
            high = seldom + 1 / len(one) + deviations * np.sqrt((seldom + 1 / len(one)) / later)
            promise = np.log(low / high)
            if promise.max() > best:
                best = float(promise.max())
                event = _Event(score, float(cuts[promise.argmax()]), upward, neighbour_first)
    return best, event


def _share_beyond(scores: Floats, cuts: Floats, upward: bool) -> Floats:
    """The share of scores at or above each cut, or at or below it."""
    ordered = np.sort(scores)
    if upward:
        return 1 - np.searchsorted(ordered, cuts, side="left") / len(ordered)
    return np.searchsorted(ordered, cuts, side="right") / len(ordered)


def _measure(subject: Subject, pair: Pair, event: _Event, runs: int, alpha: float, seeds: Iterator[int]) -> float:
    """The bound on epsilon from fresh runs, counted batch by batch."""
    batch = max(1, min(runs, BATCH_CELLS // pair.stream.size))
    hits = [0, 0]
    for begin in range(0, runs, batch):
        for side, stream in enumerate((pair.stream, pair.neighbour)):
            scores = event.score(subject.observe(stream, min(batch, runs - begin), next(seeds)))
            beyond = scores >= event.threshold if event.upward else scores <= event.threshold
            hits[side] += int(np.count_nonzero(beyond))
    seldom, often = hits if event.neighbour_first else hits[::-1]
    return epsilon_bound(often, seldom, runs, alpha)
