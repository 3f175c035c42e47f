"""One look at one bin, on the grid: chance of the look in each cell, drift, jump, update.

Arrays of a bin are `(cells, models)` in single precision, models innermost so that they are computed side by side.
"""

from __future__ import annotations

import math

import numpy as np

from eventide.arrays import Array, Floats
from eventide.compiling import kernel
from eventide.filters.posterior_grid import DRIFT, LOG_PRIOR, MODELS, RATES, Grid

FORGETTING = 0.005  # of what earlier looks said about the models, at a sharp look
NEGLIGIBLE = 1e-20  # a chance below it is 0: numbers near the smallest there are would be slow
LOST = 1e-6  # of the posterior, in cells above those that are kept: most of a long grid is empty

FAST = {"contract", "reassoc", "nsz", "arcp"}


@kernel(error_model="numpy")
def drift_over(grid: Grid, steps: int, least_scale: float, passing: Array, staying: Array) -> None:
    """How a count spreads in `steps` steps under each model, `(cells, models)`: what passes on, and what stays.

    Two-sided geometric: of what reaches cell i from below, `passing[i]` goes on to cell i + 1, and of what reaches
    cell i + 1 from above the same part goes on to cell i. Its variance is that of the drift also where that is much
    smaller than a cell. `staying` makes all that comes from one cell add up to 1; else mass would gather in wide cells.
    """
    last = len(grid.centre) - 1
    for model in range(MODELS):
        for cell in range(last):
            apart, between = grid.centre[cell + 1] - grid.centre[cell], (grid.centre[cell + 1] + grid.centre[cell]) / 2
            scale = (DRIFT[model] * (least_scale / 2 + between) + 0.001 * least_scale) / apart
            half = 0.5 / (steps * scale * scale)  # the ratio solves ratio / (1 - ratio)^2 = half the variance
            passing[cell, model] = 1 / (1 + half + math.sqrt(half * (2 + half)))
        passing[last, model] = 0
        downwards, upwards = 0.0, 0.0
        for cell in range(last + 1):
            staying[cell, model] = 1 + downwards
            downwards = passing[cell, model] * (1 + downwards)
        for cell in range(last, -1, -1):
            upwards = passing[cell, model] * (1 + upwards) if cell < last else 0.0
            staying[cell, model] = 1 / (staying[cell, model] + upwards)


@kernel(error_model="numpy")
def cell_factors(width: Floats, scale: float, ratio: Floats, average: Floats) -> None:
    """What the noise's chance loses across each cell, and its average over the cell relative to the nearer end."""
    for cell in range(len(width)):
        ratio[cell] = math.exp(-width[cell] / scale)
        average[cell] = math.expm1(-width[cell] / scale) / (width[cell] * math.expm1(-1 / scale))


@kernel(error_model="numpy")
def chance_of_look(
    first: Floats, width: Floats, ratio: Floats, average: Floats, look: float, scale: float, chance: Array
) -> None:
    """The chance of discrete Laplace noise to show `look`, averaged over each cell, up to a common factor."""
    cells = len(first)
    seen = min(max(look, 0.0), first[-1] + width[-1] - 1)  # from outside, all cells lose the same factor
    home, above_home = 0, cells
    while above_home - home > 1:
        middle = (home + above_home) // 2
        if first[middle] <= seen:
            home = middle
        else:
            above_home = middle
    beyond = first[home] + width[home]
    below, above = math.floor(seen), math.floor(seen) + 1
    part_below = math.exp((below - seen) / scale) * math.expm1((first[home] - above) / scale)
    part_above = math.exp((seen - above) / scale) * math.expm1((above - beyond) / scale)
    chance[home] = (part_below + part_above) / (width[home] * math.expm1(-1 / scale))
    reaching = math.exp((first[home] - 1 - seen) / scale)
    for cell in range(home - 1, -1, -1):
        chance[cell] = reaching * average[cell] if reaching > NEGLIGIBLE else 0.0
        reaching *= ratio[cell]
    reaching = math.exp((seen - beyond) / scale)
    for cell in range(home + 1, cells):
        chance[cell] = reaching * average[cell] if reaching > NEGLIGIBLE else 0.0
        reaching *= ratio[cell]


@kernel(error_model="numpy")
def cells_with_mass(usual: Array, chance: Array) -> int:
    """How many cells hold all but a negligible part of what a jump to usual values would leave after the look."""
    whole = 0.0
    for cell in range(len(usual)):
        whole += usual[cell] * chance[cell]
    used, beyond = len(usual), 0.0
    while used > 1 and beyond + usual[used - 1] * chance[used - 1] < LOST * whole:
        used -= 1
        beyond += usual[used] * chance[used]
    return used


@kernel(fastmath=FAST, error_model="numpy")
def first_update(usual: Array, chance: Array, updated: Array, total: Array) -> None:
    """The first look at a bin: before it all models know the usual values."""
    total[:] = 0
    for cell in range(len(usual)):
        for model in range(MODELS):
            updated[cell, model] = usual[cell] * chance[cell]
            total[model] += updated[cell, model]


@kernel(fastmath=FAST, error_model="numpy")
def drift_jump_update(
    posterior: Array,
    passing: Array,
    staying: Array,
    faithful: Array,
    usual: Array,
    chance: Array,
    updated: Array,
    total: Array,
) -> None:
    """Let each model's posterior drift, with 1 - `faithful` jump to the usual values, and weigh it by the chance.

    `updated` is not normalised; `total` is its sum over cells.
    """
    models = posterior.shape[1]  # not the constant: loops that are unrolled are not vectorised
    carried = np.zeros(models, np.float32)
    for cell in range(len(posterior)):
        for model in range(models):
            reached = carried[model] + posterior[cell, model] * staying[cell, model]
            updated[cell, model] = reached
            carried[model] = reached * passing[cell, model]
    carried[:] = 0
    total[:] = 0
    for cell in range(len(posterior) - 1, -1, -1):
        for model in range(models):
            arriving = carried[model] * passing[cell, model]
            drifted = updated[cell, model] + arriving
            moved = faithful[model] * drifted + (np.float32(1) - faithful[model]) * usual[cell]
            updated[cell, model] = moved * chance[cell]
            total[model] += moved * chance[cell]
            carried[model] = arriving + posterior[cell, model] * staying[cell, model]


@kernel(error_model="numpy")
def reweigh(log_weight: Floats, forgotten: float, total: Array) -> None:
    """Weigh the models by how well each foresaw the look, and draw them a little back to where they began."""
    largest = -np.inf
    for model in range(MODELS):
        largest = max(largest, log_weight[model])
    for model in range(MODELS):
        kept = (1 - forgotten) * (log_weight[model] - largest) + forgotten * LOG_PRIOR[model]
        log_weight[model] = kept + math.log(total[model])


@kernel(error_model="numpy")
def believe(log_weight: Floats, belief: Floats, weight: Array) -> None:
    """Shares of 1, from what the looks at a bin say of the models and what all bins together believe of them."""
    largest, whole = -np.inf, 0.0
    for model in range(len(weight)):
        largest = max(largest, log_weight[model] + belief[model])
    for model in range(len(weight)):
        weight[model] = math.exp(log_weight[model] + belief[model] - largest)
        whole += weight[model]
    for model in range(len(weight)):
        weight[model] /= whole


@kernel(fastmath=FAST, error_model="numpy")
def settle(updated: Array, total: Array, weight: Array, posterior: Array, mixed: Array, mixture: Array) -> int:
    """Keep each model's posterior, normalised, and their mixtures, except in cells above that hold next to nothing.

    `mixed` is that of the models of each jump rate, `mixture` that of all.
    """
    share = np.float32(1) / total
    for cell in range(len(posterior)):
        for model in range(MODELS):
            posterior[cell, model] = updated[cell, model] * share[model]
        mixture[cell] = mix_models(posterior, weight, mixed, cell)
    used, beyond = len(posterior), 0.0
    while used > 1 and beyond + mixture[used - 1] < LOST:
        used -= 1
        beyond += mixture[used]
        posterior[used] = 0
    return used


@kernel(error_model="numpy")
def mix_models(posterior: Array, weight: Array, mixed: Array, cell: int) -> np.float32:
    """The mixtures in a cell. Nothing is reordered: a state that was saved without them has them to the bit."""
    whole = np.float32(0)
    for rate in range(RATES):
        part = np.float32(0)
        for model in range(rate, MODELS, RATES):
            part += weight[model] * posterior[cell, model]
        mixed[cell, rate] = part
        whole += part
    return whole


@kernel(error_model="numpy")
def mix_again(posterior: Array, weight: Array, mixed: Array) -> None:
    """The mixtures of all cells of some rows."""
    for row in range(len(posterior)):
        for cell in range(posterior.shape[1]):
            mix_models(posterior[row], weight[row], mixed[row], cell)
