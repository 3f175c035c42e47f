"""The grid of the posterior median: which counts share a cell, how they are spread beforehand, which models there are.

Everything here follows from public facts alone. Cells are ranges of whole counts, single counts near zero and a twelfth
of the level wide far away, so that the discrete noise has its exact probability on each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.arrays import Floats

RESOLUTION = 0.08  # width of a cell, as a part of the level
REACH = 100  # the top, in noise scales: wider cells would say nothing that the scalar bank does not know better
SMALLEST_TOP = 20

DRIFTS = np.array([0.0005, 0.005, 0.04, 0.3])  # a step, relative to the level
JUMPS = np.array([0.005, 0.15, 0.5])  # chance a step to begin anew from the usual values
DRIFT, JUMP = (models.ravel() for models in np.meshgrid(DRIFTS, JUMPS, indexing="ij"))
MODELS, RATES = len(DRIFT), len(JUMPS)  # model i jumps with rate i % RATES
LOG_PRIOR = -np.repeat(np.arange(len(DRIFTS), dtype=np.float64), len(JUMPS))

QUIET_LEVEL = 3.0  # counts are spread as 1 / (count + QUIET_LEVEL)^2 beforehand
EXTRA_ZEROS_ALONE, EXTRA_ZEROS = 0.02, 0.5  # chance of a 0 besides: of a single bin; of many, most of which are empty


class Grid(NamedTuple):
    """Cell i holds the whole counts `first[i]` to `first[i] + width[i] - 1`; `prior` is their chance beforehand."""

    first: Floats
    width: Floats
    centre: Floats
    prior: Floats


def grid_up_to(top: float, bins: int, extra_zeros: float = EXTRA_ZEROS) -> Grid:
    """Cells from 0 to at least `top`; where there are several bins, a 0 has an extra chance beforehand."""
    starts = [0]
    while starts[-1] <= max(top, SMALLEST_TOP):
        starts.append(starts[-1] + max(1, int(RESOLUTION * starts[-1])))
    first, width = np.array(starts[:-1], dtype=np.float64), np.diff(np.array(starts, dtype=np.float64))
    centre = first + (width - 1) / 2
    spread = width / (centre + QUIET_LEVEL) ** 2
    zeros = EXTRA_ZEROS_ALONE if bins == 1 else extra_zeros
    prior = (1 - zeros) * spread / spread.sum()
    prior[0] += zeros
    return Grid(first, width, centre, prior)
