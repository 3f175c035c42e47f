"""The Kalman filter against the textbook's form of it, scalar by scalar, and behind mechanisms."""

import numpy as np
import pytest

import eventide as ev
from eventide.filters.kalman import Kalman
from eventide.privacy.measured import Measured


def textbook(looks, process_noise, measurement_noise=None):
    """Estimates of one bin from its looks (value, scale), None where there was none: predict, then correct."""
    estimate, variance, estimates = 0.0, None, []
    for look in looks:
        if variance is not None:
            variance += process_noise
        if look is not None:
            value, scale = look
            noise = 2 * scale**2 if measurement_noise is None else measurement_noise
            if variance is None:
                estimate, variance = value, noise
            else:
                gain = variance / (variance + noise)
                estimate += gain * (value - estimate)
                variance *= 1 - gain
        estimates.append(estimate)
    return estimates


@pytest.mark.parametrize(("process_noise", "measurement_noise"), [(30.0, None), (0.0, None), (1e5, 1e6)])
def test_every_bin_of_every_replica_is_filtered_as_in_the_textbook(process_noise, measurement_noise):
    generator = np.random.default_rng(2)
    steps, shape = 40, (3, 5)
    fresh = generator.random((steps, *shape)) < 0.6
    values = generator.normal(100, 50, (steps, *shape))
    scale = np.where(fresh, generator.exponential(10, (steps, *shape)) + 1, np.inf)
    kalman = Kalman(process_noise, measurement_noise).started(*shape)
    released = np.array(
        [kalman.step(Measured(np.where(fresh[t], values[t], 0), scale[t], fresh[t])) for t in range(steps)]
    )
    for replica, bin_ in np.ndindex(shape):
        cells = zip(fresh[:, replica, bin_], values[:, replica, bin_], scale[:, replica, bin_], strict=True)
        looks = [(value, width) if seen else None for seen, value, width in cells]
        assert released[:, replica, bin_] == pytest.approx(textbook(looks, process_noise, measurement_noise))


def test_a_column_of_scales_and_no_measurement_at_all():
    looks = [None, (10.0, 2.0), None, None, (30.0, 4.0)]
    kalman = Kalman(process_noise=3).started(1, 2)
    fresh = np.ones((1, 1), dtype=bool)
    released = [
        kalman.step(None if look is None else Measured(np.full((1, 2), look[0]), np.full((1, 1), look[1]), fresh))
        for look in looks
    ]
    assert np.array(released)[:, 0, 1] == pytest.approx(textbook(looks, 3))
    assert released[0].tolist() == [[0, 0]]
    assert released[1].tolist() == [[10, 10]]  # the first look as it is
    assert released[3].tolist() == [[10, 10]]


def test_looks_of_a_bin_that_never_moves_are_weighed_by_their_precision():
    kalman = Kalman(process_noise=0).started(1, 1)
    fresh = np.ones((1, 1), dtype=bool)
    for value, scale in ((1.0, 1.0), (10.0, 2.0), (100.0, 4.0)):
        released = kalman.step(Measured(np.full((1, 1), value), np.full((1, 1), scale), fresh))
    assert released[0, 0] == pytest.approx((16 * 1 + 4 * 10 + 1 * 100) / 21)


def test_the_published_variances_settle_at_a_gain_of_about_a_quarter():
    kalman = Kalman(process_noise=1e5, measurement_noise=1e6).started(1, 1)
    look = Measured(np.zeros((1, 1)), np.ones((1, 1)), np.ones((1, 1), dtype=bool))
    for _ in range(50):
        kalman.step(look)
    step_up = kalman.step(Measured(np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1), dtype=bool)))
    assert step_up[0, 0] == pytest.approx((np.sqrt(0.41) - 0.1) / 2)  # 0.27, the root of K^2 = 0.1 (1 - K)


def test_a_slow_stream_is_closer_to_the_truth_than_its_looks():
    generator = np.random.default_rng(5)
    stream = 1000 + np.cumsum(generator.integers(-1, 2, (500, 20)), axis=0)
    errors = {
        name: np.abs(
            ev.run(ev.Uniform(epsilon=1, window=20, bins=20, seed=3, filter=chosen), stream).values - stream
        ).mean()
        for name, chosen in {"none": None, "kalman": Kalman(process_noise=1)}.items()
    }
    assert errors["kalman"] < errors["none"] / 2


def test_extreme_scales_release_finite_numbers():
    kalman = Kalman(process_noise=1e-3).started(1, 3)
    fresh = np.array([[True, True, False]])
    for value, scale in ((2.0**53, 1e16), (0.0, 1e-12), (-(2.0**60), 1e16), (5.0, 1e-12)):
        measured = Measured(np.where(fresh, value, 0), np.where(fresh, scale, np.inf), fresh)
        released = kalman.step(measured)
        assert np.isfinite(released).all()
    assert released[0].tolist() == pytest.approx([5, 5, 0])


def test_a_saved_filter_goes_on():
    look = Measured(np.full((1, 1), 7.0), np.full((1, 1), 3.0), np.ones((1, 1), dtype=bool))
    kalman, other = (Kalman(process_noise=4).started(1, 1) for _ in range(2))
    kalman.step(Measured(np.full((1, 1), 20.0), np.full((1, 1), 5.0), look.fresh))
    other.restore(kalman.snapshot())
    assert kalman.step(look) == other.step(look) < 20


def test_truncate_goes_around_it():
    chosen = ev.filters.Truncate(Kalman(process_noise=4))
    values = ev.run(ev.Uniform(epsilon=1, window=4, bins=2, seed=1, filter=chosen), np.zeros((40, 2), int)).values
    assert values.min() == 0 < values.max()
    assert np.array_equal(values, np.rint(values))


@pytest.mark.parametrize(
    "bad", [{"process_noise": -1}, {"process_noise": np.inf}, {"measurement_noise": 0}, {"measurement_noise": np.nan}]
)
def test_variances_that_make_no_sense_are_refused(bad):
    with pytest.raises(ev.InputError, match="variance"):
        Kalman(**bad)
