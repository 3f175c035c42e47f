"""A plan at work: ticks in, private answers out, each when its window ends.

Every slot of the plan is a sealed sum that charges each tick in it when the tick is added, and is read once, when it
ends; the ledger holds, for every tick, what the slots over it cost together. Answers are made of those readings alone.
Several plans may work on several attributes of the same events: they share the ledger, and their charges add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypedDict, Unpack

import numpy as np

from eventide.errors import InputError
from eventide.mechanisms.base import LARGEST_SENSITIVITY
from eventide.privacy.amounts import NANO
from eventide.privacy.guarantees import Guarantee
from eventide.privacy.ledger import WindowLedger, positive_integer
from eventide.privacy.noise import Source, source
from eventide.windows.answering.schedule import Answer, Due
from eventide.windows.answering.stream import Bins, Stream, push
from eventide.windows.plans import Plan, guarantee
from eventide.windows.workload import LONGEST, Query

AT_ONCE = 1 << 16  # ticks that a ledger passes over together


class Settings(TypedDict, total=False):
    """How plans are started.

    window: how many consecutive ticks are protected together; each gets one part in `window` of epsilon. sensitivity:
    the most one person adds to a tick over all bins. noise: "secure", "opendp", or a test source of `eventide.noise`;
    `seed=7` is short for a seeded one. replicas: independent copies of the noise over the same counts. refine: answer
    every window once more when no slot to come can make its answer better. tick: the first one; windows begin at
    multiples of their steps, counted from tick 0, so those that would begin before the first are left out.
    """

    window: int
    sensitivity: int
    noise: str | Source
    seed: int | None
    replicas: int
    refine: bool
    tick: int


class Run:
    """Streams of counts of the same people, one plan each, under one ledger."""

    def __init__(
        self,
        plans: Mapping[str, Plan],
        bins: Mapping[str, Bins],
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
        total = sum(plan.budget for plan in plans.values())
        self.ledger = WindowLedger(Fraction(total, NANO), window, replicas)
        if tick:
            plans = {name: plan.at(positive_integer(tick, "tick", LONGEST)) for name, plan in plans.items()}
        for first in range(0, tick, AT_ONCE):
            self.ledger.charge_each(np.zeros(min(AT_ONCE, tick - first), dtype=np.int64))
        self._streams = {
            name: Stream(
                plan,
                self.ledger,
                source(noise, None if seed is None else seed + position),
                bins.get(name),
                self.sensitivity,
                refine,
                tick,
            )
            for position, (name, plan) in enumerate(plans.items())
        }

    @property
    def tick(self) -> int:
        """How many ticks were pushed."""
        return self.ledger.step

    @property
    def holds_raw(self) -> bool:
        """Whether a saved state would hold sums of true counts: those of slots that are still open."""
        return any(stream.holds_raw for stream in self._streams.values())

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about all answers together."""
        noise = next(iter(self._streams.values())).source
        parts = [f"{name} {stream.plan.epsilon:g}" for name, stream in self._streams.items()]
        shared = f"an event counts once in each of {len(parts)} attributes, whose epsilons add up: {', '.join(parts)}"
        more = (shared,) if len(parts) > 1 else ()
        return guarantee(self.ledger.epsilon, self.ledger.window, self.sensitivity, noise, *more)

    def save(self) -> bytes:
        """Everything needed to go on from this tick, as bytes that `eventide.windows.load` reads."""
        from eventide.windows.saving import save_run

        return save_run(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at tick {self.tick}>"


class Answers(Run):
    """Answers the queries of one plan on one stream.

    bins: how many counts a tick has, or their names; one plan answers all of them.

    >>> from eventide import windows
    >>> from eventide.privacy.noise import Zero
    >>> answers = windows.plan([windows.Query(window=4, step=2)]).start(noise=Zero())
    >>> for count in (5, 1, 0, 2):
    ...     due = answers.push(count)
    >>> due[0].begin, due[0].end, due[0].value
    (0, 4, 8.0)
    """

    def __init__(self, plan: Plan, bins: Bins = None, **settings: Unpack[Settings]) -> None:
        super().__init__({"": plan}, {"": bins}, **settings)

    @property
    def _stream(self) -> Stream:
        return self._streams[""]

    @property
    def plan(self) -> Plan:
        """The plan of the present epoch."""
        return self._stream.plan

    @property
    def bins(self) -> tuple[str, ...] | None:
        """The names of the bins; None for a single count."""
        return self._stream.bins

    def push(self, counts: Any) -> list[Answer]:
        """Take the counts of the next tick, a number or one for each bin, and give the answers that are due by it."""
        return list(self.push_many([counts]))

    def push_many(self, counts: Any) -> Due:
        """Take the counts of several ticks, `(ticks,)` or `(ticks, d)`; the answers are those of one push each.

        All ticks are charged, or none, before anything is drawn.
        """
        return push([self._stream], [self._stream.checked(counts)])[0]

    def replan(
        self, queries: Sequence[Query] | None = None, planner: str | None = None, horizon: int | None = None
    ) -> Due:
        """Answer other queries, or the same ones with a fresh plan, from the next tick on; epsilon stays.

        Open slots end here and are released as they are, with the budget their ticks were charged. New slots contain no
        earlier tick. A window that reaches back across the boundary is answered if a released slot began where it does,
        as far back as the last plan's longest window at least; otherwise the query's first windows are left out. The
        horizon counts from here. Gives the refined answers that this makes due.
        """
        return self._stream.replan(queries, planner, horizon)


class ManyAnswers(Run):
    """Answers about several attributes of the same events, each with a plan and bins of its own.

    >>> from eventide import windows
    >>> from eventide.privacy.noise import Zero
    >>> ward, age = (windows.plan([windows.Query(window=2, step=2)], epsilon=0.5) for _ in range(2))
    >>> answers = windows.start_many({"ward": ward, "age": age}, bins={"age": 3}, noise=Zero())
    >>> due = answers.push_many({"ward": [4, 1], "age": [[1, 2, 1], [0, 0, 1]]})
    >>> due["age"].value
    array([[1., 2., 2.]])
    >>> answers.ledger.epsilon
    1.0
    """

    def __init__(
        self, plans: Mapping[str, Plan], bins: Mapping[str, Bins] | None = None, **settings: Unpack[Settings]
    ) -> None:
        if not plans:
            raise InputError("there is no plan to start; give one for each attribute")
        if unknown := set(bins or ()) - set(plans):
            raise InputError(f"bins are given for {min(unknown)!r}, which has no plan")
        super().__init__(plans, bins or {}, **settings)

    @property
    def plans(self) -> dict[str, Plan]:
        """The present plan of each attribute."""
        return {name: stream.plan for name, stream in self._streams.items()}

    def push(self, counts: Mapping[str, Any]) -> dict[str, list[Answer]]:
        """Take the counts of the next tick of every attribute, and give the answers that are due by it."""
        return {name: list(due) for name, due in self.push_many({name: [own] for name, own in counts.items()}).items()}

    def push_many(self, counts: Mapping[str, Any]) -> dict[str, Due]:
        """Take the counts of several ticks of every attribute; all are charged, or none, before anything is drawn."""
        if set(counts) != set(self._streams):
            raise InputError(f"give counts for each of {', '.join(self._streams)}, and for nothing else")
        checked = [stream.checked(counts[name]) for name, stream in self._streams.items()]
        if len({len(own) for own in checked}) > 1:
            raise InputError("the attributes have different numbers of ticks; give as many for each")
        return dict(zip(self._streams, push(list(self._streams.values()), checked), strict=True))

    def replan(
        self, name: str, queries: Sequence[Query] | None = None, planner: str | None = None, horizon: int | None = None
    ) -> Due:
        """Answer other queries on one attribute from the next tick on; see `Answers.replan`."""
        if name not in self._streams:
            raise InputError(f"there is no attribute {name!r}; there are {', '.join(self._streams)}")
        return self._streams[name].replan(queries, planner, horizon)
