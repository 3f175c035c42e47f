"""Seeded noise for a run that joins several cells, each with a generator of its own.

A cell draws what it would draw alone: its generator moves on only when one of its own repetitions is charged, whatever
the cells beside it do. NOT PRIVATE, as every seeded noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eventide.arrays import Floats, Ints, spread
from eventide.privacy.noise import Source

AHEAD = 16  # draws made at once: one call for many is fast, and so few of all cells stay in the processor's cache


class CellNoise(Source):
    """Noise for `repetitions` of each cell, for streams of one bin; a seed for each cell."""

    name = "seeded"

    def __init__(self, seeds: Sequence[int], repetitions: int) -> None:
        self._generators = [np.random.default_rng(seed) for seed in seeds]
        self._drawn = np.empty((len(seeds), AHEAD, 2, repetitions))
        self._used = [AHEAD for _ in seeds]
        self._all = list(range(len(seeds)))

    def laplace(self, numerator: int, charges: Ints, shape: tuple[int, ...]) -> Ints:
        """Differences of two geometric numbers, as in `Seeded`; a column for all repetitions of all cells."""
        cells, _, _, repetitions = self._drawn.shape
        if charges.all():
            scale = numerator / charges
            by_cell = scale if scale.size == 1 else scale.reshape(cells, 1, repetitions)
            return _differences(self._next(self._all) * by_cell).reshape(shape)
        budgets = spread(charges, shape).reshape(cells, repetitions)
        asking = np.flatnonzero(budgets.any(axis=1)).tolist()
        everyone = len(asking) == cells
        if not everyone:
            budgets = budgets[asking]
        scale = numerator / np.maximum(budgets, 1)
        scale *= budgets > 0
        drawn = _differences(self._next(asking) * scale[:, None])
        if everyone:
            return drawn.reshape(shape)
        noise = np.zeros((cells, repetitions), dtype=np.int64)
        noise[asking] = drawn
        return noise.reshape(shape)

    def binomial(self, counts: Ints, percent: Ints) -> Ints:
        """Each cell by its own generator."""
        cells = len(self._generators)
        kept = np.broadcast_to(percent / 100, counts.shape)
        parts = zip(self._generators, np.split(counts, cells), np.split(kept, cells), strict=True)
        return np.concatenate([generator.binomial(events, rate) for generator, events, rate in parts])

    def _next(self, asking: list[int]) -> Floats:
        """The next pairs of exponential numbers of these cells, `(cells, 2, repetitions)`, to be read only."""
        for cell in asking:
            if self._used[cell] == AHEAD:
                self._generators[cell].standard_exponential(out=self._drawn[cell])
                self._used[cell] = 0
        places = [self._used[cell] for cell in asking]
        for cell in asking:
            self._used[cell] += 1
        if len(asking) == len(self._all) and len(set(places)) == 1:
            return self._drawn[:, places[0]]
        return np.asarray(self._drawn[asking, places])


def _differences(pairs: Floats) -> Ints:
    """Of each pair, neither of which is negative, the one rounded down less the other rounded down."""
    whole = pairs.astype(np.int64)
    return whole[:, 0] - whole[:, 1]
