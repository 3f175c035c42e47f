"""One look at one bin, on the grid: likelihood of the cells, drift, jumps, update; compiled: numba and numpy only.

Arrays of a bin are `(cells, models)` in single precision, models innermost so that they are computed side by side.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from eventide.arrays import Array, Floats
from eventide.filters.posterior_grid import LOG_PRIOR, MODELS

FORGETTING = 0.995  # of what earlier looks said about the models
NEGLIGIBLE = 1e-20  # a likelihood below it is 0: smaller numbers are slow

FAST = {"contract", "reassoc", "nsz", "arcp"}


@njit(cache=True, error_model="numpy")
def cell_factors(width: Floats, scale: float, ratio: Floats, average: Floats) -> None:
    """What the noise's probability loses across each cell, and its average over a cell relative to the nearer end."""
    for cell in range(len(width)):
        ratio[cell] = math.exp(-width[cell] / scale)
        average[cell] = math.expm1(-width[cell] / scale) / (width[cell] * math.expm1(-1 / scale))


@njit(cache=True, error_model="numpy")
def likelihood(
    first: Floats, width: Floats, ratio: Floats, average: Floats, look: float, scale: float, out: Array
) -> None:
    """The chance of discrete Laplace noise to show `look`, averaged over each cell, up to a common factor."""
    cells = len(first)
    seen = min(max(look, 0.0), first[-1] + width[-1] - 1)  # outside, all cells lose the same factor
    home = min(max(np.searchsorted(first, seen, side="right") - 1, 0), cells - 1)
    below, above = math.floor(seen), math.floor(seen) + 1
    inside_below = math.exp(-(seen - below) / scale) * math.expm1(-(below - first[home] + 1) / scale)
    inside_above = math.exp(-(above - seen) / scale) * math.expm1(-(first[home] + width[home] - above) / scale)
    out[home] = (inside_below + inside_above) / (width[home] * math.expm1(-1 / scale))
    reaching = math.exp(-(seen - first[home] + 1) / scale)
    for cell in range(home - 1, -1, -1):
        out[cell] = reaching * average[cell] if reaching > NEGLIGIBLE else 0.0
        reaching *= ratio[cell]
    reaching = math.exp(-(first[home] + width[home] - seen) / scale)
    for cell in range(home + 1, cells):
        out[cell] = reaching * average[cell] if reaching > NEGLIGIBLE else 0.0
        reaching *= ratio[cell]


@njit(cache=True, fastmath=FAST, error_model="numpy")
def drift_jump_update(
    posterior: Array,
    passing: Array,
    staying: Array,
    faithful: Array,
    usual: Array,
    chance: Array,
    scratch: Array,
    total: Array,
) -> None:
    """Let the posterior of each model drift, jump to the usual values, and weigh it by the chance of the look.

    The result, not normalised, is in `scratch` and its sum over cells in `total`.
    """
    models = posterior.shape[1]  # not the constant MODELS: unrolled completely, the loops are not vectorised
    carried = np.zeros(models, np.float32)
    for cell in range(len(posterior)):
        for model in range(models):
            reached = carried[model] + posterior[cell, model] * staying[cell, model]
            scratch[cell, model] = reached
            carried[model] = reached * passing[cell, model]
    carried[:] = 0
    total[:] = 0
    for cell in range(len(posterior) - 1, -1, -1):
        for model in range(models):
            arriving = carried[model] * passing[cell, model]
            drifted = scratch[cell, model] + arriving
            weighed = (faithful[model] * drifted + (np.float32(1) - faithful[model]) * usual[cell]) * chance[cell]
            scratch[cell, model] = weighed
            total[model] += weighed
            carried[model] = arriving + posterior[cell, model] * staying[cell, model]


@njit(cache=True, error_model="numpy")
def reweigh(log_weight: Floats, total: Array, tilt: Floats, weight: Array) -> None:
    """Weigh the models by how well each foresaw the look; `weight` is `log_weight` as shares of 1."""
    largest = log_weight.max()
    for model in range(MODELS):
        kept = FORGETTING * (log_weight[model] - largest) + (1 - FORGETTING) * LOG_PRIOR[model]
        log_weight[model] = kept + math.log(total[model])
    largest = (log_weight + tilt).max()
    whole = 0.0
    for model in range(MODELS):
        weight[model] = math.exp(log_weight[model] + tilt[model] - largest)
        whole += weight[model]
    for model in range(MODELS):
        weight[model] /= whole


@njit(cache=True, fastmath=FAST, error_model="numpy")
def settle(scratch: Array, total: Array, weight: Array, posterior: Array, mixture: Array) -> None:
    """Keep each model's posterior, normalised, and their mixture."""
    share = np.empty(MODELS, np.float32)
    for model in range(MODELS):
        share[model] = np.float32(1) / total[model]
    for cell in range(len(posterior)):
        mixed = np.float32(0)
        for model in range(MODELS):
            posterior[cell, model] = scratch[cell, model] * share[model]
            mixed += weight[model] * posterior[cell, model]
        mixture[cell] = mixed
