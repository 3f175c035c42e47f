"""A plan at work: ticks in, private answers out, each when its window ends.

Every slot of the plan is a sealed sum that charges each tick in it when the tick is added, and is read once, when it
ends; the ledger holds, for every tick, what the slots over it cost together. True counts are checked, handed to the
meter and forgotten; answers are made of the noisy sums of slots that ended, and of nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypedDict

import numpy as np

from eventide.arrays import Array, Ints
from eventide.errors import InputError, StateError
from eventide.events.bins import checked_names
from eventide.mechanisms.base import LARGEST_SENSITIVITY, whole_counts
from eventide.privacy.amounts import NANO, SMALLEST
from eventide.privacy.ledger import WindowLedger, positive_integer
from eventide.privacy.meter import Meter
from eventide.privacy.noise import Source, source
from eventide.streams.named_counts import in_order, refuse_names
from eventide.windows.answering.plan_epoch import Past, PlanEpoch
from eventide.windows.answering.schedule import Answer, Due
from eventide.windows.answering.timetable import Closing
from eventide.windows.plans import Plan
from eventide.windows.schemes.nested import Nested
from eventide.windows.slot_promise import OfSlots
from eventide.windows.workload import LONGEST, Query, Workload

AT_ONCE = 1 << 16  # ticks that a ledger passes over together

Bins = int | Sequence[str] | None


class Settings(TypedDict, total=False):
    """How plans are started; `Answers` says what each means."""

    window: int
    sensitivity: int
    noise: str | Source
    seed: int | None
    replicas: int
    refine: bool
    tick: int


class EndedSlots(NamedTuple):
    """What the meter gave out in some ticks: how each level cut them, and the slots that ended, `(slots, R, d)`.

    All of it is private.
    """

    ticks: int
    closings: list[Closing]
    values: list[Array]


class Answers(OfSlots):
    """Answers the queries of one plan on one stream of counts.

    Parameters
    ----------
    plan
        What is answered, and from which slots.
    bins
        How many counts a tick has, or their names; one plan answers all of them. None for a single count that is given
        as a plain number.
    window
        How many consecutive ticks are protected together; each gets one part in `window` of epsilon.
    sensitivity
        The most that one person adds to a tick over all bins.
    noise
        "secure", "opendp", or a source of `eventide.noise` for tests.
    seed
        `seed=7` is short for `noise=Seeded(7)`.
    replicas
        How many independent copies of the noise run over the same counts.
    refine
        Answer every window once more when no slot to come can make its answer better.
    tick
        The first one. Windows begin at multiples of their steps, counted from tick 0, so those that would begin before
        the first are left out.

    >>> from eventide import windows
    >>> from eventide.privacy.noise import Zero
    >>> answers = windows.plan([windows.Query(window=4, step=2)]).start(noise=Zero())
    >>> for count in (5, 1, 0, 2):
    ...     due = answers.push(count)
    >>> due[0].begin, due[0].end, due[0].value
    (0, 4, 8.0)
    """

    state = ("source", "_sums", "_epoch")

    def __init__(
        self,
        plan: Plan,
        bins: Bins = None,
        *,
        window: int = 1,
        sensitivity: int = 1,
        noise: str | Source = "secure",
        seed: int | None = None,
        replicas: int = 1,
        refine: bool = False,
        tick: int = 0,
    ) -> None:
        self.sensitivity = positive_integer(sensitivity, "sensitivity", LARGEST_SENSITIVITY)
        self.ledger = WindowLedger(Fraction(plan.budget, NANO), window, replicas)
        if tick:
            plan = plan.at(positive_integer(tick, "tick", LONGEST))
            self.pass_over(tick, 0)
        if refine and not isinstance(plan.scheme, Nested):
            raise InputError("this plan answers by chains of slots, which cannot be refined; start it without refine")
        if plan.budget // self.ledger.window < SMALLEST:
            raise InputError(
                f"epsilon {plan.epsilon:g} leaves less than 0.000001 for each of {self.ledger.window:,} ticks; give "
                "more of it, or a shorter window"
            )
        self.source, self.refine, self.bins = source(noise, seed), refine, _names(bins)
        size = 1 if self.bins is None else len(self.bins)
        self.meter = Meter(self.ledger, self.source, size, self.sensitivity)
        several = (self.ledger.replicas,) if self.ledger.replicas > 1 else ()
        self._shape = several if self.bins is None else (*several, size)
        self.begin(plan, tick)

    def begin(self, plan: Plan, tick: int, past: Past | None = None) -> None:
        """Begin an epoch: answer `plan` from a tick on, with what was released in the past."""
        self.plan = plan
        past = Past.empty(self._cells) if past is None else past
        self._epoch = PlanEpoch(plan, self.ledger.window, self.sensitivity, self._shape, tick, past, self.refine)
        self._sums = self.meter.slot_sums(len(self._epoch.timetable.lanes))

    def pass_over(self, ticks: int, charge: int) -> None:
        """Charge that many nano-epsilon for each of some ticks that are never pushed."""
        for first in range(0, ticks, AT_ONCE):
            self.ledger.charge_each(np.full(min(AT_ONCE, ticks - first), charge, dtype=np.int64))

    @property
    def tick(self) -> int:
        """How many ticks were pushed."""
        return self.ledger.step

    @property
    def since(self) -> int:
        """The tick from which on the present plan is answered."""
        return self._epoch.begin

    def push(self, counts: Any) -> list[Answer]:
        """Take the counts of the next tick, a number or one for each bin, and give the answers that are due by it.

        A dict, a Series or a frame of one row is matched with the bins by name.
        """
        return list(self.push_many([counts if self.bins is None else in_order(counts, self.bins, one_step=True)]))

    def push_many(self, counts: Any) -> Due:
        """Take the counts of several ticks, `(ticks,)` or `(ticks, d)`; the answers are those of one push each.

        The columns of a frame or a dict are matched with the bins by name; names that are missing or unknown are an
        error. All ticks are charged, or none, before anything is drawn.
        """
        checked = self.checked(counts)
        return self.take(self.measure(checked)) if len(checked) else self._epoch.nothing()

    def checked(self, counts: Any) -> Ints:
        """Counts of several ticks as an array `(ticks, d)`, or a refusal that shows none of them."""
        if self.bins is None:
            refuse_names(counts)
        ordered = counts if self.bins is None else in_order(counts, self.bins)
        whole, size = whole_counts(ordered), self.meter.shape[1]
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

    def measure(self, counts: Ints) -> EndedSlots:
        """Charge ticks whose counts are checked, and read the slots that end in them; the first half of a push."""
        if self._epoch.tick != self.tick:
            raise StateError("a push was broken off and what was drawn is lost; go on from the last saved state")
        closings = self._epoch.close(len(counts))
        values = self.meter.sum_slots(self._sums, counts, [closing.cut for closing in closings])
        return EndedSlots(len(counts), closings, values)

    def take(self, ended: EndedSlots) -> Due:
        """Answer with what ended; the second half of a push."""
        values = [slots.reshape(-1, self._cells) for slots in ended.values]
        return self._epoch.take(ended.ticks, ended.closings, values)

    def replan(
        self, queries: Sequence[Query] | None = None, planner: str | None = None, horizon: int | None = None
    ) -> Due:
        """Answer other queries, or the same ones with a fresh plan, from the next tick on; epsilon stays.

        Open slots end here and are released as they are, with the budget their ticks were charged. New slots contain no
        earlier tick. A window that reaches back across the boundary is answered if a released slot began where it does,
        as far back as the last plan's longest window at least; otherwise the query's first windows are left out. The
        horizon counts from here. Gives the refined answers that this makes due.
        """
        workload = Workload.of(self.plan.queries if queries is None else queries, horizon, self.tick)
        plan = Plan(workload, Fraction(self.plan.budget, NANO), planner or self.plan.planner)
        if self.refine and not isinstance(plan.scheme, Nested):
            raise InputError("the new plan answers by chains of slots, which cannot be refined; use planner='best'")
        open_slots = self.meter.end_slots(self._sums).reshape(-1, self._cells)
        due, past = self._epoch.end(open_slots, int(workload.window.max()))
        self.begin(plan, self.tick, past)
        return due

    def save(self) -> bytes:
        """Everything needed to go on from this tick, as bytes that `eventide.windows.load` reads."""
        from eventide.windows.saving import save_answers

        return save_answers(self)

    def __repr__(self) -> str:
        return f"<Answers at tick {self.tick}>"

    @property
    def _cells(self) -> int:
        return self.meter.shape[0] * self.meter.shape[1]


def _names(bins: Bins) -> tuple[str, ...] | None:
    if bins is None:
        return None
    if isinstance(bins, str | bytes):
        raise InputError("bins is the number of bins, or a list of their names")
    if isinstance(bins, Sequence | np.ndarray):
        return checked_names([str(name) for name in bins], "the list of bins", "name")
    return tuple(map(str, range(positive_integer(bins, "bins"))))
