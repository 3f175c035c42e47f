"""What every planner returns: slots of time to release, and the variance with which a window is answered from them.

A slot is one noisy count with a budget of its own. One event lies in one tick, so it changes the slots that contain
this tick by at most 1 each, and their budgets add up: the guarantee is that for every tick they sum to at most epsilon,
in whole nano-epsilon. A scheme is a `Nested`, answered by least squares over all slots, or a `Layers` or `Cover`,
answered by adding up the slots of a chain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.errors import InputError
from eventide.privacy.amounts import NANO
from eventide.windows.workload import Workload, cut_at_cycle, sums

PRECISE = 1e-9  # no variance counts as less than this much of the largest, so that running sums can tell it apart


@dataclass(frozen=True)
class Slots:
    """Slot i counts the ticks [begin[i], end[i]), is of level `level[i]`, and costs `budget[i]` nano-epsilon."""

    level: Ints
    begin: Ints
    end: Ints
    budget: Ints

    def __len__(self) -> int:
        return len(self.begin)

    def __getitem__(self, which: Ints) -> Slots:
        return Slots(self.level[which], self.begin[which], self.end[which], self.budget[which])

    def divided(self, parts: int) -> Slots:
        """The same slots with one of `parts` equal parts of every budget, rounded down."""
        return replace(self, budget=self.budget // parts)

    @property
    def partitions(self) -> list[SlotLevel]:
        """The levels, each of which must be a partition, in order."""
        levels = []
        for level in range(int(self.level.max()) + 1):
            own = self[np.flatnonzero(self.level == level)]
            order = np.argsort(own.begin)
            levels.append(SlotLevel(np.append(own.begin[order], own.end.max()), own.budget[order]))
        return levels

    def largest_sum(self) -> int:
        """The most nano-epsilon that the slots over any one tick cost together."""
        ticks, position = np.unique(np.concatenate([self.begin, self.end]), return_inverse=True)
        change = np.zeros(len(ticks), dtype=np.int64)
        np.add.at(change, position, np.concatenate([self.budget, -self.budget]))
        return int(np.cumsum(change).max())


class SlotLevel(NamedTuple):
    """One level: slot i is [ticks[i], ticks[i + 1]) and costs `budget[i]` nano-epsilon."""

    ticks: Ints
    budget: Ints


def noise_variance(budget: Ints) -> Floats:
    """2 / epsilon^2, the variance of Laplace noise and a bound for its discrete form; infinite without a budget.

    Planners reckon with it: it knows no sensitivity, and a plan for half of epsilon has the same slots.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(2.0 / (budget / NANO) ** 2)


def discrete_variance(budget: Ints, sensitivity: int) -> Floats:
    """The variance of the noise that is drawn, for the slots of a whole plan; infinite without a budget.

    That is 2q / (1 - q)^2 for discrete Laplace noise, where q = exp(-budget / sensitivity).
    """
    loss = np.where(budget > 0, budget, np.nan) / (sensitivity * NANO)
    variance = 2 * np.exp(-loss) / np.expm1(-loss) ** 2
    variance = np.maximum(variance, max(PRECISE * np.nanmax(variance), 1e-30))
    return np.where(budget > 0, variance, np.inf)


def partition(step: int, workload: Workload) -> Ints:
    """The boundaries of the slots of `step` over the ticks of a workload; the first and the last may be shorter."""
    return np.union1d([0, workload.length], np.arange(-workload.start % step, workload.length, step, dtype=np.int64))


def stacked(layers: Sequence[Ints], budget: int) -> Slots:
    """The slots of partitions, one level each, that share `budget` equally."""
    sizes = [len(boundaries) - 1 for boundaries in layers]
    return Slots(
        level=np.repeat(np.arange(len(layers)), sizes),
        begin=np.concatenate([boundaries[:-1] for boundaries in layers]),
        end=np.concatenate([boundaries[1:] for boundaries in layers]),
        budget=np.full(sum(sizes), budget // len(layers), dtype=np.int64),
    )


class Scheme(ABC):
    """Slots over the ticks [0, length), repeated for ever if `periodic`."""

    length: int
    periodic: bool
    slots: Slots  # what is released
    drawn_for: int | None = None  # the sensitivity of the noise whose variance is told; without, the planners' bound

    @property
    def partitions(self) -> list[SlotLevel]:
        """The levels, each a partition of [0, length); slots without a budget are not released."""
        return self.slots.partitions

    @abstractmethod
    def variance(self, begin: Ints, end: Ints, step: Ints) -> Floats:
        """The variance of the on-time answers to the windows [begin, end) of queries with the given steps."""

    @abstractmethod
    def divided(self, parts: int) -> Scheme:
        """The same slots with one of `parts` equal parts of every budget."""

    def as_drawn(self, parts: int, sensitivity: int) -> Scheme:
        """The same slots as they are answered: with a part of every budget, and variances of the noise drawn."""
        started = self.divided(parts)
        started.drawn_for = sensitivity
        return started

    def noise(self, budget: Ints) -> Floats:
        """The variance of each slot's noise, for all slots of the plan at once."""
        return noise_variance(budget) if self.drawn_for is None else discrete_variance(budget, self.drawn_for)


class Cyclic(Scheme):
    """A scheme that answers any interval of one cycle, and a longer window by adding up its pieces."""

    @abstractmethod
    def variance_within(self, begin: Ints, end: Ints) -> Floats:
        """The variance of intervals of [0, length)."""

    def variance(self, begin: Ints, end: Ints, step: Ints) -> Floats:
        """The variance of each window's answer, whatever the step of its query."""
        if not self.periodic:
            return self.variance_within(begin, end)
        pieces = cut_at_cycle(begin, end, self.length)
        return pieces.add_up(self.variance_within(pieces.begin, pieces.end), len(begin))


def positions(nodes: Ints, ticks: Ints) -> Ints:
    """Where `ticks` stand among `nodes`; a tick that is no boundary of the plan is refused."""
    found = np.minimum(np.searchsorted(nodes, ticks), len(nodes) - 1)
    if not np.array_equal(nodes[found], ticks):
        raise InputError("a window begins or ends where no slot of the plan does; add its query and plan again")
    return found


def query_errors(workload: Workload, scheme: Scheme) -> Floats:
    """The mean variance over its windows, for each distinct query."""
    variance = scheme.variance(workload.begin, workload.end, workload.step[workload.owner])
    return sums(workload.owner, variance, len(workload.count)) / np.bincount(workload.owner)


def workload_error(workload: Workload, scheme: Scheme) -> float:
    """The sum of the errors of all queries, equal ones counted as often as they are asked."""
    return float(workload.count @ query_errors(workload, scheme))
