"""The posterior of many bins, one after the other: take looks in, read estimates off; compiled: numba and numpy only.

Rows are bins of replicas. A row is touched at its looks only; in between its estimate follows from the last look and
the steps since.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from eventide.arrays import Array, Floats, Ints
from eventide.filters.posterior_grid import JUMP, LOG_PRIOR, MODELS
from eventide.filters.posterior_grid_kernels import (
    FAST,
    cell_factors,
    drift_jump_update,
    likelihood,
    reweigh,
    settle,
)
from eventide.filters.posterior_scalar_kernels import PACES, bank_quantile, bank_state, begin_bank, set_paces, update_bank

MEMORY = 0.998  # of the usual values, for each unit that a look adds
FIRST_LESSON = math.sqrt(5.0)  # what the first look adds to the usual values
RESOLVED = 0.04  # of the level: what the grid can tell apart


class Cells(NamedTuple):
    """The grid, as kernels need it."""

    first: Floats
    width: Floats
    centre: Floats


class Rows(NamedTuple):
    """What is known of each row. See `PosteriorMedian` for the shapes."""

    posterior: Array
    weight: Array
    log_weight: Floats
    lesson: Array
    learned: Floats
    usual_mean: Floats
    usual_spread: Floats
    mean: Floats
    variance: Floats
    bank_weight: Floats
    pace: Floats
    positive: Floats
    looks: Ints
    since: Ints
    scale: Floats


class Usual(NamedTuple):
    """What every bin of a replica is given of usual values before it has learned its own: `(replicas, cells)`."""

    common: Array
    total: float
    tilt: Floats


@njit(cache=True, error_model="numpy")
def take_looks(
    cells: Cells,
    rows: Rows,
    usual: Usual,
    bins: int,
    least_scale: float,
    looking: Ints,
    look: Floats,
    scale: Floats,
    table: Ints,
    passing: Array,
    staying: Array,
) -> None:
    """Update every row of `looking` with its look; `table` names the drift table for the steps since its last one."""
    count = len(cells.first)
    ratio, average = np.empty(count), np.empty(count)
    chance, own, mixture = np.empty(count, np.float32), np.empty(count, np.float32), np.empty(count, np.float32)
    scratch, total = np.empty((count, MODELS), np.float32), np.empty(MODELS, np.float32)
    faithful = np.empty(MODELS, np.float32)
    scale_before, steps_before = -1.0, -1
    for index in range(len(looking)):
        row = looking[index]
        if scale[index] != scale_before:
            scale_before = scale[index]
            cell_factors(cells.width, scale_before, ratio, average)
        likelihood(cells.first, cells.width, ratio, average, look[index], scale[index], chance)
        usual_values(rows.lesson[row], rows.learned[row], usual.common[row // bins], usual.total, own)
        steps = rows.since[row]
        if rows.looks[row] == 0:
            begin_grid(own, chance, scratch, total)
            rows.log_weight[row] = LOG_PRIOR
            begin_bank(look[index], scale[index], rows.mean[row], rows.variance[row], rows.bank_weight[row])
            lesson = FIRST_LESSON
        else:
            if steps != steps_before:
                steps_before = steps
                for model in range(MODELS):
                    faithful[model] = (1 - JUMP[model]) ** steps
            place = table[index]
            drift_jump_update(
                rows.posterior[row], passing[place], staying[place], faithful, own, chance, scratch, total
            )
            update_bank(
                look[index], scale[index], steps, rows.mean[row], rows.variance[row], rows.bank_weight[row], rows.pace[row]
            )
            spread = rows.usual_spread[row]
            lesson = math.sqrt(steps) * spread / (spread + scale[index])
        reweigh(rows.log_weight[row], total, usual.tilt[row // bins], rows.weight[row])
        settle(scratch, total, rows.weight[row], rows.posterior[row], mixture)
        learn(rows, row, lesson, mixture)
        usual_values(rows.lesson[row], rows.learned[row], usual.common[row // bins], usual.total, own)
        rows.usual_mean[row], rows.usual_spread[row] = mean_and_spread(own, cells.centre)
        rows.looks[row] += 1
        rows.since[row] = 0
        rows.scale[row] = scale[index]
        rows.positive[row] += (max(look[index], 0.0) - rows.positive[row]) / rows.looks[row]
        level = 0.0
        for model in range(PACES):
            level += rows.bank_weight[row, model] * rows.mean[row, model]
        set_paces(least_scale, max(level, 0.0), rows.positive[row], rows.pace[row])


@njit(cache=True, fastmath=FAST, error_model="numpy")
def usual_values(lesson: Array, learned: float, common: Array, common_total: float, out: Array) -> None:
    """The distribution of a bin's usual values: what it learned, and what all bins are given."""
    share = np.float32(1 / (learned + common_total))
    for cell in range(len(out)):
        out[cell] = (lesson[cell] + common[cell]) * share


@njit(cache=True, fastmath=FAST, error_model="numpy")
def begin_grid(usual: Array, chance: Array, scratch: Array, total: Array) -> None:
    """The first look at a bin: the usual values are the prior of all models."""
    total[:] = 0
    for cell in range(len(usual)):
        for model in range(MODELS):
            scratch[cell, model] = usual[cell] * chance[cell]
            total[model] += scratch[cell, model]


@njit(cache=True, fastmath=FAST, error_model="numpy")
def learn(rows: Rows, row: int, lesson: float, mixture: Array) -> None:
    """Add what a look says to the usual values, and forget a little of what earlier ones said."""
    kept, added = np.float32(MEMORY**lesson), np.float32(lesson)
    for cell in range(len(mixture)):
        rows.lesson[row, cell] = kept * rows.lesson[row, cell] + added * mixture[cell]
    rows.learned[row] = kept * rows.learned[row] + lesson


@njit(cache=True, error_model="numpy")
def mean_and_spread(distribution: Array, centre: Floats) -> tuple[float, float]:
    """Mean, and mean absolute deviation from the median."""
    reached, median = 0.0, centre[-1]
    for cell in range(len(centre)):
        reached += distribution[cell]
        if reached >= 0.5:
            median = centre[cell]
            break
    mean, spread = 0.0, 0.0
    for cell in range(len(centre)):
        mean += distribution[cell] * centre[cell]
        spread += distribution[cell] * abs(centre[cell] - median)
    return mean, spread


@njit(cache=True, error_model="numpy")
def read_rows(
    cells: Cells, rows: Rows, usual: Usual, bins: int, tails: float, quantile: float, out: Floats, resolved: Floats
) -> None:
    """The median of every row, and the ends of an interval with `tails` outside on each side: `out` is `(3, rows)`.

    `quantile` is the normal distribution's for the same tails. `resolved` tells how far the grid speaks.
    """
    faithful, deviation = np.empty(MODELS), np.empty(PACES)
    steps_before = -1
    for row in range(len(rows.looks)):
        if rows.looks[row] == 0:
            out[:, row] = 0
            continue
        steps = rows.since[row]
        if steps != steps_before:
            steps_before = steps
            for model in range(MODELS):
                faithful[model] = (1 - JUMP[model]) ** steps
        low, middle, high = grid_quantiles(cells, rows, row, usual, bins, faithful, tails)
        bank = bank_state(rows.mean[row], rows.variance[row], rows.bank_weight[row], rows.pace[row], steps, deviation)
        unresolved = RESOLVED * max(middle, bank[0]) / min(rows.scale[row], bank[1])
        weight = 1 / (1 + unresolved**4)
        resolved[row] = weight
        if weight > 0.999:
            out[0, row], out[1, row], out[2, row] = low, middle, high
            continue
        for place, target, grid in ((0, -quantile, low), (1, 0.0, middle), (2, quantile, high)):
            scalar = bank_quantile(rows.mean[row], deviation, rows.bank_weight[row], bank[0], bank[1], target)
            out[place, row] = max(0.0, weight * grid + (1 - weight) * scalar)


@njit(cache=True, error_model="numpy")
def grid_quantiles(
    cells: Cells, rows: Rows, row: int, usual: Usual, bins: int, faithful: Floats, tails: float
) -> tuple[float, float, float]:
    """Three quantiles of the mixture of all models, jumps since the last look included."""
    weight = np.empty(MODELS, np.float32)
    jumped = 0.0
    for model in range(MODELS):
        weight[model] = rows.weight[row, model] * faithful[model]
        jumped += rows.weight[row, model] * (1 - faithful[model])
    jumped /= rows.learned[row] + usual.total
    common = usual.common[row // bins]
    reached, wanted = 0.0, tails
    low, middle = -1.0, -1.0
    for cell in range(len(cells.first)):
        mass = jumped * (rows.lesson[row, cell] + common[cell])
        for model in range(MODELS):
            mass += weight[model] * rows.posterior[row, cell, model]
        while reached + mass >= wanted:
            place = within(cells, cell, (wanted - reached) / mass)
            if low < 0:
                low, wanted = place, 0.5
            elif middle < 0:
                middle, wanted = place, 1 - tails
            else:
                return low, middle, place
        reached += mass
    top = cells.first[-1] + cells.width[-1]
    return low if low >= 0 else top, middle if middle >= 0 else top, top


@njit(cache=True, error_model="numpy")
def within(cells: Cells, cell: int, part: float) -> float:
    """The count below which `part` of a cell lies; a single count is not divided."""
    if cells.width[cell] == 1:
        return cells.first[cell]
    return cells.first[cell] - 0.5 + part * cells.width[cell]
