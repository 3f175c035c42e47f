"""Histograms of sliding windows by plain noise: scales read off unit noise, sums against a plain oracle, budgets."""

import numpy as np
import pytest

import eventide as ev
from eventide.mechanisms.retroactive_grouping import RetroactiveGrouping
from eventide.mechanisms.sliding_sum import SlidingSum
from eventide.mechanisms.window_baselines import TimeUnitBaseline, WindowBaseline
from eventide.privacy.amounts import NANO

BASELINES = [TimeUnitBaseline, WindowBaseline]
ALL = [*BASELINES, RetroactiveGrouping]


def window_sums(matrix, span):
    matrix = np.asarray(matrix)
    return np.array([matrix[max(0, t - span + 1) : t + 1].sum(axis=0) for t in range(len(matrix))])


def window_values(mechanism, matrix):
    return np.array([mechanism.release(counts).window_values for counts in matrix])


@pytest.mark.parametrize("span", [1, 2, 5])
def test_a_sliding_sum_agrees_with_adding_up(span):
    random = np.random.default_rng(3)
    window, row = SlidingSum(span, (2, 3)), []
    for _ in range(40):
        values = random.normal(size=(2, 3))
        window.push(values)
        row.append(values.copy())
        values[:] = np.nan  # what was pushed is kept as a copy
        latest, revised = random.integers(0, len(row) + 1, (2, 3)), random.normal(size=(2, 3))
        window.revise(revised, latest)
        for back in range(1, min(len(row), span) + 1):
            row[-back] = np.where(latest >= back, revised, row[-back])
        assert window.total == pytest.approx(np.sum(row[-span:], axis=0))


def test_rounding_errors_of_a_sliding_sum_do_not_stay():
    window = SlidingSum(3, (1, 1))
    for value in (1e17, 0.1, 0.2, 0.3, 0.4, 0.5):
        window.push(np.array([[value]]))
    assert window.total[0, 0] == pytest.approx(1.2, rel=1e-15)


@pytest.mark.parametrize("window", [1, 4])
def test_unit_noise_shows_the_noise_of_units_and_their_sums(window):
    stream = np.array([[5, 0], [6, 1], [7, 2], [8, 3], [9, 4]])
    mech = TimeUnitBaseline(0.5, window, 2, span=3, sensitivity=3, noise=ev.noise.Unit())
    scale = 3 * window / 0.5
    for t, counts in enumerate(stream):
        release = mech.release(counts)
        assert release.values.tolist() == (counts + scale).tolist()
        assert release.scale.tolist() == [scale, scale]
        expected = window_sums(stream, 3)[t] + min(t + 1, 3) * scale
        assert release.window_values.tolist() == expected.tolist()
        assert release.spent == 0.5 / window
    assert mech.ledger.worst_window() == 0.5
    assert mech.noise_range() == (scale, scale)


@pytest.mark.parametrize("window", [1, 4])
def test_unit_noise_shows_the_noise_of_windows(window):
    stream = np.array([[5, 0], [6, 1], [7, 2], [8, 3], [9, 4]])
    mech = WindowBaseline(0.5, window, 2, span=5, sensitivity=3, noise=ev.noise.Unit())
    scale = 5 * 3 * window / 0.5
    for t, counts in enumerate(np.tile(stream, (3, 1))):
        release = mech.release(counts)
        true = window_sums(np.tile(stream, (3, 1)), 5)[t]
        units = min(t + 1, 5)
        assert release.window_values.tolist() == (true + scale).tolist()
        assert release.values == pytest.approx((true + scale) / units)
        assert release.scale == pytest.approx(scale / units)
        assert release.spent == 0.5 / window
        assert release.fresh
    assert mech.ledger.worst_window() == 0.5
    assert mech.noise_range() == pytest.approx((scale / 5, scale))
    assert mech.holds_raw


def test_a_window_of_one_unit_holds_nothing_raw():
    mech = WindowBaseline(epsilon=1, bins=1, span=1, noise=ev.noise.Zero())
    assert mech.release([7]).window_values.tolist() == [7]
    assert not mech.holds_raw


def test_noise_on_windows_is_worse_by_the_span():
    matrix, span = np.full((60, 400), 30), 15
    errors = []
    for cls in BASELINES:
        found = window_values(cls(epsilon=0.1, bins=400, span=span, seed=2), matrix)
        errors.append(np.mean((found - window_sums(matrix, span))[span:] ** 2))
    assert errors[0] == pytest.approx(span * 2 / 0.1**2, rel=0.1)
    assert errors[1] / errors[0] == pytest.approx(span, rel=0.1)


@pytest.mark.parametrize("cls", ALL)
def test_single_events_are_protected_unless_a_window_is_given(cls):
    mech = cls(0.1, bins=["a", "b"])
    assert (mech.window, mech.span, mech.bins) == (1, 15, ("a", "b"))
    assert str(mech.guarantee).startswith("All events of one person inside any single step are hidden by event-level")
    assert "any 7 consecutive steps are hidden by w-event" in str(cls(0.1, 7, 2).guarantee)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("bad", [{}, {"bins": 0}, {"bins": ()}, {"bins": 2, "span": 0}, {"bins": 2, "span": 1.5}])
def test_what_makes_no_sense_is_refused(cls, bad):
    with pytest.raises(ev.InputError):
        cls(epsilon=1, **bad)


@pytest.mark.parametrize("cls", ALL)
def test_windows_go_on_after_save_and_load(cls):
    stream = np.random.default_rng(1).poisson(30, (40, 3))
    mech = cls(epsilon=1, bins=3, span=6, seed=4)
    ev.run(mech, stream[:23])
    loaded = ev.load(mech.save(), cls)
    assert window_values(loaded, stream[23:]).tolist() == window_values(mech, stream[23:]).tolist()


@pytest.mark.parametrize("cls", ALL)
def test_units_and_windows_are_truncated_each_by_itself(cls):
    stream = np.random.default_rng(1).poisson(3, (30, 3))
    plain, cut = cls(epsilon=0.1, bins=3, seed=4), cls(epsilon=0.1, bins=3, seed=4, filter=ev.filters.Truncate())
    for counts in stream:
        one, other = plain.release(counts), cut.release(counts)
        assert other.window_values.tolist() == np.maximum(np.rint(one.window_values), 0).tolist()
        assert other.window_scale.tolist() == one.window_scale.tolist()
        assert other.values.tolist() == np.maximum(np.rint(one.values), 0).tolist()


@pytest.mark.parametrize("cls", ALL)
def test_what_a_reader_does_to_a_histogram_stays_with_the_reader(cls):
    mech, other = (cls(epsilon=1, bins=2, seed=4) for _ in range(2))
    for counts in ([3, 4], [5, 6], [7, 8]):
        release = mech.release(counts)
        assert release.window_values.tolist() == other.release(counts).window_values.tolist()
        release.window_values[:] = -1


@pytest.mark.slow
@pytest.mark.parametrize("cls", BASELINES)
@pytest.mark.parametrize("parameters", [{}, {"span": 1}, {"filter": ev.filters.Truncate()}])
def test_contract(cls, parameters):
    assert len(ev.check_mechanism(cls, **parameters)) == 12


@pytest.mark.parametrize("cls", BASELINES)
@pytest.mark.parametrize(("epsilon", "window"), [(0.001, 1), (100, 1), (1, 10**7), (0.001, 10**7), (100, 10**7)])
def test_extremes(cls, epsilon, window):
    for size, level in ((1, 10**9), (100_000, 0)):
        mech = cls(epsilon, window, size, span=3, seed=1)
        for _ in range(4):
            release = mech.release(np.full(size, level))
            assert np.isfinite(release.values).all()
            assert np.isfinite(release.window_values).all()
        assert mech.ledger.worst_window() <= epsilon


def test_a_budget_too_small_to_share_is_not_spent():
    mech = WindowBaseline("0.000001", 10**6, 1, span=2, seed=1)
    release = mech.release([5])
    assert (release.fresh, release.spent, release.values[0], release.window_values[0]) == (False, 0, 0, 0)


def test_the_last_nano_of_a_unit_is_never_overspent():
    mech = WindowBaseline(epsilon=1, bins=1, span=7, noise=ev.noise.Zero())
    assert round(mech.release([1]).spent * NANO) == 7 * (NANO // 7)
