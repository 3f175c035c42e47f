"""Tide's schedule: what each look costs, what it depends on, and that nothing but looks decides."""

import itertools

import numpy as np
import pytest

import eventide as ev
from eventide.errors import InputError
from eventide.filters.posterior_median import PosteriorMedian
from eventide.mechanisms.tide import MOST_WATCHED
from eventide.mechanisms.tide_kernels import Intervals, add_errors, scattered_error, waiting_error
from eventide.mechanisms.tide_waits import GROWTH, Waits, meeting_phases
from eventide.privacy.amounts import NANO
from eventide.privacy.measured import Measured

STREAM = np.random.default_rng(4).poisson([0.1, 5, 300], (60, 3)) + 200 * (np.arange(60)[:, None] > 40)


def tide(**more):
    return ev.Tide(**{"epsilon": 1.0, "window": 12, "bins": 3, "seed": 6} | more)


def wide(counts):
    """The same stream in so many bins that nothing is watched between looks."""
    return np.tile(counts, (1, MOST_WATCHED // counts.shape[1] + 1))


def test_the_first_look_gets_half_and_later_ones_what_their_wait_saves():
    stream = wide(STREAM)
    mechanism = tide(window=100, bins=stream.shape[1])
    first, *others = (mechanism.release(counts) for counts in stream)
    assert first.fresh
    assert first.spent == 0.5
    looks = [release for release in others if release.fresh]
    assert looks
    waits = [round(release.spent / 0.005, 6) for release in looks]  # half of a hundredth for each step
    assert all(wait == round(wait) for wait in waits)
    assert tide(bins=1, window=100).release([3]).spent == 0.0625
    assert tide(bins=1, algorithm=5).release([3]).spent == 0.25
    assert tide(bins=1, algorithm=4).release([3]).spent == pytest.approx(1 / 3, abs=1e-9)


@pytest.mark.parametrize(("level", "algorithm", "part"), [(5000, 4, 0.1), (5000, 5, 0.025), (0, 5, 0.1)])
def test_a_narrow_stream_is_watched_with_a_part_of_what_a_wait_saves_less_where_it_is_clear(level, algorithm, part):
    mechanism = tide(bins=1, window=100, algorithm=algorithm)
    spent = ev.run(mechanism, np.full((400, 1), level)).spent[200:] * 100  # in hundredths: what a step has
    watching, looking = spent[spent < 0.2], spent[spent >= 0.2]
    assert len(watching) > 5 * len(looking)
    assert watching == pytest.approx(part)
    waits = (looking - part) / (1 - part)  # x steps, less the part of all but the first
    whole = abs(waits - np.rint(waits)) < 1e-3
    assert whole[:2].any()  # the others get what the ledger has left


def test_a_single_bin_doubles_its_waits_and_several_take_four_times_as_long():
    for bins, growth in ((1, 2), (3, 4)):
        looks = np.flatnonzero(ev.run(tide(bins=bins, window=100), np.full((100, bins), 5000)).spent > 0.005)
        waits = np.diff(looks)
        assert (waits[1:] <= growth * waits[:-1]).all()


def test_a_burst_is_noticed_within_ten_steps_of_a_wait_of_a_hundred():
    stream = np.repeat([0, 20_000, 0], [300, 60, 20])[:, None]
    values = np.median(ev.run(tide(bins=1, window=100, replicas=15), stream).values[..., 0], axis=0)
    assert (values[250:300] < 100).all()
    assert (abs(values[310:360] - 20_000) < 2000).all()
    assert (values[370:] < 1000).all()


def test_a_window_of_one_step_spends_everything_at_every_step():
    assert (ev.run(tide(window=1), STREAM).spent == 1).all()


@pytest.mark.parametrize("window", [1, 2, 7, 40, 10**6])
def test_no_window_is_over_and_long_runs_use_most_of_it(window):
    mechanism = tide(window=window)
    spent = ev.run(mechanism, np.tile(STREAM, (3, 1))).spent
    width = min(window, len(spent))
    totals = np.convolve(np.rint(spent * NANO), np.ones(width), mode="valid")
    assert totals.max() <= NANO
    if window < len(spent):
        assert totals[window:].mean() > 0.5 * NANO


def test_without_budget_there_is_no_look():
    """So little epsilon that a step's part rounds to nothing: only the first look is paid for."""
    mechanism = tide(epsilon="1/1000000", window=10**6)
    run = ev.run(mechanism, STREAM)
    assert run.fresh[0]
    assert not run.fresh[1:].any()


@pytest.mark.parametrize("seasons", [None, pytest.param((24,), marks=pytest.mark.slow)])
def test_steps_never_looked_at_change_nothing(seasons):
    calm = wide(np.random.default_rng(5).poisson([0.1, 5, 300], (120, 3)))
    given = {"bins": calm.shape[1], "seasons": seasons, "window": 40 if seasons else 12}
    seen = ev.run(tide(**given), calm)
    assert 5 < seen.fresh.sum() < len(calm) - 20
    other = np.where(seen.fresh[:, None], calm, calm + 10_000)
    again = ev.run(tide(**given), other)
    assert np.array_equal(again.values, seen.values)
    assert np.array_equal(again.spent, seen.spent)
    changed = other.copy()
    changed[np.flatnonzero(seen.fresh)[2]] += 10_000  # the same test can fail: a look that changes is noticed
    assert not np.array_equal(ev.run(tide(**given), changed).values, seen.values)


FILTERS = [pytest.param({"filter": name}, marks=pytest.mark.slow) for name in ("truncate", "kalman")]


@pytest.mark.parametrize("parameters", [{}, {"replicas": 2}, *FILTERS])
def test_it_goes_on_from_any_step(parameters):
    whole = tide(**parameters)
    expected = ev.run(whole, STREAM)
    for cut in range(0, len(STREAM), 11):
        saved = tide(**parameters)
        ev.run(saved, STREAM[:cut])
        loaded = ev.load(saved.save())
        rest = ev.run(loaded, STREAM[cut:])
        assert np.array_equal(rest.values, expected.values[..., cut:, :])
        assert np.array_equal(rest.spent, expected.spent[..., cut:])
        assert loaded.ledger.worst_window() == pytest.approx(whole.ledger.worst_window())


def test_another_filter_changes_what_is_released_but_not_when_it_looks():
    own, raw, whole = (ev.run(tide(filter=chosen), STREAM) for chosen in (None, "repeat", "truncate"))
    assert np.array_equal(own.spent, raw.spent)
    assert not np.array_equal(own.values, raw.values)
    assert np.abs(own.values - STREAM).mean() < np.abs(raw.values - STREAM).mean()
    assert (whole.values == np.rint(whole.values)).all()


def test_a_still_stream_is_looked_at_rarely_and_a_wild_one_often():
    still = np.full((400, 1), 3000)
    wild = np.random.default_rng(2).integers(0, 100_000, (400, 1))
    runs = [ev.run(tide(bins=1, window=50), stream).spent[50:] for stream in (still, wild)]
    still_looks, wild_looks = (np.mean(spent >= 0.02 - 1e-9) for spent in runs)  # the others only watch
    assert still_looks < 0.1
    assert wild_looks > 0.5


def test_only_narrow_streams_are_looked_at_step_by_step_in_the_first_window():
    """Both begin empty. A tenth of a step's budget is for watching; the other looks are due."""
    due = {}
    for bins in (64, 65):
        spent = ev.run(tide(bins=bins, window=100), np.zeros((40, bins), dtype=int)).spent[1:]
        due[bins] = int((spent > 0.0009).sum())
    assert due[64] > 15
    assert due[65] < 8


@pytest.mark.parametrize("bins", [1, 100])
def test_in_the_first_window_it_waits_at_most_half_of_the_steps_so_far(bins):
    """A night is no proof of a calm day. Both streams begin clearly above the noise and stand still."""
    spent = ev.run(tide(bins=bins, window=200), np.full((200, bins), 1000)).spent
    looks = np.flatnonzero(spent > 0.0009)  # the others only watch
    assert len(looks) < 20
    assert (np.diff(looks) <= np.maximum(looks[:-1] // 2, 1)).all()


def test_the_interval_holds_most_counts():
    moves = np.random.default_rng(7).integers(-2, 3, (150, 3))
    stream = np.abs(np.array([0, 40, 2000]) + np.cumsum(moves, axis=0))
    mechanism = tide(window=30, replicas=20)
    inside = [
        (release.low <= counts) & (counts <= release.high)
        for counts, release in ((counts, mechanism.release(counts)) for counts in stream)
    ]
    assert 0.7 < np.mean(inside) < 1


def test_the_wait_grows_step_by_step_and_falls_at_once():
    interval = Waits(1, 64, 1.0)
    posterior = PosteriorMedian().started(1, 1, epsilon=1.0, window=64)
    lengths = [1]
    for step in range(100, 130):  # after the first window, where nothing but the errors counts
        values = posterior.step(Measured(*(np.full((1, 1), v) for v in (3000.0, 1.0, True))))
        interval.choose(step, *np.full((2, 1, 1), True), values, posterior)
        lengths.append(int(interval.length[0, 0]))
    assert max(lengths) == 64
    assert all(after <= GROWTH * before for before, after in itertools.pairwise(lengths))
    posterior.rows.pace[:] = 1e12
    for step in range(130, 133):  # on the way, not due
        interval.choose(step, np.full((1, 1), True), np.full((1, 1), False), values, posterior)
    assert interval.length[0, 0] < 64


def test_predicted_errors_are_those_of_a_simulated_walk():
    """A random walk, looked at every x steps through Gaussian noise of the same variance, with a Kalman filter."""
    random, variance, steps, noise = np.random.default_rng(1), 4.0, 8, 50.0
    intervals = Intervals(np.array([float(steps)]), np.array([noise]), np.zeros((1, 1)))
    logarithm, squared = np.zeros((2, 1))
    add_errors(intervals, variance, 0.0, 0.0, 0, 1.0, logarithm, squared)
    truth, estimate, known = np.zeros(4000), np.zeros(4000), noise
    squares = []
    for step in range(400):
        truth = truth + random.normal(0, np.sqrt(variance), 4000)
        known += variance
        if step % steps == 0:
            gain = known / (known + noise)
            estimate = estimate + gain * (truth + random.normal(0, np.sqrt(noise), 4000) - estimate)
            known *= 1 - gain
        if step > 200:
            squares.append(np.sqrt(np.mean((truth - estimate) ** 2)))
    assert np.exp(logarithm[0]) == pytest.approx(np.mean(squares), rel=0.02)


def test_sensitivity_scales_the_noise_and_the_waits_with_it():
    run = ev.run(tide(sensitivity=3), STREAM)
    assert np.isfinite(run.values).all()
    one, three = tide(), tide(sensitivity=3)
    assert three.release(STREAM[0]).scale[0] == pytest.approx(3 * one.release(STREAM[0]).scale[0])


def test_waits_meet_at_least_eight_hours_of_the_day():
    for length in range(1, 200):
        wait, more = meeting_phases(length, (24.0,)), meeting_phases(length, (24.0,), longer=True)
        assert length - min(length // 3, 8) <= wait <= length <= more <= length + min(length // 3, 8)
        assert len({wait * look % 24 for look in range(24)}) >= 8
    assert [meeting_phases(length, (37.0,)) for length in (1, 8, 36)] == [1, 8, 36]


def test_an_empty_stream_that_wakes_is_believed_after_two_looks_a_quarter_of_a_window_apart():
    stream = np.repeat([0, 100], [170, 30])[:, None]
    values = ev.run(tide(bins=1, window=40, replicas=20, seasons=(24,)), stream).values[..., 0]
    assert (np.median(values, axis=0)[100:170] < 0.5).mean() > 0.95
    assert (np.median(abs(values - 100), axis=0)[190:195] < 30).all()


def test_with_a_calendar_a_still_stream_keeps_its_sharp_looks():
    stream = wide(np.full((300, 1), 500))
    tides = [tide(window=40, bins=stream.shape[1], seasons=seasons) for seasons in (None, (24,))]
    runs = [ev.run(mechanism, stream) for mechanism in tides]
    errors = [abs(run.values - stream)[100:].mean() for run in runs]
    assert errors[1] < 1.4 * errors[0]  # a more even start costs it something for some windows
    assert all(run.spent[160:].max() == 1 and (run.spent[160:] > 0).sum() < 5 for run in runs)


def test_looks_with_a_calendar_cost_what_their_wait_saves():
    stream = wide(100 + 0 * STREAM)
    mechanism = tide(window=48, bins=stream.shape[1], seasons=(24,))
    releases = [mechanism.release(counts) for counts in np.tile(stream, (4, 1))]
    assert mechanism.ledger.worst_window() <= 1
    looks = [(release.step, release.spent) for release in releases if release.fresh and release.step >= 48]
    for (step, spent), (following, _) in itertools.pairwise(looks):
        assert len({(following - step) * look % 24 for look in range(24)}) >= 8
        assert spent <= (following - step) / 48 + 1e-9


def test_with_a_calendar_several_bins_start_more_evenly_and_wait_at_most_a_quarter_of_the_steps_so_far():
    stream = wide(np.full((150, 1), 1000))
    for algorithm, share, part in ((1, 1 / 2, 2), (2, 1 / 3, 4), (4, 1 / 3, 4), (5, 1 / 5, 4), (6, 1 / 4, 4)):
        mechanism = tide(window=150, bins=stream.shape[1], seasons=(144,), algorithm=algorithm)
        looks = np.flatnonzero(spent := ev.run(mechanism, stream).spent)
        waits = np.diff(looks)
        assert spent[0] == pytest.approx(share, abs=1e-9)
        at_least = 150 // 16 if algorithm >= 5 else 1  # from the first look on
        assert (waits <= np.maximum(looks[:-1] // part, at_least)).all()
        assert waits.max() > 150 // 8
    assert tide(window=150).release([3, 3, 3]).spent == 0.5  # without one


@pytest.mark.parametrize(("algorithm", "longest"), [(2, 4), (4, 2)])  # the fifth waits longer from the first look on
def test_bins_that_have_shown_their_day_wait_for_half_of_the_steps_so_far(algorithm, longest):
    stream = wide(np.full((150, 1), 1000))
    mechanism = tide(window=150, bins=stream.shape[1], seasons=(37,), algorithm=algorithm)
    looks = np.flatnonzero(ev.run(mechanism, stream).spent)
    before, waits = looks[:-1], np.diff(looks)
    early = before < 37
    assert (waits[early] <= np.maximum(before[early] // 4, 1)).all()
    assert (waits[~early] <= before[~early] // longest).all()
    assert (waits[~early] > before[~early] // 4).any() == (longest == 2)


def test_a_sharp_first_look_at_night_does_not_pin_the_level_of_the_day():
    day = [4, 3, 3, 4, 8, 20, 45, 80, 100, 95, 90, 90, 95, 100, 100, 105, 110, 100, 80, 60, 40, 25, 12, 6]
    counts = np.tile(np.outer(day, np.arange(1, 9) / 2).astype(np.int64), (8, 1))
    runs = [ev.run(tide(bins=8, window=48, seasons=(24,), algorithm=algorithm), counts) for algorithm in (3, 4)]
    pinned, now = (np.abs(run.values - counts)[24:].mean() for run in runs)
    assert now < 0.85 * pinned


@pytest.mark.parametrize("level", [3, 300])
def test_with_a_calendar_bins_of_which_the_first_look_shows_nothing_get_a_second_one(level):
    stream = wide(np.full((4, 1), level))
    spent = ev.run(tide(window=1000, bins=stream.shape[1], seasons=(24,)), stream).spent
    assert spent[0] == 0.25
    assert (spent[1] == 0.2) == (level == 3)


@pytest.mark.parametrize(("level", "seasons", "second"), [(3, (24,), True), (3000, (24,), False), (3, None, False)])
def test_with_the_fifth_a_bin_that_the_first_look_does_not_show_clearly_gets_a_second_one(level, seasons, second):
    spent = ev.run(tide(window=1000, bins=1, seasons=seasons, algorithm=5), np.full((4, 1), level)).spent
    assert spent[0] == 0.25
    assert (spent[1] == 0.25) == second
    assert spent[2] < 0.01


@pytest.mark.parametrize("seasons", [None, (24,)])
@pytest.mark.parametrize(("level", "second"), [(3, True), (3000, True), (300_000, False)])
def test_the_first_look_at_a_bin_says_whether_a_sharp_one_is_worth_it(level, second, seasons):
    """In a window of 1,000 a look at every step is off by 1,000: a 300th of the highest level, a third of the next."""
    mechanism = tide(window=1000, bins=1, seasons=seasons)
    spent = ev.run(mechanism, np.full((1000, 1), level)).spent
    assert spent[0] == 0.0625
    assert (spent[1] == 0.25) == second
    assert spent[2] < 0.01
    assert mechanism.ledger.worst_window() <= 1


@pytest.mark.parametrize("lost", [0, 1])
def test_a_bin_gets_its_second_look_also_after_a_step_that_failed(lost):
    mechanism, spent = tide(window=100, bins=1), []
    for step in range(100):
        if step == lost:
            mechanism.end_step()
        else:
            spent.append(mechanism.release([50]).spent)
    assert spent[:2] == [0.0625, 0.25]
    assert 0.9 < mechanism.ledger.worst_window() <= 1


def test_waits_are_chosen_anew_after_the_second_look_at_a_bin():
    """What the first and blurred look feared of long waits would shorten them for a third of the window."""
    stream = np.full((80, 1), 2000)
    mechanism = tide(epsilon=0.1, window=120, bins=1, replicas=50)
    spent = ev.run(mechanism, np.tile(stream, (50, 1, 1))).spent
    looks = (spent[:, 2:] > 0.1 / 120 / 2).sum(axis=1)  # without those that only watch
    assert np.median(looks) < 16


def test_in_a_window_much_shorter_than_the_day_bins_begin_as_without_a_calendar():
    stream = wide(np.full((60, 1), 1000))
    looks = [
        np.flatnonzero(ev.run(tide(window=60, bins=stream.shape[1], seasons=seasons), stream).spent)
        for seasons in (None, (144,), (120,))
    ]
    assert (looks[0] == looks[1]).all()
    assert looks[2].tolist() != looks[1].tolist()


@pytest.mark.parametrize("seasons", [None, (24,)])
def test_the_algorithm_stays_the_one_that_it_was_begun_with(seasons):
    assert tide(seasons=seasons).algorithm == tide(seasons=seasons).clone().algorithm == 6
    assert ev.load(tide(seasons=seasons, algorithm=1).save()).algorithm == 1
    assert ev.load(tide(seasons=seasons).save()).algorithm == 6


def test_without_seasons_the_first_four_algorithms_are_one():
    runs = [ev.run(tide(algorithm=algorithm), STREAM) for algorithm in (1, 2, 3, 4, 5)]
    assert all(np.array_equal(run.values, runs[0].values) for run in runs[:4])
    assert not np.array_equal(runs[4].values, runs[0].values)


@pytest.mark.parametrize(
    ("algorithm", "bins", "zeros"), [(4, 2, 0.5), (5, 2, 0.97), (6, 2, 0.5), (6, 24, 0.75), (6, 300, 0.97)]
)
def test_the_more_bins_there_are_the_likelier_each_is_empty(algorithm, bins, zeros):
    grid = tide(bins=bins, algorithm=algorithm)._posterior.grid
    spread = 1 / (grid.centre + 3) ** 2 * grid.width
    assert grid.prior[0] == pytest.approx(zeros + (1 - zeros) * spread[0] / spread.sum())


def test_an_algorithm_that_is_none_is_refused():
    for wrong in (0, 7, True, 2.0, "2"):
        with pytest.raises(InputError, match="give 6, or 1 to 5 for those of before"):
            tide(algorithm=wrong)


def test_single_counts_that_scatter_are_worth_no_look_unless_it_is_sharp():
    still = scattered_error(1.0, 9.0, 1e-9, 16.0)  # a known level: the look and the scatter are weighed
    assert still == pytest.approx(np.sqrt(16 * 9 / 25), rel=1e-3)
    assert scattered_error(8.0, 9.0, 0.5, 0.0) == pytest.approx(_walking(8, 9.0, 0.5), rel=1e-9)


def _walking(steps, noise, walk):
    before = (walk * steps + np.sqrt((walk * steps) ** 2 + 4 * walk * steps * noise)) / 2
    after = before * noise / (before + noise)
    return (np.sqrt(after) + (steps - 1) * waiting_error(after + walk, walk, steps - 1)) / steps


def test_behind_a_cap_a_calendar_beats_the_looks_themselves():
    week = np.array([0, 60, 60, 60, 60, 60, 30])
    stream = np.random.default_rng(17).poisson(np.tile(week, 50))[:, None]
    given = {"epsilon": 1, "window": 30, "bins": 1, "window_sensitivity": 8, "replicas": 10, "seed": 5}

    def error(mechanism):
        return abs(np.rint(np.maximum(ev.run(mechanism, stream).values, 0)) - stream).mean()

    assert error(ev.Tide(**given, seasons=(7,))) < 0.9 * error(ev.Uniform(**given))
