"""The grid of the posterior median: which counts share a cell, how counts are spread beforehand, how they drift.

Everything here follows from public facts alone. Cells are ranges of whole counts, single counts near zero and a twelfth
of the level wide far away, so that the discrete noise has its exact probability on each. Imports numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.arrays import Array, Floats, Ints

RESOLUTION = 0.08  # of a cell, as a part of the level
REACH = 100  # the top in noise scales: beyond it cells are too wide to say anything that the scalar bank does not know
SMALLEST_TOP = 20

DRIFTS = np.array([0.0005, 0.005, 0.04, 0.3])  # a step, relative to the level
JUMPS = np.array([0.005, 0.15, 0.5])  # chance a step to begin anew from the usual values
DRIFT, JUMP = (models.ravel() for models in np.meshgrid(DRIFTS, JUMPS, indexing="ij"))
MODELS = len(DRIFT)
LOG_PRIOR = -np.repeat(np.arange(len(DRIFTS), dtype=np.float64), len(JUMPS))

QUIET_LEVEL = 3.0  # counts are spread as 1 / (count + QUIET_LEVEL)^2 beforehand
EXTRA_ZEROS = {True: 0.02, False: 0.5}  # of one bin; of many bins, most of which are usually empty


@dataclass(frozen=True)
class Grid:
    """Cell i holds the whole counts `first[i]` to `first[i] + width[i] - 1`; `prior` is their chance beforehand."""

    first: Floats
    width: Floats
    centre: Floats
    prior: Floats

    def __len__(self) -> int:
        return len(self.first)


def grid_up_to(top: float, single_bin: bool) -> Grid:
    """Cells from 0 to at least `top`."""
    first = [0]
    while first[-1] <= max(top, SMALLEST_TOP):
        first.append(first[-1] + max(1, int(RESOLUTION * first[-1])))
    starts: Ints = np.array(first)
    width = np.diff(starts).astype(np.float64)
    begin = starts[:-1].astype(np.float64)
    centre = begin + (width - 1) / 2
    prior = width / (centre + QUIET_LEVEL) ** 2
    zeros = EXTRA_ZEROS[single_bin]
    prior *= (1 - zeros) / prior.sum()
    prior[0] += zeros
    return Grid(begin, width, centre, prior)


def drift_over(grid: Grid, steps: int, least_scale: float) -> tuple[Array, Array]:
    """How a count spreads in `steps` steps under each model: what passes on to the next cell, and what stays of one.

    Two-sided geometric: of what reaches cell i, `passing[i]` goes on to cell i + 1, and the same from i + 1 down to i.
    Its variance is that of the drift also where the drift is much smaller than a cell. `staying` makes what leaves a
    cell and what stays there add up to 1; without it mass would gather in wide cells.
    """
    apart = np.diff(grid.centre)
    between = (grid.centre[1:] + grid.centre[:-1]) / 2
    scale = DRIFT * (least_scale / 2 + between[:, None]) + 0.001 * least_scale
    passing = decay(steps * (scale / apart[:, None]) ** 2)
    upwards, downwards = np.zeros((2, len(grid), MODELS))
    for cell in range(len(grid) - 1):
        upwards[-2 - cell] = passing[-1 - cell] * (1 + upwards[-1 - cell])
        downwards[cell + 1] = passing[cell] * (1 + downwards[cell])
    edge = np.zeros((1, MODELS))
    return np.concatenate([passing, edge]).astype(np.float32), (1 / (1 + upwards + downwards)).astype(np.float32)


def decay(variance: Floats) -> Floats:
    """The ratio of a two-sided geometric distribution of `2 * variance` in cells: ratio / (1 - ratio)^2 = variance."""
    half = 1 / (2 * np.maximum(variance, 1e-12))
    return 1 / (1 + half + np.sqrt(half * (2 + half)))
