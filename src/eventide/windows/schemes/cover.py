"""Plans that answer a window with the sum of a chain of slots; its variance is the sum of the slots' variances.

`Layers` takes the slots of one chosen layer, as the simplest published planners do; `Cover` finds the cheapest chain
among all slots. Only slots that end by the window's end are in a chain, so answers are on time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.windows.schemes.cover_kernels import cheapest_chains
from eventide.windows.schemes.scheme import Cyclic, Scheme, Slots, partition, positions, stacked
from eventide.windows.workload import Workload


class Layers(Scheme):
    """One partition per chosen step, equal budgets; a query takes the slots of the layer that serves its step."""

    def __init__(self, slots: Slots, length: int, periodic: bool, steps: list[int], serves: dict[int, int]) -> None:
        self.slots, self.length, self.periodic = slots, length, periodic
        self.steps, self.serves = steps, serves

    @classmethod
    def of(cls, workload: Workload, steps: list[int], serves: dict[int, int], budget: int) -> Layers:
        """Layers of the given steps that share `budget` nano-epsilon."""
        slots = stacked([partition(step, workload) for step in steps], budget)
        return cls(slots, workload.length, workload.periodic, steps, serves)

    def divided(self, parts: int) -> Layers:
        """The same slots with one of `parts` equal parts of every budget."""
        return Layers(self.slots.divided(parts), self.length, self.periodic, self.steps, self.serves)

    def variance(self, begin: Ints, end: Ints, step: Ints) -> Floats:
        """The variance of each window's answer, for a query of the given step."""
        asked, position = np.unique(step, return_inverse=True)
        layer = np.array([self.serves[int(s)] for s in asked])[position]
        return np.asarray((end - begin) // layer * self.noise(self.slots.budget[:1]))

    def chain(self, begin: int, end: int, step: int) -> Ints:
        """The slots, as positions in `slots`, that add up to an interval of the plan."""
        level = self.steps.index(self.serves[step])
        inside = (self.slots.begin >= begin) & (self.slots.end <= end)
        return np.flatnonzero(inside & (self.slots.level == level))


class Cover(Cyclic):
    """Any slots; every window takes the cheapest chain of them."""

    def __init__(self, slots: Slots, length: int, periodic: bool) -> None:
        self.slots = slots[np.argsort(slots.begin, kind="stable")]
        self.length, self.periodic = length, periodic

    @cached_property
    def _graph(self) -> tuple[Ints, Ints, Ints, Floats]:
        nodes = np.unique(np.concatenate([self.slots.begin, self.slots.end]))
        first = np.searchsorted(self.slots.begin, np.append(nodes, nodes[-1] + 1))
        return nodes, first, np.searchsorted(nodes, self.slots.end), self.noise(self.slots.budget)

    def chains(self, begin: Ints, end: Ints, weight: Floats) -> tuple[Floats, Floats]:
        """The variance of each interval of the plan, and the weight of the intervals whose chain has each slot."""
        nodes, first, slot_end, resistance = self._graph
        order = np.argsort(begin, kind="stable")
        cost = np.empty(len(begin))
        cost[order], load = cheapest_chains(
            first, slot_end, resistance, positions(nodes, begin)[order], positions(nodes, end)[order], weight[order]
        )
        return cost, load

    def rebalanced(self, begin: Ints, end: Ints, weight: Floats, budget: int) -> Cover:
        """The same slots with the budgets per level that are best for the present chains of weighted intervals.

        With chains fixed the error is a sum of load / budget^2 over levels, least for budgets like load^(1/3). They
        are dealt one after another from what is left, so rounding cannot make them sum to more than `budget`.
        """
        load = np.bincount(self.slots.level, self.chains(begin, end, weight)[1])
        shares = np.cbrt(load)
        budgets: list[int] = []
        for level, share in enumerate(shares):
            budgets.append(int((budget - sum(budgets)) * min(share / shares[level:].sum(), 1.0)) if share else 0)
        slots = replace(self.slots, budget=np.array(budgets, dtype=np.int64)[self.slots.level])
        return Cover(slots, self.length, self.periodic)

    def divided(self, parts: int) -> Cover:
        """The same slots with one of `parts` equal parts of every budget."""
        return Cover(self.slots.divided(parts), self.length, self.periodic)

    def variance_within(self, begin: Ints, end: Ints) -> Floats:
        """The variance of intervals of [0, length)."""
        return self.chains(begin, end, np.ones(len(begin)))[0]

    def chain(self, begin: int, end: int, step: int) -> Ints:
        """The slots, as positions in `slots`, that add up to an interval of the plan."""
        return np.flatnonzero(self.chains(np.array([begin]), np.array([end]), np.ones(1))[1])
