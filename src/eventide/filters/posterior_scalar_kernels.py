"""The scalar bank: Gaussian filters side by side, for levels that cells cannot resolve.

Each filter takes the count for a random walk of its own pace, and is told of a look with Laplace noise exactly: its
state becomes the mean and the variance of the true posterior. All filters of a bin are computed side by side, in lanes.
"""

from __future__ import annotations

import math

import numpy as np

from eventide.arrays import Array, Floats
from eventide.compiling import kernel
from eventide.filters.posterior_function_kernels import (
    ROOT_HALF,
    ROOT_TAU,
    SIDE_BY_SIDE,
    exponential,
    logarithm,
    mills_ratio,
)
from eventide.filters.posterior_grid import QUIET_LEVEL
from eventide.filters.posterior_look_kernels import FAST

ADDITIVE = np.array([0.005, 0.05, 0.5])  # drift a step in noise scales
RELATIVE = np.array([0.005, 0.025, 0.12, 0.6, 3.0])  # and in levels; the last two never less than of the usual level
RETURNING = 2
WIDE, ANEW = len(ADDITIVE) + len(RELATIVE), len(ADDITIVE) + len(RELATIVE) + 1  # two more: beyond the noise; jumps
WIDEST = 3.0  # drift a step of both, in scales of the blurriest look
PACES = ANEW + 1
LANES = 16  # the filters and some idle ones, which make up whole instructions of any processor
PRIOR = 0.6 ** np.arange(PACES) / np.sum(0.6 ** np.arange(PACES))
CHANGING = 0.02  # chance that the pace is another at the next look, if that look is sharp
SHARP, BLURRED = 30.0, 0.001  # what is known, in noise scales: beyond, only the look counts, or it says nothing
NEWTON_STEPS, CLOSE = 20, 1e-3  # steps at the most, and a part of the mixture
NEAR = 0.05  # of what lies beyond: from there one more of Newton's steps ends nearer than `CLOSE`
SERIES_FROM = 8.0  # deviations: beyond, the variance left would be a difference of numbers nearly the same


@kernel(error_model="numpy")
def begin_bank(look: float, scale: float, mean: Floats, variance: Floats, weight: Floats) -> None:
    """After the first look: all paces know the same."""
    for model in range(PACES):
        mean[model], variance[model], weight[model] = max(0.0, look), 2 * scale * scale, PRIOR[model]


@kernel(error_model="numpy")
def lanes_of_bank() -> Array:
    """Room for six numbers of each lane; the third are weights, which idle lanes have none of."""
    lanes = np.ones((6, LANES))
    for lane in range(LANES):
        lanes[2, lane] = 0
    return lanes


@kernel(error_model="numpy", fastmath=SIDE_BY_SIDE)
def update_bank(
    look: float,
    scale: float,
    steps: int,
    telling: float,
    mean: Floats,
    variance: Floats,
    weight: Floats,
    pace: Floats,
    lanes: Array,
) -> float:
    """Grow the variances over the steps since the last look, let paces change, and take the look in.

    Gives how well the bank foresaw the look: the log of its chance. `lanes` is room to work in.
    """
    apart, before, believed, moved, after, chance = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5]
    # Before the variances grow: the fastest would blur the knowledge of all others.
    mix(mean, variance, weight, 1 - CHANGING * telling)
    for model in range(PACES):
        apart[model], believed[model] = look - mean[model], weight[model]
        before[model] = variance[model] + pace[model] * steps
    for lane in range(len(apart)):
        moved[lane], after[lane], chance[lane] = laplace_update(apart[lane], before[lane], scale)
    moved[ANEW], after[ANEW], chance[ANEW] = begun_anew(look, mean[ANEW], scale)
    for lane in range(len(apart)):
        chance[lane] += logarithm(believed[lane])
    largest = -np.inf
    for model in range(PACES):
        largest = max(largest, chance[model])
    for lane in range(len(apart)):
        chance[lane] = exponential(chance[lane] - largest)
    whole = 0.0
    for model in range(PACES):
        mean[model] += moved[model]
        variance[model] = after[model]
        weight[model] = chance[model] + 1e-12
        whole += weight[model]
    for model in range(PACES):
        weight[model] /= whole
    return largest + math.log(whole)


@kernel(error_model="numpy")
def agree(own: Floats, belief: Floats, weight: Floats) -> None:
    """Weights, from what the looks at a bin say and what all bins together believe."""
    whole = 0.0
    for model in range(PACES):
        weight[model] = own[model] * belief[model]
        whole += weight[model]
    for model in range(PACES):
        weight[model] /= whole


@kernel(error_model="numpy")
def set_paces(
    least_scale: float, most_scale: float, mean: Floats, weight: Floats, usual_level: float, pace: Floats
) -> None:
    """The variance that each filter adds a step."""
    level = 0.0
    for model in range(PACES):
        level += weight[model] * max(mean[model], 0.0)
    for model in range(PACES):
        relative = model - len(ADDITIVE)
        if model >= WIDE:
            scale = WIDEST * most_scale
        elif relative < 0:
            scale = ADDITIVE[model] * least_scale
        elif relative < len(RELATIVE) - RETURNING:
            scale = RELATIVE[relative] * (least_scale / 2 + level)
        else:
            scale = RELATIVE[relative] * (least_scale / 2 + max(level, usual_level))
        pace[model] = 2 * scale * scale


@kernel(error_model="numpy")
def mix(mean: Floats, variance: Floats, weight: Floats, staying: float) -> None:
    """Some of the state that is believed most passes to every other pace, as the mean and variance of the mixture.

    Not some of every state: the fastest would blur what all others know, however little it is believed.
    """
    best = 0
    for model in range(PACES):
        if weight[model] > weight[best]:
            best = model
    believed, spread = mean[best], variance[best]
    for model in range(PACES):
        own, other = staying * weight[model], (1 - staying) * PRIOR[model]
        share = other / (own + other)
        apart = mean[model] - believed
        mean[model] -= share * apart
        variance[model] = (1 - share) * variance[model] + share * spread + share * (1 - share) * apart * apart
        weight[model] = own + other


@kernel(error_model="numpy", fastmath=SIDE_BY_SIDE, forceinline=True)
def laplace_update(look: float, variance: float, scale: float) -> tuple[float, float, float]:
    """How far the mean moves, variance and log evidence after a look at N(0, variance) through Laplace noise.

    Below the look the posterior is a normal one shifted up by variance / scale, above it one shifted down, each cut at
    the look.
    """
    deviation, shift = math.sqrt(variance), variance / scale
    known = deviation / scale
    log_low, hazard_low, left_low = normal_tail((look - shift) / deviation)
    log_high, hazard_high, left_high = normal_tail(-(look + shift) / deviation)
    log_low -= look / scale
    log_high += look / scale
    lesser = exponential(-abs(log_low - log_high))
    evidence = 0.5 * known * known + max(log_low, log_high) + logarithm((1 + lesser) / (2 * scale))
    below = (1.0 if log_low > log_high else lesser) / (1 + lesser)
    mean_below, mean_above = shift - deviation * hazard_low, -shift + deviation * hazard_high
    apart = mean_below - mean_above
    mean = mean_above + below * apart
    kept = variance * (below * left_low + (1 - below) * left_high) + below * (1 - below) * apart * apart
    if known < BLURRED:
        mean, kept, evidence = 0.0, variance, -abs(look) / scale - logarithm(2 * scale)
    if known > SHARP:
        mean, kept = look, 2 * scale * scale
        evidence = -0.5 * look * look / variance - logarithm(deviation * ROOT_TAU)
    return mean, kept, evidence


@kernel(error_model="numpy")
def begun_anew(look: float, mean: float, scale: float) -> tuple[float, float, float]:
    """Move, variance and log evidence where only the look counts: counts may be anywhere, high ones less often."""
    seen = max(look, 0.0)
    evidence = math.log(QUIET_LEVEL) - 2 * math.log(seen + QUIET_LEVEL + scale) + min(look, 0.0) / scale
    return seen - mean, 2 * scale * scale, evidence


@kernel(error_model="numpy", fastmath=SIDE_BY_SIDE, forceinline=True)
def normal_tail(place: float) -> tuple[float, float, float]:
    """Of a standard normal cut to below `place`: log of its mass, density over mass at the cut, variance left."""
    apart, half_square = abs(place), 0.5 * place * place
    ratio = mills_ratio(apart)
    density = exponential(-half_square) / ROOT_TAU
    most = 1 - density * ratio
    above = place > 0
    log_mass = logarithm(most if above else ratio / ROOT_TAU) - (0.0 if above else half_square)
    hazard = (density if above else 1.0) / (most if above else ratio)
    inverse = 1 / max(half_square + half_square, SERIES_FROM)
    series = inverse * (1 - inverse * (6 - 50 * inverse))
    return log_mass, hazard, series if place < -SERIES_FROM else 1 - hazard * (place + hazard)


@kernel(error_model="numpy", fastmath=SIDE_BY_SIDE)
def bank_state(
    mean: Floats, variance: Floats, weight: Floats, pace: Floats, row: int, steps: int, lanes: Array
) -> tuple[float, float]:
    """Mean of what a row's bank knows some steps after a look, and the geometric mean of its filters' deviations.

    A mean of variances would be ruled by the fastest filter, however little it is believed. Means, deviations and
    weights are left in `lanes`.
    """
    means, deviations, weights, logarithms = lanes[0], lanes[1], lanes[2], lanes[3]
    for model in range(PACES):
        means[model], weights[model] = mean[row, model], weight[row, model]
        deviations[model] = variance[row, model] + pace[row, model] * steps
    for lane in range(len(means)):
        logarithms[lane] = logarithm(deviations[lane])
        deviations[lane] = math.sqrt(deviations[lane])
    centre, typical = 0.0, 0.0
    for model in range(PACES):
        centre += weights[model] * means[model]
        typical += weights[model] * logarithms[model]
    for lane in range(PACES, LANES):
        means[lane], deviations[lane] = centre, 1.0
    return centre, math.exp(0.5 * typical)


@kernel(error_model="numpy")
def bank_quantiles(
    lanes: Array, centre: float, typical: float, target: float, tail: float
) -> tuple[float, float, float]:
    """Three quantiles of the mixture in `lanes`: `tail`, the median and 1 - `tail`.

    They are those where a standard normal has -target, 0 and target.
    """
    mean, deviation, low, high = lanes[0], lanes[1], np.inf, -np.inf
    for lane in range(PACES):  # the mixture's lie between those of its parts
        low, high = min(low, mean[lane] - target * deviation[lane]), max(high, mean[lane] + target * deviation[lane])
    middle = quantile_of_lanes(lanes, min(max(centre, low), high), low, high, 0.5)
    lower = quantile_of_lanes(lanes, max(middle - target * typical, low), low, high, tail)
    upper = quantile_of_lanes(lanes, min(2 * middle - lower, high), low, high, 1 - tail)
    return lower, middle, upper


@kernel(error_model="numpy")
def bank_quantile(mean: Floats, deviation: Floats, weight: Floats, guess: float, target: float) -> float:
    """The quantile, at which a standard normal has `target`, of any mixture of no more normals than there are lanes."""
    lanes, low, high = lanes_of_bank(), np.inf, -np.inf
    for lane in range(len(mean)):
        lanes[0, lane], lanes[1, lane], lanes[2, lane] = mean[lane], deviation[lane], weight[lane]
        place = mean[lane] + target * deviation[lane]
        low, high = min(low, place), max(high, place)
    wanted = 0.5 * math.erfc(-target * ROOT_HALF)
    found: float = quantile_of_lanes(lanes, min(max(guess, low), high), low, high, wanted)
    return found


@kernel(error_model="numpy")
def quantile_of_lanes(lanes: Array, place: float, low: float, high: float, wanted: float) -> float:
    """Below which so much of a mixture lies as is `wanted`: Newton's steps from a `place`, kept in a bracket."""
    near = NEAR * wanted * (1 - wanted)
    for _ in range(NEWTON_STEPS):
        mass, density = mass_below(lanes[0], lanes[1], lanes[2], place)
        excess = mass - wanted
        if abs(excess) < CLOSE:
            break
        low, high = (low, place) if excess > 0 else (place, high)
        moved = place - excess / density
        inside = low < moved < high
        place = moved if inside else (low + high) / 2
        if inside and abs(excess) < near:
            break
    return place


@kernel(error_model="numpy", fastmath=FAST)
def mass_below(mean: Floats, deviation: Floats, weight: Floats, place: float) -> tuple[float, float]:
    """How much of a mixture is below `place`, and its density there."""
    mass, density = 0.0, 0.0
    for lane in range(LANES):
        apart = (place - mean[lane]) / deviation[lane]
        height = exponential(-0.5 * apart * apart) / ROOT_TAU
        beyond = height * mills_ratio(abs(apart))
        mass += weight[lane] * (beyond if apart < 0 else 1 - beyond)
        density += weight[lane] * height / deviation[lane]
    return mass, density
