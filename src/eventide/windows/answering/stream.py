"""One stream of counts under one plan: the door through which its ticks go in and answers come out.

True counts are checked, handed to the meter and forgotten; what comes back are the noisy sums of slots that ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Array, Ints
from eventide.errors import InputError, StateError
from eventide.events.bins import checked_names
from eventide.mechanisms.base import whole_counts
from eventide.privacy.amounts import NANO, SMALLEST
from eventide.privacy.ledger import WindowLedger, positive_integer
from eventide.privacy.meter import Meter, SlotSteps, sum_slots
from eventide.privacy.noise import Source
from eventide.privacy.state import Stateful
from eventide.windows.answering.epoch import Epoch, Past
from eventide.windows.answering.schedule import Due
from eventide.windows.answering.timetable import Closing
from eventide.windows.plans import Plan
from eventide.windows.schemes.nested import Nested
from eventide.windows.workload import Query, Workload

Bins = int | Sequence[str] | None


class Ended(NamedTuple):
    """What came out through the door in some ticks: how each level cut them, and the slots that ended, `(slots, R, d)`.

    All of it is private.
    """

    ticks: int
    closings: list[Closing]
    values: list[Array]


class Stream(Stateful):
    """Answers a plan's queries on a stream of counts, charging every tick to `ledger`.

    bins: how many counts a tick has, or their names; None for a single count that is given as a plain number. refine:
    whether every window is answered again when no slot to come can make its answer better. tick: the first one.
    """

    state = ("source", "_sums", "_epoch")

    def __init__(
        self,
        plan: Plan,
        ledger: WindowLedger,
        source: Source,
        bins: Bins,
        sensitivity: int,
        refine: bool,
        tick: int = 0,
    ) -> None:
        if refine and not isinstance(plan.scheme, Nested):
            raise InputError("this plan answers by chains of slots, which cannot be refined; start it without refine")
        if plan.budget // ledger.window < SMALLEST:
            raise InputError(
                f"epsilon {plan.epsilon:g} leaves less than 0.000001 for each of {ledger.window:,} ticks; give more of "
                "it, or a shorter window"
            )
        self.bins = _names(bins)
        self.source, self.sensitivity, self.refine, self._ledger = source, sensitivity, refine, ledger
        size = 1 if self.bins is None else len(self.bins)
        self.meter = Meter(ledger, source, size, sensitivity)
        replicas = (ledger.replicas,) if ledger.replicas > 1 else ()
        self._shape = replicas if self.bins is None else (*replicas, size)
        self.begin(plan, tick, Past.empty(self._cells))

    def begin(self, plan: Plan, tick: int, past: Past) -> None:
        """Begin an epoch: answer `plan` from a tick on."""
        self.plan = plan
        self._epoch = Epoch(plan, self._ledger.window, self.sensitivity, self._shape, tick, past, self.refine)
        self._sums = self.meter.slot_sums(len(self._epoch.timetable.lanes))

    @property
    def _cells(self) -> int:
        return self.meter.shape[0] * self.meter.shape[1]

    @property
    def since(self) -> int:
        """The tick at which the epoch began."""
        return self._epoch.begin

    @property
    def holds_raw(self) -> bool:
        """Whether any slot is open."""
        return self._sums.holds_raw

    def checked(self, counts: Any) -> Ints:
        """Counts of several ticks as an array `(ticks, d)`, or a refusal that shows none of them."""
        whole, size = whole_counts(counts), self.meter.shape[1]
        if self.bins is None and whole.ndim == 1:
            whole = whole[:, None]
        if whole.ndim != 2 or whole.shape[1] != size:
            what = "one number for each tick" if self.bins is None else f"a row of {size} numbers for each tick"
            raise InputError(f"counts do not have the shape of this stream; give {what}, 0 included")
        if len(whole) > self._epoch.ticks_left:
            raise StateError(
                f"the plan ends after {self._epoch.ticks_left:,} more ticks; push those, then replan, or plan without "
                "a horizon"
            )
        return whole

    def take(self, ended: Ended) -> Due:
        """Answer with what ended; the second half of a push."""
        values = [slots.reshape(-1, self._cells) for slots in ended.values]
        return self._epoch.take(ended.ticks, ended.closings, values)

    def replan(self, queries: Sequence[Query] | None, planner: str | None, horizon: int | None) -> Due:
        """End the epoch now and begin another; see `Answers.replan`."""
        tick = self._ledger.step
        workload = Workload.of(self.plan.queries if queries is None else queries, horizon, tick)
        plan = Plan(workload, Fraction(self.plan.budget, NANO), planner or self.plan.planner)
        if self.refine and not isinstance(plan.scheme, Nested):
            raise InputError("the new plan answers by chains of slots, which cannot be refined; use planner='best'")
        open_slots = self.meter.end_slots(self._sums).reshape(-1, self._cells)
        due, past = self._epoch.end(open_slots, int(workload.window.max()))
        self.begin(plan, tick, past)
        return due


def push(streams: Sequence[Stream], counts: Sequence[Ints]) -> list[Due]:
    """Take checked counts of equally many ticks of streams that share a ledger; give what became due on each."""
    if not len(counts[0]):
        return [stream._epoch.nothing() for stream in streams]
    return [stream.take(ended) for stream, ended in zip(streams, measure(streams, counts), strict=True)]


def measure(streams: Sequence[Stream], counts: Sequence[Ints]) -> list[Ended]:
    """Charge ticks whose counts are checked, and read the slots that end in them; the first half of a push."""
    if any(stream._epoch.tick != stream._ledger.step for stream in streams):
        raise StateError("a push was broken off and what was drawn is lost; go on from the last saved state")
    ticks = len(counts[0])
    closings = [stream._epoch.close(ticks) for stream in streams]
    steps = [
        SlotSteps(stream.meter, stream._sums, own, [closing.cut for closing in cut])
        for stream, own, cut in zip(streams, counts, closings, strict=True)
    ]
    return [Ended(ticks, cut, levels) for cut, levels in zip(closings, sum_slots(steps), strict=True)]


def _names(bins: Bins) -> tuple[str, ...] | None:
    if bins is None:
        return None
    if isinstance(bins, str | bytes):
        raise InputError("bins is the number of bins, or a list of their names")
    if isinstance(bins, Sequence | np.ndarray):
        return checked_names([str(name) for name in bins], "the list of bins", "name")
    return tuple(map(str, range(positive_integer(bins, "bins"))))
