"""What a plan releases: slots of time, each one noisy count with a budget of its own.

One event lies in one tick, so it changes the slots that contain this tick by at most 1 each, and their budgets add up:
the guarantee is that for every tick they sum to at most epsilon, in whole nano-epsilon. Imports numpy, eventide.arrays
and eventide.privacy.amounts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.privacy.amounts import NANO


@dataclass(frozen=True)
class Slots:
    """Slot i is the count of the ticks [begin[i], end[i]), of level `level[i]`, released with `budget[i]` nano-epsilon."""

    level: Ints
    begin: Ints
    end: Ints
    budget: Ints

    def __len__(self) -> int:
        return len(self.begin)

    def largest_sum(self) -> int:
        """The most nano-epsilon that the slots over any one tick spend together."""
        ticks, position = np.unique(np.concatenate([self.begin, self.end]), return_inverse=True)
        change = np.zeros(len(ticks), dtype=np.int64)
        np.add.at(change, position, np.concatenate([self.budget, -self.budget]))
        return int(np.cumsum(change).max())


def noise_variance(budget: Ints) -> Floats:
    """The variance of Laplace noise on a count, 2 / epsilon^2: a bound on that of its discrete form; infinite for no budget."""
    with np.errstate(divide="ignore"):
        return 2.0 / (budget / NANO) ** 2


def partition(step: int, length: int) -> Ints:
    """The boundaries of the slots of `step` over [0, length); the last slot may be shorter."""
    return np.append(np.arange(0, length, step, dtype=np.int64), length)


def stacked(layers: list[Ints], budgets: list[int]) -> Slots:
    """The slots of partitions, one level each, every slot of a level with the level's budget."""
    sizes = [len(boundaries) - 1 for boundaries in layers]
    return Slots(
        level=np.repeat(np.arange(len(layers)), sizes),
        begin=np.concatenate([boundaries[:-1] for boundaries in layers]),
        end=np.concatenate([boundaries[1:] for boundaries in layers]),
        budget=np.repeat(np.array(budgets, dtype=np.int64), sizes),
    )
