"""Window queries that a publisher answers beside its releases, from a share of epsilon of their own.

Releases and answers are about the same people, so their shares add up: to the epsilon that the store keeps to, that its
guarantee names, and that is verified. Inside a window of w steps every step gets one part in w of the queries' share;
beside a mechanism with a window sensitivity, the part of it that a step of such a mechanism gets.
Counts of a step go in; out come its answers, its charges and what a store must keep, of which only the open slots are
raw.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Ints
from eventide.errors import InputError, StoreError
from eventide.live import faults
from eventide.live.stores.base import PlanStep, StoreState
from eventide.mechanisms.base import Mechanism
from eventide.privacy.amounts import NANO, Amount, nano
from eventide.privacy.ledger import Entry, WindowLedger
from eventide.privacy.noise import named
from eventide.releases.answer_formats import AnswerRows, objects
from eventide.windows import plan
from eventide.windows.answering.answers import Answers
from eventide.windows.answering.recording import TickRecorder
from eventide.windows.answering.schedule import Due
from eventide.windows.workload import Query

OF = ("bins", "total")
SNAPSHOT_EVERY = 512  # steps; in between only what they released is kept


@dataclass(frozen=True)
class Questions:
    """Queries, and the epsilon that their answers may spend in every window.

    Parameters
    ----------
    queries
        What is asked. A tick is a step.
    epsilon
        What all answers together may spend in every window.
    of
        "bins" answers each query for every bin, "total" for all bins together, which is more precise than a sum of
        answers.
    truncate
        Give whole numbers from 0 up.

    >>> from eventide.windows.workload import Query
    >>> Questions((Query(window=6, step=1, name="hour"),), epsilon=0.3, of="total").names(("north", "south"))
    ('total',)
    """

    queries: tuple[Query, ...]
    epsilon: Amount
    of: str = "bins"
    truncate: bool = False

    def __post_init__(self) -> None:
        if self.of not in OF:
            raise InputError(f"queries of {self.of!r} mean nothing; choose {' or '.join(OF)}")

    @property
    def budget(self) -> int:
        """Their share of epsilon, in nano-epsilon."""
        return nano(self.epsilon)

    def names(self, bins: tuple[str, ...]) -> tuple[str, ...]:
        """What the values of an answer are about, in their order."""
        return bins if self.of == "bins" else ("total",)

    def counts(self, counts: Ints) -> Ints:
        """What is asked about, of the counts of a step."""
        return counts if self.of == "bins" else counts.sum(keepdims=True)

    def start(self, mechanism: Mechanism, tick: int = 0) -> Answers:
        """A plan for the queries, at work from a step on beside a mechanism, for the same people and windows."""
        if len({str(query) for query in self.queries}) < len(self.queries):
            raise InputError("two queries are the same, and their answers could not be told apart; leave one out")
        return plan(self.queries, Fraction(mechanism.ledger.shared(self.budget), NANO)).start(
            bins=self.names(mechanism.bins),
            window=mechanism.shared_steps,
            sensitivity=mechanism.sensitivity,
            noise=named(mechanism.source.name),
            tick=tick,
        )

    def described(self) -> dict[str, Any]:
        """What a store remembers of them; another description is another setting."""
        queries = [asdict(query) for query in self.queries]
        return {"queries": queries, "epsilon": self.budget, "of": self.of, "truncate": self.truncate}

    def assumption(self, steps: int) -> str:
        """What the guarantee says about their share, which so many steps share."""
        share, part = self.budget / NANO, "" if steps == 1 else f": one part in {steps} of that at each step"
        return f"of this epsilon {share:g} is for answers to window queries{part}"


class StepAnswers(NamedTuple):
    """What a step brought: answers as a release line shows them, charges, and what the store keeps of the plan."""

    answers: list[dict[str, Any]]
    entries: list[Entry]
    plan: PlanStep | None


NOTHING = StepAnswers([], [], None)


class Answering:
    """Answers the questions of a publisher from where its store stands."""

    def __init__(self, questions: Questions, mechanism: Mechanism, state: StoreState) -> None:
        self._questions = questions
        self._recorder = _taken_up(questions, mechanism, state)
        self._since_snapshot = SNAPSHOT_EVERY if state.plan is None else len(state.plan.released)
        self._entries: list[Entry] = []
        self.ledger.entries = self._entries

    @property
    def ledger(self) -> WindowLedger:
        """What the answers have spent."""
        return self._recorder.answers.ledger

    def take(self, counts: Ints) -> StepAnswers:
        """Charge a step, read the slots that end with it, and answer what is due."""
        due, released = self._recorder.push(self._questions.counts(counts))
        entries = list(self._entries)
        self._entries.clear()
        return StepAnswers(self._objects(due), entries, self._kept(released))

    def _objects(self, due: Due) -> list[dict[str, Any]]:
        values = np.maximum(np.rint(due.value), 0) if self._questions.truncate else due.value
        names = [str(due.queries[query]) for query in due.query]
        return objects(AnswerRows(names, due.begin, due.end, values, due.variance))

    def _kept(self, released: bytes) -> PlanStep:
        self._since_snapshot += 1
        if self._since_snapshot < SNAPSHOT_EVERY:
            return PlanStep(released, self._recorder.open_slots(), whole=False)
        faults.passing("before-snapshot")
        self._since_snapshot = 0
        snapshot = self._recorder.snapshot()
        faults.passing("after-snapshot")
        return PlanStep(snapshot, self._recorder.open_slots(), whole=True)


def _taken_up(questions: Questions, mechanism: Mechanism, state: StoreState) -> TickRecorder:
    """The plan at its beginning, or as it stood when the last step was committed."""
    record = state.plan
    if record is None:
        recorder = TickRecorder(questions.start(mechanism, state.measured_from))
    else:
        recorder = TickRecorder.from_record(record.snapshot, record.released, record.open_slots)
    if recorder.answers.tick != max(state.next_step, state.measured_from):
        raise StoreError("the store's record of the window queries does not reach its last step; restore a backup")
    return recorder
