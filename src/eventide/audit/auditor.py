"""The audit: try to break a guarantee, and say with confidence how much of epsilon is really used.

Two stages, each on runs of its own. Explore: every pair under every attack, in turns; after each turn half of the
pairs, those that promise less, are dropped, and the others get more runs, until few are left. The last turn fixes the
best scores, with threshold and direction. Measure: fresh runs count how often the chosen event happens on either
stream; an exact confidence limit, alpha shared among the finalists, gives a lower bound on epsilon. Only this stage
speaks.

What is hopeless is refuted early. The stages are gone through in rounds, each with five times the runs of the one
before; finalists on the same pair are measured with the same runs, which are looked at after a quarter, a half and all
of them; the audit ends with the first bound above the claim. Each look may err with a part of alpha that is fixed
before anything is seen: a round has half of the part of the round after it, its finalists share that equally, and their
looks have a quarter, a quarter and a half; alpha together. That is sound because a bound is false with at most its part
of alpha whatever earlier runs led to it, since it rests on runs that were made after all that it counts was fixed; so
by the union bound, which does not ask whether bounds depend on each other, any bound of the audit is false with at most
alpha, whenever the audit stops and for whatever reason. (All rounds but the last give up a pair of which no finalist
looks as if it were above the claim.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.audit.attacks import ATTACKS, GRID, Attack, Score
from eventide.audit.bounds import epsilon_bound
from eventide.audit.pairs import Pair
from eventide.audit.seeds import Seeds
from eventide.audit.subjects import Subject, Transcript

BATCH_CELLS = 4_000_000  # how many released numbers are held at a time
SMALL_BATCH = 5_000  # runs; where there are more, the progress is told in between
FEWEST = 1_000  # runs of a round
FEW_PAIRS = 3  # that are left when exploring ends
LOOKS = ((0.25, 0.25), (0.5, 0.25), (1.0, 0.5))  # at what part of the runs of a finalist, with what part of its alpha

Progress = Callable[[str, int, int], None]
"""What an audit is at, how many runs it has made, and how many there are if nothing is refuted early."""


class AuditOptions(TypedDict, total=False):
    """How much is done to refute a claim; `audit` says what each means."""

    runs: int
    alpha: float
    seed: int
    finalists: int
    progress: Progress


def untold(stage: str, done: int, planned: int) -> None:
    """Progress that nobody asked for."""


class Finding(NamedTuple):
    """Epsilon is at least `bound`: measured by a finalist, or the exact log-ratio of one possible transcript.

    `runs` is how many on each stream it was measured with, or searched for it.
    """

    pair: str
    attack: str
    bound: float
    runs: int


@dataclass(frozen=True)
class Verdict:
    """The outcome of an audit: with `confidence`, the subject's epsilon is at least `bound`.

    `proof`, where likelihoods are known, is the transcript that tells most: its log-ratio needs no confidence.
    `left_out` are the attacks that were not tried.
    """

    epsilon: float
    bound: float
    confidence: float
    pair: str
    attack: str
    runs: int
    findings: list[Finding] = field(repr=False)
    proof: Finding | None = None
    left_out: tuple[str, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether a single possible transcript tells more than epsilon, beyond the rounding of logarithms."""
        return self.proof is not None and self.proof.bound > self.epsilon * (1 + 1e-9)

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted."""
        return self.proven or self.bound > self.epsilon

    def __str__(self) -> str:
        claim = f"the claim of {self.epsilon:g} is {'BROKEN' if self.broken else 'not refuted'}"
        measured = f"at least {self.bound:.3f} with confidence {self.confidence:.7g}"
        attacked = f"(best attack: {self.attack}; streams: {self.pair}; {self.runs:,} runs each)"
        sentence = f"epsilon is {measured}; {claim} {attacked}"
        if self.proof is not None and self.proven:
            exact = f"{self.proof.bound:.3f}, the exact log-ratio of one possible transcript"
            sentence = (
                f"epsilon is at least {exact} (streams: {self.proof.pair}); {claim}; measured: {measured} {attacked}"
            )
        elif self.proof is not None:
            sentence += f"; the transcript that tells most has an exact log-ratio of {self.proof.bound:.3f}"
        if self.attack == GRID and self.bound > self.epsilon:
            sentence += "; noise in floating point gives itself away by its last bits, whatever its scale"
        if self.left_out:
            sentence += f"; not tried: {', '.join(self.left_out)}"
        return sentence


class _Event(NamedTuple):
    """A score, and which of its values count as a hit: those at least (or at most) the threshold."""

    score: Score
    threshold: float
    upward: bool
    neighbour_first: bool  # whether the event is more frequent on the neighbour

    def hits(self, seen: Transcript) -> int:
        """In how many runs it happened."""
        scores = self.score(seen)
        return int(np.count_nonzero(scores >= self.threshold if self.upward else scores <= self.threshold))


class _Candidate(NamedTuple):
    """An event to be measured on a pair, and the bound that it promises."""

    promise: float
    pair: Pair
    attack: str
    event: _Event


class _Runs:
    """Observes the subject, every time with numbers of its own for seeds, and tells how far the audit is."""

    def __init__(self, subject: Subject, seeds: Seeds, planned: int, progress: Progress) -> None:
        self.subject, self.seeds, self.planned, self.progress = subject, seeds, planned, progress
        self.at, self.stage, self.done = "", "", 0

    def observe(self, stream: Ints, runs: int) -> Transcript:
        """The next runs on `stream`."""
        self.progress(f"{self.at}: {self.stage}", self.done, self.planned)
        seen = self.subject.observe(stream, runs, self.seeds.block(runs))
        self.done += runs
        return seen

    def both(self, pair: Pair, runs: int) -> tuple[Transcript, Transcript]:
        """As many on the stream and on its neighbour."""
        return self.observe(pair.stream, runs), self.observe(pair.neighbour, runs)


class _Round(NamedTuple):
    """How many runs there are on each stream of a finalist, and with what probability the round may err."""

    runs: int
    alpha: float
    last: bool

    def turns(self, pairs: int) -> list[tuple[int, int]]:
        """How many pairs are left at each turn of exploring, and how many runs on either stream each of them gets."""
        turns, runs = [], max(400 if self.last else 100, self.runs // 200)
        most = max(min(2000, self.runs), self.runs // 8)
        while pairs > FEW_PAIRS:
            turns.append((pairs, min(runs, most)))
            pairs, runs = max(FEW_PAIRS, (pairs + 1) // 2), 2 * runs
        return [*turns, (pairs, most)]

    def cost(self, pairs: int, finalists: int) -> int:
        """All runs of the round, on both streams."""
        return 2 * (sum(left * runs for left, runs in self.turns(pairs)) + finalists * self.runs)


def audit(
    subject: Subject,
    pairs: Iterable[Pair],
    epsilon: float,
    *,
    runs: int = 200_000,
    alpha: float = 0.05,
    seed: int | Seeds = 0,
    finalists: int = 3,
    attacks: dict[str, Attack] | None = None,
    progress: Progress = untold,
) -> Verdict:
    """Attack a subject on every pair of streams; the audit ends with the first bound above the claim.

    Parameters
    ----------
    subject
        What is attacked.
    pairs
        Neighbouring streams.
    epsilon
        The claim.
    runs
        The most runs on each of two streams that a bound rests on.
    alpha
        With what probability the audit may be wrong; one minus the confidence.
    seed
        Repeats an audit.
    finalists
        How many attacks are measured in each round.
    attacks
        The attacks by name, by default all.
    progress
        Is told what the audit is at, how many runs it has made, and how many there are if it does not end early.
    """
    chosen, tried = ATTACKS if attacks is None else attacks, list(pairs)
    rounds = _rounds(runs, alpha)
    made = _Runs(subject, Seeds.of(seed), sum(each.cost(len(tried), finalists) for each in rounds), progress)
    findings: list[Finding] = []
    for number, each in enumerate(rounds, 1):
        made.at = f"round {number} of {len(rounds)}"
        findings += _round(made, tried, chosen, epsilon, finalists, each)
        if _best(findings).bound > epsilon:
            break
    best = _best(findings)
    return Verdict(epsilon, best.bound, 1 - alpha, best.pair, best.attack, best.runs, findings)


def _rounds(runs: int, alpha: float) -> list[_Round]:
    """All runs in the last, a fifth in the one before, and so on; half of the part of alpha in the one before."""
    counts = [part for part in (runs // 125, runs // 25, runs // 5) if part >= FEWEST] + [runs]
    parts = 2.0 ** np.arange(len(counts))
    shares = alpha * parts / parts.sum()
    return [_Round(count, float(share), count == runs) for count, share in zip(counts, shares, strict=True)]


def _round(
    made: _Runs, pairs: list[Pair], attacks: dict[str, Attack], epsilon: float, finalists: int, this: _Round
) -> list[Finding]:
    """Explore, then measure what promises most, pair after pair, until something is above the claim."""
    made.stage = "exploring"
    final = _explore(made, pairs, attacks, finalists, this)
    made.stage = "measuring"
    findings: list[Finding] = []
    for pair in {id(candidate.pair): candidate.pair for candidate in final}.values():
        together = [candidate for candidate in final if candidate.pair is pair]
        findings += _measure(made, together, epsilon, this, this.alpha / len(final))
        if _best(findings).bound > epsilon:
            break
    return findings


def _best(findings: list[Finding]) -> Finding:
    """The one with the largest bound."""
    return max(findings, key=lambda finding: finding.bound)


def _explore(
    made: _Runs, pairs: list[Pair], attacks: dict[str, Attack], finalists: int, this: _Round
) -> list[_Candidate]:
    """The candidates that promise most, best first."""
    ranked: list[_Candidate] = []
    for left, runs in this.turns(len(pairs)):
        pairs = pairs[:left]
        ranked = [each for pair in pairs for each in _candidates(made, pair, attacks, runs, this, finalists)]
        ranked.sort(key=lambda each: -each.promise)
        pairs = list({id(each.pair): each.pair for each in ranked}.values())
    return ranked[:finalists]


def _candidates(
    made: _Runs, pair: Pair, attacks: dict[str, Attack], runs: int, this: _Round, finalists: int
) -> Iterator[_Candidate]:
    """Every attack on this pair: one half of the runs fixes its score, the other the event."""
    seen, half = made.both(pair, runs), runs // 2
    learn, judge = ([side.part(part) for side in seen] for part in (slice(half), slice(half, None)))
    for name, attack in attacks.items():
        score = attack(pair, *learn)
        if score is not None:
            promise, event = _choose_event(score, score(judge[0]), score(judge[1]), this.runs, this.alpha / finalists)
            yield _Candidate(promise, pair, name, event)


def _choose_event(score: Score, one: Floats, other: Floats, later: int, alpha: float) -> tuple[float, _Event]:
    """The threshold and direction that promise the largest bound when measured with `later` runs.

    Taken off are the doubt that the exact limit will have, and a standard deviation of what is seen here: otherwise the
    promise would be largest where chance helped most.
    """
    tail = np.geomspace(1e-4, 0.005, 12)
    shares_of_runs = np.concatenate([tail, np.linspace(0, 1, 201), 1 - tail])
    cuts = np.unique(np.quantile(np.concatenate([one, other]), shares_of_runs, method="nearest"))
    best, event = -np.inf, _Event(score, float(cuts[0]), True, True)
    least = 1 / len(one)
    deviations = np.sqrt(-2 * np.log(alpha) / later) + np.sqrt(least)
    for upward in (True, False):
        shares = [_share_beyond(scores, cuts, upward) for scores in (one, other)]
        for neighbour_first in (True, False):
            often, seldom = (np.maximum(share, least) for share in (shares[::-1] if neighbour_first else shares))
            promise = np.log(often / (seldom + least)) - deviations * np.sqrt(1 / often + 1 / (seldom + least))
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


def _measure(made: _Runs, candidates: list[_Candidate], epsilon: float, this: _Round, alpha: float) -> list[Finding]:
    """The bounds of candidates on one pair, from the same fresh runs, each on either stream by the toss of a coin."""
    pair, events = candidates[0].pair, [candidate.event for candidate in candidates]
    batch = max(1, min(BATCH_CELLS // pair.stream.size, max(SMALL_BATCH, this.runs // 10)))
    coins = np.random.default_rng(made.seeds.block(1))
    hits, done, bounds = np.zeros((2, len(events)), dtype=np.int64), 0, [0.0 for _ in events]
    for until, share in LOOKS:
        while done < int(until * this.runs):
            runs = min(batch, int(until * this.runs) - done)
            here = int(coins.binomial(2 * runs, 0.5))
            for side, (stream, count) in enumerate(((pair.stream, here), (pair.neighbour, 2 * runs - here))):
                if count:
                    seen = made.observe(stream, count)
                    hits[side] += [event.hits(seen) for event in events]
            done += runs
        counted = [hits[:: 1 if event.neighbour_first else -1, place] for place, event in enumerate(events)]
        found = [epsilon_bound(int(often), int(seldom), share * alpha) for seldom, often in counted]
        bounds = [max(both) for both in zip(bounds, found, strict=True)]
        within = all(often <= seldom * np.exp(epsilon) for seldom, often in counted)
        if max(bounds) > epsilon or (within and not this.last):
            break
    return [Finding(pair.name, each.attack, bound, done) for each, bound in zip(candidates, bounds, strict=True)]
