"""The voice of small counts: events come at a rate of their bin's own, times the rhythm of the whole stream.

Each bin has a chance for every rate, and for every way that counts scatter around it. Counts are small, so what noise
makes of them is computed exactly, once for all bins.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.compiling import kernel
from eventide.filters.posterior_look_kernels import FAST
from eventide.filters.posterior_season_kernels import SILENT

RATES = np.geomspace(0.02, 50.0, 32)  # events a step
SPACING = math.log(RATES[1] / RATES[0])
SCATTERS = np.array([0.0, 0.25, 1.4])  # variance of the rate from step to step, in squares of it
COUNTS = 256  # from 0: what a bin with such a rate can be expected to have
LARGE = 25.0  # a count at which the voice has half of its say: the others know larger ones better
DRIFT = 0.01  # of a rate, a step
FORGOTTEN, FORGETTING = 0.005, 50.0  # of what looks said of a rate, in so many steps and more
REMEMBERED = 0.99  # of which foresaw looks better, this voice or the others, from look to look
BEFOREHAND = np.tile(1 / (1 + RATES) ** 2, (len(SCATTERS), 1)) / (len(SCATTERS) * np.sum(1 / (1 + RATES) ** 2))
PRIOR_BINS = 2.0  # that this counts for among bins
ROUNDS = 3  # of expectation maximisation, after each look
LEAST = 1e-30  # a chance


class RateRows(NamedTuple):
    """What small counts say of each row."""

    told: Array  # (rows, scatters, rates): how likely each makes the looks; adds up to 1
    known: Array  # (rows, scatters, rates): the same with what is known of all bins
    foresight: Floats  # (rows,): by how much more this voice foresaw the looks than the others, in log odds
    looks: Ints  # (rows,)


@kernel(error_model="numpy")
def chances_of_counts(factor: float, chance: Floats) -> None:
    """The chance of each count at so many times each rate, `(counts, scatters, rates)`."""
    now, more = np.empty(chance.shape[1:]), np.empty(chance.shape[1:])
    for scatter in range(len(SCATTERS)):
        for rate in range(len(RATES)):
            mean, wider = RATES[rate] * factor, SCATTERS[scatter]
            now[scatter, rate] = math.exp(-mean) if wider == 0 else (1 + wider * mean) ** (-1 / wider)
            more[scatter, rate] = mean / (1 + wider * mean)
    for count in range(COUNTS):
        for scatter in range(len(SCATTERS)):
            next_one = (1 + SCATTERS[scatter] * count) / (count + 1)
            for rate in range(len(RATES)):
                chance[count, scatter, rate] = now[scatter, rate]
                now[scatter, rate] *= more[scatter, rate] * next_one


@kernel(error_model="numpy")
def add_up(chance: Floats) -> None:
    """From the chance of each count to that of one no larger."""
    for count in range(1, COUNTS):
        for scatter in range(len(SCATTERS)):
            for rate in range(len(RATES)):
                chance[count, scatter, rate] += chance[count - 1, scatter, rate]


@kernel(error_model="numpy")
def see_through_noise(chance: Floats, scale: float, seen: Floats) -> None:
    """From the chance of each count to that of each look from 0 on, through discrete Laplace noise."""
    passing = math.exp(-1 / scale)
    whole = math.tanh(0.5 / scale)
    carried = np.zeros(chance.shape[1:])
    for look in range(COUNTS):
        for scatter in range(len(SCATTERS)):
            for rate in range(len(RATES)):
                carried[scatter, rate] = passing * carried[scatter, rate] + chance[look, scatter, rate]
                seen[look, scatter, rate] = whole * carried[scatter, rate]
    carried[:] = 0
    for look in range(COUNTS - 1, -1, -1):
        for scatter in range(len(SCATTERS)):
            for rate in range(len(RATES)):
                seen[look, scatter, rate] += whole * carried[scatter, rate]
                carried[scatter, rate] = passing * (carried[scatter, rate] + chance[look, scatter, rate])


@kernel(nogil=True, error_model="numpy")
def take_rates(
    rows: RateRows, begin: int, looks: Floats, scale: float, waited: int, rest: Floats, seen: Floats, least: float
) -> None:
    """Take a look in at each row from `begin` on, `waited` steps after the one before.

    `seen` is the chance of each look from 0 on: further out all lose the same factor. `rest` is how well the others
    foresaw the looks, as log chances. The log odds of a row do not fall below `least`.
    """
    variance = waited * (DRIFT / SPACING) ** 2
    passing = 1 / (1 + 1 / variance + math.sqrt(1 / variance * (2 + 1 / variance)))
    anything = FORGOTTEN * (1 - math.exp(-waited / FORGETTING)) / BEFOREHAND.size
    for index in range(len(looks)):
        row, look = begin + index, round(looks[index])
        near = min(max(look, 0), COUNTS - 1)
        told, known, foreseen, total = rows.told[row], rows.known[row], LEAST, 0.0
        if rows.looks[row] > 0:
            for scatter in range(len(SCATTERS)):
                for rate in range(len(RATES)):
                    foreseen += known[scatter, rate] * seen[near, scatter, rate]
            better = math.log(foreseen) - abs(look - near) / scale - rest[index]
            rows.foresight[row] = max(REMEMBERED * rows.foresight[row] + better, least)
            drift_rates(told, passing)
        for scatter in range(len(SCATTERS)):
            for rate in range(len(RATES)):
                told[scatter, rate] = (told[scatter, rate] + anything) * (seen[near, scatter, rate] + LEAST)
                total += told[scatter, rate]
        for scatter in range(len(SCATTERS)):
            for rate in range(len(RATES)):
                told[scatter, rate] /= total
        rows.looks[row] += 1


@kernel(error_model="numpy")
def drift_rates(told: Array, passing: float) -> None:
    """Spread what looks told of each rate to the next ones, two-sided geometric; beyond the ends all is as at them."""
    staying, last = (1 - passing) / (1 + passing), told.shape[1] - 1
    upwards = np.empty(told.shape[1])
    for scatter in range(len(told)):
        carried = told[scatter, 0] * passing / (1 - passing)
        for rate in range(last + 1):
            upwards[rate] = carried
            carried = passing * (carried + told[scatter, rate])
        carried = told[scatter, last] * passing / (1 - passing)
        for rate in range(last, -1, -1):
            own = told[scatter, rate]
            told[scatter, rate] = staying * (own + upwards[rate] + carried)
            carried = passing * (carried + own)


@kernel(error_model="numpy")
def share_rates(rows: RateRows, begin: int, end: int, usual: Floats) -> None:
    """Learn how rates are spread over the bins from `begin` to `end`, which is then known of each."""
    several = end - begin > 1
    found = np.empty_like(usual)
    for _ in range(ROUNDS if several else 1):
        found[:] = PRIOR_BINS * BEFOREHAND
        for row in range(begin, end):
            told, known, total = rows.told[row], rows.known[row], 0.0
            for scatter in range(len(SCATTERS)):
                for rate in range(len(RATES)):
                    known[scatter, rate] = told[scatter, rate] * usual[scatter, rate]
                    total += known[scatter, rate]
            for scatter in range(len(SCATTERS)):
                for rate in range(len(RATES)):
                    known[scatter, rate] /= total
                    found[scatter, rate] += known[scatter, rate]
        if several:
            usual[:] = found / (end - begin + PRIOR_BINS)


@kernel(nogil=True, error_model="numpy")
def read_rates(rows: RateRows, most: Floats, odds: float, tail: float, quantiles: Floats, begin: int, end: int) -> None:
    """Have a say in the quantiles `(3, rows)` of the rows from `begin` to `end`.

    `most` is the chance of each count and any smaller one, `odds` what all bins say of each.
    """
    for row in range(begin, end):
        if rows.looks[row] < 2:
            continue
        say = 1 / (1 + math.exp(min(-rows.foresight[row] - odds, 50.0)))
        say /= 1 + (quantiles[1, row] / LARGE) ** 4
        if say < SILENT:
            continue
        middle = smallest_count(rows.known[row], most, 0.5)
        say /= 1 + (middle / LARGE) ** 4
        low, high = smallest_count(rows.known[row], most, tail), smallest_count(rows.known[row], most, 1 - tail)
        quantiles[0, row] += say * (low - quantiles[0, row])
        quantiles[1, row] += say * (middle - quantiles[1, row])
        quantiles[2, row] += say * (high - quantiles[2, row])


@kernel(fastmath=FAST, error_model="numpy")
def smallest_count(known: Array, most: Floats, wanted: float) -> int:
    """The smallest count that so much of the chance does not exceed, by halving."""
    low, high = 0, COUNTS - 1
    while low < high:
        middle = (low + high) // 2
        mass = 0.0
        for scatter in range(known.shape[0]):
            for rate in range(known.shape[1]):
                mass += known[scatter, rate] * most[middle, scatter, rate]
        if mass >= wanted:
            high = middle
        else:
            low = middle + 1
    return low
