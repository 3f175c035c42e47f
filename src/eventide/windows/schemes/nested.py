"""Nested plans: levels of slots, each level a coarser partition of the one below, and answers that fuse all of them.

The best linear unbiased on-time answer of a window uses every slot that ends by the window's end. Drawn as resistors,
slots make a network whose effective resistance is that answer's variance; because boundaries of a level are boundaries
of all levels below, resistances fuse in closed form and a window costs O(levels).
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.windows.schemes.nested_kernels import decompose, squared_flows
from eventide.windows.schemes.scheme import Cyclic, SlotLevel, Slots, positions


class Level(NamedTuple):
    """A partition: `bounds` are positions of nodes, and a slot spends `fraction` of what the slots above it leave."""

    bounds: Ints
    fraction: Floats


class Tables(NamedTuple):
    """The network of a plan, as arrays [level, node]; nested_kernels says what they mean."""

    left: Ints
    right: Ints
    chain: Floats
    conductance: Floats


class TopLevelView(NamedTuple):
    """How the top level sees each window: its variance, the last boundary inside, the arms of the window's star from
    the centre to begin and to the first boundary, and the variance from the last boundary to the end.

    A window without a boundary inside has -1, and nothing but its variance counts.
    """

    variance: Floats
    last: Ints
    to_begin: Floats
    to_high: Floats
    rest: Floats


class Nested(Cyclic):
    """Levels from the atoms (level 0, where everything left is spent) to the coarsest, over the ticks `nodes`.

    Budgets are dealt from the top down in whole nano-epsilon, so for every tick they sum to `budget` exactly.
    """

    def __init__(self, nodes: Ints, levels: list[Level], budget: int, periodic: bool) -> None:
        self.nodes, self.levels, self.budget, self.periodic = nodes, levels, budget, periodic
        self.length = int(nodes[-1])

    @cached_property
    def budgets(self) -> list[Ints]:
        """The nano-epsilon of every slot, level by level; a slot with none is not released."""
        left = np.full(len(self.nodes) - 1, self.budget)
        budgets = []
        for bounds, fraction in reversed(self.levels):
            spent = np.floor(left[bounds[:-1]] * fraction).astype(np.int64)
            left = left - np.repeat(spent, np.diff(bounds))
            budgets.append(spent)
        return budgets[::-1]

    @cached_property
    def tables(self) -> Tables:
        """The network, for the kernels."""
        shape = (len(self.levels), len(self.nodes))
        left, right = np.empty((2, *shape), dtype=np.int64)
        chain, conductance = np.zeros((2, *shape))
        noise = np.split(self.noise(np.concatenate(self.budgets)), np.cumsum([len(each) for each in self.budgets])[:-1])
        for level, ((bounds, _), variance) in enumerate(zip(self.levels, noise, strict=True)):
            left[level] = np.append(np.repeat(bounds[:-1], np.diff(bounds)), bounds[-1])
            right[level] = np.append(bounds[0], np.repeat(bounds[1:], np.diff(bounds)))
            conductance[level, bounds[:-1]] = 1 / variance
            if level:
                below = np.diff(chain[level - 1, bounds])
                fused = below / (1 + conductance[level, bounds[:-1]] * below)
            else:
                fused = variance
            chain[level, bounds[1:]] = np.cumsum(fused)
        return Tables(left, right, chain, conductance)

    @cached_property
    def slots(self) -> Slots:  # type: ignore[override]
        """What is released, in order of level and begin."""
        level = np.repeat(np.arange(len(self.levels)), [len(budget) for budget in self.budgets])
        begin = np.concatenate([self.nodes[bounds[:-1]] for bounds, _ in self.levels])
        end = np.concatenate([self.nodes[bounds[1:]] for bounds, _ in self.levels])
        budget = np.concatenate(self.budgets)
        released = budget > 0
        return Slots(level[released], begin[released], end[released], budget[released])

    @property
    def partitions(self) -> list[SlotLevel]:
        """The levels, each a partition of [0, length); slots without a budget are not released."""
        levels = zip(self.levels, self.budgets, strict=True)
        return [SlotLevel(self.nodes[bounds], budget) for (bounds, _), budget in levels]

    def variance_within(self, begin: Ints, end: Ints) -> Floats:
        """The variance of intervals of [0, length)."""
        return self.view(positions(self.nodes, begin), positions(self.nodes, end)).variance

    def view(self, begin: Ints, end: Ints) -> TopLevelView:
        """How the top level sees windows that are given as positions of nodes."""
        return TopLevelView(*decompose(*self.tables, begin, end))

    def with_budget(self, budget: int) -> Nested:
        """The same plan for another budget."""
        return Nested(self.nodes, self.levels, budget, self.periodic)

    def divided(self, parts: int) -> Nested:
        """The same plan with one of `parts` equal parts of the budget."""
        return self.with_budget(self.budget // parts)

    def simplified(self) -> Nested:
        """The same plan without idle levels; of two slots over the same ticks the lower one gets both budgets.

        One release with budget x + y is more precise than the two with x and y together, so no variance grows.
        """
        fractions = [level.fraction.copy() for level in self.levels]
        for level in range(len(self.levels) - 1, 0, -1):
            bounds = self.levels[level].bounds
            child = np.searchsorted(self.levels[level - 1].bounds, bounds)
            twin = np.flatnonzero(np.diff(child) == 1)
            both = 1 - (1 - fractions[level][twin]) * (1 - fractions[level - 1][child[twin]])
            fractions[level - 1][child[twin]], fractions[level][twin] = both, 0.0
        levels = [Level(bounds, fraction) for (bounds, _), fraction in zip(self.levels, fractions, strict=True)]
        used = [level for level in levels if level.fraction.any()]
        return Nested(self.nodes, used, self.budget, self.periodic)

    def with_best_fractions(self, begin: Ints, end: Ints, weight: Floats) -> Nested:
        """The same slots with the budgets that are best for the present flows; the weighted variance never grows.

        Meant for a simplified plan: a slot over a single atom would end up with all of the atom's budget.
        With flows fixed the error is a sum of load / budget^2 over slots. A slot over slots with best total A' / x^2,
        x being what it leaves, makes A / x^2 in all with A^(1/3) = load^(1/3) + A'^(1/3), and spends in this ratio.
        """
        loads = self.loads(begin, end, weight)
        below = loads[0]
        fractions = [np.ones(len(below))]
        for level in range(1, len(self.levels)):
            inside = np.searchsorted(self.levels[level - 1].bounds, self.levels[level].bounds[:-1])
            own, others = np.cbrt(loads[level]), np.cbrt(np.add.reduceat(below, inside))
            below = (own + others) ** 3
            fractions.append(np.divide(own, own + others, out=np.zeros_like(own), where=own > 0))
        levels = [Level(bounds, fraction) for (bounds, _), fraction in zip(self.levels, fractions, strict=True)]
        return Nested(self.nodes, levels, self.budget, self.periodic)

    def loads(self, begin: Ints, end: Ints, weight: Floats) -> list[Floats]:
        """How fast the weighted variance of the windows (positions of nodes) grows with the variance of each slot."""
        slot, changes = squared_flows(*self.tables, begin, end, weight)
        loads = []
        passed: Floats = np.zeros(len(self.nodes) - 1)
        for level in range(len(self.levels) - 1, -1, -1):
            starts = self.levels[level].bounds[:-1]
            fused = passed[starts] + np.cumsum(changes[level])[starts]
            if level == 0:
                loads.append(fused)
                break
            below = np.diff(self.tables.chain[level - 1, self.levels[level].bounds])
            share = 1 / (1 + self.tables.conductance[level, starts] * below)
            loads.append(slot[level, starts] + fused * (1 - share) ** 2)
            passed = np.repeat(fused * share**2, np.diff(self.levels[level].bounds))
        return loads[::-1]
