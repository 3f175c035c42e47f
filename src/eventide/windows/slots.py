"""What a plan releases: slots of time, each one noisy count with a budget of its own.

One event lies in one tick, so it changes the slots that contain this tick by at most 1 each, and their budgets add up:
the guarantee is that for every tick they sum to at most epsilon, in whole nano-epsilon. Imports numpy, eventide.arrays
and eventide.privacy.amounts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.privacy.amounts import NANO


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

    def largest_sum(self) -> int:
        """The most nano-epsilon that the slots over any one tick cost together."""
        ticks, position = np.unique(np.concatenate([self.begin, self.end]), return_inverse=True)
        change = np.zeros(len(ticks), dtype=np.int64)
        np.add.at(change, position, np.concatenate([self.budget, -self.budget]))
        return int(np.cumsum(change).max())


def noise_variance(budget: Ints) -> Floats:
    """2 / epsilon^2, the variance of Laplace noise and a bound for its discrete form; infinite without a budget."""
    with np.errstate(divide="ignore"):
        return np.asarray(2.0 / (budget / NANO) ** 2)


def partition(step: int, length: int) -> Ints:
    """The boundaries of the slots of `step` over [0, length); the last slot may be shorter."""
    return np.append(np.arange(0, length, step, dtype=np.int64), length)


def stacked(layers: Sequence[Ints], budget: int) -> Slots:
    """The slots of partitions, one level each, that share `budget` equally."""
    sizes = [len(boundaries) - 1 for boundaries in layers]
    return Slots(
        level=np.repeat(np.arange(len(layers)), sizes),
        begin=np.concatenate([boundaries[:-1] for boundaries in layers]),
        end=np.concatenate([boundaries[1:] for boundaries in layers]),
        budget=np.full(sum(sizes), budget // len(layers), dtype=np.int64),
    )
