"""The noise of a window's histogram: by hand, against an obvious sum over draws, and against what is measured."""

import numpy as np
import pytest

import eventide as ev
from eventide.mechanisms.retroactive_grouping import RetroactiveGrouping
from eventide.mechanisms.sliding_noise import SlidingNoise
from eventide.mechanisms.window_baselines import TimeUnitBaseline, WindowBaseline

ALL = [RetroactiveGrouping, TimeUnitBaseline, WindowBaseline]


def test_the_worked_example():
    """Counts     5  90  91  87  89  88  90  92  90  94    a jump at the second unit
    groups       [ ][  ][  ][      ][              ][
    scales        1   1   1 1/2         1/4
    """
    mech = RetroactiveGrouping(epsilon=1, bins=1, span=4, noise=ev.noise.Zero())
    seen = [mech.release([count]) for count in (5, 90, 91, 87, 89, 88, 90, 92, 90, 94)]
    squares = [float((0.9 * release.window_scale[0]) ** 2) for release in seen]  # a tenth goes to monitoring
    expected = [
        1,
        1 + 1,
        1 + 1 + 1,
        1 + 1 + 2**2,  # the fourth unit repeats the third
        1 + 1 + (2 / 2) ** 2,
        1 + (3 / 2) ** 2,
        (4 / 2) ** 2,
        (4 / 2) ** 2,
        (4 / 4) ** 2,
        (4 / 4) ** 2,
    ]
    assert squares == pytest.approx(expected)
    whole = [not np.isnan(release.window_low[0]) for release in seen]
    assert whole == [True] * 3 + [False, True, False, False, False, True, False]  # of groups that the window has whole
    ends = seen[4].window_low[0], seen[4].window_high[0]
    width = 1.645 * np.sqrt(2) * seen[4].window_scale[0]
    assert ends == pytest.approx((seen[4].window_values[0] - width, seen[4].window_values[0] + width))


@pytest.mark.parametrize("made", ALL)
def test_an_interval_holds_nine_of_ten(made):
    counts = np.random.default_rng(4).poisson(20, (60, 400))
    run = ev.run(made(epsilon=1, bins=400, span=5, seed=6), counts)
    truth = np.array([counts[max(0, step - 4) : step + 1].sum(axis=0) for step in range(60)])
    held = (run.window_low <= truth) & (truth <= run.window_high)
    known = ~np.isnan(run.window_low)
    assert known.sum() > 2000
    assert 0.88 < held[known].mean() < 0.96


def test_it_agrees_with_a_sum_over_draws():
    random, span, shape = np.random.default_rng(3), 5, (2, 4)
    noise, draws = SlidingNoise(span, shape), [[[] for _ in range(shape[1])] for _ in range(shape[0])]
    for pushed in range(1, 60):
        scale, begins = random.uniform(1, 9, shape), bool(random.random() < 0.5)
        noise.push(scale, begins=begins)
        revised, latest = random.uniform(1, 9, shape), random.integers(0, min(8, pushed + 1), shape)
        latest *= random.random() < 0.4
        for cell in np.ndindex(shape):
            units = draws[cell[0]][cell[1]]
            units.append((len(units) if begins or not units else units[-1][0], scale[cell]))
            for back in range(1, latest[cell] + 1):
                units[-back] = (-len(units), revised[cell])
        noise.revise(revised, latest)
        for cell in np.ndindex(shape):
            together = {}
            for draw, each in draws[cell[0]][cell[1]][-span:]:
                together[draw] = together.get(draw, 0) + each
            assert noise.scale()[cell] == pytest.approx(np.sqrt(sum(each**2 for each in together.values())))


@pytest.mark.parametrize("cls", ALL)
def test_the_error_is_as_large_as_the_scale_says(cls):
    """On counts that stand still: what has changed since is no noise."""
    mech = cls(epsilon=0.1, bins=200, span=6, replicas=20, seed=1)
    ratios = []
    for step in range(40):
        release = mech.release(np.full(200, 1000))
        truth = 1000 * min(step + 1, 6)
        ratios.append(np.mean((release.window_values - truth) ** 2 / (2 * release.window_scale**2)))
    assert np.mean(ratios[6:]) == pytest.approx(1, abs=0.08)


@pytest.mark.parametrize("cls", ALL)
def test_a_saved_state_goes_on_with_the_same_scales(cls):
    stream = np.random.default_rng(1).poisson(30, (40, 3))
    mech = cls(epsilon=1, bins=3, span=6, seed=4)
    ev.run(mech, stream[:23])
    loaded = ev.load(mech.save(), cls)
    for counts in stream[23:]:
        assert loaded.release(counts).window_scale.tolist() == mech.release(counts).window_scale.tolist()


@pytest.mark.parametrize("cls", ALL[:2])
def test_units_of_before_windows_had_a_scale_have_none_until_they_are_gone(cls):
    mech = cls(epsilon=1, bins=1, span=3, noise=ev.noise.Zero())
    ev.run(mech, [[5], [50], [500]])
    old = mech.snapshot()
    del old["_noise_of_sums"]
    loaded = cls(epsilon=1, bins=1, span=3, noise=ev.noise.Zero())
    loaded.restore(old)
    known = [bool(np.isfinite(loaded.release([10**step]).window_scale[0])) for step in range(4, 8)]
    assert known == [False, False, True, True]


def test_a_run_has_the_histograms_too():
    mech = TimeUnitBaseline(epsilon=1, bins=["a", "b"], span=2, noise=ev.noise.Zero())
    run = ev.run(mech, [[1, 2], [3, 4], [5, 6]])
    assert run.window_values.tolist() == [[1, 2], [4, 6], [8, 10]]
    rows = run.to_arrow().to_pylist()
    assert [(row["bin"], row["statistic"], row["value"]) for row in rows[-4:]] == [
        ("a", "events", 5),
        ("b", "events", 6),
        ("a", "window:events", 8),
        ("b", "window:events", 10),
    ]
    assert rows[-1]["scale"] == pytest.approx(2**0.5)


def test_a_mechanism_of_single_steps_has_none():
    run = ev.run(ev.Uniform(epsilon=1, window=1, bins=1, noise=ev.noise.Zero()), [[1]])
    assert run.window_values is None
    assert run.to_arrow().column_names == ["step", "bin", "value", "scale", "fresh"]
