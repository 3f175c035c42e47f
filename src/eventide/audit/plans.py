"""The audit of sliding-window plans: what all answers together, and every slot behind them, give away.

An attacker of a plan sees answers. Granted here as well are the released slots they are made of, so that no attack
fails for lack of algebra: the likelihood of a run is then exact. Streams differ in one tick, or in as many consecutive
ticks as the plan was started to protect.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Unpack

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.audit.attacks import ATTACKS, Attack, Score
from eventide.audit.auditor import AuditOptions, Verdict, audit
from eventide.audit.pairs import PLACES, Pair, added_or_in_turn, changed
from eventide.audit.seeds import noise_by_seed
from eventide.audit.subjects import Transcript
from eventide.privacy.meter import Meter
from eventide.privacy.noise import Source, Zero
from eventide.privacy.slot_sums import Cut, SlotSums
from eventide.windows.plans import Plan


class PlanSubject:
    """A plan, given as a function that starts it: `start(replicas=..., noise=...)`.

    Of a transcript, `values` are the answers to the shortest window that ends with each tick, 0 where none does;
    `extra` holds the slots that were released, and then all answers.
    """

    def __init__(self, start: Callable[..., Any], noise: Callable[[int], Source]) -> None:
        self.start, self.noise = start, noise

    def observe(self, stream: Ints, runs: int, seed: int) -> Transcript:
        """Run them side by side."""
        return self._run(stream, runs, self.noise(seed))[0]

    def likelihood_ratio(self, pair: Pair, one: Transcript, other: Transcript) -> Score:
        """An attack: the exact log-likelihood ratio of all released slots, by the scales that the plan makes public."""
        (first, rates), (second, _) = (self._run(stream, 2, Zero()) for stream in (pair.stream, pair.neighbour))
        assert first.extra is not None
        assert second.extra is not None
        expected, expected_neighbour = first.extra[0, : len(rates)], second.extra[0, : len(rates)]

        def score(seen: Transcript) -> Floats:
            assert seen.extra is not None
            slots = seen.extra[:, : len(rates)]
            return np.asarray((np.abs(slots - expected) - np.abs(slots - expected_neighbour)) @ rates)

        return score

    def _run(self, stream: Ints, runs: int, noise: Source) -> tuple[Transcript, Floats]:
        """What is seen, and one over the noise scale of each slot."""
        answers = self.start(replicas=runs, noise=noise)
        answers.meter = meter = RecordingMeter(answers.meter)
        due = answers.push_many(stream)
        answered = due.value.reshape(len(due), runs, stream.shape[-1])
        values = np.zeros((runs, *stream.shape))
        for index in np.lexsort((due.begin, due.refined))[~np.sort(due.refined)]:
            values[:, due.end[index] - 1] = answered[index]
        seen = np.concatenate([meter.slots, answered])
        return Transcript(values, extra=np.moveaxis(seen, 1, 0).reshape(runs, -1)), meter.rates


class RecordingMeter(Meter):
    """A meter that keeps what it hands out of slots."""

    __slots__ = ("budgets", "released")

    def __init__(self, meter: Meter) -> None:
        super().__init__(meter.ledger, meter.source, meter.shape[1], meter.sensitivity)
        self.released: list[Array] = []
        self.budgets: list[Ints] = []

    @property
    def slots(self) -> Array:
        """All slots that were released, `(slots, R, d)`."""
        return np.concatenate([slots.reshape(-1, *self.shape) for slots in self.released])

    @property
    def rates(self) -> Floats:
        """One over the noise scale of each of these slots, bin by bin."""
        return np.asarray(np.repeat(np.concatenate(self.budgets), self.shape[1]) / self._numerator(1, None))

    def _ended(self, sums: SlotSums, counts: Ints, cuts: Sequence[Cut]) -> list[Array]:
        values = super()._ended(sums, counts, cuts)
        self.released += values
        self.budgets += [cut.budgets[: len(cut.ends)] for cut in cuts]
        return values


def plan_pairs(plan: Plan, window: int, bins: int, sensitivity: int) -> Iterator[Pair]:
    """Pairs that differ at the beginning, in the middle and at the end of the plan's slots.

    A person is added at each of `window` ticks, or added and removed in turn, in one bin or hopping; all slots end.
    """
    length = plan.scheme.length
    ticks = -(-(length + window) // length) * length if plan.scheme.periodic else length
    return slot_pairs(length, ticks, window, bins, sensitivity)


def slot_pairs(length: int, ticks: int, window: int, bins: int, sensitivity: int) -> Iterator[Pair]:
    """The same for slots that end after `length` ticks at the latest, on streams of `ticks`."""
    stream = np.full((ticks, bins), 4 * sensitivity)
    for begin in sorted({0, length // 2, max(length - window, 0)}):
        for signs in added_or_in_turn(window):
            changes = [sensitivity * sign for sign in signs[: ticks - begin]]
            for place in PLACES if bins > 1 and window > 1 else PLACES[:1]:
                yield changed(f"from tick {begin}", stream, begin, changes, place)


def audit_plan(
    plan: Plan,
    *,
    bins: int = 1,
    window: int = 1,
    sensitivity: int = 1,
    secure: bool = False,
    **options: Unpack[AuditOptions],
) -> Verdict:
    """Attack a plan at work.

    Parameters
    ----------
    plan
        What is attacked, with the epsilon that it claims.
    bins, window, sensitivity
        How it is started.
    secure
        Attack the real noise; otherwise it is seeded.
    **options
        As in `audit`.
    """
    start = functools.partial(plan.start, bins=bins, window=window, sensitivity=sensitivity)
    subject = PlanSubject(start, noise_by_seed(secure=secure))
    return audit_start(subject, plan, plan.epsilon, bins=bins, window=window, sensitivity=sensitivity, **options)


def audit_start(
    subject: PlanSubject,
    plan: Plan,
    epsilon: float,
    *,
    bins: int,
    window: int,
    sensitivity: int,
    **options: Unpack[AuditOptions],
) -> Verdict:
    """Attack whatever `subject` starts, on pairs made for the slots of `plan`."""
    return audit_slots(subject, plan_pairs(plan, window, bins, sensitivity), epsilon, **options)


def audit_slots(
    subject: PlanSubject, pairs: Iterable[Pair], epsilon: float, **options: Unpack[AuditOptions]
) -> Verdict:
    """Attack whatever `subject` starts, also by the likelihood of its slots."""
    attacks: dict[str, Attack] = ATTACKS | {"likelihood ratio of slots": subject.likelihood_ratio}
    return audit(subject, list(pairs), epsilon, attacks=attacks, **options)
