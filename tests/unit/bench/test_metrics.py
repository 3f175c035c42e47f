"""Metrics: the running tally against dense and obvious oracles, and figures that can be worked out by hand."""

import numpy as np
import pytest

from eventide.bench.study.metrics import (
    METRICS,
    MetricOptions,
    MetricTally,
    StepBlock,
    crossing_precision,
    crossing_recall,
    season_kept,
    season_length,
)

STREAMS, REPETITIONS, STEPS, BINS = 3, 4, 50, 2
OPTIONS = MetricOptions()


@pytest.fixture
def run():
    """Truth `(S, T, d)`, and released, fresh, unused of a made-up run, with the repetitions as second axis."""
    random = np.random.default_rng(5)
    truth = random.poisson(20, (STREAMS, STEPS, BINS))
    truth[1, :, 0] = 0
    released = truth[:, None] + random.laplace(0, 5, (STREAMS, REPETITIONS, STEPS, BINS))
    fresh = random.random((STREAMS, REPETITIONS, STEPS)) < 0.3
    return truth, released, fresh, random.random((STREAMS, REPETITIONS, STEPS))


def tallied(run, metrics, block, window=10, epsilon=2.0, options=OPTIONS):
    """The figures of a run, whose intervals reach 5 to both sides of what is released."""
    truth, released, fresh, unused = run
    tally = MetricTally(tuple(metrics), truth, released.shape[1], epsilon, window, options)
    for begin in range(0, truth.shape[1], block):
        steps = slice(begin, begin + block)
        tally.add(
            StepBlock(
                begin,
                np.moveaxis(truth[:, None, steps], 2, 0),
                np.moveaxis(released[:, :, steps], 2, 0),
                np.moveaxis(fresh[:, :, steps], 2, 0),
                np.moveaxis(unused[:, :, steps], 2, 0),
                np.moveaxis([released[:, :, steps] - 5, released[:, :, steps] + 5], 3, 0),
            )
        )
    return tally.figures()


@pytest.mark.parametrize("block", [1, 7, 50])
def test_errors_are_those_of_the_whole_run(run, block):
    truth, released, _, _ = run
    error = np.abs(released - truth[:, None])
    figures = tallied(run, ["mse", "mae", "mre", "total_mae"], block)
    assert list(figures) == ["mse", "mae", "mre", "total_mae"]
    assert np.allclose(figures["total_mae"], np.abs((released - truth[:, None]).sum(axis=3)).mean(axis=2))
    assert np.allclose(figures["mae"], error.mean(axis=(2, 3)))
    assert np.allclose(figures["mse"], (error**2).mean(axis=(2, 3)))
    for stream, repetition in np.ndindex(STREAMS, REPETITIONS):
        relative = []
        for column in range(BINS):
            total = truth[stream, :, column].sum()
            bound = 0.001 * total if total else 1
            divisor = np.maximum(truth[stream, :, column], bound)
            relative.append(error[stream, repetition, :, column] / divisor)
        assert figures["mre"][stream, repetition] == pytest.approx(np.mean(relative))


def test_an_all_zero_column_counts_with_the_released_value_itself():
    released = np.full((1, 1, 4, 1), -3.0)
    nothing = np.zeros((1, 1, 4))
    run = np.zeros((1, 4, 1), dtype=np.int64), released, nothing > 0, nothing
    assert tallied(run, ["mre"], 4)["mre"].tolist() == [[3.0]]


def test_the_sanity_bound_is_a_part_of_the_columns_total():
    truth = np.array([[[1], [99]]])
    released = np.array([[[[2.0], [99.0]]]])
    nothing = np.zeros((1, 1, 2))
    for bound, expected in ((0.001, 0.5), (0.5, 0.01)):
        figures = tallied((truth, released, nothing > 0, nothing), ["mre"], 2, options=MetricOptions(bound))
        assert figures["mre"][0, 0] == pytest.approx(expected)


@pytest.mark.parametrize("block", [1, 7, 50])
def test_spending_is_averaged_over_windows(run, block):
    _, _, fresh, unused = run
    figures = tallied(run, ["publications", "unused_budget"], block, window=10, epsilon=2.0)
    assert np.allclose(figures["publications"], fresh.mean(axis=2) * 10)
    assert np.allclose(figures["unused_budget"], unused[:, :, 9:].mean(axis=2) / 2)


@pytest.mark.parametrize("block", [1, 7, 50])
def test_coverage_counts_the_bins_whose_intervals_hold_the_truth(run, block):
    truth, released, _, _ = run
    held = np.abs(released - truth[:, None]) <= 5
    assert np.allclose(tallied(run, ["coverage"], block)["coverage"], held.mean(axis=(2, 3)))


def test_a_window_longer_than_the_stream_is_the_whole_stream(run):
    _, _, fresh, unused = run
    figures = tallied(run, ["publications", "unused_budget"], 7, window=1000, epsilon=2.0)
    assert np.allclose(figures["publications"], fresh.sum(axis=2))
    assert np.allclose(figures["unused_budget"], unused[:, :, -1] / 2)


@pytest.mark.parametrize("block", [1, 50])
def test_level_and_amplitude_are_those_of_the_total(run, block):
    truth, released, _, _ = run
    true, got = truth.sum(axis=2)[:, None], released.sum(axis=3)
    figures = tallied(run, ["level_error", "amplitude_kept"], block)
    assert np.allclose(figures["level_error"], np.abs(got.min(axis=2) - true.min(axis=2)))
    assert np.allclose(
        figures["amplitude_kept"], (got.max(axis=2) - got.min(axis=2)) / (true.max(axis=2) - true.min(axis=2))
    )


def test_releasing_the_truth_is_perfect():
    truth = (100 + 50 * np.sin(np.arange(300) * 2 * np.pi / 30)).astype(np.int64).reshape(1, 300, 1)
    nothing = np.zeros((1, 1, 300))
    figures = tallied((truth, truth[:, None].astype(float), nothing > 0, nothing), METRICS, 64)
    perfect = dict.fromkeys(["season_kept", "amplitude_kept", "crossing_precision", "crossing_recall", "coverage"], 1)
    assert np.isnan([figures.pop(name)[0, 0] for name in ("data_missed", "data_invented")]).all()  # not of counts
    assert {name: values[0, 0] for name, values in figures.items()} == dict.fromkeys(figures, 0) | perfect


@pytest.mark.parametrize("season", [7, 30, 52])
def test_the_season_of_a_seasonal_series_is_found_despite_noise(season):
    random = np.random.default_rng(season)
    series = np.sin(np.arange(1000) * 2 * np.pi / season) + random.normal(0, 0.3, (5, 1000))
    assert np.abs(season_length(series) - season).max() <= 1


TRENDS = {
    "a line": lambda time: 10 * time,
    "a fall": lambda time: -10 * time,
    "a bend": lambda time: 20 * (time - 0.3) ** 2,
    "growth": lambda time: np.exp(3 * time) / 3,
}


@pytest.mark.parametrize("season", [7, 30, 150])
@pytest.mark.parametrize("trend", TRENDS.values(), ids=TRENDS)
def test_a_trend_does_not_hide_the_season(season, trend):
    random = np.random.default_rng(season)
    phases = random.uniform(0, season, (20, 1))
    wave = np.sin((np.arange(1000) + phases) * 2 * np.pi / season) + random.normal(0, 0.3, (20, 1000))
    assert np.abs(season_length(wave + trend(np.arange(1000) / 1000)) - season).max() <= max(1, 0.05 * season)


def test_a_trend_alone_is_no_season():
    random = np.random.default_rng(9)
    time = np.arange(1000) / 1000
    for trend in TRENDS.values():
        assert season_length(trend(time) + random.normal(0, 0.3, (20, 1000))).max() == 0
    assert season_length(1e6 * TRENDS["a bend"](time)) == 0


def test_what_is_seen_but_twice_is_no_season():
    assert season_length(np.sin(np.arange(1000) * 2 * np.pi / 450)) == 0


def test_noise_inertia_and_calm_are_no_season():
    random = np.random.default_rng(1)
    assert season_length(random.normal(size=(20, 1000))).max() == 0
    for steps in range(3, 400):  # what rounding leaves of a constant is no season either, whatever the length
        assert all(season_length(np.full(steps, level)) == 0 for level in (1.0, 3.0, 7.0, 1000.0, 12345.0))
    assert season_length(np.arange(100)) == 0


@pytest.mark.parametrize("steps", [24, 50, 100, 200])
def test_short_noise_has_no_season_and_a_short_clear_season_is_found(steps):
    random = np.random.default_rng(steps)
    noise = random.normal(size=(1000, steps))
    assert np.count_nonzero(season_length(noise)) <= 30
    assert season_length(np.tile([10.0, 11, 10, 12, 11, 4, 3], 3)) == 7
    season = steps // 7
    wave = np.sin(np.arange(steps) * 2 * np.pi / season) + 0.1 * noise
    assert np.mean(np.abs(season_length(wave) - season) <= 1) > 0.95


def test_a_season_is_kept_lost_or_was_never_there():
    steps = np.arange(400)
    wave = (100 * np.sin(steps * 2 * np.pi / 40)).astype(np.int64)
    other = 100 * np.sin(steps * 2 * np.pi / 50)
    noise = np.random.default_rng(2).normal(size=400)
    assert season_kept(wave, np.stack([wave + 10 * noise, other, noise]), OPTIONS).tolist() == [1, 0, 0]
    assert np.isnan(season_kept(np.full(400, 5), noise[None], OPTIONS)).all()


def test_alarms_are_matched_within_the_tolerance():
    #         0  1  2  3  4  5  6  7  8  9
    truth = [[0, 0, 9, 9, 0, 0, 0, 0, 9, 0]]
    early = [[0, 9, 9, 0, 0, 0, 0, 0, 0, 0]]  # one alarm, a step too early; the second is missed
    false = [[0, 0, 9, 0, 0, 9, 0, 0, 9, 0]]  # both, and a false one
    quiet = [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]
    released = np.array(early + false + quiet, dtype=float)
    options = MetricOptions(crossing_quantile=0.5, crossing_tolerance=1)
    precision = crossing_precision(np.array(truth[0]), released, options)
    assert precision[:2].tolist() == pytest.approx([1, 2 / 3])
    assert np.isnan(precision[2])
    assert crossing_recall(np.array(truth[0]), released, options).tolist() == [0.5, 1, 0]
    strict = MetricOptions(crossing_quantile=0.5, crossing_tolerance=0)
    assert crossing_precision(np.array(truth[0]), released, strict)[0] == 0


def test_without_a_true_alarm_recall_does_not_exist():
    calm = np.full(20, 4)
    assert np.isnan(crossing_recall(calm, np.random.default_rng(3).normal(size=(2, 20)), OPTIONS)).all()


def test_only_totals_asked_for_are_kept(run):
    truth, _, _, _ = run
    assert MetricTally(("mae",), truth, REPETITIONS, 1.0, 5, OPTIONS)._released.size == 0
