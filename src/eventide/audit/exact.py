"""The exact likelihood of a transcript, by replaying it through the mechanism's own code.

A replaying meter answers every question with what the transcript shows, and adds up how probable that answer was on a
given stream: a count through its noise, a decision through the chance that the noisy distance falls on that side of the
threshold. No model of the mechanism is needed, so the attack knows everything there is to know, as an attacker may. It
covers mechanisms that measure counts and compare distances, and release what the meter answered as it is: without a
filter, without a measurement of their own, without another source of noise. Of any other nothing exact is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.audit.attacks import Attack, Score
from eventide.audit.auditor import Finding, Progress, untold
from eventide.audit.pairs import Pair
from eventide.audit.seeds import Seeds
from eventide.audit.subjects import Subject, Transcript
from eventide.errors import StateError
from eventide.filters.base import Repeat
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.pan_private import PanPrivateMechanism
from eventide.mechanisms.window_baselines import TimeUnitBaseline
from eventide.privacy.measured import Measured
from eventide.privacy.meter import Meter
from eventide.privacy.noise import Seeded, Zero
from eventide.privacy.partition import Partition
from eventide.privacy.sealed import SealedStep

HANDED_ON = tuple(cls.perturbation for cls in (Mechanism, PanPrivateMechanism, TimeUnitBaseline))  # the meter's answer
TRIED = 100  # runs that are replayed to see whether that can be done


def exact_likelihood_ratio(make: Callable[..., Any]) -> Attack:
    """The attack for mechanisms that `make(replicas=..., noise=...)` builds."""

    def attack(pair: Pair, one: Transcript, other: Transcript) -> Score:
        def score(seen: Transcript) -> Floats:
            here, there = (log_likelihood(make, seen, stream) for stream in (pair.stream, pair.neighbour))
            return np.asarray(np.maximum(there, -1e9) - np.maximum(here, -1e9))  # where both are impossible, 0

        return score

    return attack


def can_be_replayed(make: Callable[..., Any], stream: Ints) -> bool:
    """Whether likelihoods of this mechanism are known: what it releases is what its meter answered, and nothing else.

    Some runs of it are replayed, each of which must turn out to be possible.
    """
    try:
        mechanism = make(replicas=TRIED, noise=Seeded(0))
        if not _answers_as_they_are(mechanism):
            return False
        seen = Transcript.of([mechanism.release(counts) for counts in stream])
        return bool(np.isfinite(log_likelihood(make, seen, stream)).all())
    except Exception:  # not of the kernel, or a measurement whose likelihood is not known
        return False


def _answers_as_they_are(mechanism: Any) -> bool:
    """Whether nothing stands between the meter's answers and the release, nor between the noise and the meter."""
    if not isinstance(mechanism, Mechanism) or getattr(mechanism, "pan_private", None) is not None:
        return False
    return (
        type(mechanism).perturbation in HANDED_ON
        and type(mechanism).filtering is Mechanism.filtering
        and type(mechanism._filter) is Repeat
        and type(mechanism.meter) is Meter
        and mechanism.meter.source is mechanism.source
    )


def most_telling_transcript(
    subject: Subject,
    make: Callable[..., Any],
    pairs: Iterable[Pair],
    runs: int,
    seed: int | Seeds = 0,
    progress: Progress = untold,
) -> Finding:
    """The largest exact log-ratio, in either direction, of any transcript that `runs` runs on either stream showed.

    It is infinite where a transcript of one stream is impossible on the other.
    """
    worst, seeds = Finding("", "exact log-ratio", 0.0, runs), Seeds.of(seed)
    tried = list(pairs)
    for done, pair in enumerate(tried):
        progress("replaying transcripts", 2 * runs * done, 2 * runs * len(tried))
        for stream, other in ((pair.stream, pair.neighbour), (pair.neighbour, pair.stream)):
            seen = subject.observe(stream, runs, seeds.block(runs))
            own = log_likelihood(make, seen, stream)
            if not np.isfinite(own).all():
                raise StateError("a run turned out to be impossible when it was replayed: nothing exact can be said")
            ratio = float(np.abs(own - log_likelihood(make, seen, other)).max())
            worst = max(worst, worst._replace(pair=pair.name, bound=ratio), key=lambda finding: finding.bound)
    return worst


def log_likelihood(make: Callable[..., Any], seen: Transcript, stream: Ints) -> Floats:
    """How probable each transcript is on `stream`, up to a constant that is the same for all streams.

    Minus infinity where it is impossible: the mechanism would not have looked when the transcript says so.
    """
    assert seen.fresh is not None
    mechanism = make(replicas=len(seen.values), noise=Zero())
    meter = ReplayingMeter(mechanism.ledger, mechanism.source, mechanism.size, mechanism.sensitivity)
    mechanism.meter = meter
    for index, counts in enumerate(stream):
        meter.shown = Measured(seen.values[:, index], np.empty(0), seen.fresh[:, index])
        looked = mechanism.release(counts).fresh_bins.reshape(meter.shape)
        meter.log_likelihood[np.any(looked != meter.shown.fresh, axis=1)] = -np.inf
    return meter.log_likelihood


class ReplayingMeter(Meter):
    """Answers with what was seen, and keeps the log-likelihood of having seen it."""

    __slots__ = ("log_likelihood", "shown")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.log_likelihood = np.zeros(self.shape[0])
        self.shown: Measured

    def counts(self, step: SealedStep, amount: Ints, groups: Partition | None = None) -> Measured:
        """The counts that were seen."""
        if groups is not None:
            self._cannot()
        truth, amount = self._open(step), self.ledger.checked(amount)
        self.ledger.charge(amount)
        loss = np.abs(self.shown.values - truth) * (amount / self._numerator(1, None))
        self.log_likelihood = self.log_likelihood - loss.sum(axis=1)
        with np.errstate(divide="ignore"):
            return Measured(self.shown.values, self._numerator(1, None) / amount, amount > 0)

    def distance(self, step: SealedStep, reference: Array, amount: Ints, groups: Partition | None = None) -> Any:
        """A distance that is decided when it is compared."""
        total, amount = self._distances(step, reference, groups), self.ledger.checked(amount)
        self.ledger.charge(amount if groups is None else groups.spread(amount))
        fresh = self.shown.fresh.astype(np.int64)
        looked = (fresh.sum(axis=1, keepdims=True) if groups is None else groups.sums(fresh)) > 0
        return _Undecided(self, total, amount, looked)

    def _cannot(self, *_: Any) -> NoReturn:
        raise StateError("the likelihood of this measurement cannot be replayed")

    thinned = add = read = open_test = above = grouped = _cannot  # type: ignore[assignment]


class _Undecided:
    """A noisy distance of which the transcript shows only on which side of the threshold it fell."""

    def __init__(self, meter: ReplayingMeter, distance: Ints, amount: Ints, looked: Array) -> None:
        self.meter, self.distance, self.amount, self.looked = meter, distance, amount, looked

    def __gt__(self, threshold: Array) -> Array:
        rate = self.amount / self.meter._numerator(1, None)
        above = _tail(np.floor(threshold) + 1 - self.distance, rate)
        chance = np.where(self.looked, above, 1 - above)
        known = np.where(self.amount > 0, np.log(np.maximum(chance, 1e-300)), 0.0)
        self.meter.log_likelihood = self.meter.log_likelihood + known.sum(axis=1)
        return self.looked


def _tail(least: Array, rate: Array) -> Floats:
    """P(N >= least) for discrete Laplace noise N of scale 1 / rate."""
    far = np.exp(-rate * np.maximum(np.where(least > 0, least, 1 - least), 0)) / (1 + np.exp(-rate))
    return np.asarray(np.where(least > 0, far, 1 - far))
