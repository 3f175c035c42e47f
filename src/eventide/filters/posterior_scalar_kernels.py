"""The scalar bank: Gaussian filters side by side, for levels that cells cannot resolve.

Each filter takes the count for a random walk of its own pace, and is told of a look with Laplace noise exactly: its
state becomes the mean and the variance of the true posterior.
"""

from __future__ import annotations

import math

import numpy as np

from eventide.arrays import Floats
from eventide.compiling import kernel
from eventide.filters.posterior_grid import QUIET_LEVEL

ADDITIVE = np.array([0.005, 0.05, 0.5])  # drift a step in noise scales
RELATIVE = np.array([0.005, 0.025, 0.12, 0.6, 3.0])  # and in levels; the last two never less than of the usual level
RETURNING = 2
WIDE, ANEW = len(ADDITIVE) + len(RELATIVE), len(ADDITIVE) + len(RELATIVE) + 1  # two more: beyond the noise; jumps
WIDEST = 3.0  # drift a step of both, in scales of the blurriest look
PACES = ANEW + 1
PRIOR = 0.6 ** np.arange(PACES) / np.sum(0.6 ** np.arange(PACES))
CHANGING = 0.02  # chance that the pace is another at the next look, if that look is sharp
SHARP, BLURRED = 30.0, 0.001  # what is known, in noise scales: beyond, only the look counts, or it says nothing
ROOT_HALF, ROOT_TAU = math.sqrt(0.5), math.sqrt(2 * math.pi)
NEWTON_STEPS, UNBELIEVED = 20, 1e-3
TABLE_REACH, TABLE_STEPS = 8, 64  # deviations, and parts of one: how far and how finely the normal mass is tabled
TABLED = np.arange(-TABLE_REACH * TABLE_STEPS, TABLE_REACH * TABLE_STEPS + 1) / TABLE_STEPS
NORMAL_MASS = np.array([0.5 * math.erfc(-place * ROOT_HALF) for place in TABLED.tolist()])
ROUGH = 1e-5  # more than a line between two of its places is off: 0.242 / 8 / TABLE_STEPS^2


@kernel(error_model="numpy")
def begin_bank(look: float, scale: float, mean: Floats, variance: Floats, weight: Floats) -> None:
    """After the first look: all paces know the same."""
    for model in range(PACES):
        mean[model], variance[model], weight[model] = max(0.0, look), 2 * scale * scale, PRIOR[model]


@kernel(error_model="numpy")
def update_bank(
    look: float,
    scale: float,
    steps: int,
    telling: float,
    mean: Floats,
    variance: Floats,
    weight: Floats,
    pace: Floats,
) -> float:
    """Grow the variances over the steps since the last look, let paces change, and take the look in.

    Gives how well the bank foresaw the look: the log of its chance.
    """
    # Before the variances grow: the fastest would blur the knowledge of all others.
    mix(mean, variance, weight, 1 - CHANGING * telling)
    for model in range(PACES):
        variance[model] += pace[model] * steps
    largest = -np.inf
    evidence = np.empty(PACES)
    for model in range(PACES):
        if model == ANEW:
            moved, kept, logarithm = begun_anew(look, mean[model], scale)
        else:
            moved, kept, logarithm = laplace_update(look - mean[model], variance[model], scale)
        mean[model] += moved
        variance[model] = kept
        evidence[model] = logarithm + math.log(weight[model])
        largest = max(largest, evidence[model])
    whole = 0.0
    for model in range(PACES):
        weight[model] = math.exp(evidence[model] - largest) + 1e-12
        whole += weight[model]
    for model in range(PACES):
        weight[model] /= whole
    return largest + math.log(whole)


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


@kernel(error_model="numpy")
def laplace_update(look: float, variance: float, scale: float) -> tuple[float, float, float]:
    """Mean, variance and log evidence after a look at N(0, variance) through Laplace noise.

    Below the look the posterior is a normal one shifted up by variance / scale, above it one shifted down, each cut at
    the look.
    """
    deviation = math.sqrt(variance)
    known = deviation / scale
    if known < BLURRED:
        return 0.0, variance, -abs(look) / scale - math.log(2 * scale)
    if known > SHARP:
        return look, 2 * scale * scale, -0.5 * look * look / variance - math.log(deviation * ROOT_TAU)
    shift = variance / scale
    low, high = (look - shift) / deviation, -(look + shift) / deviation
    log_low, hazard_low, left_low = normal_tail(low)
    log_high, hazard_high, left_high = normal_tail(high)
    log_low -= look / scale
    log_high += look / scale
    largest = max(log_low, log_high)
    below, above = math.exp(log_low - largest), math.exp(log_high - largest)
    evidence = 0.5 * known * known + largest + math.log(below + above) - math.log(2 * scale)
    below /= below + above
    mean_below, mean_above = shift - deviation * hazard_low, -shift + deviation * hazard_high
    apart = mean_below - mean_above
    mean = mean_above + below * apart
    kept = variance * (below * left_low + (1 - below) * left_high) + below * (1 - below) * apart * apart
    return mean, kept, evidence


@kernel(error_model="numpy")
def begun_anew(look: float, mean: float, scale: float) -> tuple[float, float, float]:
    """Move, variance and log evidence where only the look counts: counts may be anywhere, high ones less often."""
    seen = max(look, 0.0)
    evidence = math.log(QUIET_LEVEL) - 2 * math.log(seen + QUIET_LEVEL + scale) + min(look, 0.0) / scale
    return seen - mean, 2 * scale * scale, evidence


@kernel(error_model="numpy")
def normal_tail(place: float) -> tuple[float, float, float]:
    """Of a standard normal cut to below `place`: log of its mass, density over mass at the cut, variance left."""
    if place > -8:
        mass = 0.5 * math.erfc(-place * ROOT_HALF)
        hazard = math.exp(-0.5 * place * place) / (ROOT_TAU * mass)
        return math.log(mass), hazard, 1 - hazard * (place + hazard)
    inverse = 1 / (place * place)
    series = 1 - inverse * (1 - 3 * inverse * (1 - 5 * inverse))
    log_mass = -0.5 * place * place - math.log(-place * ROOT_TAU) + math.log(series)
    return log_mass, -place / series, inverse * (1 - inverse * (6 - 50 * inverse))


@kernel(error_model="numpy")
def bank_state(
    mean: Floats, variance: Floats, weight: Floats, pace: Floats, steps: int, deviation: Floats
) -> tuple[float, float]:
    """Mean of what the bank knows some steps after a look, and the geometric mean of the filters' deviations.

    A mean of variances would be ruled by the fastest filter, however little it is believed.
    """
    centre, logarithm = 0.0, 0.0
    for model in range(PACES):
        grown = variance[model] + pace[model] * steps
        deviation[model] = math.sqrt(grown)
        centre += weight[model] * mean[model]
        logarithm += weight[model] * math.log(grown)
    return centre, math.exp(0.5 * logarithm)


@kernel(error_model="numpy")
def bank_quantile(mean: Floats, deviation: Floats, weight: Floats, guess: float, target: float) -> float:
    """The quantile of the mixture at which a standard normal has `target`: Newton's steps, kept in a bracket.

    The exact mass is computed where the next step follows from it, and not where a table says that none will.
    """
    wanted = 0.5 * math.erfc(-target * ROOT_HALF)
    low, high = np.inf, -np.inf
    for model in range(len(mean)):
        place = mean[model] + target * deviation[model]  # the mixture's lies between those of its parts
        low, high = min(low, place), max(high, place)
    place = min(max(guess, low), high)
    for _ in range(NEWTON_STEPS):
        if abs(rough_mass(mean, deviation, weight, place) - wanted) < UNBELIEVED - ROUGH:
            break
        mass, density = 0.0, 0.0
        for model in range(len(mean)):
            if weight[model] > UNBELIEVED:
                apart = (place - mean[model]) / deviation[model]
                mass += weight[model] * 0.5 * math.erfc(-apart * ROOT_HALF)
                density += weight[model] * math.exp(-0.5 * apart * apart) / deviation[model]
        excess = mass - wanted
        if abs(excess) < UNBELIEVED:
            break
        low, high = (low, place) if excess > 0 else (place, high)
        moved = place - excess * ROOT_TAU / density
        place = moved if low < moved < high else (low + high) / 2
    return place


@kernel(error_model="numpy")
def rough_mass(mean: Floats, deviation: Floats, weight: Floats, place: float) -> float:
    """How much of the mixture is below `place`, to within `ROUGH`."""
    mass = 0.0
    for model in range(len(mean)):
        if weight[model] > UNBELIEVED:
            apart = (place - mean[model]) / deviation[model]
            if apart >= TABLE_REACH:
                mass += weight[model]
            elif apart > -TABLE_REACH:
                along = (apart + TABLE_REACH) * TABLE_STEPS
                entry = int(along)
                below, above = NORMAL_MASS[entry], NORMAL_MASS[entry + 1]
                mass += weight[model] * (below + (along - entry) * (above - below))
    return mass
