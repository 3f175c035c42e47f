"""The usual values of all bins together, from the first look: expectation maximisation. Imports numpy and kernels.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Floats
from eventide.filters.posterior_grid import Grid
from eventide.filters.posterior_grid_kernels import cell_factors, likelihood

ROUNDS = 10


def first_usual_values(grid: Grid, looks: Floats, scales: Floats, prior_looks: float) -> Floats:
    """How counts are spread over cells, as the first looks at many bins say.

    Bins with the same look are one.
    """
    distinct, bins = np.unique(np.stack([looks, scales], axis=1), axis=0, return_counts=True)
    chance = np.empty((len(distinct), len(grid)))
    ratio, average = np.empty((2, len(grid)))
    for row, (look, scale) in enumerate(distinct):
        cell_factors(grid.width, scale, ratio, average)
        likelihood(grid.first, grid.width, ratio, average, look, scale, chance[row])
    spread = grid.prior
    for _ in range(ROUNDS):
        share = bins / (chance @ spread)
        found = prior_looks * grid.prior + spread * (share @ chance)
        spread = found / found.sum()
    return spread
