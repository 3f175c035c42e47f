"""The posteriors of many bins, one after the other: take looks in, read estimates off.

Rows are the bins of all replicas. A row changes at its looks only; in between, its estimate follows from its last look
and the steps since.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints
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
    """What is known of each row; (rows,) where no other shape is given.

    `posterior` and `lesson` have room for the first cells, as many as most rows need, and are 0 in the others. The few
    rows that need more have all cells, elsewhere.
    """

    posterior: Array  # (rows, room, models): of each model, after the last look
    log_weight: Floats  # (rows, models): what the looks say of the models
    weight: Array  # (rows, models): the same with the belief of all bins, as shares of 1
    lesson: Array  # (rows, room): sum of past posteriors
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
    far: Ints  # its place in the next two, of a row that needs more room; -1 of all others
    far_posterior: Array  # (far rows, cells, models)
    far_lesson: Array  # (far rows, cells)


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
    waiting: Bools  # to be taken in
    cells: Ints  # that each needs


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
    """Update every row that was looked at; `passing` and `staying` are drift tables `(tables, cells, models)`.

    Looks whose rows have no room for all their cells are left waiting.
    """
    cells, bins, steps_before = len(grid.first), len(rows.looks) // len(common.usual), -1
    ratio, average = np.empty(cells), np.empty(cells)
    chance, usual, mixture = np.empty(cells, np.float32), np.empty(cells, np.float32), np.empty(cells, np.float32)
    updated, total = np.empty((cells, MODELS), np.float32), np.empty(MODELS, np.float32)
    faithful, bank_log, scale = np.empty(MODELS, np.float32), np.empty(PACES), -1.0
    for index in range(len(looks.row)):
        if not looks.waiting[index]:
            continue
        row, look, steps = looks.row[index], looks.value[index], rows.since[looks.row[index]]
        shared, table = common.usual[row // bins], looks.table[index]
        if looks.scale[index] != scale:
            scale = looks.scale[index]
            cell_factors(grid.width, scale, ratio, average)
        chance_of_look(grid.first, grid.width, ratio, average, look, scale, chance)
        posterior, lesson = posterior_of(rows, row), lesson_of(rows, row)
        usual_values(lesson, rows.learned[row], shared, common.given, usual)
        looks.cells[index] = used = max(rows.cells[row], cells_with_mass(usual, chance))
        if used > len(posterior):
            continue
        looks.waiting[index] = False
        if rows.looks[row] == 0:
            for model in range(MODELS):
                rows.log_weight[row, model] = LOG_PRIOR[model]
            first_update(usual[:used], chance, updated, total)
            begin_bank(look, scale, rows.mean[row], rows.variance[row], rows.bank_own[row])
            counts, telling = FIRST_LESSON, 1.0
        else:
            if steps != steps_before:
                steps_before = steps
                staying_faithful(steps, faithful)
            drift_jump_update(
                *(posterior[:used], passing[table], staying[table]),
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
            rows.foreseen[row] = log_of_sum(math.log(share) + gridded, math.log(1 - share + UNHEARD) + banked)
            waiting = rows.untaught[row] + steps
            counts, rows.untaught[row] = math.sqrt(waiting) * telling, waiting * (1 - telling)
        reweigh(rows.log_weight[row], FORGETTING * telling, total)
        believe(rows.log_weight[row], common.belief[row // bins], rows.weight[row])
        for model in range(PACES):
            bank_log[model] = math.log(rows.bank_own[row, model])
        believe(bank_log, common.bank_belief[row // bins], rows.bank_weight[row])
        rows.cells[row] = settle(updated, total, rows.weight[row], posterior[:used], mixture)
        mixture[rows.cells[row] :] = 0
        rows.learned[row] = learn(counts, mixture, lesson, rows.learned[row])
        usual_values(lesson, rows.learned[row], common.prior, common.prior_sum, usual)
        rows.usual_mean[row], rows.usual_spread[row] = mean_and_spread(usual, grid.centre)
        rows.looks[row], rows.since[row] = rows.looks[row] + 1, 0
        rows.usual_level[row] += (max(look, 0.0) - rows.usual_level[row]) / rows.looks[row]
        set_paces(least_scale, most_scale, rows.mean[row], rows.bank_weight[row], rows.usual_level[row], rows.pace[row])


@kernel(error_model="numpy")
def posterior_of(rows: PosteriorRows, row: int) -> Array:
    """The posterior of a row, as far as it has room."""
    held: Array = rows.posterior[row] if rows.far[row] < 0 else rows.far_posterior[rows.far[row]]
    return held


@kernel(error_model="numpy")
def lesson_of(rows: PosteriorRows, row: int) -> Array:
    """The lesson of a row, as far as it has room."""
    held: Array = rows.lesson[row] if rows.far[row] < 0 else rows.far_lesson[rows.far[row]]
    return held


@kernel(error_model="numpy")
def mean_lesson(rows: PosteriorRows, begin: int, end: int, mean: Floats) -> None:
    """The usual values of all bins from `begin` to `end` that were looked at, each bin counting the same."""
    bins = 0
    for cell in range(len(mean)):
        mean[cell] = 0
    for row in range(begin, end):
        if rows.learned[row] > 0:
            bins += 1
            lesson = lesson_of(rows, row)
            for cell in range(len(lesson)):
                mean[cell] += lesson[cell] / rows.learned[row]
    for cell in range(len(mean)):
        mean[cell] /= bins


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
def log_of_sum(one: float, other: float) -> float:
    """The logarithm of a sum, from the logarithms of its parts."""
    return max(one, other) + math.log1p(math.exp(min(one, other) - max(one, other)))


@kernel(error_model="numpy")
def staying_faithful(steps: int, faithful: Array) -> None:
    """The chance of each model that nothing jumped in so many steps."""
    for model in range(MODELS):
        faithful[model] = (1 - JUMP[model]) ** steps


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
    cells, far = rows.cells[row], rows.far[row]
    found: tuple[float, float, float]
    if far < 0:
        found = quantiles(grid, rows.posterior, rows.lesson, row, cells, kept, shared, jumped, tail)
    else:
        found = quantiles(grid, rows.far_posterior, rows.far_lesson, far, cells, kept, shared, jumped, tail)
    return found


@kernel(error_model="numpy")
def quantiles(
    grid: Grid,
    posterior: Array,
    lesson: Array,
    row: int,
    cells: int,
    kept: Array,
    shared: Array,
    jumped: float,
    tail: float,
) -> tuple[float, float, float]:
    """The same, of what so many cells of a row `kept`, and of what `jumped` to usual values."""
    top, room = grid.first[-1] + grid.width[-1], lesson.shape[1]
    low, middle = top, top
    reached, wanted, found = 0.0, tail, 0
    for cell in range(len(grid.first)):
        usual = shared[cell]
        if cell < room:
            usual += lesson[row, cell]
        mass = jumped * usual
        if cell < cells:
            for model in range(MODELS):
                mass += kept[model] * posterior[row, cell, model]
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
