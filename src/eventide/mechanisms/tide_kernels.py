"""The error that each interval between looks would have, predicted from what is known of every bin.

It sees what the filter knows, which is private, and never a count.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from eventide.arrays import Bools, Floats
from eventide.compiling import kernel
from eventide.filters.posterior_grid import DRIFT, JUMP, MODELS
from eventide.filters.posterior_kernels import PosteriorRows
from eventide.filters.posterior_scalar_kernels import PACES
from eventide.filters.posterior_season_kernels import ALONE, SeasonRows, pace, scatter

NEGLIGIBLE = 1e-4  # a weight
ENOUGH_BINS = 512  # of a wider stream, one bin in several speaks for all


class Intervals(NamedTuple):
    """Intervals to choose from: steps, variance of a look's noise, and by model the part of steps after a jump."""

    steps: Floats
    noise: Floats
    missed: Floats


@kernel(error_model="numpy")
def predicted_errors(
    intervals: Intervals,
    rows: PosteriorRows,
    median: Floats,
    say: Floats,
    least_scale: float,
    looks: Bools,
) -> Floats:
    """The mean error at each interval, `(replicas, intervals)`, added over bins; 0 for replicas that did not look.

    A bin counts as much as `say` is: less where the seasonal voice has one too.

    Inside a bin logarithms are averaged over models: a mean of errors would be ruled by the fastest model.
    """
    choices = len(intervals.steps)
    errors, logarithm, squared = np.zeros((len(looks), choices)), np.empty(choices), np.empty(choices)
    bins = len(median) // len(looks)
    apart = -(-bins // ENOUGH_BINS)
    for row in range(len(median)):
        if not looks[row // bins] or row % bins % apart != 0:
            continue
        logarithm[:] = 0
        level, spread = max(median[row], rows.usual_mean[row]), rows.usual_spread[row]
        for model in range(MODELS):
            weight = rows.grid_share[row] * rows.weight[row, model]
            if weight > NEGLIGIBLE:
                drift = 2 * (DRIFT[model] * (least_scale / 2 + level)) ** 2
                jumps = 2 * JUMP[model] * spread * spread
                add_errors(intervals, drift, jumps, spread, model, weight, logarithm, squared)
        for model in range(PACES):
            weight = (1 - rows.grid_share[row]) * rows.bank_weight[row, model]
            if weight > NEGLIGIBLE:
                add_errors(intervals, rows.pace[row, model], 0.0, 0.0, 0, weight, logarithm, squared)
        for choice in range(choices):
            errors[row // bins, choice] += say[row] * math.exp(logarithm[choice])
    return errors


@kernel(error_model="numpy")
def seasonal_errors(
    intervals: Intervals, rows: SeasonRows, together: Floats, say: Floats, least_scale: float, looks: Bools
) -> Floats:
    """The same for the seasonal voice: a level that walks, and a scatter that only a look at the very step shows.

    Who follows the sum of all bins is also as wrong as that sum: `together` has its errors, relative to it.
    """
    choices, bins = len(intervals.steps), len(say) // len(looks)
    errors, logarithm = np.zeros((len(looks), choices)), np.empty(choices)
    apart = -(-bins // ENOUGH_BINS)
    for row in range(len(say)):
        replica = row // bins
        if not looks[replica] or row % bins % apart != 0 or say[row] == 0:
            continue
        logarithm[:] = 0
        for voice in range(rows.weight.shape[1]):
            weight, level = rows.weight[row, voice], rows.mean[row, voice]
            if weight > NEGLIGIBLE:
                walk, single = pace(voice, level, least_scale), scatter(voice, level, 1.0, 0.0)
                for choice in range(choices):
                    error = scattered_error(intervals.steps[choice], intervals.noise[choice], walk, single)
                    if voice >= ALONE:
                        error = math.sqrt(error**2 + (level * together[replica, choice]) ** 2)
                    logarithm[choice] += weight * math.log(error)
        for choice in range(choices):
            errors[replica, choice] += say[row] * math.exp(logarithm[choice])
    return errors


@kernel(error_model="numpy")
def scattered_error(steps: float, noise: float, walk: float, single: float) -> float:
    """The mean deviation with a look every so many steps, of a level that walks with single counts scattered around."""
    grown, blurred = walk * steps, noise + single
    before = 0.5 * (grown + math.sqrt(grown * (grown + 4 * blurred)))
    after = before * blurred / (before + blurred)
    seen = math.sqrt((before + single) * noise / (before + single + noise))
    waiting: float = waiting_error(after + walk + single, walk, steps - 1)
    return (seen + (steps - 1) * waiting) / steps


@kernel(error_model="numpy")
def add_errors(
    intervals: Intervals,
    drift: float,
    jumps: float,
    spread: float,
    model: int,
    weight: float,
    logarithm: Floats,
    squared: Floats,
) -> None:
    """Add the weighted logarithm of one model's error at each interval.

    `drift` and `jumps` are variances a step; a jump not seen yet costs `spread`. A rare jump is less than the
    walk of the same variance, and what looks like one is often the start of a wave: the truth is taken half way.
    Logarithms come behind all squared errors, which without them are computed side by side.
    """
    for choice in range(len(intervals.steps)):
        steps, noise = intervals.steps[choice], intervals.noise[choice]
        grown = (drift + jumps) * steps
        before = 0.5 * (grown + math.sqrt(grown * (grown + 4 * noise)))
        after = before * noise / (before + noise)
        walking = waiting_error(after, drift + jumps, steps)
        jumping = waiting_error(after, drift, steps) + spread * intervals.missed[model, choice]
        squared[choice] = walking * jumping
    for choice in range(len(intervals.steps)):
        logarithm[choice] += weight * 0.5 * math.log(squared[choice])


@kernel(error_model="numpy")
def waiting_error(after: float, variance: float, steps: float) -> float:
    """The deviation of a random walk from a look to the step before the next, on average (Simpson's rule)."""
    middle, last = after + variance * (steps - 1) / 2, after + variance * (steps - 1)
    return (math.sqrt(after) + 4 * math.sqrt(middle) + math.sqrt(last)) / 6
