"""Seeded noise for a run that joins several cells, each with a generator of its own.

A cell draws what it would draw alone: its generator moves on only when one of its own repetitions is charged, whatever
the cells beside it do. NOT PRIVATE, as every seeded noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.mechanisms.base import spread
from eventide.privacy.noise import Source

AHEAD = 64  # draws made at once: one call for many is what makes many small cells fast


class CellNoise(Source):
    """Noise for `repetitions` of each cell, for streams of one bin; a seed for each cell."""

    name = "seeded"

    def __init__(self, seeds: Sequence[int], repetitions: int) -> None:
        self._generators = [np.random.default_rng(seed) for seed in seeds]
        self._drawn = np.empty((len(seeds), AHEAD, 2, repetitions))
        self._used = np.full(len(seeds), AHEAD)

    def laplace(self, numerator: int, charges: Ints, shape: tuple[int, ...]) -> Ints:
        """Differences of two geometric numbers, as in `Seeded`; a column for all repetitions of all cells."""
        cells, _, _, repetitions = self._drawn.shape
        budgets = spread(charges, shape).reshape(cells, repetitions)
        if budgets.all():
            asking, scale = np.arange(cells), numerator / budgets
        else:
            asking = np.flatnonzero(budgets.any(axis=1))
            budgets = budgets[asking]
            scale = np.divide(numerator, budgets, out=np.zeros(budgets.shape), where=budgets > 0)
        pairs = self._next(asking)
        pairs *= scale[:, None]
        np.floor(pairs, out=pairs)
        noise = np.zeros((cells, repetitions), dtype=np.int64)
        noise[asking] = pairs[:, 0] - pairs[:, 1]
        return noise.reshape(shape)

    def binomial(self, counts: Ints, percent: Ints) -> Ints:
        """Each cell by its own generator."""
        cells = len(self._generators)
        kept = np.broadcast_to(percent / 100, counts.shape)
        parts = zip(self._generators, np.split(counts, cells), np.split(kept, cells), strict=True)
        return np.concatenate([generator.binomial(events, rate) for generator, events, rate in parts])

    def _next(self, asking: Ints) -> Floats:
        """The next pairs of exponential numbers of these cells, `(cells, 2, repetitions)`."""
        used = self._used[asking]
        for cell in asking[used == AHEAD]:
            self._generators[cell].standard_exponential(out=self._drawn[cell])
        used[used == AHEAD] = 0
        self._used[asking] = used + 1
        return np.asarray(self._drawn[asking, used])
