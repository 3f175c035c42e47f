"""The sum of all bins as a stream of its own, and bins that are shares of it."""

import numpy as np
import pytest

import eventide as ev
from eventide.filters.algorithms import ALGORITHMS, NEWEST
from eventide.filters.posterior_median import PosteriorMedian
from eventide.filters.posterior_season_kernels import ALONE, VOICES
from eventide.privacy.measured import Measured

HOURS = np.arange(24 * 12)
RANDOM = np.random.default_rng(71)
DAY = 1 + 0.7 * np.sin(2 * np.pi * HOURS / 24) + 0.2 * np.cos(4 * np.pi * HOURS / 24)
SHARES = RANDOM.lognormal(4.5, 0.7, 60)
MOVES = np.exp(0.5 * np.sin(HOURS / 30) + RANDOM.normal(0, 0.1, len(HOURS)))
TOGETHER = RANDOM.poisson(np.outer(DAY * MOVES, SHARES))
APART = RANDOM.poisson(
    SHARES * np.stack([np.roll(DAY, shift) for shift in RANDOM.integers(0, 24, len(SHARES))], axis=1)
)


def median(bins, replicas=1, epsilon=1.0):
    started = PosteriorMedian(seasons=(24,)).started(replicas, bins, epsilon=epsilon, window=40)
    started.follow(ALGORITHMS[NEWEST])
    return started


def looks(counts, scale, seed=72):
    noise = np.rint(np.random.default_rng(seed).laplace(0, scale, counts.shape))
    for now, extra in zip(counts, noise, strict=True):
        yield Measured((now + extra)[None], np.full((1, len(now)), scale), np.ones((1, len(now)), np.bool_))


def error(counts, monkeypatch, **other):
    """Of Tide, or of Tide with something else in the table of its algorithm."""
    with monkeypatch.context() as patch:
        patch.setitem(ALGORITHMS, NEWEST, ALGORITHMS[NEWEST]._replace(**other))
        tide = ev.Tide(epsilon=1, window=40, bins=counts.shape[1], seasons=(24,), seed=73)
        return abs(ev.run(tide, counts).values - counts).mean()


def test_the_sum_is_filtered_like_a_stream_of_one_bin_with_the_noise_of_a_sum():
    behind, alone = median(4), median(1, epsilon=0.5)  # noise twice as large
    for step, look in enumerate(looks(TOGETHER[:60, :4], 20.0)):
        if step % 3:
            behind.step(None)
            expected = alone.step(None)
        else:
            behind.step(look)
            expected = alone.step(
                Measured(look.values.sum(axis=1, keepdims=True), look.scale[:, :1] * 2, look.fresh[:, :1])
            )
        assert behind.sum_of_bins.filter.low == pytest.approx(alone.low)
        assert behind.sum_of_bins.now.item() == pytest.approx(max(expected.item(), 2.0))


@pytest.mark.slow
def test_bins_that_move_together_are_followed_and_the_others_lose_next_to_nothing(monkeypatch):
    ratio = error(TOGETHER, monkeypatch) / error(TOGETHER, monkeypatch, follows_sum=False)
    assert ratio < 0.85
    assert error(APART, monkeypatch) / error(APART, monkeypatch, follows_sum=False) < 1.03


def test_it_is_known_what_a_look_did_to_the_sum():
    """So that it can be taken off again, and no look at a bin witnesses for its own share."""
    one, other = median(5), median(5)
    *before, last = looks(TOGETHER[:60, :5], 60.0)
    for look in before:
        one.step(look)
        other.step(look)
    higher = Measured(last.values + np.array([[40, 0, 0, 0, 0]]), last.scale, last.fresh)
    one.step(last)
    other.step(higher)
    moved = other.sum_of_bins.now - one.sum_of_bins.now
    assert 40 * one.sum_of_bins.together.gain[0] == pytest.approx(moved.item(), rel=0.35)
    assert moved > 2


def test_replicas_that_look_at_other_steps_do_not_disturb_each_other():
    both, first = median(5, replicas=2), median(5)
    for step, look in enumerate(looks(TOGETHER[:80, :5], 20.0)):
        fresh = np.array([[step % 4 == 0], [step % 3 == 0]]) * np.ones((2, 5), np.bool_)
        values = np.where(fresh, np.tile(look.values, (2, 1)), 0)
        together = both.step(Measured(values, np.where(fresh, 20.0, np.inf), fresh))
        alone = first.step(Measured(values[:1], np.where(fresh[:1], 20.0, np.inf), fresh[:1]))
        assert together[0] == pytest.approx(alone[0])


def test_looks_of_unequal_noise_tell_nothing_of_the_sum():
    behind = median(3)
    for look in looks(TOGETHER[:10, :3], 5.0):
        behind.step(Measured(look.values, look.scale * [[1, 2, 1]], look.fresh))
    assert (behind.sum_of_bins.filter.rows.looks == 0).all()
    assert (behind.voice.rows.looks == 10).all()


def test_one_bin_and_older_algorithms_have_no_sum():
    assert median(1).sum_of_bins is None
    older = PosteriorMedian(seasons=(24,)).started(1, 5)
    assert older.sum_of_bins is None
    assert older.voice.rows.weight.shape[1] == ALONE < VOICES == median(5).voice.rows.weight.shape[1]


def test_a_level_above_the_grid_is_not_drawn_into_its_last_cell():
    """A tall stream that doubles every few steps, looked at every other step: all of the grid is far below."""
    counts = np.rint(2000 * 1.35 ** np.arange(30))[:, None]
    found = {}
    for algorithm in (4, 5):
        behind = PosteriorMedian().started(1, 1, epsilon=1.0, window=10)
        behind.follow(ALGORITHMS[algorithm])
        values = [behind.step(look if step % 2 == 0 else None).item() for step, look in enumerate(looks(counts, 20.0))]
        found[algorithm] = abs(np.array(values) / counts[:, 0] - 1)[9::2].mean()
    assert found[5] < 0.35
    assert found[4] > 0.5


@pytest.mark.parametrize("bins", [5, 70])  # of more than 64, not all are compared with what was foreseen
def test_it_goes_on_where_it_was_saved(bins):
    counts = np.tile(TOGETHER, (1, 2))[:40, :bins]
    plain = ev.Tide(epsilon=1, window=24, bins=bins, seasons=(24, 168), seed=3)
    saved = ev.Tide(epsilon=1, window=24, bins=bins, seasons=(24, 168), seed=3)
    for now in counts:
        saved = ev.load(saved.save())
        ours, theirs = plain.release(now), saved.release(now)
        assert (ours.values == theirs.values).all()
        assert (ours.high == theirs.high).all()


def test_a_stream_that_wakes_is_not_shown_far_above_what_it_ever_was():
    day = np.tile(np.where(np.arange(24) > 8, 1000 * np.abs(np.sin(np.arange(24) / 7.6)), 0), 4)
    counts = np.rint(np.outer(day, np.arange(20) % 2)).astype(np.int64)
    counts[:37] = 0
    tide = ev.Tide(epsilon=1, window=24, bins=20, seasons=(24,), seed=1)
    releases = [tide.release(now) for now in counts]
    assert max(release.values.max() for release in releases) < 1.2 * counts.max()
    assert max(release.high.max() for release in releases[1:]) < 1.5 * counts.max()
