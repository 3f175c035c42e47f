"""Estimates of windows from what was released: by least squares in a nested plan, by a chain of slots in others.

Released slots are kept on a line of nodes as far back as open windows reach. An endless stream is taken block by block,
a block being whole cycles and at least as long as the longest window: kept are the present block and the one before, so
memory is bounded, running sums start anew with every block, and no estimate depends on how ticks were handed in. All
that is in here is private.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints
from eventide.errors import InputError
from eventide.privacy.state import Stateful
from eventide.windows.answering.answer_kernels import chain_answers, fuse, fused_answers, refined_variance, spread
from eventide.windows.answering.timetable import Timetable
from eventide.windows.schemes.cover import Layers
from eventide.windows.schemes.nested import Nested
from eventide.windows.schemes.scheme import Scheme

SHORTEST_BLOCK = 512  # nodes; still shorter blocks would be bookkeeping for the most part


class Estimates(Stateful, ABC):
    """Released slots of a timetable, in `cells` cells. Nodes are given by their place on the timetable's line.

    The run begins at node `start`, where all levels have a boundary. `reach` is the longest window in ticks.
    """

    state: ClassVar[tuple[str, ...]] = ("_first", "_closed", "_released")

    def __init__(self, timetable: Timetable, sensitivity: int, cells: int, reach: int, start: int) -> None:
        cycles = max(-(-reach // timetable.length), -(-SHORTEST_BLOCK // timetable.count)) if timetable.periodic else 1
        self.block = cycles * timetable.count
        self.behind = self.block if timetable.periodic else 0
        cycles += self.behind // timetable.count
        self._tables = timetable.tables(cycles)
        self._variance = timetable.variance(sensitivity, cycles)
        self._start = self._closed = start
        self._first = -self.behind  # the node that stands first in all arrays
        self._released: Floats = np.zeros((*self._variance.shape, cells))
        self._lay_tables()

    @property
    def full(self) -> int:
        """The node at which the present block ends."""
        return self._first + self.behind + self.block

    def release(self, level: int, begins: Ints, values: Array) -> None:
        """Take the values `(slots, cells)` of slots that begin at the given nodes, or at the start of the run."""
        self._released[level, np.maximum(begins, self._start) - self._first] = values

    def close(self, node: int) -> None:
        """Go on to a node: every slot that ends by then was released."""
        self._closed = node

    def finish(self, inside: bool, values: Array) -> int:
        """End the run, with the values `(levels, cells)` of the slots that were open; give the node it ends at.

        That is the last one closed, or the next one if the run ends `inside` an atom. All levels get a boundary there.
        """
        end = self._closed + inside - self._first
        open_levels = np.flatnonzero(inside | (self._left[:, end] != end))
        self._released[open_levels, self._left[open_levels, end - 1]] = values[open_levels]
        self._left[:, end] = end
        self._right[:, : end + 1] = np.minimum(self._right[:, : end + 1], end)
        self._closed = end + self._first - 1  # once more, since levels above end there now
        self.close(end + self._first)
        return self._closed

    @property
    def held(self) -> int:
        """The first node from which on everything released is still held."""
        return max(self._start, self._first)

    def shift(self) -> None:
        """Begin a new block; of the blocks before only the last one stays."""
        self._released[:, : self.block] = self._released[:, self.block : 2 * self.block]
        self._first += self.block
        self._lay_tables()

    @abstractmethod
    def answer(self, begin: Ints, end: Ints, level: Ints) -> tuple[Floats, Floats]:
        """On-time estimates `(windows, cells)` of windows between nodes, and their variances."""

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take over a state."""
        super().restore(snapshot)
        self._lay_tables()

    def _lay_tables(self) -> None:
        """The tables for where the block stands now: slots around the start of the run begin there."""
        start = max(self._start - self._first, 0)
        left, right = self._tables
        self._left, self._right, self._resistance = np.maximum(left, start), right.copy(), self._variance.copy()
        self._right[:, start] = start
        self._resistance[:, start] = self._variance[np.arange(len(left)), left[:, start]]


class Chained(Estimates):
    """Answers are sums of chains of slots: of the given level, or the cheapest of all where that is -1."""

    def answer(self, begin: Ints, end: Ints, level: Ints) -> tuple[Floats, Floats]:
        """On-time estimates `(windows, cells)` of windows between nodes, and their variances."""
        tables = self._left, self._right, self._resistance, self._released
        values, variance = chain_answers(*tables, begin - self._first, end - self._first, level)
        return values, variance


class Fused(Estimates):
    """Answers are the best linear unbiased ones; with `refine`, those from slots that end later can be had as well."""

    state = ("_chain", "_prefix", "_refined", "_settled")

    def __init__(
        self, timetable: Timetable, sensitivity: int, cells: int, reach: int, start: int, refine: bool
    ) -> None:
        super().__init__(timetable, sensitivity, cells, reach, start)
        self._chain: Floats = np.zeros(self._variance.shape)
        self._prefix: Floats = np.zeros(self._released.shape)
        self._refined: Floats | None = np.zeros(self._prefix.shape[1:]) if refine else None
        self._settled = start  # up to here no slot to come changes a refined estimate

    def close(self, node: int) -> None:
        """Go on to a node: every slot that ends by then was released."""
        first, chain, prefix = self._first, self._chain, self._prefix
        fuse(self._left, self._conductance, self._released, chain, prefix, self._closed - first, node - first)
        super().close(node)
        settled = int(self._left[-1, node - first]) + first
        if self._refined is not None and settled > self._settled:
            spread(self._left, self._right, chain, prefix, self._refined, self._settled - first, settled - first)
            self._settled = settled

    def answer(self, begin: Ints, end: Ints, level: Ints) -> tuple[Floats, Floats]:
        """On-time estimates `(windows, cells)` of windows between nodes, and their variances; of whatever level."""
        tables = self._left, self._right, self._chain, self._conductance, self._released, self._prefix
        values, variance = fused_answers(*tables, begin - self._first, end - self._first)
        return values, variance

    def settled(self, end: Ints) -> Bools:
        """Whether no slot to come can refine a window that ends there."""
        return end <= self._settled

    def settles(self, end: Ints) -> Ints:
        """The node at which that becomes so."""
        return np.asarray(self._right[-1, end - self._first] + self._first)

    def refined(self, begin: Ints, end: Ints) -> tuple[Floats, Floats]:
        """Estimates of windows that are settled, from all slots, and their variances."""
        assert self._refined is not None
        begin, end = begin - self._first, end - self._first
        variance = refined_variance(self._left, self._right, self._chain, self._conductance, begin, end)
        return self._refined[end] - self._refined[begin], variance

    def _lay_tables(self) -> None:
        super()._lay_tables()
        self._conductance = 1 / self._resistance

    def shift(self) -> None:
        """Begin a new block; of the blocks before only the last one stays."""
        present = slice(self.block, None)
        last = self._prefix[:, -1:].copy(), self._chain[:, -1:].copy()
        self._prefix[:, : self.block + 1] = self._prefix[:, present] - last[0]
        self._chain[:, : self.block + 1] = self._chain[:, present] - last[1]
        if self._refined is not None:
            self._refined[: self.block + 1] = self._refined[present] - last[0][-1]
        super().shift()


def estimates_for(
    scheme: Scheme, timetable: Timetable, sensitivity: int, cells: int, reach: int, start: int, refine: bool = False
) -> Estimates:
    """Estimates by the way in which windows are answered from a scheme."""
    given = timetable, sensitivity, cells, reach, start
    return Fused(*given, refine) if isinstance(scheme, Nested) else Chained(*given)


def serving_level(scheme: Scheme, step: int) -> int:
    """The level whose slots answer the queries of a step; -1 where those of all levels do."""
    return scheme.steps.index(scheme.serves[step]) if isinstance(scheme, Layers) else -1


class Composition(NamedTuple):
    """The answer is the sum over slots [begin, end) of `weight` times what was released of them."""

    level: Ints
    begin: Ints
    end: Ints
    weight: Floats


def composition(scheme: Scheme, begin: int, end: int, step: int) -> Composition:
    """The slots behind the on-time answer to the window [begin, end) of a query with the given step.

    Found by answering itself, so it is what answers are really made of: each slot that may have a part is released as 1
    in a cell of its own and as 0 in all others, and the estimates in the cells are then the weights.
    """
    timetable = Timetable(scheme, scheme.length)
    nodes = timetable.node(np.array([begin, end]))
    if (nodes < 0).any() or not 0 <= begin < end:
        raise InputError("a window begins or ends where no slot of the plan does; choose one of a planned query")
    closings = timetable.close(0, end)
    level = np.repeat(np.arange(len(closings)), [len(closing.ends) for closing in closings])
    first = np.concatenate([closing.begins for closing in closings])
    begins, ends = timetable.tick(first), np.concatenate([closing.ends for closing in closings])
    near = begins >= begins[(begins <= begin) & (begin < ends)].min(initial=begin)
    level, first, begins, ends = level[near], first[near], begins[near], ends[near]
    estimates = estimates_for(scheme, timetable, 1, len(first), end, 0)
    cells = np.eye(len(first))
    for lane in range(len(closings)):
        estimates.release(lane, first[level == lane], cells[level == lane])
    estimates.close(int(nodes[1]))
    weights = estimates.answer(nodes[:1], nodes[1:], np.array([serving_level(scheme, step)]))[0][0]
    used = np.abs(weights) > 1e-12
    return Composition(level[used], begins[used], ends[used], weights[used])
