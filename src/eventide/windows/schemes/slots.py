"""What a plan releases: slots of time, each one noisy count with a budget of its own.

One event lies in one tick, so it changes the slots that contain this tick by at most 1 each, and their budgets add up:
the guarantee is that for every tick they sum to at most epsilon, in whole nano-epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.privacy.amounts import NANO
from eventide.windows.workload import Workload


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
    def partitions(self) -> list[Partition]:
        """The levels, each of which must be a partition, in order."""
        levels = []
        for level in range(int(self.level.max()) + 1):
            own = self[np.flatnonzero(self.level == level)]
            order = np.argsort(own.begin)
            levels.append(Partition(np.append(own.begin[order], own.end.max()), own.budget[order]))
        return levels

    def largest_sum(self) -> int:
        """The most nano-epsilon that the slots over any one tick cost together."""
        ticks, position = np.unique(np.concatenate([self.begin, self.end]), return_inverse=True)
        change = np.zeros(len(ticks), dtype=np.int64)
        np.add.at(change, position, np.concatenate([self.budget, -self.budget]))
        return int(np.cumsum(change).max())


class Partition(NamedTuple):
    """One level: slot i is [ticks[i], ticks[i + 1]) and costs `budget[i]` nano-epsilon."""

    ticks: Ints
    budget: Ints


def noise_variance(budget: Ints) -> Floats:
    """2 / epsilon^2, the variance of Laplace noise and a bound for its discrete form; infinite without a budget."""
    with np.errstate(divide="ignore"):
        return np.asarray(2.0 / (budget / NANO) ** 2)


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
