"""One plan from one tick on: which slots end when, and the answers made of what was released of them.

A window may begin before the epoch. What earlier epochs released then gives the first part of its answer, if one of
their slots began where the window does. Everything in here is private: true counts never get past the meter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.privacy.state import Stateful
from eventide.windows.answering.estimates import Fused, estimates_for, serving_level
from eventide.windows.answering.schedule import Due, DueWindows, Schedule
from eventide.windows.answering.timetable import Closing, Timetable
from eventide.windows.plans import Plan


class Past(Stateful):
    """What earlier epochs released: estimates of the intervals from some ticks, ascending, to the present epoch."""

    state = ("ticks", "values", "variance")

    def __init__(self, ticks: Ints, values: Floats, variance: Floats) -> None:
        self.ticks, self.values, self.variance = ticks, values, variance

    @classmethod
    def empty(cls, cells: int) -> Past:
        """Nothing was released before."""
        return cls(np.empty(0, dtype=np.int64), np.empty((0, cells)), np.empty(0))

    def find(self, ticks: Ints) -> Ints:
        """The positions of ticks; -1 for one that is not known."""
        if not len(self.ticks):
            return np.full(len(ticks), -1)
        place = np.minimum(np.searchsorted(self.ticks, ticks), len(self.ticks) - 1)
        return np.where(self.ticks[place] == ticks, place, -1)

    def since(self, tick: int) -> Past:
        """The part that begins no earlier than a tick."""
        kept = self.ticks >= tick
        return Past(self.ticks[kept], self.values[kept], self.variance[kept])


class _Located(NamedTuple):
    """Windows that can be answered: their nodes, and for those that begin before the epoch, where the past has them."""

    kind: Ints
    begin: Ints
    end: Ints
    begin_node: Ints
    end_node: Ints
    earlier: Ints

    def part(self, which: Array) -> _Located:
        return _Located(*(column[which] for column in self))


class PlanEpoch(Stateful):
    """A plan that is answered from tick `begin` on, in values of `shape`, with one of `parts` parts of its budgets."""

    state = ("tick", "past", "_estimates", "_waiting")

    def __init__(
        self, plan: Plan, parts: int, sensitivity: int, shape: tuple[int, ...], begin: int, past: Past, refine: bool
    ) -> None:
        self.plan, self.begin, self.past, self.shape = plan, begin, past, shape
        self.tick = begin
        self.origin = plan.workload.start
        self.schedule = Schedule(plan.workload)
        scheme = plan.scheme.divided(parts)
        self.timetable = Timetable(scheme, max(scheme.length, plan.workload.length))
        self._start = self.timetable.last_node(begin - self.origin)
        given = self.timetable, sensitivity, math.prod(shape), int(plan.workload.window.max()), self._start
        self._estimates = estimates_for(scheme, *given, refine=refine)
        self._level = np.array([serving_level(scheme, step) for step in plan.workload.step.tolist()])
        self._refine = refine
        self._waiting: Ints = np.empty((3, 0), dtype=np.int64)  # kind, begin and end of what is yet to be refined

    @property
    def ticks_left(self) -> float:
        """How many more ticks the plan covers."""
        return math.inf if self.timetable.periodic else self.origin + self.timetable.length - self.tick

    def close(self, ticks: int) -> list[Closing]:
        """How each level cuts the next ticks."""
        begin = self.tick - self.origin
        return self.timetable.close(begin, begin + ticks)

    def take(self, ticks: int, closings: Sequence[Closing], released: Sequence[Array]) -> Due:
        """Go on by some ticks, with the values `(slots, cells)` of the slots of each level that ended."""
        until = self.tick + ticks
        taken = [0] * len(closings)
        answered = []
        while self.tick < until:
            block_end = self._block_end()
            stop = until if block_end is None else min(until, block_end)
            for level, (closing, values) in enumerate(zip(closings, released, strict=True)):
                now = slice(taken[level], int(np.searchsorted(closing.ends, stop - self.origin, side="right")))
                self._estimates.release(level, closing.begins[now], values[now])
                taken[level] = now.stop
            self._estimates.close(self.timetable.last_node(stop - self.origin))
            answered += self._answered(stop)
            self.tick = stop
            if stop == block_end:
                self._estimates.shift()
        return self.schedule.due(answered, self.shape)

    def end(self, released: Array, reach: int) -> tuple[Due, Past]:
        """End the epoch now, with the values `(levels, cells)` of open slots; what is known of the last `reach` ticks.

        Also gives the refined answers that no slot can refine any more.
        """
        past = self.past.since(self.tick - reach)
        if self.tick == self.begin:
            return self.nothing(), past
        inside = self.timetable.node(np.array(self.tick - self.origin)) < 0
        last = self._estimates.finish(bool(inside), released)
        due = self.schedule.due([self._refined(self.tick)], self.shape) if self._refine else self.nothing()
        nodes = np.arange(self._estimates.held, last)
        ticks = np.maximum(self.timetable.tick(nodes) + self.origin, self.begin)
        nodes, ticks = nodes[ticks >= self.tick - reach], ticks[ticks >= self.tick - reach]
        values, variance = self._estimates.answer(nodes, np.full_like(nodes, last), np.full_like(nodes, -1))
        if len(past.ticks):
            whole, more = self._estimates.answer(np.array([self._start]), np.array([last]), np.array([-1]))
            values = np.concatenate([past.values + whole, values])
            variance = np.concatenate([past.variance + more, variance])
        return due, Past(np.concatenate([past.ticks, ticks]), values, variance)

    def nothing(self) -> Due:
        """No answer is due."""
        none, values = np.empty(0, dtype=np.int64), np.empty((0, math.prod(self.shape)))
        return self.schedule.due([DueWindows(none, none, none, none, none > 0, values, np.empty(0))], self.shape)

    def _block_end(self) -> int | None:
        if not self.timetable.periodic:
            return None
        return self.origin + self._estimates.full // self.timetable.count * self.timetable.length

    def _answered(self, until: int) -> list[DueWindows]:
        """What is due after the present tick and until another, on time and refined."""
        windows = self._located(*self.schedule.ending(self.tick, until))
        values, variance = self._estimates.answer(windows.begin_node, windows.end_node, self._level[windows.kind])
        answered = [self._with_past(windows, windows.end, False, values, variance)]
        if self._refine:
            self._waiting = np.concatenate([self._waiting, windows[:3]], axis=1)
            answered.append(self._refined(until))
        return answered

    def _refined(self, until: int) -> DueWindows:
        """The refined answers that became due by a tick."""
        assert isinstance(self._estimates, Fused)
        windows = self._located(*self._waiting)
        settled = self._estimates.settled(windows.end_node)
        self._waiting = self._waiting[:, ~settled]
        windows = windows.part(settled)
        due = self.timetable.tick(self._estimates.settles(windows.end_node)) + self.origin
        values, variance = self._estimates.refined(windows.begin_node, windows.end_node)
        return self._with_past(windows, np.minimum(due, until), True, values, variance)

    def _located(self, kind: Ints, begin: Ints, end: Ints) -> _Located:
        inside, earlier = begin >= self.begin, self.past.find(begin)
        begin_node = np.where(inside, self.timetable.node(begin - self.origin), self._start)
        end_node = self.timetable.node(end - self.origin)
        known = (end_node >= 0) & np.where(inside, begin_node >= 0, earlier >= 0)
        earlier = np.where(inside, -1, earlier)
        return _Located(kind, begin, end, begin_node, end_node, earlier).part(known)

    def _with_past(self, windows: _Located, due: Ints, refined: bool, values: Floats, variance: Floats) -> DueWindows:
        longer = np.flatnonzero(windows.earlier >= 0)
        if len(longer):
            values[longer] += self.past.values[windows.earlier[longer]]
            variance[longer] += self.past.variance[windows.earlier[longer]]
        flags = np.full(len(windows.kind), refined)
        return DueWindows(windows.kind, windows.begin, windows.end, due, flags, values, variance)
