"""What each interval between looks would cost, predicted from what is known of every bin: numba and numpy only."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from eventide.arrays import Bools, Floats
from eventide.filters.posterior_grid import DRIFT, JUMP, MODELS
from eventide.filters.posterior_kernels import Rows
from eventide.filters.posterior_scalar_kernels import PACES

TABLE_BEGIN, TABLE_STEP, TABLE_SIZE = -40.0, 0.5, 400  # of log2 of a variance


@njit(cache=True, error_model="numpy")
def predicted_losses(
    knob: Floats, candidates: Floats, noise: Floats, table: Floats, rows: Rows, resolved: Floats, median: Floats, least_scale: float, looks: Bools, loss: Floats
) -> None:
    """The error that each interval of `table` would have on average, added over the bins of a replica.

    Inside a bin the logarithms are averaged over models: a mean of errors would be ruled by the fastest model.
    """
    loss[:] = 0
    logarithm = np.empty(loss.shape[1])
    bins = len(median) // len(loss)
    for row in range(len(median)):
        if not looks[row // bins]:
            continue
        logarithm[:] = 0
        if resolved[row] > 0.001:
            level = max(median[row], rows.usual_mean[row])
            for model in range(MODELS):
                drift = 2 * (DRIFT[model] * (least_scale / 2 + level)) ** 2
                weight = resolved[row] * rows.weight[row, model]
                if weight > 1e-4:
                    add_jumping(knob, candidates, noise, drift, JUMP[model], rows.usual_spread[row], weight, logarithm)
        if resolved[row] < 0.999:
            for model in range(PACES):
                look_up(table, rows.pace[row, model], (1 - resolved[row]) * rows.bank_weight[row, model], logarithm)
        for interval in range(len(logarithm)):
            loss[row // bins, interval] += math.exp(logarithm[interval])


@njit(cache=True, error_model="numpy")
def look_up(table: Floats, variance: float, weight: float, logarithm: Floats) -> None:
    """Add the weighted logarithm of the error at a variance a step, for each interval."""
    if weight < 1e-4:
        return
    place = (math.log2(max(variance, 1e-12)) - TABLE_BEGIN) / TABLE_STEP
    cell = min(max(int(place), 0), TABLE_SIZE - 2)
    part = place - cell
    for interval in range(len(logarithm)):
        logarithm[interval] += weight * ((1 - part) * table[cell, interval] + part * table[cell + 1, interval])


@njit(cache=True, error_model="numpy")
def add_jumping(
    knob: Floats, candidates: Floats, noise: Floats, drift: float, jump: float, spread: float, weight: float, logarithm: Floats
) -> None:
    """Add the weighted logarithm of the error of a count that drifts and jumps, for each interval.

    """
    jumping = 2 * jump * spread * spread
    for place in range(len(candidates)):
        steps = candidates[place]
        grown = (drift + jumping) * steps
        before = 0.5 * (grown + math.sqrt(grown * (grown + 4 * noise[place])))
        if knob[0] > 0:
            before = min(before, drift * steps + knob[0] * spread * spread)
        after = before * noise[place] / (before + noise[place])
        missed = 1 - (1 - (1 - jump) ** steps) / (jump * steps)
        middle, end = math.sqrt(after + drift * (steps - 1) / 2), math.sqrt(after + drift * (steps - 1))
        error = (math.sqrt(after) + 4 * middle + end) / 6 + spread * missed
        q = drift + jumping
        middle, end = math.sqrt(after + q * (steps - 1) / 2), math.sqrt(after + q * (steps - 1))
        walk = (math.sqrt(after) + 4 * middle + end) / 6
        error = error ** knob[1] * walk ** (1 - knob[1])
        logarithm[place] += weight * math.log(error + 1e-9)
