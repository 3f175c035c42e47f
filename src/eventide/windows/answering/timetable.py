"""When the slots of a scheme begin and end: its levels as partitions of time, and how they cut the ticks to come.

Every level is a partition of the ticks [0, length), over and over if the scheme is periodic. Boundaries of any level
are nodes, numbered along a line: those of the second cycle go on where the first ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.privacy.slot_sums import Cut
from eventide.windows.schemes.scheme import Scheme, SlotLevel, discrete_variance


class Lane(NamedTuple):
    """One level: its boundaries as ticks and as nodes, and the budget of each slot."""

    ticks: Ints
    nodes: Ints
    budget: Ints


class Closing(NamedTuple):
    """How one level cuts the ticks after `begin`: for the meter, and where on the line its ended slots began."""

    cut: Cut
    ends: Ints
    begins: Ints


class Timetable:
    """The slots of a scheme that is run for `length` ticks, or for ever if it is periodic.

    Ticks behind its last slot become one more, with as much budget as any tick has: a later plan may reach back there.
    """

    def __init__(self, scheme: Scheme, length: int) -> None:
        self.length, self.periodic = length, scheme.periodic
        levels = scheme.partitions
        if scheme.length < length:
            behind = [scheme.slots.largest_sum(), *(0 for _ in levels[1:])]
            levels = [
                SlotLevel(np.append(ticks, length), np.append(budget, more))
                for (ticks, budget), more in zip(levels, behind, strict=True)
            ]
        self.nodes = np.unique(np.concatenate([level.ticks for level in levels]))
        self.count = len(self.nodes) - 1
        self.lanes = [Lane(level.ticks, np.searchsorted(self.nodes, level.ticks), level.budget) for level in levels]

    def close(self, begin: int, end: int) -> list[Closing]:
        """How each level cuts the ticks [begin, end)."""
        return [self._close(lane, begin, end) for lane in self.lanes]

    def _close(self, lane: Lane, begin: int, end: int) -> Closing:
        size = len(lane.budget)
        cycles, ticks = self._split(np.array([begin, end]))
        first, last = cycles * size + np.searchsorted(lane.ticks, ticks, side="right") - 1
        cycle, place = np.divmod(np.arange(first, last + 1), size)
        begins = cycle * self.length + lane.ticks[place]
        ends = begins[1:]
        touched = place if begins[-1] < end else place[:-1]
        return Closing(Cut(ends - begin, lane.budget[touched]), ends, cycle[:-1] * self.count + lane.nodes[place[:-1]])

    def node(self, ticks: Array) -> Ints:
        """Where ticks stand on the line of nodes; -1 for a tick that is no boundary."""
        cycle, tick = self._split(ticks)
        place = np.minimum(np.searchsorted(self.nodes, tick), self.count)
        return np.where(self.nodes[place] == tick, cycle * self.count + place, -1)

    def tick(self, nodes: Ints) -> Ints:
        """The ticks of nodes."""
        cycle, place = np.divmod(nodes, self.count)
        return np.asarray(cycle * self.nodes[-1] + self.nodes[place])

    def last_node(self, tick: int) -> int:
        """The last node at or before a tick."""
        cycle, tick = self._split(tick)
        return int(cycle * self.count + np.searchsorted(self.nodes, tick, side="right")) - 1

    def _split(self, ticks: Any) -> tuple[Any, Any]:
        """Ticks as whole cycles and the rest."""
        return np.divmod(ticks, self.length) if self.periodic else (0, ticks)

    def tables(self, cycles: int) -> tuple[Ints, Ints]:
        """For each level and node of some cycles, the boundary of the level at or before it, and that at or after."""
        left, right = np.empty((2, len(self.lanes), cycles * self.count + 1), dtype=np.int64)
        shift = np.arange(cycles)[:, None] * self.count
        for level, lane in enumerate(self.lanes):
            sizes = np.diff(lane.nodes)
            left[level] = np.append((np.repeat(lane.nodes[:-1], sizes) + shift).ravel(), cycles * self.count)
            right[level] = np.append(0, (np.repeat(lane.nodes[1:], sizes) + shift).ravel())
        return left, right

    def variance(self, sensitivity: int, cycles: int) -> Floats:
        """For each level and node, the variance of the noise of the slot that begins there; infinite if none does."""
        budget = np.zeros((len(self.lanes), self.count + 1), dtype=np.int64)
        for level, lane in enumerate(self.lanes):
            budget[level, lane.nodes[:-1]] = lane.budget
        variance = discrete_variance(budget, sensitivity)
        return np.concatenate([np.tile(variance[:, :-1], cycles), variance[:, -1:]], axis=1)
