"""The grid of the posterior median: which counts share a cell, how they are spread beforehand, how they move.

Everything here follows from public facts alone. Cells are ranges of whole counts, single counts near zero and a twelfth
of the level wide far away, so that the discrete noise has its exact probability on each. Imports numpy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.arrays import Array, Floats

RESOLUTION = 0.08  # width of a cell, as a part of the level
REACH = 100  # the top, in noise scales: wider cells would say nothing that the scalar bank does not know better
SMALLEST_TOP = 20

DRIFTS = np.array([0.0005, 0.005, 0.04, 0.3])  # a step, relative to the level
JUMPS = np.array([0.005, 0.15, 0.5])  # chance a step to begin anew from the usual values
DRIFT, JUMP = (models.ravel() for models in np.meshgrid(DRIFTS, JUMPS, indexing="ij"))
MODELS = len(DRIFT)
LOG_PRIOR = -np.repeat(np.arange(len(DRIFTS), dtype=np.float64), len(JUMPS))

QUIET_LEVEL = 3.0  # counts are spread as 1 / (count + QUIET_LEVEL)^2 beforehand
EXTRA_ZEROS_ALONE, EXTRA_ZEROS = 0.02, 0.5  # chance of a 0 besides: of a single bin; of many, most of which are empty


class Grid(NamedTuple):
    """Cell i holds the whole counts `first[i]` to `first[i] + width[i] - 1`; `prior` is their chance beforehand."""

    first: Floats
    width: Floats
    centre: Floats
    prior: Floats


def grid_up_to(top: float, bins: int) -> Grid:
    """Cells from 0 to at least `top`."""
    starts = [0]
    while starts[-1] <= max(top, SMALLEST_TOP):
        starts.append(starts[-1] + max(1, int(RESOLUTION * starts[-1])))
    first, width = np.array(starts[:-1], dtype=np.float64), np.diff(np.array(starts, dtype=np.float64))
    centre = first + (width - 1) / 2
    spread = width / (centre + QUIET_LEVEL) ** 2
    zeros = EXTRA_ZEROS_ALONE if bins == 1 else EXTRA_ZEROS
    prior = (1 - zeros) * spread / spread.sum()
    prior[0] += zeros
    return Grid(first, width, centre, prior)


def drift_over(grid: Grid, steps: int, least_scale: float) -> tuple[Array, Array]:
    """How a count spreads in `steps` steps under each model, `(cells, models)`: what passes on, and what stays.

    Two-sided geometric: of what reaches cell i from below, `passing[i]` goes on to cell i + 1, and of what reaches
    cell i + 1 from above the same part goes on to cell i. Its variance is that of the drift also where that is much
    smaller than a cell. `staying` makes all that comes from one cell add up to 1; else mass would gather in wide cells.
    """
    apart = np.diff(grid.centre)[:, None]
    between = ((grid.centre[1:] + grid.centre[:-1]) / 2)[:, None]
    scale = DRIFT * (least_scale / 2 + between) + 0.001 * least_scale
    passing = _ratio(steps * (scale / apart) ** 2)
    upwards, downwards = np.zeros((2, len(grid.centre), MODELS))
    for cell in range(len(passing)):
        downwards[cell + 1] = passing[cell] * (1 + downwards[cell])
        upwards[-2 - cell] = passing[-1 - cell] * (1 + upwards[-1 - cell])
    nowhere = np.zeros((1, MODELS))
    staying = 1 / (1 + upwards + downwards)
    return np.concatenate([passing, nowhere]).astype(np.float32), staying.astype(np.float32)


def _ratio(half_variance: Floats) -> Floats:
    """The ratio of a two-sided geometric distribution: the solution of ratio / (1 - ratio)^2 = half the variance."""
    half = 1 / (2 * half_variance)
    return np.asarray(1 / (1 + half + np.sqrt(half * (2 + half))))
