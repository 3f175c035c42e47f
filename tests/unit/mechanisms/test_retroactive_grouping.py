"""Retroactive grouping: groups worked out by hand, the error on a constant stream, one publication for every unit."""

import numpy as np
import pytest

import eventide as ev
from eventide.mechanisms.retroactive_grouping import BEST_RATE, RetroactiveGrouping
from eventide.mechanisms.window_baselines import TimeUnitBaseline
from eventide.privacy.amounts import NANO
from eventide.privacy.meter import Meter
from eventide.streams.generators import random_walk

ZERO = {"noise": ev.noise.Zero()}
STEPS = 200


class QuietMonitor(ev.noise.Seeded):
    """Seeded noise for publications that get 0.09, none for monitoring."""

    name = "seeded, without monitoring"

    def laplace(self, numerator, charges, shape):
        drawn = super().laplace(numerator, charges, shape)
        return np.where(charges == 9 * NANO // 100, drawn, 0)


def releases(mechanism, matrix):
    return [mechanism.release(counts) for counts in matrix]


def window_error(mechanism, matrix):
    truth = np.cumsum(matrix, axis=0)
    truth[mechanism.span :] -= truth[: -mechanism.span].copy()
    found = np.array([release.window_values for release in releases(mechanism, matrix)])
    return np.mean((found - truth) ** 2)


def test_the_worked_example():
    """Counts     5  90  91  87  89  88  90  92  90  94    a jump at the second unit
    groups       [ ][  ][  ][      ][              ][
    """
    mech = RetroactiveGrouping(epsilon=1, bins=1, span=4, **ZERO)
    seen = releases(mech, [[5], [90], [91], [87], [89], [88], [90], [92], [90], [94]])
    assert [release.values[0] for release in seen] == [5, 90, 91, 91, 88, 88, 88, 88, 90, 90]
    assert [release.step for release in seen if release.fresh] == [0, 1, 2, 4, 8]
    assert [release.window_values[0] for release in seen] == [
        5,
        5 + 90,
        5 + 90 + 91,
        5 + 90 + 91 + 91,
        90 + 91 + 88 + 88,  # the mean of 87 and 89 counts for both
        91 + 88 + 88 + 88,
        88 + 88 + 88 + 88,
        88 + 88 + 88 + 88,
        90 + 90 + 90 + 90,
        90 + 90 + 90 + 90,
    ]


def test_groups_stay_short_while_published_values_disagree():
    """Epsilon 1: monitoring overlooks less than 42. A unit alone has noise of scale s = 1 / 0.9, a pair s / 2.

    So two units agree within 3 (2 s^2 + 2 s^2)^(1/2) = 6.7, and a unit and a pair within 5.3.
    """
    mech = RetroactiveGrouping(epsilon=1, bins=2, **ZERO)
    seen = releases(mech, [[0, 0], [30, 5], [60, 10], [90, 15], [120, 20], [150, 21], [180, 23]])
    assert [release.values[0] for release in seen] == [0, 0, 60, 90, 120, 150, 180]
    assert [release.values[1] for release in seen] == [0, 0, 7.5, 15, 20, 20, 22]


def test_a_change_publishes_what_was_waiting_and_then_itself():
    """Unit noise: a publication of k units is off by s / k, s = 1 / 0.9; monitoring by 10."""
    s = 1 / 0.9
    mech = RetroactiveGrouping(epsilon=1, bins=2, span=8, noise=ev.noise.Unit())
    stream = [[40, 7], [40, 7], [40, 7], [46, 7], [43, 7], [900, 7]]
    first, _, third, fourth, fifth, last = releases(mech, stream)
    assert first.values == pytest.approx([40 + s, 7 + s])
    for release in (third, fourth, fifth):
        assert release.values == pytest.approx([40 + s / 2, 7 + s / 2])
    assert third.scale == pytest.approx(s / 2)
    assert last.fresh_bins.tolist() == [True, False]
    assert last.values == pytest.approx([900 + s, 7 + s / 2])
    assert last.scale == pytest.approx([s, s / 2])
    waiting = (46 + 43 + s) / 2
    assert last.window_values[0] == pytest.approx(40 + s + 2 * (40 + s / 2) + 2 * waiting + 900 + s)
    assert last.window_values[1] == pytest.approx(7 + s + 5 * (7 + s / 2))
    assert mech.holds_raw  # the second bin waits for its fourth unit


def formula(depth):
    """The mean squared error of a unit over that of the baseline, on a constant stream of 2^(depth + 1) - 1 units."""
    terms = [(2**i - 1) / 4 ** (i - 1) + 1 / 4**i for i in range(1, depth + 1)]
    return (1 + sum(terms)) / (2 ** (depth + 1) - 1)


@pytest.mark.parametrize("depth", [1, 3, 5, 7])
def test_error_on_a_constant_stream(depth):
    """Noise equal to its scale: the baseline is off by its scale everywhere, groups by their part of it."""
    assert formula(5) == pytest.approx(0.0615, abs=0.00005)
    matrix = np.full((2 ** (depth + 1) - 1, 1), 50)
    mech = RetroactiveGrouping(epsilon=1, bins=1, max_group=256, noise=ev.noise.Unit())
    baseline = TimeUnitBaseline(epsilon=0.9, bins=1, noise=ev.noise.Unit())
    errors = [np.mean((ev.run(each, matrix).values - matrix) ** 2) for each in (mech, baseline)]
    assert errors[0] / errors[1] == pytest.approx(formula(depth))


def test_error_on_a_constant_stream_with_noise_on_the_publications_alone():
    matrix = np.full((63, 100), 50)
    mech = RetroactiveGrouping(epsilon=0.1, bins=100, replicas=200, max_group=32, noise=QuietMonitor(1))
    baseline = TimeUnitBaseline(epsilon=0.09, bins=100, replicas=200, seed=2)
    errors = [np.mean((ev.run(each, matrix).values - matrix) ** 2) for each in (mech, baseline)]
    assert errors[0] / errors[1] == pytest.approx(formula(5), rel=0.04)


def test_groups_stop_growing():
    for longest, expected in ((1, [0, 1, 2, 3, 4, 5, 6, 7]), (3, [0, 2, 5, 8]), (512, [0, 2, 6, 14])):
        mech = RetroactiveGrouping(epsilon=1, bins=1, max_group=longest, **ZERO)
        fresh = [release.step for release in releases(mech, [[9]] * 16) if release.fresh]
        assert fresh[: len(expected)] == expected


class Tally(Meter):
    """Adds up everything that is read."""

    __slots__ = ("read_in_all",)

    def read(self, sums, where=None):
        measured = super().read(sums, where)
        self.read_in_all = self.read_in_all + measured.values
        return measured


def test_every_unit_enters_exactly_one_publication():
    random = np.random.default_rng(5)
    stream = random.poisson(20, (60, 5)) + 900 * (random.random((60, 5)) < 0.1)
    mech = RetroactiveGrouping(epsilon=1, bins=5, **ZERO)
    mech.meter = Tally(mech.ledger, mech.source, mech.size)
    mech.meter.read_in_all = np.zeros((1, 5))
    for count, counts in enumerate(stream, start=1):
        mech.release(counts)
        open_units = mech._groups.steps[0]
        published = [stream[: count - waiting, column].sum() for column, waiting in enumerate(open_units)]
        assert mech.meter.read_in_all[0].tolist() == published
    assert open_units.max() > 0


@pytest.mark.parametrize(("window", "sensitivity"), [(1, 1), (5, 1), (5, 4)])
def test_where_epsilon_goes(window, sensitivity):
    mech = RetroactiveGrouping(2, window, 3, sensitivity=sensitivity, monitor_share=0.25, seed=3)
    mech.meter.journal = []
    spent = ev.run(mech, np.full((30, 3), 40)).spent
    assert spent == pytest.approx(2 / window, abs=3e-9)
    assert mech.ledger.worst_window() <= 2
    unit = 2 * NANO // window
    drawn = {kind: set() for kind in ("thinned counts", "sum over steps")}
    for draw in mech.meter.journal:
        drawn[draw.kind] |= {(draw.numerator, charge) for charge in np.unique(draw.charges) if charge}
    assert drawn["sum over steps"] == {(sensitivity * NANO, unit * 3 // 4)}
    ((numerator, budget),) = drawn["thinned counts"]
    assert numerator == NANO
    assert budget == pytest.approx(unit / 4 / sensitivity, abs=1)


@pytest.mark.parametrize(("epsilon", "window"), [(0.1, 1), (0.3, 3)])
@pytest.mark.parametrize("stride", [1, 3])
def test_less_error_than_the_baseline_on_a_slow_stream(epsilon, window, stride):
    matrix = random_walk(STEPS, bins=100, level=200, stride=stride)
    mech = RetroactiveGrouping(epsilon, window, 100, span=15, monitor_share=0.1, seed=6)
    baseline = TimeUnitBaseline(epsilon, window, 100, span=15, seed=7)
    assert window_error(mech, matrix) <= 0.7 * window_error(baseline, matrix)


def test_a_count_that_stands_still_is_hardly_ever_taken_for_a_change_and_a_jump_is():
    """At the second unit no group is full. Three standard deviations of Laplace noise: exp(-3 * 2^(1/2)) = 1.44 %."""
    mech = RetroactiveGrouping(epsilon=0.1, bins=20_000, seed=8)
    mech.release(np.full(20_000, 50))
    assert mech.release(np.full(20_000, 50)).fresh_bins.mean() == pytest.approx(0.0145, abs=0.004)
    mech.release(np.full(20_000, 50))
    assert mech.release(np.full(20_000, 1000)).fresh_bins.mean() > 0.99


@pytest.mark.parametrize("charge", [1e-6, 1e-3, 0.01, 0.1, 1, 30])
@pytest.mark.parametrize("count", [0, 1, 50, 10**4, 10**9])
def test_the_best_sampling_rate_is_to_keep_every_event(charge, count):
    rate = np.arange(1, 101) / 100
    budget = np.log1p(np.expm1(charge) / rate)
    error = count * (1 - rate) / rate + 2 / (rate * budget) ** 2
    assert np.argmin(error) + 1 == BEST_RATE
    assert (np.diff(error) < 0).all()


@pytest.mark.parametrize("bad", [{"monitor_share": 0}, {"monitor_share": 1}, {"max_group": 0}, {"max_group": 513}])
def test_what_makes_no_sense_is_refused(bad):
    with pytest.raises(ev.InputError, match=next(iter(bad))):
        RetroactiveGrouping(epsilon=1, bins=1, **bad)


VARIANTS = [{}, {"window": 1}, {"max_group": 64, "span": 3}, {"monitor_share": 0.6}, {"filter": ev.filters.Truncate()}]


@pytest.mark.slow
@pytest.mark.parametrize("parameters", VARIANTS)
def test_contract(parameters):
    assert len(ev.check_mechanism(RetroactiveGrouping, **parameters)) == 12


@pytest.mark.parametrize(("epsilon", "window"), [(0.001, 1), (100, 1), (1, 10**7), ("0.000001", 10**7), (100, 10**7)])
def test_extremes(epsilon, window):
    for size, level in ((1, 10**9), (100_000, 0)):
        mech = RetroactiveGrouping(epsilon, window, size, span=3, seed=1)
        for step in range(8):
            release = mech.release(np.full(size, level * (step % 3)))
            assert np.isfinite(release.values).all()
            assert np.isfinite(release.window_values).all()
        assert mech.ledger.worst_window() <= mech.epsilon


def test_a_budget_too_small_to_share_is_not_spent():
    mech = RetroactiveGrouping("0.000001", 10**7, 1, seed=1)
    release = mech.release([5])
    assert (release.fresh, release.spent, release.values[0]) == (False, 0, 0)
    assert not mech.holds_raw


def test_noise_range():
    assert RetroactiveGrouping(0.1, 3, 1, sensitivity=2).noise_range() == pytest.approx((2 / 0.12, 2 / 0.03))
