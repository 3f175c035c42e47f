"""Limits, pairs, learners and the exact likelihood, each against something obvious."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import eventide as ev
from eventide.audit import MechanismSubject, neighbouring_pairs
from eventide.audit.bounds import epsilon_bound, lower_limit, upper_limit
from eventide.audit.exact import log_likelihood
from eventide.audit.learned import linear_scorer, tree_scorer
from eventide.privacy.noise import Seeded


@given(st.integers(1, 2_000_000), st.floats(0, 1), st.sampled_from([0.05, 0.001, 1e-8]))
def test_limits_are_clopper_and_pearsons(trials, share, alpha):
    hits = round(share * trials)
    low = stats.beta.ppf(alpha, hits, trials - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - alpha, hits + 1, trials - hits) if hits < trials else 1.0
    assert lower_limit(hits, trials, alpha) == pytest.approx(low, rel=1e-6, abs=1e-12)
    assert upper_limit(hits, trials, alpha) == pytest.approx(high, rel=1e-6, abs=1e-12)


def test_the_bound_says_nothing_where_nothing_is_known():
    assert epsilon_bound(0, 0, 1000, 0.05) == 0
    assert epsilon_bound(500, 500, 1000, 0.05) == 0
    assert epsilon_bound(1000, 0, 1000, 0.05) > 5


@pytest.mark.parametrize("window", [1, 3, 7])
@pytest.mark.parametrize("bins", [1, 3])
def test_pairs_are_neighbours(window, bins):
    pairs = list(neighbouring_pairs(window, bins, 2, (10,)))
    assert len({pair.name for pair in pairs}) == len(pairs)
    for pair in pairs:
        steps, _ = pair.changed
        assert 0 <= steps.max() - steps.min() < window
        assert (np.abs(pair.neighbour - pair.stream).sum(axis=1) <= 2).all()
        assert min(pair.stream.min(), pair.neighbour.min()) >= 0


def test_all_sign_patterns_are_there_for_short_windows():
    names = {pair.name for pair in neighbouring_pairs(3, 1, 1, ())}
    for pattern in ("+++", "++-", "+-+", "+--"):
        assert f"at the start, {pattern} in one bin" in names


def test_learners_find_a_difference_and_only_a_difference():
    generator = np.random.default_rng(1)
    one, other, control = (generator.normal(size=(4000, 3)) for _ in range(3))
    other[:, 1] += 1
    for learner in (linear_scorer, tree_scorer):
        score = learner(one[:2000], other[:2000])
        assert stats.mannwhitneyu(score(other[2000:]), score(one[2000:])).statistic > 0.7 * 2000**2
        score = learner(one[:2000], control[:2000])
        assert stats.mannwhitneyu(score(control[2000:]), score(one[2000:])).pvalue > 1e-6


@pytest.mark.parametrize("name", ["bd", "ba", "uniform"])
def test_the_exact_likelihood_is_a_likelihood(name):
    """The mean of P'(transcript) / P(transcript) over runs on the stream itself is 1, for any neighbour."""
    make = functools.partial(ev.mechanism, name, epsilon=1, window=2, bins=2)
    for pair in neighbouring_pairs(2, 2, 1, (6,)):
        seen = MechanismSubject(make, Seeded).observe(pair.stream, 20_000, seed=4)
        ratio = np.exp(log_likelihood(make, seen, pair.neighbour) - log_likelihood(make, seen, pair.stream))
        assert ratio.max() <= np.exp(1) * (1 + 1e-9)  # no transcript may tell more than epsilon
        assert abs(ratio.mean() - 1) < 6 * ratio.std() / np.sqrt(len(ratio)) + 1e-9
