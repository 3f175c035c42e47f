"""SPAS: worked examples, the predicted number of looks, and the exact sum of every window from the meter's journal."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.mechanisms.spas import SPAS
from eventide.privacy.amounts import NANO


def spans_and_points(mechanism, stream):
    """What the meter drew for, of one replica: runs as (opened, closed, budget), looks as (step, budget)."""
    runs, looks = [], []
    for index, counts in enumerate(stream):
        mechanism.meter.journal = []
        mechanism.release(counts)
        for draw in mechanism.meter.journal:
            amount = int(draw.charges.max())
            if amount and draw.kind == "test" and draw.numerator == 2 * NANO:
                runs.append([index, None, amount])
            elif amount and draw.kind == "counts":
                looks.append((index, amount))
                if runs and runs[-1][1] is None:
                    runs[-1][1] = index  # a look ends the open run
    return [(opened, len(stream) if closed is None else closed, amount) for opened, closed, amount in runs], looks


@settings(max_examples=150)
@given(
    seed=st.integers(0, 10**6),
    window=st.integers(1, 12),
    epsilon=st.sampled_from(["1/7", 1, 30]),
    interval=st.integers(1, 5),
    share=st.sampled_from([0.1, 0.25, 0.6]),
    jump=st.sampled_from([0, 3, 1000]),
)
@pytest.mark.slow
def test_every_window_holds_epsilon_at_most(seed, window, epsilon, interval, share, jump):
    mechanism = SPAS(epsilon, window, 2, first_interval=interval, test_share=share, seed=seed)
    generator = np.random.default_rng(seed)
    stream = 500 + (generator.integers(0, jump + 1, (60, 2)) * (generator.random((60, 1)) < 0.5)).cumsum(axis=0)
    runs, looks = spans_and_points(mechanism, stream)
    for end in range(len(stream)):
        begin = end - window + 1
        touching = sum(amount for opened, closed, amount in runs if opened <= end and closed >= begin)
        inside = sum(amount for step, amount in looks if begin <= step <= end)
        assert touching + inside <= mechanism.nano_epsilon
    ends = dict(looks)
    for _, closed, run in runs:  # the look gets what it was promised when the run opened, whatever happened since
        if closed in ends:
            rounds = mechanism._test_pool // run  # one of several numbers that give this budget
            assert mechanism._look_pool // (rounds + 1) <= ends[closed] <= mechanism._look_pool // rounds + 1


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 12), st.booleans())
def test_replicas_never_overspend(seed, window, published):
    mechanism = SPAS(1, window, 3, first_interval=2, replicas=4, as_published=published, seed=seed)
    stream = np.random.default_rng(seed).integers(0, 2000, (4, 60, 3))
    assert ev.run(mechanism, stream).fresh.any(axis=1).all()
    assert (mechanism.ledger.worst_window() <= 1).all()


def test_a_constant_stream_gets_one_sharp_look_in_a_window():
    """The first window has 2 looks, evenly spaced and both with all their round has; then nothing ever changes."""
    mechanism = SPAS(epsilon=1, window=6, bins=1, first_interval=3, noise=ev.noise.Zero())
    run = ev.run(mechanism, np.full((24, 1), 70))
    assert np.flatnonzero(run.fresh).tolist() == [0, 3, 9, 15, 21]
    assert run.spent[run.fresh].tolist() == [0.5, 0.5, 1, 1, 1]
    assert run.values[:, 0].tolist() == [70] * 24


def test_the_number_of_looks_follows_from_released_values():
    """Looks at each of the first 4 steps release 0, 10, 40, 40: changes of 10, 30 and 0, older ones weigh less."""
    mechanism = SPAS(epsilon=2, window=4, bins=1, first_interval=1, noise=ev.noise.Zero())
    for count in (0, 10, 40, 40):
        mechanism.release([count])
    weights = np.exp([-2 / 8, -1 / 8, 0])
    changes = np.array([10, 30, 0])
    assert mechanism._changes[:, 0, 0] == pytest.approx([(weights * changes**power).sum() for power in (0, 1, 2)])
    spread = np.average(changes**2, weights=weights) - np.average(changes, weights=weights) ** 2
    expected = math.floor(1.5 * math.sqrt(3 * spread) / 6)
    assert expected == 5
    assert mechanism.rounds_per_window().tolist() == [[4]]  # never more than steps
    wide = SPAS(epsilon=2, window=4, bins=1, first_interval=1, sensitivity=2, noise=ev.noise.Zero())
    for count in (0, 10, 40, 40):
        wide.release([count])
    assert wide.rounds_per_window().tolist() == [[2]]


def test_a_wild_stream_gets_a_look_at_every_step_and_no_tests():
    """With as many rounds as steps each is due as it opens: Uniform with all of epsilon."""
    mechanism = SPAS(epsilon=1, window=5, bins=1, first_interval=1, seed=2)
    stream = np.random.default_rng(1).integers(0, 10**6, (40, 1))
    runs, looks = spans_and_points(mechanism, stream)
    assert runs == []
    assert looks == [(step, NANO // 5) for step in range(40)]


class ThreeRounds(SPAS):
    """Always three rounds in a window."""

    def rounds_per_window(self):
        return np.full((1, 1), 3)


def test_a_round_ends_early_where_the_stream_moves():
    """Looks are due 4 steps after the last; a run opens when the window can pay for it before that. Threshold 4.

    step     0 . . . 4 . . . 8 . 10 11 . . 14 15
    stream   0 ..................... 99 .........
    look     x       x       x       x        x    at 11 by the test, before 12; at 15 because it is due
    run                          [--]      [--]    at 10 and 14 steps 0 and 4 have left the window
    """
    mechanism = ThreeRounds(epsilon=1, window=10, bins=1, noise=ev.noise.Zero())
    runs, looks = spans_and_points(mechanism, [[0]] * 11 + [[99]] * 5)
    third, run, look = NANO // 3, NANO // 12, NANO // 4
    assert looks == [(0, third), (4, third), (8, third), (11, look), (15, look)]
    assert runs == [(10, 11, run), (14, 15, run)]


@pytest.mark.parametrize(("published", "first", "enough"), [(False, 3, 56), (True, 4, 40)])
def test_unit_noise_shows_every_scale(published, first, enough):
    """Three rounds share 1/4 for tests and 3/4 for looks; 20 bins, so the noise of a look adds up to a threshold of 80.

    Repaired: a look without a run has a third of epsilon; a run adds 48 to the distance to the last release and 24 to
    the threshold. Published: every look has a quarter; 48 to the distance to the step before, 8 to the threshold.
    """
    for move, looks in ((enough - 1, False), (enough, True)):
        mechanism = ThreeRounds(
            epsilon=1, window=10, bins=20, test_share=0.25, as_published=published, noise=ev.noise.Unit()
        )
        counts = np.full(20, 100)
        for step in range(10):
            release = mechanism.release(counts)
            assert release.fresh == (step in (0, 4, 8))
            assert release.scale == pytest.approx(first)
        assert release.values == pytest.approx(100 + first)
        counts = counts + (0 if published else first)
        counts[7] += move
        release = mechanism.release(counts)
        assert release.fresh == looks
        assert release.scale == pytest.approx(4 if looks else first)
    assert mechanism.noise_range()[0] == pytest.approx(4 / 3 if published else 1)
    assert mechanism.noise_range()[1] == pytest.approx(40 / 3)


def test_charges_of_the_published_form():
    mechanism = ThreeRounds(epsilon=1, window=10, bins=1, as_published=True, noise=ev.noise.Zero())
    assert ev.run(mechanism, [[0]] * 5).spent.tolist() == [0.5, 0, 0, 0, 0.25]
    assert mechanism.ledger.open_spans("disputed test").tolist() == [[NANO // 4]]


def test_only_the_published_form_holds_the_last_step():
    for published in (False, True):
        mechanism = SPAS(epsilon=1, window=3, bins=["a", "b"], as_published=published, noise=ev.noise.Zero())
        mechanism.release([4711, 4712])
        assert mechanism.holds_raw == published
        assert hasattr(mechanism._test, "_previous") == published


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("epsilon", [0.001, 100, 1e-6, 1e6])
@pytest.mark.parametrize("window", [1, 50, 10**7])
def test_extreme_settings_release_finite_numbers(epsilon, window, published):
    mechanism = SPAS(epsilon=epsilon, window=window, bins=2, sensitivity=1000, as_published=published)
    for counts in ([0, 0], [10**9, 0], [2**53, 2**53], [0, 0]):
        release = mechanism.release(counts)
        assert np.isfinite(release.values).all()
        assert not np.isinf(release.scale[release.fresh_bins]).any()
    assert mechanism.ledger.worst_window() <= epsilon


def test_many_bins_of_large_counts():
    mechanism = SPAS(epsilon=1, window=2, bins=100_000, seed=1)
    for level in (0, 10**9, 0, 10**9):
        assert np.isfinite(mechanism.release(np.full(100_000, level)).values).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"as_published": True},
        {"first_interval": 1},
        {"first_interval": 2, "test_share": 0.6},
        {"first_interval": 2, "as_published": True},
        {"filter": ev.filters.Truncate()},
    ],
)
def test_contract(parameters):
    assert ev.check_mechanism(SPAS, **parameters)


def test_parameters_are_checked():
    for bad in ({"first_interval": 0}, {"test_share": 0}, {"test_share": 1.5}):
        with pytest.raises(ev.InputError):
            SPAS(epsilon=1, window=4, bins=1, **bad)


def test_guarantee_says_what_the_published_form_does_not_cover():
    assert "as published" not in str(SPAS(epsilon=1, window=4, bins=1).guarantee)
    published = str(SPAS(epsilon=1, window=4, bins=1, as_published=True).guarantee)
    assert "no proof covers" in published
    assert "the step before" in published
    assert str(SPAS(epsilon=1, window=40, bins=1, as_published=True).guarantee).startswith("REFUTED (as published")
