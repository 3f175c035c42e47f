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
def test_every_window_holds_epsilon_at_most(seed, window, epsilon, interval, share, jump):
    mechanism = SPAS(epsilon, window, 2, first_interval=interval, test_share=share, seed=seed)
    generator = np.random.default_rng(seed)
    stream = 500 + (generator.integers(0, jump + 1, (60, 2)) * (generator.random((60, 1)) < 0.5)).cumsum(axis=0)
    runs, looks = spans_and_points(mechanism, stream)
    for end in range(len(stream)):
        begin = end - window + 1
        touching = sum(amount for opened, closed, amount in runs if opened <= end and closed >= begin)
        inside = sum(amount for step, amount in looks if begin <= step <= end)
        assert touching + inside <= mechanism.total
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


def test_a_round_ends_early_where_the_stream_moves():
    """Two rounds a window: the look is due 5 steps after the last, and comes at once when the stream jumps.

    step     0 . . . . 5 . . . . 10 . 12
    stream   0         99        0    500
    """
    mechanism = SPAS(epsilon="1/4", window=10, bins=1, first_interval=5, noise=ev.noise.Zero())
    stream = [0] * 5 + [99] * 5 + [0, 0, 500]
    fresh = []
    for count in stream:
        fresh.append(mechanism.release([count]).fresh)
        if mechanism.step == 10:
            mechanism._changes[:] = [[[1]], [[0]], [[3 * 32**2 * 4]]]  # makes it two rounds: 3/16 sqrt(3 E) / 6 = 6
    assert mechanism.window == 10
    assert np.flatnonzero(fresh).tolist() == [0, 5, 10, 12]


@pytest.mark.parametrize(("published", "first", "enough"), [(False, 4, 16), (True, 16 / 3, 32)])
def test_unit_noise_shows_every_scale(published, first, enough):
    """Epsilon 1, four rounds in the first window: 1/16 of it to a run and 3/16 to a look.

    Repaired: a look without a run has both (noise 4).
    """
    mechanism = SPAS(epsilon=1, window=8, bins=1, first_interval=2, as_published=published, noise=ev.noise.Unit())
    release = mechanism.release([100])
    assert release.values == pytest.approx(100 + first)
    assert release.scale == pytest.approx(first)
    assert release.spent == pytest.approx(0.25 + (3 / 16 if published else 0))
