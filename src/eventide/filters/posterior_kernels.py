"""The posteriors of many bins, one after the other: take looks in, read estimates off.

Rows are the bins of all replicas. A row changes at its looks only; in between, its estimate follows from its last look
and the steps since.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.compiling import kernel
from eventide.filters.posterior_grid import JUMP, LOG_PRIOR, MODELS, Grid
from eventide.filters.posterior_look_kernels import (
    FORGETTING,
    believe,
    cell_factors,
    cells_with_mass,
    chance_of_look,
    drift_jump_update,
    first_update,
    reweigh,
    settle,
)
from eventide.filters.posterior_scalar_kernels import (
    PACES,
    bank_quantile,
    bank_state,
    begin_bank,
    set_paces,
    update_bank,
)
from eventide.filters.posterior_usual_kernels import FIRST_LESSON, learn, mean_and_spread, usual_values

RESOLVED = 0.04  # of the level: what cells can tell apart
UNHEARD = 1e-12  # a say
GRID_ALONE = 0.999  # so much of the say, and the scalar bank is not asked


class PosteriorRows(NamedTuple):
    """What is known of each row; (rows,) where no other shape is given."""

    posterior: Array  # (rows, cells, models): of each model, after the last look
    log_weight: Floats  # (rows, models): what the looks say of the models
    weight: Array  # (rows, models): the same with the belief of all bins, as shares of 1
    lesson: Array  # (rows, cells): sum of past posteriors
    learned: Floats  # the sum of `lesson`
    usual_mean: Floats  # of the bin's own past, as the next: the mean deviation from the median
    usual_spread: Floats
    mean: Floats  # (rows, paces): of the filters of the scalar bank, as the next four
    variance: Floats
    bank_own: Floats  # weights, as the looks say
    bank_weight: Floats  # the same with the belief of all bins
    pace: Floats  # the variance that each adds a step
    usual_level: Floats  # mean of all looks, negative ones as 0
    cells: Ints  # how many hold all but a negligible part of the posterior; it is 0 in the others
    looks: Ints
    since: Ints  # steps since the last look
    grid_share: Floats  # how much say the grid has against the scalar bank
    foreseen: Floats  # how well the last look was: the log of its chance
    untaught: Floats  # steps that the usual values have not learned from yet


class SharedKnowledge(NamedTuple):
    """What every bin is given: in its place in a replica, and where only its own past counts."""

    usual: Array  # (replicas, cells): the prior and the usual values of all bins
    given: float  # the sum of each row of `usual`
    belief: Floats  # (replicas, models): by how much all bins together change the models' log weights
    bank_belief: Floats  # (replicas, paces): the same for the scalar bank
    prior: Array  # (cells,)
    prior_sum: float


class Looks(NamedTuple):
    """Looks at some rows: numbers of rows, values, noise scales, and which drift table fits the steps since."""

    row: Ints
    value: Floats
    scale: Floats
    table: Ints


@kernel(nogil=True, error_model="numpy")
def take_looks(
    grid: Grid,
    rows: PosteriorRows,
    common: SharedKnowledge,
    looks: Looks,
    passing: Array,
    staying: Array,
    least_scale: float,
    most_scale: float,
) -> None:
    """Update every row that was looked at; `passing` and `staying` are drift tables `(tables, cells, models)`."""
    cells, bins, steps_before = len(grid.first), len(rows.looks) // len(common.usual), -1
    ratio, average = np.empty(cells), np.empty(cells)
    chance, usual, mixture = np.empty(cells, np.float32), np.empty(cells, np.float32), np.empty(cells, np.float32)
    updated, total = np.empty((cells, MODELS), np.float32), np.empty(MODELS, np.float32)
    faithful, scale = np.empty(MODELS, np.float32), -1.0
    for index in range(len(looks.row)):
        row, look, steps = looks.row[index], looks.value[index], rows.since[looks.row[index]]
        shared, table = common.usual[row // bins], looks.table[index]
        if looks.scale[index] != scale:
            scale = looks.scale[index]
            cell_factors(grid.width, scale, ratio, average)
        chance_of_look(grid.first, grid.width, ratio, average, look, scale, chance)
        usual_values(rows.lesson[row], rows.learned[row], shared, common.given, usual)
        if rows.looks[row] == 0:
            for model in range(MODELS):
                rows.log_weight[row, model] = LOG_PRIOR[model]
            used = cells_with_mass(usual, chance)
            first_update(usual[:used], chance, updated, total)
            begin_bank(look, scale, rows.mean[row], rows.variance[row], rows.bank_own[row])
            counts, telling = FIRST_LESSON, 1.0
        else:
            if steps != steps_before:
                steps_before = steps
                staying_faithful(steps, faithful)
            used = max(rows.cells[row], cells_with_mass(usual, chance))
            drift_jump_update(
                *(rows.posterior[row, :used], passing[table], staying[table]),
                *(faithful, usual, chance, updated, total),
            )
            spread = rows.usual_spread[row]
            telling = spread / (spread + scale)  # nothing if its noise hides all that is usual
            banked = update_bank(
                *(look, scale, steps, telling),
                *(rows.mean[row], rows.variance[row], rows.bank_own[row], rows.pace[row]),
            )
            gridded = log_chance(grid, look, scale, rows.weight[row], total)
            share = rows.grid_share[row]
            rows.foreseen[row] = np.logaddexp(math.log(share) + gridded, math.log(1 - share + UNHEARD) + banked)
            waiting = rows.untaught[row] + steps
            counts, rows.untaught[row] = math.sqrt(waiting) * telling, waiting * (1 - telling)
        reweigh(rows.log_weight[row], FORGETTING * telling, total)
        believe(rows.log_weight[row], common.belief[row // bins], rows.weight[row])
        believe(np.log(rows.bank_own[row]), common.bank_belief[row // bins], rows.bank_weight[row])
        rows.cells[row] = settle(updated, total, rows.weight[row], rows.posterior[row, :used], mixture)
        mixture[rows.cells[row] :] = 0
        rows.learned[row] = learn(counts, mixture, rows.lesson[row], rows.learned[row])
        usual_values(rows.lesson[row], rows.learned[row], common.prior, common.prior_sum, usual)
        rows.usual_mean[row], rows.usual_spread[row] = mean_and_spread(usual, grid.centre)
        rows.looks[row], rows.since[row] = rows.looks[row] + 1, 0
        rows.usual_level[row] += (max(look, 0.0) - rows.usual_level[row]) / rows.looks[row]
        set_paces(least_scale, most_scale, rows.mean[row], rows.bank_weight[row], rows.usual_level[row], rows.pace[row])


@kernel(nogil=True, error_model="numpy")
def read_rows(
    grid: Grid,
    rows: PosteriorRows,
    common: SharedKnowledge,
    tail: float,
    target: float,
    quantiles: Floats,
    begin: int,
    end: int,
) -> None:
    """Low end, median and high end of the rows from `begin` to `end`, into `(3, rows)`; 0 before a look.

    So much as `tail` is outside of each end, where a standard normal has `target`. The grid has less
    say against the scalar bank where its cells are coarse next to what is known.
    """
    bins = len(rows.looks) // len(common.usual)
    faithful, kept, deviation = np.empty(MODELS), np.empty(MODELS, np.float32), np.empty(PACES)
    steps = -1
    for row in range(begin, end):
        if rows.looks[row] == 0:
            continue
        if rows.since[row] != steps:
            steps = rows.since[row]
            staying_faithful(steps, faithful)
        ends = grid_quantiles(grid, rows, row, common.usual[row // bins], common.given, faithful, kept, tail)
        mean, weight = rows.mean[row], rows.bank_weight[row]
        centre, typical = bank_state(mean, rows.variance[row], weight, rows.pace[row], steps, deviation)
        coarse = RESOLVED * max(ends[1], centre) / typical
        rows.grid_share[row] = share = 1 / (1 + coarse**4)
        if share > GRID_ALONE:
            quantiles[0, row], quantiles[1, row], quantiles[2, row] = ends
            continue
        for which in range(3):
            place = (which - 1) * target
            scalar = bank_quantile(mean, deviation, weight, centre + place * typical, place)
            quantiles[which, row] = max(0.0, share * ends[which] + (1 - share) * scalar)


@kernel(error_model="numpy")
def log_chance(grid: Grid, look: float, scale: float, weight: Array, total: Array) -> float:
    """How well the grid foresaw a look: the log of its chance, from the sums of all models' updates."""
    whole = 0.0
    for model in range(MODELS):
        whole += weight[model] * total[model]
    seen = min(max(look, 0.0), grid.first[-1] + grid.width[-1] - 1)
    chance: float = math.log(whole) + math.log(math.tanh(0.5 / scale)) - abs(look - seen) / scale
    return chance


@kernel(error_model="numpy")
def staying_faithful(steps: int, faithful: Array) -> None:
    """The chance of each model that nothing jumped in so many steps."""
    chance = (1 - JUMP) ** steps
    for model in range(MODELS):
        faithful[model] = chance[model]


@kernel(error_model="numpy")
def grid_quantiles(
    grid: Grid, rows: PosteriorRows, row: int, shared: Array, given: float, faithful: Floats, kept: Array, tail: float
) -> tuple[float, float, float]:
    """Three quantiles of the mixture of all models, with the jumps since the last look."""
    jumped = 1.0
    for model in range(MODELS):
        kept[model] = rows.weight[row, model] * faithful[model]
        jumped -= kept[model]
    jumped /= rows.learned[row] + given
    top = grid.first[-1] + grid.width[-1]
    low, middle = top, top
    reached, wanted, found = 0.0, tail, 0
    for cell in range(len(grid.first)):
        mass = jumped * (rows.lesson[row, cell] + shared[cell])
        if cell < rows.cells[row]:
            for model in range(MODELS):
                mass += kept[model] * rows.posterior[row, cell, model]
        while reached + mass >= wanted:
            place = grid.first[cell]
            if grid.width[cell] > 1:
                place += (wanted - reached) / mass * grid.width[cell] - 0.5
            if found == 0:
                low, wanted = place, 0.5
            elif found == 1:
                middle, wanted = place, 1 - tail
            else:
                return low, middle, place
            found += 1
        reached += mass
    return low, middle, top
