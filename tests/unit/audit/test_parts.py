"""Limits, pairs, learners and the exact likelihood, each against something obvious."""

import dataclasses
import functools
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import eventide as ev
from eventide.audit import MechanismSubject, audit, audit_mechanism, neighbouring_pairs
from eventide.audit.attacks import total_of_changes
from eventide.audit.auditor import LOOKS, Finding, Verdict, _rounds
from eventide.audit.bounds import epsilon_bound, lower_limit
from eventide.audit.exact import log_likelihood
from eventide.audit.learned import linear_scorer, tree_scorer
from eventide.audit.seeds import Seeds, seed_of
from eventide.errors import InputError
from eventide.mechanisms.uniform import Uniform
from eventide.privacy.noise import Seeded


@given(st.integers(1, 2_000_000), st.floats(0, 1), st.sampled_from([0.05, 0.001, 1e-8]))
def test_limits_are_clopper_and_pearsons(trials, share, alpha):
    hits = round(share * trials)
    low = stats.beta.ppf(alpha, hits, trials - hits + 1) if hits else 0.0
    assert lower_limit(hits, trials, alpha) == pytest.approx(low, rel=1e-6, abs=1e-12)


def test_the_bound_says_nothing_where_nothing_is_known():
    assert epsilon_bound(0, 0, 0.05) == 0
    assert epsilon_bound(500, 500, 0.05) == 0
    assert epsilon_bound(1000, 0, 0.05) > 5


@pytest.mark.parametrize(("often", "seldom"), [(0.9, 0.4), (0.05, 0.02), (0.3, 0.3)])
def test_a_bound_is_too_large_as_seldom_as_it_says(often, seldom):
    """500 experiments of 600 runs, each run on either stream by the toss of a coin; 25 bounds may be too large."""
    generator = np.random.default_rng(5)
    here = generator.binomial(600, 0.5, 500)
    hits = generator.binomial(here, often), generator.binomial(600 - here, seldom)
    bounds = np.array([epsilon_bound(int(a), int(b), 0.05) for a, b in zip(*hits, strict=True)])
    wrong = int(np.count_nonzero(bounds > np.log(often / seldom)))
    assert 5 <= wrong <= 50


class NoNoise:
    """Knows nothing of the kernel, and remembers with which seeds it was built."""

    seeds: ClassVar[list[int]] = []

    def __init__(self, epsilon, window, bins, seed):
        self.seeds.append(seed)
        self.noise = np.random.default_rng(seed).integers(0, 2, bins)

    def release(self, counts):
        return counts + self.noise


def test_no_seed_comes_twice_in_an_audit():
    NoNoise.seeds.clear()
    audit_mechanism(NoNoise, 100.0, 1, 1, runs=1000)
    built, *seeds = NoNoise.seeds
    assert built == 0  # to see whether it can be built
    assert len(seeds) > 5000
    assert len(set(seeds)) == len(seeds)
    assert 0 <= min(seeds) <= max(seeds) < 2**32  # which older generators of numpy ask for


def test_seeds_are_an_audits_own():
    blocks = [Seeds(seed).block(1000) for seed in range(100)]
    assert np.diff(sorted(blocks)).min() > 1000
    assert len({seed_of(2**40 + number) for number in range(100_000)}) == 100_000
    for wrong in (-1, 0.5, True, None):
        with pytest.raises(InputError, match="at least 0"):
            Seeds(wrong)


def test_the_parts_of_alpha_are_all_there_is():
    for runs in (100, 4000, 20_000, 200_000, 10**6):
        rounds = _rounds(runs, 0.05)
        assert [each.runs for each in rounds][-1] == runs
        assert sum(each.alpha for each in rounds) == pytest.approx(0.05)
        assert [each.last for each in rounds] == [False] * (len(rounds) - 1) + [True]
    assert sum(share for _, share in LOOKS) == 1
    assert [part for part, _ in LOOKS][-1] == 1


class Counted(MechanismSubject):
    """Counts the runs that are asked for."""

    runs = 0

    def observe(self, stream, runs, seed):
        self.runs += runs
        return super().observe(stream, runs, seed)


def test_finalists_on_one_pair_are_measured_with_the_same_runs():
    def audited(names):
        subject = Counted(functools.partial(Uniform, epsilon=1, window=1, bins=1), Seeded)
        attacks = dict.fromkeys(names, total_of_changes)
        pair = next(iter(neighbouring_pairs(1, 1, 1, ())))
        return audit(subject, [pair], 1.0, runs=800, attacks=attacks), subject.runs

    (alone, runs_alone), (together, runs_together) = audited("a"), audited("abc")
    assert runs_together == runs_alone
    assert [finding.attack for finding in together.findings] == ["a", "b", "c"]
    bound = together.findings[0].bound
    assert [finding.bound for finding in together.findings] == [bound] * 3  # the same event in the same runs
    assert 0 < bound < alone.bound  # which has all of alpha for itself


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


def test_some_pairs_have_a_long_tail():
    tails = {pair.name: len(pair.stream) - pair.end for pair in neighbouring_pairs(3, 1, 1, (6,))}
    long = {name for name, tail in tails.items() if tail >= 20}
    assert long >= {
        "before a long quiet time, +++ in one bin",
        "at a peak of 6 before a long quiet time, +-+ in one bin",
    }


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
        seen = MechanismSubject(make, Seeded).observe(pair.stream, 4_000, seed=4)
        ratio = np.exp(log_likelihood(make, seen, pair.neighbour) - log_likelihood(make, seen, pair.stream))
        assert ratio.max() <= np.exp(1) * (1 + 1e-9)  # no transcript may tell more than epsilon
        assert abs(ratio.mean() - 1) < 6 * ratio.std() / np.sqrt(len(ratio)) + 1e-9


def test_a_verdict_names_the_number_that_decides_first():
    """A claim of 4 is broken by a transcript of 4.8, and not by the 1.8 that was measured."""
    verdict = Verdict(
        4, 1.8, 0.95, "+ in one bin", "linear", 1000, [], Finding("- hopping", "exact log-ratio", 4.8, 1000)
    )
    assert str(verdict).startswith(
        "epsilon is at least 4.800, the exact log-ratio of one possible transcript (streams: - hopping); "
        "the claim of 4 is BROKEN; measured: at least 1.800 with confidence 0.95 ("
    )
    sound = dataclasses.replace(verdict, epsilon=5)
    assert str(sound).startswith("epsilon is at least 1.800 with confidence 0.95; the claim of 5 is not refuted (")
    assert str(sound).endswith("; the transcript that tells most has an exact log-ratio of 4.800")
