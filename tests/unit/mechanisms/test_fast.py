"""FAST in blocks: schedules and scales worked out by hand, no step left out, and who is protected."""

import numpy as np
import pytest

import eventide as ev
from eventide.mechanisms.fast import FAST
from eventide.mechanisms.saving import load
from eventide.privacy.amounts import NANO


def look_steps(mechanism, stream):
    return np.flatnonzero(ev.run(mechanism, stream).fresh).tolist()


def test_a_calm_stream_is_looked_at_ever_less_often():
    """Errors of 0 stretch the interval by 5 (1 - 1/e) = 3.16 at each look, once five errors are known.

    The first block has no prior at its first look, so its fifth error is that of the sixth look.
    """
    fast = FAST(epsilon=1, window=100, bins=1, noise=ev.noise.Zero())
    first = [0, 1, 2, 3, 4, 5, 9, 16, 26, 39, 55, 74, 97]
    second = [100, 101, 102, 103, 104, 108, 115, 125, 138, 154, 173, 196]
    assert look_steps(fast, np.full((200, 1), 700)) == first + second


def test_a_restless_stream_uses_up_its_looks_at_once():
    restless = np.tile([[10], [9000]], (100, 1))
    fast = FAST(epsilon=1, window=100, bins=1, noise=ev.noise.Zero())
    assert fast.most_looks == 15
    assert look_steps(fast, restless) == [*range(15), *range(100, 115)]


@pytest.mark.parametrize(
    ("stream", "least_value", "error"),
    [
        (10**9 * (1 / 0.9) ** np.arange(6), 1, 0.1),  # each exceeds the last by a tenth of itself: the set point
        (10**9 * (1 / 0.95) ** np.arange(6), 1, 0.05),
        (50 * np.arange(6), 1000, 0.05),  # relative to the least value while releases are below it
    ],
)
def test_errors_are_relative_to_the_release(stream, least_value, error):
    parameters = {"least_value": least_value, "filter": ev.filters.Repeat(), "noise": ev.noise.Zero()}
    fast = FAST(epsilon=1, window=100, bins=1, **parameters)
    ev.run(fast, stream.astype(int).reshape(-1, 1))
    assert fast._interval.length == pytest.approx(1 + 5 * (1 - np.exp((error - 0.1) / 0.1)), abs=1e-6)


def test_saved_in_the_middle_of_a_block_it_goes_on():
    stream = np.random.default_rng(6).integers(400, 900, (60, 2))
    for cut in range(12):
        fast = FAST(epsilon=1, window=100, bins=2, noise=ev.noise.Zero())
        ev.run(fast, stream[:cut])
        loaded = load(fast.save(), FAST)
        assert np.array_equal(ev.run(fast, stream[cut:]).fresh, ev.run(loaded, stream[cut:]).fresh)


@pytest.mark.parametrize("accounting", ["moving", "fixed-bin"])
def test_no_step_is_left_unreleased(accounting):
    """Without noise a constant stream comes out as it is, the last step of each block and the first of the next too."""
    for window in (1, 2, 7, 40):
        fast = FAST(epsilon=1, window=window, bins=2, accounting=accounting, noise=ev.noise.Zero())
        assert ev.run(fast, np.tile([[300, 5]], (3 * window + 2, 1))).values.tolist() == [[300, 5]] * (3 * window + 2)


@pytest.mark.parametrize(
    ("window", "looks"), [(1, 1), (6, 1), (13, 1), (14, 2), (20, 3), (120, 18), (10**7, 1_500_000)]
)
def test_a_block_has_fifteen_percent_looks_but_one_at_least(window, looks):
    assert FAST(epsilon=1, window=window, bins=1).most_looks == looks


def test_the_number_of_looks_is_exact():
    assert FAST(epsilon=1, window=100, bins=1, sampling_rate=0.29).most_looks == 29  # 0.29 * 100 < 29 in floats


@pytest.mark.parametrize("accounting", ["moving", "fixed-bin"])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_unit_noise_shows_the_scale_of_a_look(accounting, sensitivity):
    """18 looks a block share half of epsilon: the scale is 2 * 18 / epsilon."""
    parameters = {"sensitivity": sensitivity, "accounting": accounting, "noise": ev.noise.Unit()}
    fast = FAST(epsilon=0.5, window=120, bins=2, **parameters)
    release = fast.release([100, 200])
    scale = sensitivity * 2 * 18 / 0.5
    assert release.values - [100, 200] == pytest.approx(scale, rel=1e-6)
    assert release.scale == pytest.approx(scale, rel=1e-6)
    assert release.spent == pytest.approx(0.5 / 36, rel=1e-6)
    assert fast.noise_range() == pytest.approx((scale, scale), rel=1e-6)


def test_the_filter_by_hand():
    """R = 2 scale^2 = 2 (2/1)^2 = 8 for one look a block; Q = 4 a step, and the block has two steps.

    First look: 100, variance 8. Two steps later the prior's variance is 16, the gain 16 / 24 = 2/3.
    """
    fast = FAST(epsilon=1, window=2, bins=1, process_noise=4, noise=ev.noise.Zero())
    values = [float(fast.release([count]).values[0]) for count in (100, 0, 130, 0)]
    assert values == pytest.approx([100, 100, 120, 120])


def test_the_published_variances_by_hand():
    fast = FAST(epsilon=1, window=20, bins=1, process_noise=1e5, measurement_noise=1e6, noise=ev.noise.Zero())
    values = [float(fast.release([count]).values[0]) for count in (100, 121)]
    assert values == pytest.approx([100, 100 + 21 * 1.1 / 2.1])


def two_bins(accounting):
    """One bin stands still, the other jumps at every step."""
    fast = FAST(epsilon=1, window=100, bins=2, accounting=accounting, noise=ev.noise.Zero())
    stream = np.stack([np.full(100, 700), np.tile([10, 9000], 50)], axis=1)
    return fast, np.array([fast.release(counts).fresh_bins for counts in stream])


def test_moving_measures_all_bins_when_any_is_due():
    fast, fresh = two_bins("moving")
    assert fresh.all(axis=1).tolist() == fresh.any(axis=1).tolist() == [True] * 15 + [False] * 85
    assert fast.ledger.worst_window() == pytest.approx(0.5)


def test_fixed_bins_are_paced_each_by_itself():
    fast, fresh = two_bins("fixed-bin")
    assert np.flatnonzero(fresh[:, 0]).tolist() == [0, 1, 2, 3, 4, 5, 9, 16, 26, 39, 55, 74, 97]
    assert np.flatnonzero(fresh[:, 1]).tolist() == list(range(15))
    assert fast.ledger.worst_window() == pytest.approx([13 / 30, 15 / 30])


def hopping_stream():
    """Bin j stands still until step 9 j and jumps up and down from there: each spends its looks at another time."""
    steps, begins = np.arange(100)[:, None], 9 * np.arange(11)
    return np.where((steps >= begins) & (steps % 2 == 0), 5000, 100)


class Replayed(ev.noise.Zero):
    """Minus one where the hopping user stands, nothing elsewhere: what hides them from a transcript without noise."""

    def __init__(self, bins):
        self.bins, self.step = bins, 0

    def laplace(self, numerator, charges, shape):
        noise = np.zeros(shape, dtype=np.int64)
        noise[0, self.bins[self.step]] = -1
        return np.where(charges > 0, noise, 0)


def transcript(accounting, stream, noise):
    """The releases, and the budgets `(T, d)` with which bins were measured, from the meter's own draws."""
    fast = FAST(epsilon=1, window=100, bins=stream.shape[1], accounting=accounting, noise=noise)
    released, budgets = [], []
    for step, counts in enumerate(stream):
        noise.step, fast.meter.journal = step, []
        released.append(fast.release(counts).values)
        drawn = [np.broadcast_to(draw.charges[0], len(counts)) for draw in fast.meter.journal]
        budgets.append(sum(drawn, np.zeros(len(counts), dtype=np.int64)))
    return np.array(released), np.array(budgets)


@pytest.mark.parametrize(("accounting", "broken"), [("fixed-bin", True), ("moving", False)])
def test_a_user_who_hops_between_bins(accounting, broken):
    """One transcript, possible with and without the user: noise 0 everywhere, or -1 where the user is.

    Discrete Laplace noise of budget e has P(0) / P(-1) = exp(e), so the log-ratio of the transcript is exactly the sum
    of the budgets of the bins the user was in.
    """
    without = hopping_stream()
    released, budgets = transcript(accounting, without, ev.noise.Zero())
    where = budgets.argmax(axis=1)
    present = without.copy()
    present[np.arange(100), where] += 1
    replayed, same_budgets = transcript(accounting, present, Replayed(where))
    assert np.array_equal(replayed, released)
    assert np.array_equal(same_budgets, budgets)
    log_ratio = int(budgets.max(axis=1).sum())
    assert (log_ratio > NANO) == broken
    assert (budgets.sum(axis=0) <= NANO).all()  # whoever stays in one bin is protected either way


@pytest.mark.parametrize("accounting", ["moving", "fixed-bin"])
@pytest.mark.parametrize("epsilon", [0.001, 100, 1e-6, 1e6])
@pytest.mark.parametrize("window", [1, 50, 10**7])
def test_extreme_settings_release_finite_numbers(accounting, epsilon, window):
    fast = FAST(epsilon=epsilon, window=window, bins=2, sensitivity=1000, accounting=accounting)
    for counts in ([0, 0], [10**9, 0], [2**53, 2**53], [0, 0], [0, 1], [5, 5], [0, 0], [2**53, 0]):
        release = fast.release(counts)
        assert np.isfinite(release.values).all()
        assert not np.isinf(release.scale[release.fresh_bins]).any()
    assert np.max(fast.ledger.worst_window()) <= epsilon


@pytest.mark.parametrize("accounting", ["moving", "fixed-bin"])
def test_a_hundred_thousand_bins(accounting):
    fast = FAST(epsilon=1, window=10, bins=100_000, accounting=accounting, seed=1)
    for counts in (np.zeros(100_000, int), np.full(100_000, 10**9)):
        assert np.isfinite(fast.release(counts).values).all()


def test_noise_of_bins_is_independent():
    fast = FAST(epsilon=1, window=1, bins=30, process_noise=1e9, seed=5)
    noise = ev.run(fast, np.zeros((500, 30), dtype=int)).values
    assert np.abs(np.corrcoef(noise.T) - np.eye(30)).max() < 0.25


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"window": 40},
        {"accounting": "fixed-bin"},
        {"accounting": "fixed-bin", "window": 40},
        {"filter": ev.filters.Truncate()},
        {"process_noise": 1e5, "measurement_noise": 1e6, "gains": (0.8, 0.1, 0.1)},
    ],
)
def test_contract(variant):
    assert ev.check_mechanism(FAST, **variant)


def test_guarantee_says_who_is_protected():
    moving, fixed = (FAST(epsilon=1, window=9, bins=2, accounting=accounting) for accounting in ("moving", "fixed-bin"))
    assert "events of one person inside" in str(moving.guarantee)
    assert "one person who stays in one bin" in str(fixed.guarantee)


@pytest.mark.parametrize(
    "bad",
    [
        {"accounting": "both"},
        {"sampling_rate": 0},
        {"sampling_rate": 1.5},
        {"set_point": 0},
        {"least_value": -1},
        {"memory": 0},
        {"process_noise": -1},
    ],
    ids=str,
)
def test_parameters_that_make_no_sense_are_refused(bad):
    with pytest.raises(ev.InputError):
        FAST(epsilon=1, window=10, bins=1, **bad)
