"""RescueDP: groups against an obvious oracle, budgets and waits by hand, and who is protected."""

import numpy as np
import pytest

import eventide as ev
from eventide.mechanisms.rescuedp import RescueDP, directions
from eventide.mechanisms.rescuedp_kernels import scan
from eventide.privacy.amounts import NANO

FIRST = 0.2 * np.log(2)  # the part of epsilon that a first look takes: phi ln(I + 1) with I = 1


def groups_of(history, looks=None, largest_sum=30.0, least_correlation=0.5, largest_gap=25.0):
    """The groups as a sorted list of tuples of bins, for a history `(kappa, d)`."""
    history = np.array(history, dtype=float)[:, None, :]
    prediction = history.mean(axis=0)
    looks = np.ones_like(prediction, dtype=bool) if looks is None else np.array([looks])
    order = np.argsort(prediction, axis=1, kind="stable")
    small = looks & (prediction <= largest_sum)
    bounds = (largest_sum, least_correlation, largest_gap)
    labels, count = scan(looks, small, order, prediction, directions(history), *bounds)
    groups = [tuple(np.flatnonzero(labels[0] == label).tolist()) for label in range(count)]
    assert sorted(np.flatnonzero(looks[0])) == sorted(sum(groups, ()))
    return sorted(groups)


def up(level, by=1):
    return [level - by, level, level + by]


def down(level, by=1):
    return up(level, by)[::-1]


def still(level):
    return [level] * 3


@pytest.mark.parametrize(
    ("bins", "expected"),
    [
        pytest.param([up(1), up(2), down(3), down(4)], [(0, 1), (2, 3)], id="those that move alike"),
        pytest.param([up(1), down(2), up(3)], [(0, 2), (1,)], id="one that does not is left for later"),
        pytest.param([up(1), up(31), up(500)], [(0,), (1,), (2,)], id="large bins stand alone"),
        pytest.param([up(1), up(25.9), up(26)], [(0, 1), (2,)], id="gap to the smallest below 25"),
        pytest.param([up(10), up(15), up(16), up(17)], [(0, 1, 2), (3,)], id="full once the sum reaches 30"),
        pytest.param([up(-9), up(-8), up(-7), up(14)], [(0, 1, 2, 3)], id="noise below zero"),
        pytest.param(
            [still(3), still(4), up(5), still(6)], [(0, 1, 3), (2,)], id="still bins correlate with each other"
        ),
        pytest.param([still(0.1), still(0.3)], [(0, 1)], id="still bins whose mean is rounded"),
        pytest.param([[0, 1e-300, 2e-300], up(1), down(2)], [(0, 1), (2,)], id="moves too small to square"),
        pytest.param([[1, 2, 4], [5, 6, 6]], [(0, 1)], id="correlation 0.76"),
        pytest.param([[1, 2, 1], [4, 6, 7]], [(0,), (1,)], id="correlation 0.19"),
    ],
)
def test_groups_by_hand(bins, expected):
    assert groups_of(np.transpose(bins)) == expected


def test_only_bins_that_are_looked_at_are_grouped():
    history = np.transpose([up(1), up(2), up(3)])
    assert groups_of(history, looks=[True, False, True]) == [(0, 2)]


def test_members_must_exceed_the_least_correlation():
    history = np.transpose([still(1), up(2)])  # correlated by exactly 0
    assert groups_of(history, least_correlation=0.0) == [(0,), (1,)]
    assert groups_of(history, least_correlation=-0.1) == [(0, 1)]


def plain_groups(history, largest_sum, least_correlation, largest_gap):
    """The published scan in plain Python, with numpy's correlation."""
    prediction = history.mean(axis=0)
    waiting = sorted(np.flatnonzero(prediction <= largest_sum), key=lambda bin_: prediction[bin_])
    groups = [(bin_,) for bin_ in np.flatnonzero(prediction > largest_sum)]
    while waiting:
        pivot = waiting.pop(0)
        group, total = [pivot], prediction[pivot]
        for bin_ in list(waiting):
            if prediction[bin_] - prediction[pivot] >= largest_gap or total >= largest_sum:
                break
            if np.corrcoef(history[:, pivot], history[:, bin_])[0, 1] > least_correlation:
                group.append(bin_)
                waiting.remove(bin_)
                total += prediction[bin_]
        groups.append(tuple(sorted(group)))
    return sorted(tuple(int(bin_) for bin_ in group) for group in groups)


@pytest.mark.parametrize("kappa", [3, 5])
@pytest.mark.parametrize("bounds", [(30.0, 0.5, 25.0), (50.0, 0.8, 20.0), (30.0, 0.0, 3.0)])
def test_groups_are_those_of_the_plain_scan(kappa, bounds):
    generator = np.random.default_rng(8)
    for spread in (1, 10, 60):
        history = generator.normal(5, spread, (kappa, 60))
        assert groups_of(history, None, *bounds) == plain_groups(history, *bounds)


def grouped(noise, accounting="moving"):
    """Four bins, two rising and two falling, after the three releases that grouping needs."""
    parameters = {"process_noise": 1e12, "accounting": accounting}  # so large that looks are released as they are
    rescue = RescueDP(epsilon=100, window=50, bins=4, noise=noise, **parameters)
    for counts in ([1, 2, 9, 8], [2, 3, 8, 7], [3, 4, 7, 6]):
        rescue.release(counts)
    return rescue


@pytest.mark.parametrize("accounting", ["moving", "fixed-bin"])
def test_grouped_bins_are_released_as_their_mean(accounting):
    release = grouped(ev.noise.Zero(), accounting).release([10, 20, 3, 4])
    assert release.values.tolist() == pytest.approx([15, 15, 3.5, 3.5])


def test_a_group_of_two_has_half_the_noise_of_one():
    rescue = grouped(ev.noise.Unit())
    left = rescue.ledger.left()
    release = rescue.release([10, 20, 3, 4])
    scale = 1 / release.spent
    assert release.spent == pytest.approx(min(FIRST * left, 20), rel=1e-6)
    assert release.scale.tolist() == pytest.approx([scale / 2] * 4)
    assert (release.values - [15, 15, 3.5, 3.5]).tolist() == pytest.approx([scale / 2] * 4, rel=1e-6)


def test_no_grouping_before_three_releases():
    rescue = RescueDP(epsilon=100, window=50, bins=2, process_noise=1e12, noise=ev.noise.Zero())
    for counts in ([1, 5], [2, 6], [3, 7]):
        assert rescue.release(counts).values.tolist() == pytest.approx(counts)
    assert rescue.release([4, 8]).values.tolist() == pytest.approx([6, 6])


def test_a_group_takes_the_least_budget_of_its_members():
    rescue = grouped(ev.noise.Zero(), "fixed-bin")
    rescue.ledger.charge(np.array([[0, 50 * NANO, 0, 0]]))  # bin 1 has half as much left
    rescue.ledger.advance()
    rescue.meter.journal = []
    left = rescue.ledger.left_nano()[0]
    rescue.release([10, 20, 3, 4])
    charged = left - rescue.ledger.left_nano()[0]
    assert charged[0] == charged[1] < charged[2] == charged[3]
    assert charged[1] == pytest.approx(FIRST * left[1], rel=1 / 32)  # six leading bits are kept
    assert sorted(rescue.meter.journal[0].charges[0]) == sorted({charged[0], charged[2]})


def test_no_noise_is_drawn_for_groups_that_only_another_replica_has():
    parameters = {"accounting": "fixed-bin", "replicas": 2, "process_noise": 1e12, "noise": ev.noise.Zero()}
    rescue = RescueDP(epsilon=100, window=50, bins=3, **parameters)
    for step in range(4):
        rescue.meter.journal = []
        rescue.release([[step, step + 2, step + 4], [step, 9 - step, 50 + step]])  # one group, and three
    (draw,) = rescue.meter.journal
    assert (draw.charges > 0).tolist() == [[True, False, False], [True, True, True]]


@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize(("epsilon", "window"), [(1, 120), (0.3, 7)])
def test_unit_noise_shows_the_scale_of_the_first_release(epsilon, window, sensitivity):
    rescue = RescueDP(epsilon, window, bins=2, sensitivity=sensitivity, noise=ev.noise.Unit())
    release = rescue.release([100, 200])
    scale = sensitivity / (FIRST * epsilon)
    assert release.values - [100, 200] == pytest.approx(scale, rel=1e-6)
    assert release.scale == pytest.approx(scale, rel=1e-6)
    low, high = rescue.noise_range()
    assert low <= scale <= high


def test_waits_and_budgets_by_hand():
    """Counts of a thousand, not grouped; gains sum to 1, so the first error is the move itself.

    Step 0 takes 0.2 ln 2 of epsilon = 1. Step 1 takes as much of what is left, and moves by 3 against a scale of 5
    (at most epsilon / 5 can be had): the wait is 1 + 10 (1 - 0.36) = 7.4, so the next look is at step 8 and takes
    min(0.2 ln 8.4 of the rest, 1/5) = 1/5. It does not move: its controller says 0.9 * 0 + 0.1 * (3 + 0) / 2 = 0.15,
    the wait grows by 10 (1 - 0.03^2) to 17.391, and the next look is at step 25.
    """
    rescue = RescueDP(epsilon=1, window=100, bins=1, process_noise=1e12, noise=ev.noise.Zero())
    run = ev.run(rescue, [[1000], *[[1003]] * 29])
    assert np.flatnonzero(run.fresh).tolist() == [0, 1, 8, 25]
    second = FIRST * (1 - FIRST)
    assert run.spent[[0, 1, 8]] == pytest.approx([FIRST, second, 0.2], abs=1e-8)
    assert run.spent[25] == pytest.approx(0.2, abs=1e-8)
    assert rescue._interval.length == pytest.approx(17.391 + 10 * (1 - (0.1 * 3 / 3 / 5) ** 2), abs=1e-6)


def test_waits_are_set_against_what_the_next_step_has_left():
    """With 0.1 of epsilon left the scale is 10: a move of 8 lets the wait grow, against 5 it would not."""
    rescue = RescueDP(epsilon=1, window=100, bins=1, process_noise=1e12, noise=ev.noise.Zero())
    rescue.release([1000])
    rescue.ledger.charge(rescue.ledger.left_nano() - NANO * 116 // 1000)
    rescue.release([1008])
    left = rescue.ledger.left_nano()[0, 0] / NANO
    assert left == pytest.approx(0.116 * (1 - FIRST), rel=1e-6)
    rescue.release([1008])
    assert rescue._interval.length == pytest.approx(1 + 10 * (1 - (8 * left) ** 2), rel=1e-3)


def test_a_look_that_would_get_too_little_waits():
    """A restless stream is due at every step; what is left decays until the first looks fall out of the window."""
    rescue = RescueDP(epsilon=1, window=60, bins=1, noise=ev.noise.Zero())
    run = ev.run(rescue, np.tile([[0], [10**6]], (100, 1)))
    charges = np.rint(run.spent[run.fresh] * NANO)
    assert charges.min() >= rescue.least_look == int(FIRST * NANO) // 60
    assert charges.min() < 1.2 * rescue.least_look
    assert not run.fresh[40:60].any()
    assert run.fresh[60]
    assert run.fresh[150:].any()


def hopping_stream():
    """Bin j moves by j at step 1, so each sets another wait; counts of a thousand are not grouped."""
    moves = np.arange(0, 51, 3)
    return np.concatenate([np.full((1, len(moves)), 1000), np.tile(1000 + moves, (19, 1))])


class Replayed(ev.noise.Zero):
    """Minus one where the hopping user stands, nothing elsewhere: what hides them from a transcript without noise."""

    def __init__(self, bins):
        self.bins, self.step = bins, 0

    def laplace(self, numerator, charges, shape):
        noise = np.zeros(shape, dtype=np.int64)
        if self.bins[self.step] >= 0:
            noise[0, self.bins[self.step]] = -1
        return np.where(charges > 0, noise, 0)


def transcript(accounting, stream, noise):
    """The releases, and the budgets `(T, d)` with which bins were measured, from the meter's own draws."""
    parameters = {"process_noise": 1e12, "accounting": accounting, "noise": noise}
    rescue = RescueDP(epsilon=0.1, window=10, bins=stream.shape[1], **parameters)
    released, budgets = [], []
    for step, counts in enumerate(stream):
        noise.step, rescue.meter.journal = step, []
        released.append(rescue.release(counts).values)
        drawn = [np.broadcast_to(draw.charges[0], len(counts)) for draw in rescue.meter.journal]
        budgets.append(sum(drawn, np.zeros(len(counts), dtype=np.int64)))
    return np.array(released), np.array(budgets)


@pytest.mark.parametrize(("accounting", "broken"), [("fixed-bin", True), ("moving", False)])
def test_a_user_who_hops_between_bins(accounting, broken):
    """One transcript, possible with and without a user who is there for ten steps: noise 0, or -1 where the user is.

    Discrete Laplace noise of budget e has P(0) / P(-1) = exp(e), so the log-ratio of the transcript is exactly the sum
    of the budgets of the bins the user was in. That the user's presence changes nothing else also shows that every
    decision reads releases only.
    """
    epsilon, without = NANO // 10, hopping_stream()
    released, budgets = transcript(accounting, without, ev.noise.Zero())
    windows = np.convolve(budgets.max(axis=1), np.ones(10, dtype=np.int64), "valid")
    begin = int(windows.argmax())
    inside = np.arange(begin, begin + 10)
    where = np.full(len(without), -1)
    where[inside] = budgets[inside].argmax(axis=1)
    present = without.copy()
    present[inside, where[inside]] += 1
    replayed, same_budgets = transcript(accounting, present, Replayed(where))
    assert np.array_equal(replayed, released)
    assert np.array_equal(same_budgets, budgets)
    log_ratio = int(budgets[inside, where[inside]].sum())
    assert (log_ratio > epsilon) == broken
    assert (budgets[inside].sum(axis=0) <= epsilon).all()  # whoever stays in one bin is protected either way


def test_moving_measures_all_bins_when_any_is_due():
    rescue = RescueDP(epsilon=1, window=30, bins=2, noise=ev.noise.Zero())
    stream = np.stack([np.full(60, 700), np.tile([100, 9000], 30)], axis=1)
    fresh = np.array([rescue.release(counts).fresh_bins for counts in stream])
    assert np.array_equal(fresh.all(axis=1), fresh.any(axis=1))
    own = RescueDP(epsilon=1, window=30, bins=2, accounting="fixed-bin", noise=ev.noise.Zero())
    fresh = np.array([own.release(counts).fresh_bins for counts in stream])
    assert fresh[:, 0].sum() < fresh[:, 1].sum() / 2


def test_groups_pay_on_a_sparse_stream():
    """Bins of about one event a step: grouping must cut the error, or it is not alive."""
    stream = np.random.default_rng(3).poisson(1, (150, 200))
    errors = {
        bound: np.abs(
            ev.run(RescueDP(epsilon=1, window=30, bins=200, largest_sum=bound, seed=2), stream).values - stream
        ).mean()
        for bound in (30.0, -np.inf)
    }
    assert errors[30.0] < errors[-np.inf] / 2


@pytest.mark.parametrize("accounting", ["moving", "fixed-bin"])
@pytest.mark.parametrize("epsilon", [0.001, 100, 1e-6, 1e6])
@pytest.mark.parametrize("window", [1, 50, 10**7])
def test_extreme_settings_release_finite_numbers(accounting, epsilon, window):
    rescue = RescueDP(epsilon=epsilon, window=window, bins=2, sensitivity=1000, accounting=accounting)
    for counts in ([0, 0], [10**9, 0], [2**53, 2**53], [0, 0], [0, 0], [0, 1], [0, 0], [2**53, 0], *[[0, 0]] * 20):
        release = rescue.release(counts)
        assert np.isfinite(release.values).all()
        assert not np.isinf(release.scale[release.fresh_bins]).any()
    assert np.max(rescue.ledger.worst_window()) <= epsilon


@pytest.mark.parametrize("accounting", ["moving", "fixed-bin"])
def test_a_hundred_thousand_bins(accounting):
    rescue = RescueDP(epsilon=1, window=10, bins=100_000, accounting=accounting, seed=1)
    for count in (0, 0, 0, 0, 10**9):
        assert np.isfinite(rescue.release(np.full(100_000, count)).values).all()


def test_an_all_zero_stream_without_noise_stays_zero():
    """The filter's moves shrink for ever; nothing underflows into a correlation that is no number."""
    rescue = RescueDP(epsilon=1, window=3, bins=3, noise=ev.noise.Zero())
    values = ev.run(rescue, [[5, 7, 9], *[[0, 0, 0]] * 2000]).values
    assert np.abs(values[-1]).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"window": 12, "bins": 3, "epsilon": 10},
        {"accounting": "fixed-bin"},
        {"accounting": "fixed-bin", "window": 12},
        {"filter": ev.filters.Truncate()},
        {"history": 1, "memory": 1, "gains": (0.8, 0.1, 0.1)},
    ],
)
def test_contract(variant):
    assert ev.check_mechanism(RescueDP, **variant)


def test_guarantee_says_who_is_protected():
    moving, fixed = (RescueDP(epsilon=1, window=9, bins=2, accounting=which) for which in ("moving", "fixed-bin"))
    assert "events of one person inside" in str(moving.guarantee)
    assert "one person who stays in one bin" in str(fixed.guarantee)


@pytest.mark.parametrize(
    "bad", [{"accounting": "both"}, {"eagerness": 0}, {"largest_part": 1.5}, {"history": 0}, {"memory": 0}]
)
def test_parameters_that_make_no_sense_are_refused(bad):
    with pytest.raises(ev.InputError):
        RescueDP(epsilon=1, window=10, bins=1, **bad)
