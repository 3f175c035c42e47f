"""Intervals are widened where looks lie outside more often than they should, and only there."""

import numpy as np
import pytest

from eventide.filters.calibration import BLUR, Calibration, _outside


@pytest.mark.parametrize("blur", [0.1, 1.0, 10.0])
def test_the_chance_to_lie_outside_is_that_of_a_normal_with_laplace_noise(blur):
    random = np.random.default_rng(1)
    drawn = random.normal(0, 1, 400_000) + random.laplace(0, blur, 400_000)
    assert _outside(1.645, blur) == pytest.approx(np.mean(abs(drawn) > 1.645), abs=0.004)


def test_it_grows_with_the_noise():
    chances = [_outside(1.645, blur) for blur in BLUR]
    assert chances[0] == pytest.approx(0.1, abs=0.005)
    assert chances[-1] > 0.95
    assert (np.diff(chances) > 0).all()


@pytest.mark.parametrize(("wider", "scale", "stretch"), [(1, 10.0, (1, 1.6)), (3, 10.0, (2, 4.5)), (3, 1e5, (1, 1.1))])
def test_intervals_that_are_too_narrow_are_stretched_unless_noise_hides_it(wider, scale, stretch):
    """Counts vary three times as much as was foreseen, or as much: half of an interval of 90 % is 1.645 deviations."""
    random, calibration = np.random.default_rng(2), Calibration(2, 0.9)
    low, middle, high = (np.full((2, 5), 1000 + side * 1.645 * 100) for side in (-1, 0, 1))
    for _ in range(100):
        look = random.normal(1000, wider * 100, (2, 5)) + random.laplace(0, scale, (2, 5))
        ends = calibration.stretched(low, middle, high, np.full((1, 1), np.inf))
        calibration.learn(*ends, look, np.full((2, 1), scale), np.full((2, 5), True))
    assert ((calibration.stretch >= stretch[0]) & (calibration.stretch <= stretch[1])).all()


def test_what_was_foreseen_is_stretched_and_what_a_look_says_is_not():
    """A count foreseen with a deviation of 30 and a look with one of 40 leave one of 24."""
    calibration = Calibration(1, 0.9)
    calibration.stretch[:] = 4
    scale = np.array([[np.inf, 40 / np.sqrt(2), np.inf]])
    deviation, middle = np.array([[30.0, 24.0, 30.0]]), np.array([[500.0, 500.0, 10.0]])
    half = 1.6448536 * deviation
    low, high = calibration.stretched(middle - half, middle, middle + half, scale)
    truth = np.array([[120, 1 / np.sqrt(1 / 120**2 + 1 / 40**2), 120]])
    assert high - middle == pytest.approx(1.6448536 * truth)
    assert low == pytest.approx(np.maximum(middle - 1.6448536 * truth, 0))
    empty = np.zeros((1, 1))
    assert calibration.stretched(empty, empty, empty, empty + np.inf) == (0, 0)


@pytest.mark.parametrize(
    ("often", "narrowest", "stretch"), [(True, 0.5, (0.55, 0.85)), (True, 1.0, (1, 1)), (False, 0.5, (1, 1))]
)
def test_intervals_that_hold_too_much_are_narrowed_after_enough_looks(often, narrowest, stretch):
    """Counts vary by two thirds of what was foreseen."""
    random, calibration = np.random.default_rng(3), Calibration(1, 0.9)
    calibration.narrowest = narrowest
    low, middle, high = (np.full((1, 20), 1000 + side * 1.645 * 100) for side in (-1, 0, 1))
    for _ in range(200):
        look = random.normal(1000, 67, (1, 20)) + random.laplace(0, 10, (1, 20))
        ends = calibration.stretched(low, middle, high, np.full((1, 1), np.inf))
        calibration.learn(*ends, look, np.full((1, 1), 10.0), np.full((1, 20), True), np.array([[often]]))
    assert stretch[0] <= calibration.stretch <= stretch[1]


def test_narrowed_intervals_of_small_counts_keep_the_next_whole_ones():
    calibration = Calibration(1, 0.9)
    calibration.stretch[:] = 0.5
    low, high = calibration.stretched(*np.array([[[0.0, 2.0]], [[0.0, 5.0]], [[1.0, 9.0]]]), np.full((1, 1), np.inf))
    assert (low.tolist(), high.tolist()) == ([[0, 3]], [[1, 7]])


def test_what_was_not_looked_at_teaches_nothing():
    calibration = Calibration(2, 0.9)
    far, fresh = np.full((2, 3), 1e6), np.array([[True], [False]]) & np.full((2, 3), True)
    calibration.learn(np.zeros((2, 3)), np.ones((2, 3)), far, np.where(fresh, 0.1, np.inf), fresh)
    assert calibration.stretch[0] > 1
    assert calibration.stretch[1] == 1
