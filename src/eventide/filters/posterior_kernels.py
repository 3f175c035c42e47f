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
from eventide.filters.posterior_grid import JUMP, JUMPS, LOG_PRIOR, MODELS, RATES, Grid
from eventide.filters.posterior_look_kernels import (
    FAST,
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
    agree,
    bank_quantiles,
    bank_state,
    begin_bank,
    lanes_of_bank,
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
    mixed: Array  # (rows, room, rates): the posteriors of all models of a jump rate, by weight; what estimates need
    far_mixed: Array  # (far rows, cells, rates)


class SharedKnowledge(NamedTuple):
    """What every bin is given: in its place in a replica, and where only its own past counts."""

    usual: Array  # (replicas, cells): the prior and the usual values of all bins
    given: float  # the sum of each row of `usual`
    belief: Floats  # (replicas, models): by how much all bins together change the models' log weights
    bank_belief: Floats  # (replicas, paces): the same for the weights of the scalar bank, as factors
    prior: Array  # (cells,)
    prior_sum: float


class Room(NamedTuple):
    """Where some rows are kept cell by cell: all but a few together, those that need more room elsewhere."""

    posterior: Array
    lesson: Array
    mixed: Array


class Looks(NamedTuple):
    """Looks at some rows: numbers of rows, values, noise scales, and which drift table fits the steps since."""

    row: Ints
    place: Ints  # of the row where it is kept
    value: Floats
    scale: Floats
    table: Ints
    waiting: Bools  # to be taken in
    cells: Ints  # that each needs


@kernel(nogil=True, error_model="numpy")
def take_looks(
    grid: Grid,
    rows: PosteriorRows,
    room: Room,
    common: SharedKnowledge,
    looks: Looks,
    chosen: Ints,
    passing: Array,
    staying: Array,
    least_scale: float,
    most_scale: float,
) -> None:
    """Take in the `chosen` looks, at rows that are kept in the same `room`.

    `passing` and `staying` are drift tables `(tables, cells, models)`.

    Looks whose rows have no room for all their cells are left waiting.
    """
    cells, bins, steps_before = len(grid.first), len(rows.looks) // len(common.usual), -1
    ratio, average = np.empty(cells), np.empty(cells)
    chance, usual, mixture = np.empty(cells, np.float32), np.empty(cells, np.float32), np.empty(cells, np.float32)
    updated, total = np.empty((cells, MODELS), np.float32), np.empty(MODELS, np.float32)
    faithful, lanes, scale = np.empty(MODELS, np.float32), lanes_of_bank(), -1.0
    for index in chosen:
        row, look, steps = looks.row[index], looks.value[index], rows.since[looks.row[index]]
        shared, table = common.usual[row // bins], looks.table[index]
        if looks.scale[index] != scale:
            scale = looks.scale[index]
            cell_factors(grid.width, scale, ratio, average)
        chance_of_look(grid.first, grid.width, ratio, average, look, scale, chance)
        place = looks.place[index]
        posterior, lesson = room.posterior[place], room.lesson[place]
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
                *(rows.mean[row], rows.variance[row], rows.bank_own[row], rows.pace[row], lanes),
            )
            gridded = log_chance(grid, look, scale, rows.weight[row], total)
            share = rows.grid_share[row]
            rows.foreseen[row] = log_of_sum(math.log(share) + gridded, math.log(1 - share + UNHEARD) + banked)
            waiting = rows.untaught[row] + steps
            counts, rows.untaught[row] = math.sqrt(waiting) * telling, waiting * (1 - telling)
        reweigh(rows.log_weight[row], FORGETTING * telling, total)
        believe(rows.log_weight[row], common.belief[row // bins], rows.weight[row])
        agree(rows.bank_own[row], common.bank_belief[row // bins], rows.bank_weight[row])
        rows.cells[row] = settle(
            *(updated, total, rows.weight[row]),
            *(posterior[:used], room.mixed[place], mixture),
        )
        mixture[rows.cells[row] :] = 0
        rows.learned[row] = learn(counts, mixture, lesson, rows.learned[row])
        usual_values(lesson, rows.learned[row], common.prior, common.prior_sum, usual)
        rows.usual_mean[row], rows.usual_spread[row] = mean_and_spread(usual, grid.centre)
        rows.looks[row], rows.since[row] = rows.looks[row] + 1, 0
        rows.usual_level[row] += (max(look, 0.0) - rows.usual_level[row]) / rows.looks[row]
        set_paces(least_scale, most_scale, rows.mean[row], rows.bank_weight[row], rows.usual_level[row], rows.pace[row])


@kernel(error_model="numpy")
def mean_lesson(rows: PosteriorRows, begin: int, end: int, mean: Floats) -> None:
    """The usual values of all bins from `begin` to `end` that were looked at, each bin counting the same."""
    bins = 0
    for cell in range(len(mean)):
        mean[cell] = 0
    for row in range(begin, end):
        if rows.learned[row] > 0:
            bins += 1
            far = rows.far[row]
            if far < 0:
                for cell in range(rows.lesson.shape[1]):
                    mean[cell] += rows.lesson[row, cell] / rows.learned[row]
            else:
                for cell in range(rows.far_lesson.shape[1]):
                    mean[cell] += rows.far_lesson[far, cell] / rows.learned[row]
    for cell in range(len(mean)):
        mean[cell] /= bins


@kernel(nogil=True, error_model="numpy")
def read_rows(
    grid: Grid,
    rows: PosteriorRows,
    common: SharedKnowledge,
    known_up_to: float,
    tail: float,
    target: float,
    quantiles: Floats,
    begin: int,
    end: int,
) -> None:
    """Low end, median and high end of the rows from `begin` to `end`, into `(3, rows)`; 0 before a look.

    So much as `tail` is outside of each end, where a standard normal has `target`. The grid has less
    say against the scalar bank where its cells are coarse next to what is known, and half of it at `known_up_to`.
    """
    bins = len(rows.looks) // len(common.usual)
    faithful, mass, lanes = np.empty(RATES, np.float32), np.empty(len(grid.first), np.float32), lanes_of_bank()
    steps = -1
    for row in range(begin, end):
        if rows.looks[row] == 0:
            continue
        if rows.since[row] != steps:
            steps = rows.since[row]
            for rate in range(RATES):
                faithful[rate] = (1 - JUMPS[rate]) ** steps
        staying = 0.0
        for model in range(MODELS):
            staying += rows.weight[row, model] * faithful[model % RATES]
        jumped, cells, far = (1 - staying) / (rows.learned[row] + common.given), rows.cells[row], rows.far[row]
        shared = common.usual[row // bins]
        if far < 0:  # whole arrays and the number of a row: to take a row out of them costs more than to read it
            masses(rows.mixed, rows.lesson, row, cells, shared, faithful, jumped, mass)
        else:
            masses(rows.far_mixed, rows.far_lesson, far, cells, shared, faithful, jumped, mass)
        ends = quantiles_of(mass, grid, tail)
        centre, typical = bank_state(rows.mean, rows.variance, rows.bank_weight, rows.pace, row, steps, lanes)
        level = max(ends[1], centre)
        coarse = max(RESOLVED * level / typical, level / known_up_to)
        rows.grid_share[row] = share = 1 / (1 + coarse**4)
        if share > GRID_ALONE:
            quantiles[0, row], quantiles[1, row], quantiles[2, row] = ends
            continue
        banked = bank_quantiles(lanes, centre, typical, target, tail)
        for which in range(3):
            quantiles[which, row] = max(0.0, share * ends[which] + (1 - share) * banked[which])


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


@kernel(fastmath=FAST, error_model="numpy")
def masses(
    mixed: Array, lesson: Array, row: int, cells: int, shared: Array, faithful: Array, jumped: float, mass: Array
) -> None:
    """The mixture of all models, cell by cell: what stayed since the last look, and what jumped to usual values."""
    rarely, often, mostly, moved = faithful[0], faithful[1], faithful[2], np.float32(jumped)
    room = lesson.shape[1]
    for cell in range(cells):
        kept = rarely * mixed[row, cell, 0] + often * mixed[row, cell, 1] + mostly * mixed[row, cell, 2]
        mass[cell] = kept + moved * (shared[cell] + lesson[row, cell])
    for cell in range(cells, room):
        mass[cell] = moved * (shared[cell] + lesson[row, cell])
    for cell in range(room, len(mass)):
        mass[cell] = moved * shared[cell]


@kernel(error_model="numpy")
def quantiles_of(mass: Array, grid: Grid, tail: float) -> tuple[float, float, float]:
    """Low end, median and high end."""
    top = grid.first[-1] + grid.width[-1]
    low, middle = top, top
    reached, wanted, found = 0.0, tail, 0
    for cell in range(len(mass)):
        while reached + mass[cell] >= wanted:
            place = grid.first[cell]
            if grid.width[cell] > 1:
                place += (wanted - reached) / mass[cell] * grid.width[cell] - 0.5
            if found == 0:
                low, wanted = place, 0.5
            elif found == 1:
                middle, wanted = place, 1 - tail
            else:
                return low, middle, place
            found += 1
        reached += mass[cell]
    return low, middle, top
