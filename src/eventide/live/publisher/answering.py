"""The plan of a publisher at work: counts of a step in; out come its answers, its charges and what a store must keep.

Everything that is kept but the open slots is private.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Ints
from eventide.errors import StoreError
from eventide.live import faults
from eventide.live.publisher.questions import Questions
from eventide.live.stores.base import PlanRecord, PlanStep, Standing
from eventide.mechanisms.base import Mechanism
from eventide.privacy.ledger import Entry, WindowLedger
from eventide.releases.answer_formats import AnswerRows, objects
from eventide.windows.answering.recording import TickRecorder
from eventide.windows.answering.schedule import Due

SNAPSHOT_EVERY = 512  # steps; in between only what they released is kept


class Answered(NamedTuple):
    """What a step brought: answers as a release line shows them, charges, and what the store keeps of the plan."""

    answers: list[dict[str, Any]]
    entries: list[Entry]
    plan: PlanStep | None


NOTHING = Answered([], [], None)


class Answering:
    """Answers the questions of a publisher from where its store stands."""

    def __init__(self, questions: Questions, mechanism: Mechanism, standing: Standing) -> None:
        self._questions = questions
        self._recorder = _taken_up(questions, mechanism, standing)
        self._since_snapshot = SNAPSHOT_EVERY if standing.plan is None else len(standing.plan.released)
        self._entries: list[Entry] = []
        self.ledger.entries = self._entries

    @property
    def ledger(self) -> WindowLedger:
        """What the answers have spent."""
        return self._recorder.answers.ledger

    def take(self, counts: Ints) -> Answered:
        """Charge a step, read the slots that end with it, and answer what is due."""
        due, released = self._recorder.push(self._questions.counts(counts))
        entries = list(self._entries)
        self._entries.clear()
        return Answered(self._objects(due), entries, self._kept(released))

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


def _taken_up(questions: Questions, mechanism: Mechanism, standing: Standing) -> TickRecorder:
    """The plan at its beginning, or as it stood when the last step was committed."""
    record: PlanRecord | None = standing.plan
    if record is None:
        recorder = TickRecorder(questions.start(mechanism, standing.measured_from))
    else:
        recorder = TickRecorder.from_record(record.snapshot, record.released, record.open_slots)
    if recorder.answers.tick != max(standing.next_step, standing.measured_from):
        raise StoreError("the store's record of the window queries does not reach its last step; restore a backup")
    return recorder
