"""The meter: the only door between true counts and everything else.

It offers a small, closed set of measurements. Each asks the ledger first, draws its noise by a fixed rule from charge
to scale, and hands out private numbers. Every scale is sensitivity / charge (times the factor of a sparse-vector run),
where the sensitivity is the most one person adds to a step over all bins together. So a bug in a mechanism can waste
budget, but can neither overspend nor leak.

All amounts are integer nano-epsilon arrays: a column `(R, 1)` for all bins alike, or one for each bin or group. An
amount of 0 asks for nothing: that cell is not measured and not charged.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.errors import InputError, StateError
from eventide.privacy.amounts import NANO
from eventide.privacy.amplification import amplified
from eventide.privacy.group_test import GroupTest
from eventide.privacy.ledger import WindowLedger
from eventide.privacy.measured import Measured
from eventide.privacy.noise import Source
from eventide.privacy.partition import Partition
from eventide.privacy.recorded_answers import RecordedAnswers
from eventide.privacy.sealed import SealedStep, destroy, unseal
from eventide.privacy.slot_sums import Cut, SlotSums
from eventide.privacy.sum_over_steps import SumOverSteps
from eventide.privacy.threshold_test import ThresholdTest


class Draw(NamedTuple):
    """One line of the meter's journal: which measurement drew noise of scale numerator / charges, at which step."""

    kind: str
    step: int
    numerator: int
    charges: Ints
    shape: tuple[int, ...]


class Meter:
    """Measurements of `size` bins for `replicas` streams, charged to `ledger`, with noise from `source`.

    `journal`, when set to a list, collects every draw, so that a contract can compare draws with charges. `recorded`,
    when set, records every answer, or gives recorded ones.
    """

    __slots__ = ("_current", "journal", "ledger", "recorded", "sensitivity", "shape", "source")

    def __init__(self, ledger: WindowLedger, source: Source, size: int, sensitivity: int = 1) -> None:
        self.ledger = ledger
        self.source = source
        self.sensitivity = sensitivity
        self.shape = (ledger.replicas, size)
        self.journal: list[Draw] | None = None
        self.recorded: RecordedAnswers | None = None
        self._current: SealedStep | None = None

    def seal(self, counts: Ints) -> SealedStep:
        """Seal the counts `(1 or R, d)` of the current step."""
        if self._current is not None:
            raise StateError("the current step was sealed already")
        self._current = SealedStep(self.ledger.step, counts)
        return self._current

    def advance(self) -> None:
        """End the current step: its counts are forgotten, what it was charged stays charged, the ledger moves on."""
        if self._current is not None:
            destroy(self._current)
            self._current = None
        self.ledger.advance()

    def counts(self, step: SealedStep, amount: Ints, groups: Partition | None = None) -> Measured:
        """Noisy counts of the bins, or of the sums of disjoint groups of bins.

        Private because: one person moves all bins together by at most sensitivity, so noise of scale sensitivity /
        amount costs amount; the budget of a group is charged to each of its bins.
        """
        truth, amount, about = self._open(step), self.ledger.checked(amount), {}
        if groups is not None:
            truth, about = sums_of(groups, truth), {"groups": groups.labels}
        self._charge(amount if groups is None else groups.spread(amount))
        return self._measured("counts", lambda: truth, amount, (self.shape[0], truth.shape[1]), about)

    def distance(self, step: SealedStep, reference: Array, amount: Ints, groups: Partition | None = None) -> Array:
        """Noisy L1 distance to a released vector, `(R, 1)`, or for each group `(R, groups)`; 0 where not asked.

        Private because: one person moves the distance by at most sensitivity, whatever the reference; cutting each
        term at a constant, which keeps the sum of all bins inside 64 bits, never adds to that.
        """
        total, amount = self._distances(step, reference, groups), self.ledger.checked(amount)
        self._charge(amount if groups is None else groups.spread(amount))
        about = {"reference": reference} | ({} if groups is None else {"groups": groups.labels})
        return self._measured("distance", lambda: total, amount, (self.shape[0], total.shape[1]), about).values

    def thinned(self, step: SealedStep, percent: Ints, amount: Ints) -> Measured:
        """Noisy counts of a random sample that keeps each event with probability percent / 100.

        Private because: one event costs ln(1 + b (exp(e') - 1)) when a sample at rate b is measured with budget e';
        e' is the largest for which that is at most amount / sensitivity, and a person adds at most sensitivity events.
        """
        truth, amount = np.broadcast_to(self._open(step), self.shape), self.ledger.checked(amount)
        budget = np.broadcast_to(amplified(amount, percent, self.sensitivity), self.shape)
        self.ledger.charge(np.where(budget > 0, amount, 0))
        sampled = np.where(budget > 0, percent, 0)
        sample = functools.partial(self.source.binomial, truth, sampled)
        return self._measured("thinned counts", sample, budget, self.shape, {"percent": sampled}, sensitivity=1)

    def sum_over_steps(self, amount: Ints) -> SumOverSteps:
        """A sealed accumulator whose cells are read with budget `amount`; see `SumOverSteps` for why it is private."""
        return SumOverSteps(self.ledger.checked(amount), self.shape)

    def add(self, step: SealedStep, sums: SumOverSteps) -> None:
        """Charge the step and add its counts to the accumulator, in the bins that have a budget."""
        truth, added = self._open(step), sums.amount > 0
        self._hidden("add", sums.amount)
        self.ledger.charge(sums.amount)
        sums._sums = np.minimum(sums._sums + np.where(added, truth, 0), 2**62)  # cut, not wrapped: never moves further
        sums._steps += added

    def read(self, sums: SumOverSteps, where: Bools | None = None) -> Measured:
        """The noisy sums of the cells in `where` that hold any step, once: they begin anew. Already charged."""
        reading = sums._steps > 0 if where is None else where & (sums._steps > 0)
        result = self._measured("sum over steps", lambda: sums._sums, np.where(reading, sums.amount, 0), self.shape)
        sums._sums[reading] = 0
        sums._steps[reading] = 0
        return result

    def slot_sums(self, levels: int) -> SlotSums:
        """Sealed sums over slots of several levels, for `sum_slots`; see `SlotSums` for why they are private."""
        return SlotSums(levels, self.shape[1])

    def sum_slots(self, sums: SlotSums, counts: Ints, cuts: Sequence[Cut]) -> list[Array]:
        """Charge the next steps, of counts `(steps, d)`, and read the slots that end, `(slots, R, d)` a level.

        Every replica has the same counts; `cuts` say how each level cuts the steps. All steps are charged before
        anything is added or drawn; where that is refused nothing changes. What ended without a budget is 0.
        """
        self.ledger.charge_each(sums.checked(cuts, len(counts), self.ledger.nano_epsilon))
        return self._ended(sums, counts, cuts)

    def end_slots(self, sums: SlotSums) -> Array:
        """End all open slots now and read them, `(levels, R, d)`; 0 where none was open. Already charged."""
        ending = np.zeros(1, dtype=np.int64)  # a level that is not open ends an empty slot without a budget
        budgets = np.where(sums._open, sums._budgets, 0)
        cuts = [Cut(ending, budgets[level : level + 1]) for level in range(len(budgets))]
        nothing = np.zeros((1, self.shape[1]), dtype=np.int64)
        return np.concatenate(self._ended(sums, nothing, cuts))

    def threshold_test(self, lane: str = "test") -> ThresholdTest:
        """A sparse-vector test over distances; no run is open yet. See `ThresholdTest` for why it is private."""
        return ThresholdTest(lane, self.shape[0])

    def open_test(self, test: ThresholdTest, amount: Ints) -> None:
        """Begin a run with budget `amount` in the replicas where that is not 0: a span opens in the ledger."""
        amount = self.ledger.checked(amount)
        self._hidden("open test", amount)
        self.ledger.open_span(amount, test.lane)
        noise = self._draw("test", test.THRESHOLD_FACTOR, amount, (self.shape[0], 1))
        test._threshold_noise = np.where(amount > 0, noise, test._threshold_noise)
        test._budget = np.where(amount > 0, amount, test._budget)

    def above(self, test: ThresholdTest, step: SealedStep, reference: Array, threshold: Array) -> Bools:
        """In which replicas with an open run is the distance to `reference` above `threshold`? Those runs end."""
        if (self.ledger.open_spans(test.lane) < test._budget).any():
            raise StateError("the ledger does not hold what this run costs; open it through the meter")
        total = self._distances(step, reference)

        def compare() -> Bools:
            noise = self._draw("test", test.QUERY_FACTOR, test._budget, (self.shape[0], 1))
            above: Bools = total + noise >= threshold + test._threshold_noise
            return above

        about = {"amount": test._budget, "reference": reference, "threshold": threshold}
        positive: Bools = self._answered("test", (self.shape[0], 1), about, compare) & test.running
        self.close_test(test, positive)
        return positive

    def close_test(self, test: ThresholdTest, where: Bools | None = None) -> None:
        """End open runs at this step."""
        ending = test.running if where is None else where & test.running
        self.ledger.close_span(ending, test.lane)
        test._budget = np.where(ending, 0, test._budget)
        test._threshold_noise = np.where(ending, 0, test._threshold_noise)

    def group_test(self, amount: Ints, longest: int) -> GroupTest:
        """A grouper of steps, bin by bin, with budget `amount` a step. See `GroupTest` for why it is private."""
        return GroupTest(self.ledger.checked(amount), self.shape, longest)

    def grouped(self, test: GroupTest, step: SealedStep, threshold: Array) -> tuple[Bools, Bools]:
        """Charge the step and place it: in which bins does it join the open group, in which does it begin one?

        Where it does neither it closed the group that was open and stands alone.
        """
        truth = np.broadcast_to(self._open(step), self.shape)
        self.ledger.charge(test.amount)
        begins = ~test.open
        deviation = test.deviation_with(truth)

        def compare() -> Bools:
            noise = self._draw("test", test.QUERY_FACTOR, test.amount, self.shape)
            return deviation + noise < threshold + test._threshold_noise

        joins: Bools = np.zeros(self.shape, dtype=np.bool_)
        if test.amount.any():
            self._hide()
            about = {"amount": test.amount, "open": ~begins, "threshold": threshold}
            joins = self._answered("group test", self.shape, about, compare) & ~begins
        full = test._counts.sizes >= test.longest - 1
        test.join(truth, joins, deviation)
        test.close(~begins & (~joins | full))
        test.begin(truth, begins, self._draw("test", test.THRESHOLD_FACTOR, test.amount, self.shape))
        return joins, begins

    def _ended(self, sums: SlotSums, counts: Ints, cuts: Sequence[Cut]) -> list[Array]:
        """Add counts `(steps, d)` to the slots, and read those that end in order of time and level."""
        truths = [sums._totals(level, counts, cut) for level, cut in enumerate(cuts)]
        closing = [len(cut.ends) for cut in cuts]
        truth = np.concatenate([total[:count] for total, count in zip(truths, closing, strict=True)])
        budget = np.concatenate([cut.budgets[:count] for cut, count in zip(cuts, closing, strict=True)])
        end = np.concatenate([cut.ends for cut in cuts])
        order = np.lexsort((np.repeat(np.arange(len(cuts)), closing), end))
        order = order[budget[order] > 0]

        def read() -> Array:
            noise = self._draw_in_turn("sum over steps", budget[order])
            values = np.zeros((len(budget), *self.shape), dtype=noise.dtype)
            values[order] = truth[order, None] + noise
            return values

        self._hide()  # a slot is open, or was until now
        about = {"amount": budget[:, None, None], "ends": end} | {f"cut {n}": cut.budgets for n, cut in enumerate(cuts)}
        values = self._answered("slots", (len(budget), *self.shape), about, read)
        sums._keep([total[count:] for total, count in zip(truths, closing, strict=True)], cuts)
        return np.split(values, np.cumsum(closing)[:-1])

    def _charge(self, amount: Ints) -> None:
        """Charge the current step, or refuse and change nothing."""
        self.ledger.charge(amount)

    def _open(self, step: SealedStep) -> Ints:
        if not isinstance(step, SealedStep):
            raise StateError("the meter measures sealed steps only")
        truth = unseal(step)
        if step.index != self.ledger.step:
            raise StateError(f"step {step.index} is over; it can be measured only while it is the current one")
        if step is not self._current:
            raise StateError("this step belongs to another meter")
        return truth

    def _distances(self, step: SealedStep, reference: Array, groups: Partition | None = None) -> Ints:
        """The true L1 distance of a sealed step, `(R, 1)`, or that of each group."""
        terms = self._differences(self._open(step), reference)
        return terms.sum(axis=1, keepdims=True) if groups is None else sums_of(groups, terms)

    def _differences(self, counts: Ints, reference: Array) -> Ints:
        """|count - reference| of each bin, cut so that the sum over all bins stays inside 64 bits."""
        terms: Ints = np.abs(counts - _whole(reference))
        longest = 2**62 // self.shape[1]
        return np.minimum(terms, longest) if terms.max() > longest else terms

    def _measured(
        self,
        kind: str,
        truth: Callable[[], Ints],
        amount: Ints,
        shape: tuple[int, int],
        about: dict[str, Array] | None = None,
        sensitivity: int | None = None,
    ) -> Measured:
        """Truth plus noise where the amount is not 0, nothing elsewhere."""
        fresh = amount > 0
        everywhere = fresh.all()

        def measure() -> Array:
            values = truth() + self._draw(kind, 1, amount, shape, sensitivity)
            return values if everywhere else np.where(fresh, values, 0)

        values = self._answered(kind, shape, {"amount": amount, **(about or {})}, measure)
        with np.errstate(divide="ignore"):  # infinite where the amount is 0
            scale = self._numerator(1, sensitivity) / amount
        return Measured(values, scale, fresh)

    def _answered(
        self, kind: str, shape: tuple[int, ...], about: dict[str, Array], measure: Callable[[], Array]
    ) -> Array:
        """What `measure` gives, which must be private; or what it gave before, where a step is replayed.

        Whatever is asked comes by here. `about` is all that decides the answer but the true counts: amount, groups,
        reference, threshold. `eventide.audit.two_worlds` listens here.
        """
        return measure() if self.recorded is None else self.recorded.answer(kind, shape, measure)

    def _hidden(self, kind: str, amount: Ints) -> None:
        """Something is asked for that stays inside: there is no answer."""
        if amount.any():
            self._hide()
            self._answered(kind, (0,), {"amount": amount}, lambda: np.empty(0))

    def _hide(self) -> None:
        """Note in the record that something true stays inside."""
        if self.recorded is not None:
            self.recorded.hide()

    def _draw(
        self, kind: str, factor: int, charges: Ints, shape: tuple[int, int], sensitivity: int | None = None
    ) -> Array:
        numerator = self._numerator(factor, sensitivity)
        if self.journal is not None:
            self.journal.append(Draw(kind, self.ledger.step, numerator, np.array(charges), shape))
        if self.recorded is not None and charges.any():
            self.recorded.drawn()
        return self.source.laplace(numerator, charges, shape)

    def _draw_in_turn(self, kind: str, charges: Ints) -> Array:
        numerator = self._numerator(1, None)
        if self.journal is not None:
            self.journal.append(Draw(kind, self.ledger.step, numerator, charges, self.shape))
        return self.source.laplace_in_turn(numerator, charges, self.shape)

    def _numerator(self, factor: int, sensitivity: int | None) -> int:
        return factor * (self.sensitivity if sensitivity is None else sensitivity) * NANO


def sums_of(groups: Partition, values: Ints) -> Ints:
    """The sums of groups; nothing but a partition itself may see true counts."""
    if type(groups) is not Partition:
        raise StateError("groups of bins are given as a Partition")
    return groups.sums(values)


def _whole(reference: Array) -> Ints:
    """A released vector as whole numbers, cut where a difference to a count could leave 64 bits."""
    reference = np.asarray(reference)
    if reference.dtype.kind == "f":
        reference = np.rint(reference)
        if np.isnan(reference).any():
            raise InputError("a distance needs a reference without gaps")
    return np.clip(reference, -(2**60), 2**60).astype(np.int64)
