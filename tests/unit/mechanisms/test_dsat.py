"""DSAT: worked examples, the controller, and the exact sum of every window from the journal of the meter alone."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eventide as ev
from eventide.mechanisms.dsat import DSAT
from eventide.privacy.amounts import NANO


def values(mechanism, stream):
    return ev.run(mechanism, [[count] for count in stream]).values[:, 0].tolist()


def journal_of(mechanism, stream):
    """For each step, the budgets drawn for: runs that open, distances, looks; a column for each replica."""
    rows = []
    for counts in stream:
        mechanism.meter.journal = []
        mechanism.release(counts)
        drawn = {"open": 0, "distance": 0, "look": 0}
        for draw in mechanism.meter.journal:
            kind = "look" if draw.kind == "counts" else "open" if draw.numerator == 2 * NANO else "distance"
            drawn[kind] = drawn[kind] + np.broadcast_to(draw.charges, (mechanism.replicas, 1))[:, 0]
        rows.append([np.broadcast_to(drawn[kind], mechanism.replicas) for kind in drawn])
    return np.array(rows)  # (T, 3, R)


def runs_and_looks(rows):
    """Runs as (opened, closed, budget) and looks as (step, budget), for one replica; a run closes at the next look."""
    looks = [(step, int(look)) for step, (_, _, look) in enumerate(rows) if look]
    ends = [step for step, _ in looks]
    runs = [
        (step, next((end for end in ends if end >= step), len(rows)), int(run))
        for step, (run, _, _) in enumerate(rows)
        if run
    ]
    return runs, looks


@given(
    seed=st.integers(0, 10**6),
    window=st.integers(1, 12),
    looks=st.integers(1, 12),
    replicas=st.integers(1, 3),
    share=st.sampled_from([0.1, 0.5, 0.9]),
    jump=st.sampled_from([0, 3, 1000]),
)
def test_every_window_holds_at_most_c_runs_and_c_looks_and_epsilon(seed, window, looks, replicas, share, jump):
    mechanism = DSAT(epsilon="1/7", window=window, bins=2, looks=looks, test_share=share, replicas=replicas, seed=seed)
    stream = np.random.default_rng(seed).integers(0, jump + 1, (50, 2)).cumsum(axis=0)
    rows = journal_of(mechanism, stream)
    most = min(looks, window)
    for replica in range(replicas):
        runs, looked = runs_and_looks(rows[:, :, replica])
        for end in range(len(rows)):
            begin = end - window + 1
            touching = [budget for opened, closed, budget in runs if opened <= end and closed >= begin]
            inside = [budget for step, budget in looked if begin <= step <= end]
            assert len(touching) <= most
            assert len(inside) <= most
            assert sum(touching) + sum(inside) <= mechanism.nano_epsilon
    assert rows[:, 2].any(axis=0).all()


def test_at_the_cap_nothing_is_drawn():
    """Two looks in a window of 5, at steps 0 and 1; the next run opens when step 0 has left the window."""
    mechanism = DSAT(epsilon=1, window=5, bins=1, looks=2, noise=ev.noise.Zero())
    rows = journal_of(mechanism, [[0], [900], [1800], [2700], [3600], [4500]])[:, :, 0]
    assert (rows > 0).tolist() == [[False, False, True], [True] * 3, *[[False] * 3] * 3, [True] * 3]


def test_zero_noise_shows_when_it_looks():
    """A look's noise is 1 / 0.225 over one bin, so the threshold is 4; gain 0 keeps it there."""
    mechanism = DSAT(epsilon=1, window=8, bins=1, looks=4, gain=0, noise=ev.noise.Zero())
    assert values(mechanism, [10, 13, 14, 14, 17, 10, 9, 9]) == [10, 10, 14, 14, 14, 10, 10, 10]


@pytest.mark.parametrize(("published", "first", "enough"), [(False, 2, 32), (True, 4, 36)])
def test_unit_noise_shows_every_scale(published, first, enough):
    """Two rounds share 0.5 for tests and 0.5 for looks: a quarter each.

    Repaired: the first look has both quarters (noise 2); a run adds 16 to the distance and 8 to the threshold of 40.
    Published: the first look has one quarter (noise 4); 8 to the distance, and 4 to the threshold for ever.
    """
    settings = {"epsilon": 1, "window": 4, "bins": 1, "looks": 2, "test_share": 0.5, "threshold": 10, "gain": 0}
    for move, looks in ((enough - 1, False), (enough, True)):
        mechanism = DSAT(**settings, as_published=published, noise=ev.noise.Unit())
        release = mechanism.release([100])
        assert release.values == pytest.approx(100 + first)
        assert release.scale == pytest.approx(first)
        count = 100 + first + move
        release = mechanism.release([count])
        assert release.fresh == looks
        assert release.values == pytest.approx(count + 4 if looks else 100 + first)
    low, high = mechanism.noise_range()
    assert (low, high) == pytest.approx((first, 4))


def test_charges_of_both_forms():
    """A jump at every step; rounds of 0.5 each, two of them in a window of 4."""
    jumps = [[1000 * t] for t in range(6)]
    settings = {"epsilon": 1, "window": 4, "bins": 1, "looks": 2, "test_share": 0.5, "noise": ev.noise.Zero()}
    assert ev.run(DSAT(**settings), jumps).spent.tolist() == [0.5, 0.5, 0, 0, 0.5, 0.5]
    published = DSAT(**settings, as_published=True)
    assert ev.run(published, jumps).spent.tolist() == [0.75, 0.25, 0, 0, 0.25, 0.25]
    assert published.ledger.open_spans("disputed test").tolist() == [[500_000_000]]


def test_the_published_form_draws_one_threshold_noise():
    for published in (False, True):
        mechanism = DSAT(epsilon=1, window=3, bins=1, looks=2, gain=0, as_published=published, seed=8)
        noise = []
        for _ in range(40):
            mechanism.release([7])
            noise.append(int(mechanism._test._threshold_noise[0, 0]))
        assert (len(set(noise)) == 1) == published


def test_the_controller_moves_the_threshold_by_decisions_alone():
    """A window of 4 with 2 looks: a step with a look multiplies by exp(gain / 2), one without divides by as much."""
    mechanism = DSAT(epsilon=1, window=4, bins=1, looks=2, gain=0.4, noise=ev.noise.Zero())
    up, seen = math.exp(0.2), []
    for count in (10, 10, 10, 900, 900, 900):
        mechanism.release([count])
        seen.append(float(mechanism._tolerance[0, 0]))
    # first look; below; below; above; the window has one look and its budget is back: below; below
    assert seen == pytest.approx([1, 1 / up, 1 / up**2, 1 / up, 1 / up**2, 1 / up**3])


@pytest.mark.parametrize("size_of_counts", [1, 1000])
def test_looks_come_at_the_rate_that_epsilon_pays_for(size_of_counts):
    """Whatever the counts, with a private test: near C looks in a window, not far below and never above."""
    generator = np.random.default_rng(4)
    stream = 10**8 + size_of_counts * generator.integers(-50, 51, (1500, 20)).cumsum(axis=0)
    mechanism = DSAT(epsilon=1, window=40, bins=20, looks=8, seed=5)
    looks = ev.run(mechanism, stream).fresh[200:]
    assert 0.7 <= looks.mean() / (8 / 40) <= 1


def test_it_looks_where_the_stream_moves():
    """Hardly a look while the stream stands still; then nearly every jump, one in ten steps, is seen at once."""
    still = np.full((100, 30), 500)
    moving = still + 400 * (np.arange(100)[:, None] // 10)
    mechanism = DSAT(epsilon=5, window=40, bins=30, threshold=5.0, test_share=0.5, gain=0, seed=6)
    calm, lively = ev.run(mechanism, still), ev.run(mechanism, moving)
    assert calm.fresh.sum() <= 3
    assert lively.fresh.reshape(10, 10)[:, :2].any(axis=1).sum() >= 8  # of 9 jumps


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("epsilon", [0.001, 100, 1e-6, 1e6])
@pytest.mark.parametrize("window", [1, 50, 10**7])
def test_extreme_settings_release_finite_numbers(epsilon, window, published):
    mechanism = DSAT(epsilon=epsilon, window=window, bins=2, sensitivity=1000, as_published=published)
    for counts in ([0, 0], [10**9, 0], [2**53, 2**53], [0, 0]):
        release = mechanism.release(counts)
        assert np.isfinite(release.values).all()
        assert not np.isinf(release.scale[release.fresh_bins]).any()
    assert mechanism.ledger.worst_window() <= epsilon


def test_many_bins_of_large_counts():
    mechanism = DSAT(epsilon=1, window=2, bins=100_000, seed=1)
    for level in (0, 10**9, 0):
        release = mechanism.release(np.full(100_000, level))
        assert np.isfinite(release.values).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"as_published": True},
        {"looks": 1},
        {"looks": 3, "gain": 0.2, "threshold": 5.0, "test_share": 0.5},
        {"looks": 9, "as_published": True},
        {"filter": ev.filters.Truncate()},
    ],
)
def test_contract(parameters):
    assert ev.check_mechanism(DSAT, **parameters)


def test_parameters_are_checked():
    for bad in ({"looks": 0}, {"test_share": 0}, {"test_share": 1}, {"threshold": 0}, {"gain": -1}, {"gain": math.nan}):
        with pytest.raises(ev.InputError):
            DSAT(epsilon=1, window=4, bins=1, **bad)


def test_guarantee_says_what_the_published_form_does_not_cover():
    assert "as published" not in str(DSAT(epsilon=1, window=4, bins=1).guarantee)
    assert str(DSAT(epsilon=1, window=4, bins=1, as_published=True).guarantee).startswith("NOT PROVEN (as published")
    longer = str(DSAT(epsilon=1, window=100, bins=1, as_published=True).guarantee)
    assert longer.startswith("REFUTED (as published")
    assert "lose 5 where 0.1 is reckoned" in longer
    assert not DSAT(epsilon=1, window=4, bins=1, as_published=True).holds_raw
