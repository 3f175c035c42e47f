"""A plan at work that is written down tick by tick, so that it can be taken up again without the counts behind it.

What each tick released is private, and with the last snapshot it is enough to rebuild everything but the true sums of
open slots. Those are kept apart, so that each can be erased as soon as its slot has ended. Nothing is drawn when a
record is played.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eventide.errors import StateError
from eventide.privacy.archive import pack, unpack
from eventide.windows.answering.answers import Answers, EndedSlots
from eventide.windows.answering.schedule import Due
from eventide.windows.saving import load


class TickRecorder:
    """Pushes ticks one by one into `answers` and gives what is to be kept of each.

    >>> from eventide import windows
    >>> from eventide.privacy.noise import Zero
    >>> recorder = TickRecorder(windows.plan([windows.Query(window=2, step=2)]).start(noise=Zero()))
    >>> snapshot = recorder.snapshot()
    >>> _, released = recorder.push(5)
    >>> again = TickRecorder.from_record(snapshot, [released], recorder.open_slots())
    >>> again.push(1)[0].value
    array([6.])
    """

    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    @classmethod
    def from_record(cls, snapshot: bytes, released: list[bytes], open_slots: bytes) -> TickRecorder:
        """The plan as it stood after the last tick of the record."""
        answers = load(snapshot)
        if not isinstance(answers, Answers):
            raise StateError("this snapshot holds something else than the answers to one plan")
        recorder = cls(answers)
        for tick in released:
            recorder._play(unpack(tick)["released"])
        recorder.answers._sums.restore(unpack(open_slots))
        return recorder

    def push(self, counts: Any) -> tuple[Due, bytes]:
        """Take the counts of the next tick; give what is due by it, and the slots that it released."""
        ended = self.answers.measure(self.answers.checked([counts]))
        return self.answers.take(ended), pack({"released": ended.values})

    def open_slots(self) -> bytes:
        """The open slots with their true sums: to be guarded, and erased when the next tick is written down."""
        return pack(self.answers._sums.snapshot())

    def snapshot(self) -> bytes:
        """Everything else, without anything raw."""
        sums = self.answers._sums
        held = sums.snapshot()
        sums.restore({name: np.zeros_like(array) for name, array in held.items()})
        try:
            return self.answers.save()
        finally:
            sums.restore(held)

    def _play(self, released: list[Any]) -> None:
        """Take a tick again: it is charged as it was, and what it released is what it released then."""
        closings = self.answers._epoch.close(1)
        if [len(closing.ends) for closing in closings] != [len(values) for values in released]:
            raise StateError("what a tick released does not fit the plan; the record is damaged")
        self.answers.ledger.charge_each(np.sum([closing.cut.charges(1) for closing in closings], axis=0))
        self.answers.take(EndedSlots(1, closings, released))
