"""The usual values of a bin: where it has been, as its looks and those of all bins say.

They are spread as the sum of past posteriors, `lesson`, and of what every bin is given, `common`. A lesson has the
first cells only, and is 0 in all others.
"""

from __future__ import annotations

import math

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.compiling import kernel
from eventide.filters.posterior_grid import Grid
from eventide.filters.posterior_look_kernels import FAST, cell_factors, chance_of_look

MEMORY = 0.998  # of earlier looks, for each unit that a look counts
FIRST_LESSON = math.sqrt(5.0)  # what the first look counts
ROUNDS = 10


@kernel(fastmath=FAST, error_model="numpy")
def usual_values(lesson: Array, learned: float, common: Array, given: float, usual: Array) -> None:
    """The distribution of a bin's usual values; `given` is the sum of `common`."""
    share = np.float32(1 / (learned + given))
    for cell in range(len(lesson)):
        usual[cell] = (lesson[cell] + common[cell]) * share
    for cell in range(len(lesson), len(usual)):
        usual[cell] = common[cell] * share


@kernel(fastmath=FAST, error_model="numpy")
def learn(counts: float, mixture: Array, lesson: Array, learned: float) -> float:
    """Add the posterior of a look that counts so much, forget a little of the earlier ones; the new sum of `lesson`."""
    kept: float = MEMORY**counts
    for cell in range(len(lesson)):
        lesson[cell] = np.float32(kept) * lesson[cell] + np.float32(counts) * mixture[cell]
    return kept * learned + counts


@kernel(error_model="numpy")
def mean_and_spread(usual: Array, centre: Floats) -> tuple[float, float]:
    """Mean of the usual values, and mean absolute deviation from their median."""
    reached, median = 0.0, centre[-1]
    for cell in range(len(centre)):
        reached += usual[cell]
        if reached >= 0.5:
            median = centre[cell]
            break
    mean, spread = 0.0, 0.0
    for cell in range(len(centre)):
        mean += usual[cell] * centre[cell]
        spread += usual[cell] * abs(centre[cell] - median)
    return mean, spread


@kernel(error_model="numpy")
def first_usual_values(grid: Grid, weight: float, looks: Floats, bins: Ints) -> Floats:
    """How counts are spread over cells, as first looks at many bins say: some rounds of expectation maximisation.

    A row of `looks` is a value and a scale, seen in so many `bins`. The prior counts for `weight` bins. A bin is judged
    by what all others say: one far look among many would else be its own witness.
    """
    cells = len(grid.first)
    chance, posterior = np.empty((len(looks), cells), np.float32), np.zeros((len(looks), cells))
    ratio, average, spread, found = np.empty(cells), np.empty(cells), np.empty(cells), np.empty(cells)
    for row in range(len(looks)):
        cell_factors(grid.width, looks[row, 1], ratio, average)
        chance_of_look(grid.first, grid.width, ratio, average, looks[row, 0], looks[row, 1], chance[row])
    for cell in range(cells):
        spread[cell] = weight * grid.prior[cell]
    for _ in range(ROUNDS):
        for cell in range(cells):
            found[cell] = weight * grid.prior[cell]
        for row in range(len(looks)):
            for cell in range(cells):
                posterior[row, cell] = (spread[cell] - posterior[row, cell]) * chance[row, cell]
            normalise(posterior[row])
            for cell in range(cells):
                found[cell] += bins[row] * posterior[row, cell]
        spread, found = found, spread
    normalise(spread)
    return spread


@kernel(error_model="numpy")
def normalise(numbers: Floats) -> None:
    """Make them add up to 1."""
    whole = 0.0
    for index in range(len(numbers)):
        whole += numbers[index]
    for index in range(len(numbers)):
        numbers[index] /= whole
