"""Periods, the waves that they mean, and the seasonal voice: what it learns, and when it keeps silent."""

import numpy as np
import pytest

import eventide as ev
from eventide.errors import InputError
from eventide.filters.algorithms import ALGORITHMS
from eventide.filters.posterior_median import PosteriorMedian
from eventide.filters.posterior_season_kernels import (
    DRIFT,
    VOICES,
    learn_season,
    mix,
    season_now,
)
from eventide.filters.seasons import Automatic, automatic_periods, checked_periods, frequencies, waves_at
from eventide.filters.shared_odds import MOST_SHARED, shared_odds
from eventide.privacy.measured import Measured

HOUR = 60 * 60 * 1000
STEPS = np.arange(480)
DAILY = np.random.default_rng(51).poisson(200 * (1 + 0.8 * np.sin(2 * np.pi * STEPS / 24)))[:, None]
STEADY = np.random.default_rng(52).poisson(200, 480)[:, None]


def error(stream, seasons, **more):
    """Of a look at every step, in the second half."""
    behind = PosteriorMedian(seasons=seasons)
    uniform = ev.Uniform(epsilon=1, window=60, bins=1, replicas=8, seed=5, filter=behind, **more)
    return abs(ev.run(uniform, stream).values - stream)[:, 240:].mean()


def test_the_day_and_the_week_follow_from_the_length_of_a_step():
    assert automatic_periods(10 * HOUR // 60, 5) == (144, 1008)
    assert automatic_periods(7 * HOUR, 5) == (24,)  # a day would have too few steps
    assert automatic_periods(7 * 24 * HOUR, 5) == automatic_periods(HOUR, 10_001) == ()
    assert isinstance(automatic_periods(HOUR, 5), Automatic)


def test_periods_are_sorted_and_none_is_none():
    assert checked_periods([168, 24, 24]) == (24, 168)
    assert checked_periods("none") == checked_periods(None) == ()


@pytest.mark.parametrize("wrong", [(), (1,), (24, 10**6), (2, 3, 4, 5, 6), "often"])
def test_what_is_no_period_is_refused(wrong):
    with pytest.raises(InputError, match=r"periods in steps, each from 2 to 100,000, such as \(24, 168\)"):
        ev.Tide(epsilon=1, window=3, bins=1, seasons=wrong)


def test_auto_needs_the_length_of_a_step():
    with pytest.raises(InputError, match="needs the length of a step"):
        PosteriorMedian(seasons="auto")


def test_waves_are_distinct_and_none_is_faster_than_steps_can_show():
    cycles, variances = frequencies((24.0, 168.0))
    assert len(set(cycles.round(9))) == len(cycles) == len(variances) == 21
    assert (cycles > 0).all()
    assert (cycles <= 0.5).all()
    assert waves_at(24 * 7, cycles) == pytest.approx(waves_at(0, cycles))


def test_a_rhythm_is_learned_as_by_the_plain_extended_kalman_filter():
    cycles, variances = frequencies((12.0,))
    prior = np.concatenate([[0.0], variances, variances])
    season, unsure = np.zeros(len(prior)), np.diag(prior)
    season[0], unsure[0, 0] = 300.0, 800.0
    plain, covariance = season.copy(), unsure.copy()
    random = np.random.default_rng(3)
    for step in range(1, 40, 3):
        waves, look = waves_at(step, cycles), 300 + 200 * np.sin(step) + random.laplace(scale=20)
        learn_season(look, 20.0, 3, 0.1, 1e-4, waves, season, unsure, prior)
        covariance += np.diag(np.concatenate([[3 * (DRIFT * plain[0]) ** 2], 3 * 1e-4 * prior[1:]]))
        factor = 1 + plain[1:] @ waves[1:]
        slope = np.concatenate([[factor], plain[0] * waves[1:]])
        variance = slope @ covariance @ slope + 2 * 20**2 + plain[0] + (0.1 * plain[0]) ** 2
        gain, limit = covariance @ slope / variance, 3 * np.sqrt(variance)
        covariance -= np.outer(gain, covariance @ slope)
        plain = plain + gain * np.clip(look - plain[0] * factor, -limit, limit)
    assert season == pytest.approx(plain)
    assert unsure == pytest.approx(covariance)
    waves = waves_at(50, cycles)
    assert season_now(waves, season, unsure) == pytest.approx(
        (1 + plain[1:] @ waves[1:], waves[1:] @ covariance[1:, 1:] @ waves[1:])
    )


def test_what_is_believed_most_passes_a_little_to_the_other_filters():
    mean, variance, weight = np.linspace(0, 800, VOICES), np.logspace(0, 4, VOICES), np.full(VOICES, 0.01)
    weight[2] = 1 - 0.01 * (VOICES - 1)
    before, known = mean.copy(), (mean[2], variance[2])
    mix(mean, variance, weight, 0.98, VOICES)
    assert (mean[2], variance[2]) == pytest.approx(known)
    assert (abs(mean - known[0]) < abs(before - known[0]))[np.arange(VOICES) != 2].all()
    assert weight.sum() == pytest.approx(1)


@pytest.mark.slow
def test_a_rhythm_takes_a_third_of_the_error():
    without, with_it = error(DAILY, None), error(DAILY, (24,))
    assert with_it < 0.67 * without


@pytest.mark.slow
def test_a_wrong_period_and_a_stream_without_rhythm_cost_next_to_nothing():
    assert error(DAILY, (37,)) < 1.02 * error(DAILY, None)
    assert error(STEADY, (24, 168)) < 1.02 * error(STEADY, None)


@pytest.mark.slow
def test_a_rhythm_that_is_learned_late_speaks_soon():
    """Calm for two days, so that the rest foresees looks better; the voice that remembers all of it speaks later."""
    stream = np.concatenate([np.full((48, 1), 200), DAILY[:240]])
    said = []
    for algorithm in (1, 2):
        behind = PosteriorMedian(seasons=(24,)).started(1, 1, epsilon=1.0, window=60)
        behind.follow(ALGORITHMS[algorithm])
        noise = np.random.default_rng(53).laplace(0, 6, len(stream))
        said.append([])
        for look in stream[:, 0] + noise:
            behind.step(Measured(*(np.full((1, 1), value) for value in (look, 6.0, True))))
            said[-1].append(behind.voice.say[0])
    assert np.mean(said[1]) > np.mean(said[0]) + 0.05


def test_how_many_bins_have_a_rhythm_is_learned_from_all_of_them():
    """As likely as may be: no other odds, tried one by one, make what the bins foresaw likelier."""
    foresight = np.random.default_rng(9).normal([[0.5], [-1.0], [0.0]], 1.5, (3, 30))
    tried = np.linspace(-MOST_SHARED, MOST_SHARED, 8001)[:, None, None]
    part = 1 / (1 + np.exp(-tried))
    likely = np.log(part * np.exp(foresight) + 1 - part).sum(axis=2) + np.log(part * (1 - part))[:, :, 0]
    assert shared_odds(foresight) == pytest.approx(tried[likely.argmax(axis=0), 0, 0], abs=0.002)


def test_where_all_bins_have_little_evidence_of_a_rhythm_it_is_believed_and_no_single_bin_decides():
    little, one = np.full((1, 100), 0.3), np.where(np.arange(100) == 0, 20.0, -1.0)[None]
    assert shared_odds(little)[0] > 1.5
    assert shared_odds(one)[0] < -1.5
    assert shared_odds(np.full((1, 100), 50.0))[0] == pytest.approx(MOST_SHARED, abs=1e-3)


def _in_noise(algorithm, stream, period, scale=120.0):
    """The error in the second half, behind looks whose noise hides the rhythm of a single bin."""
    behind = PosteriorMedian(seasons=period).started(1, stream.shape[1], epsilon=1.0, window=60)
    behind.follow(ALGORITHMS[algorithm])
    noise = np.random.default_rng(54).laplace(0, scale, stream.shape)
    shape = np.ones((1, stream.shape[1]))
    values = [
        behind.step(Measured((counts + extra)[None], scale * shape, shape > 0))[0]
        for counts, extra in zip(stream, noise, strict=True)
    ]
    return abs(np.array(values) - stream)[len(stream) // 2 :].mean()


@pytest.mark.slow
def test_bins_together_tell_of_a_rhythm_that_none_shows_alone():
    stream = np.random.default_rng(55).poisson(
        100 * (1 + 0.7 * np.sin(2 * np.pi * STEPS[:300] / 24))[:, None], (300, 40)
    )
    assert _in_noise(3, stream, (24,)) < 0.9 * _in_noise(2, stream, (24,))


@pytest.mark.slow
def test_bins_together_do_not_believe_in_a_rhythm_that_is_none():
    stream = np.random.default_rng(56).poisson(100, (300, 40))
    assert _in_noise(3, stream, (24,)) < 1.02 * _in_noise(2, stream, (24,))


def test_between_looks_the_release_follows_the_rhythm():
    behind = PosteriorMedian(seasons=(24,))
    hybrid = ev.Hybrid(epsilon=1, window=35, bins=1, k=5, seed=4, filter=behind)
    run = ev.run(hybrid, DAILY)
    looks = np.flatnonzero(run.fresh)
    assert len(looks) == 96
    waiting = np.setdiff1d(np.arange(300, 480), looks)
    moved = run.values[waiting] - run.values[waiting - 1]
    assert np.corrcoef(moved[:, 0], 200 * 0.8 * np.cos(2 * np.pi * waiting / 24))[0, 1] > 0.8


def test_bins_without_a_clear_level_are_left_to_the_grid():
    stream = np.random.default_rng(8).poisson(0.2, (100, 3))
    runs = [
        ev.run(ev.Uniform(epsilon=1, window=10, bins=3, seed=2, filter=PosteriorMedian(seasons=seasons)), stream)
        for seasons in (None, (24,))
    ]
    assert (runs[0].values == runs[1].values).all()


def test_it_goes_on_where_it_was_saved():
    tide = ev.Tide(epsilon=1, window=24, bins=2, seasons=(24, 168), seed=3)
    stream = np.tile(DAILY[:130], (1, 2))
    for counts in stream[:100]:
        tide.release(counts)
    again = ev.load(tide.save())
    assert again.seasons == (24, 168)
    for counts in stream[100:]:
        assert (tide.release(counts).values == again.release(counts).values).all()
