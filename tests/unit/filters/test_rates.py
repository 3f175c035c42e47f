"""The voice of small counts: its tables against plain sums, what it learns, and when it keeps silent."""

import math

import numpy as np
import pytest

import eventide as ev
from eventide.filters.algorithms import ALGORITHMS
from eventide.filters.posterior_median import PosteriorMedian
from eventide.filters.posterior_rate_kernels import (
    BEFOREHAND,
    COUNTS,
    RATES,
    SCATTERS,
    RateRows,
    add_up,
    chances_of_counts,
    drift_rates,
    read_rates,
    see_through_noise,
    share_rates,
    smallest_count,
    take_rates,
)
from eventide.privacy.measured import Measured

SHAPE = (COUNTS, *BEFOREHAND.shape)
HOURS = np.arange(24 * 30)
RHYTHM = np.maximum(1 + 1.2 * np.sin(2 * np.pi * HOURS / 24), 0.05)
SMALL = np.random.default_rng(61).poisson(np.outer(RHYTHM, np.geomspace(0.1, 4, 40)))


def chances(factor=1.0):
    chance = np.empty(SHAPE)
    chances_of_counts(factor, chance)
    return chance


def rows_of(count):
    shape = (count, *BEFOREHAND.shape)
    return RateRows(
        np.full(shape, 1 / BEFOREHAND.size), np.tile(BEFOREHAND, (count, 1, 1)), np.zeros(count), np.zeros(count, int)
    )


def behind(algorithm, counts, scale):
    """What a posterior median says behind a look at every step."""
    median = PosteriorMedian(seasons=(24,)).started(1, counts.shape[1], epsilon=1.0, window=40)
    median.follow(algorithm)
    noise, shape = np.random.default_rng(62).laplace(0, scale, counts.shape), np.ones((1, counts.shape[1]))
    values, inside = [], []
    for now, extra in zip(counts, np.rint(noise), strict=True):
        values.append(median.step(Measured((now + extra)[None], scale * shape, shape > 0))[0])
        inside.append((median.low[0] <= now) & (now <= median.high[0]))
    return np.array(values), np.array(inside)


def test_counts_are_poisson_or_scatter_more_and_add_up_to_one():
    chance = chances(2.0)
    for scatter, wider in enumerate(SCATTERS):
        for rate in (3, 20):
            mean = 2 * RATES[rate]
            known = chance[:, scatter, rate]
            assert known.sum() == pytest.approx(1, abs=1e-6)
            assert known @ np.arange(COUNTS) == pytest.approx(mean, rel=1e-4)
            assert known @ (np.arange(COUNTS) - mean) ** 2 == pytest.approx(mean + wider * mean**2, rel=1e-3)
    assert chance[4, 0, 20] == pytest.approx(math.exp(-2 * RATES[20]) * (2 * RATES[20]) ** 4 / 24)


def test_noise_is_added_as_the_plain_sum_says():
    chance, seen, scale = chances(), np.empty(SHAPE), 3.0
    see_through_noise(chance, scale, seen)
    apart = np.abs(np.arange(COUNTS)[:, None] - np.arange(COUNTS))
    noise = np.tanh(0.5 / scale) * np.exp(-apart / scale)
    assert seen == pytest.approx(np.einsum("yn,nsr->ysr", noise, chance))


def test_rates_drift_by_the_variance_that_they_should_and_nothing_is_lost():
    told, variance = np.zeros((1, len(RATES)), np.float32), 0.5
    told[0, 16] = 1
    drift_rates(told, 1 / (1 + 1 / variance + math.sqrt(1 / variance * (2 + 1 / variance))))
    assert told.sum() == pytest.approx(1, abs=1e-5)
    assert told[0] @ (np.arange(len(RATES)) - 16) ** 2 == pytest.approx(variance, rel=1e-3)
    flat = np.ones((2, len(RATES)), np.float32)
    drift_rates(flat, 0.7)
    assert flat == pytest.approx(1, rel=1e-5)


def test_what_is_known_of_a_bin_is_what_bayes_says_of_its_looks():
    looks, scale = [2, -1, 3], 2.0
    rows, seen, usual = rows_of(1), np.empty(SHAPE), BEFOREHAND.copy()
    see_through_noise(chances(), scale, seen)
    plain = BEFOREHAND.copy()
    for index, look in enumerate(looks):
        take_rates(rows, 0, np.array([float(look)]), scale, 0 if index == 0 else 10**-9, np.zeros(1), seen, -2.0)
        share_rates(rows, 0, 1, usual)
        plain *= seen[max(look, 0)]
    assert rows.known[0] == pytest.approx(plain / plain.sum(), rel=1e-3)
    most = chances()
    add_up(most)
    for wanted in (0.05, 0.5, 0.95):
        below = np.einsum("sr,nsr->n", rows.known[0], most)
        assert smallest_count(rows.known[0], most, wanted) == np.argmax(below >= wanted)


def test_rates_of_all_bins_are_known_of_each():
    rows, seen, usual = rows_of(50), np.empty(SHAPE), BEFOREHAND.copy()
    see_through_noise(chances(), 5.0, seen)
    take_rates(rows, 0, np.full(50, 12.0), 5.0, 1, np.zeros(50), seen, -2.0)
    alone = rows.told[0] * BEFOREHAND / (rows.told[0] * BEFOREHAND).sum()
    share_rates(rows, 0, 50, usual)
    high = RATES > 6
    assert rows.known[0][:, high].sum() > 5 * alone[:, high].sum()
    assert usual.sum() == pytest.approx(1)


def test_large_counts_are_left_to_the_others():
    rows, most, quantiles = rows_of(2), chances(), np.array([[0.0, 90.0], [1.0, 200.0], [9.0, 300.0]])
    add_up(most)
    rows.looks[:], rows.foresight[:] = 5, 9.0
    before = quantiles.copy()
    read_rates(rows, most, 0.0, 0.05, quantiles, 0, 2)
    assert not np.array_equal(quantiles[:, 0], before[:, 0])
    assert np.array_equal(quantiles[:, 1], before[:, 1])


def test_a_rhythm_of_small_counts_is_seen_in_their_sum():
    without = ALGORITHMS[5]._replace(counts_rates=False)
    (own, _), (shared, inside) = (behind(algorithm, SMALL, 12.0) for algorithm in (without, ALGORITHMS[5]))
    errors = [np.abs(np.rint(values) - SMALL)[360:].mean() for values in (own, shared)]
    assert errors[1] < 0.85 * errors[0]
    assert inside[360:].mean() > 0.88


def test_it_goes_on_from_any_step():
    given = {"epsilon": 1, "window": 12, "bins": 40, "seed": 3, "seasons": (24,)}
    whole = ev.run(ev.Tide(**given), SMALL[:90])
    for cut in (1, 40, 77):
        begun = ev.Tide(**given)
        ev.run(begun, SMALL[:cut])
        assert np.array_equal(ev.run(ev.load(begun.save()), SMALL[cut:90]).values, whole.values[cut:])
