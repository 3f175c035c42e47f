"""The auditor finds what is broken, at 95 % confidence; the same attack passes the sound mechanism beside it."""

import functools
import math
import time

import pytest
from broken import (
    FloatLaplace,
    ForgetsOneStep,
    LooksAtEvenCounts,
    NeverSilent,
    OneDrawForAllBins,
    OneDrawForAllSteps,
    PlainlyRemembersTheTruth,
    RecyclesEarly,
    RemembersTheTruth,
    ThinLaplace,
    ThirdOfTheNoise,
)

from eventide.audit import MechanismSubject, audit, audit_mechanism, neighbouring_pairs
from eventide.audit.exact import can_be_replayed, exact_likelihood_ratio, most_telling_transcript
from eventide.mechanisms.budget_absorption import BudgetAbsorption
from eventide.mechanisms.budget_distribution import BudgetDistribution
from eventide.mechanisms.sample import Sample
from eventide.mechanisms.uniform import Uniform
from eventide.privacy.noise import Seeded

QUIET = [pair for pair in neighbouring_pairs(3, 1, 1, ()) if pair.name.startswith("after a quiet time")]
CASES = {
    "noise at 80 %": (ThinLaplace, Uniform, {"window": 3, "bins": 1}, 200_000),
    "a forgotten step": (ForgetsOneStep, Sample, {"window": 3, "bins": 2}, 50_000),
    "one draw for all bins": (OneDrawForAllBins, Uniform, {"window": 2, "bins": 2}, 20_000),
    "one draw for all steps": (OneDrawForAllSteps, Uniform, {"window": 2, "bins": 1}, 20_000),
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow if CASES[case][-1] > 20_000 else ()) for case in CASES]
)
def test_every_attack_on_every_pair(case):
    broken, sound, setting, runs = CASES[case]
    verdict = audit_mechanism(broken, 1.0, **setting, runs=runs)
    assert verdict.broken, str(verdict)
    pairs = list(neighbouring_pairs(**setting, sensitivity=1, jumps=()))[::3]
    verdict = audit_mechanism(sound, 1.0, **setting, runs=4_000, alpha=1e-6, pairs=pairs)
    assert not verdict.broken, str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize(("broken", "sound"), [(NeverSilent, BudgetAbsorption), (RecyclesEarly, BudgetDistribution)])
def test_one_possible_transcript_is_proof(broken, sound):
    for cls in (broken, sound):
        verdict = audit_mechanism(cls, 1.0, window=3, bins=1, runs=2_000, alpha=1e-6, finalists=1, pairs=QUIET)
        assert verdict.broken == verdict.proven == (cls is broken), str(verdict)


@pytest.mark.parametrize("cls", [RemembersTheTruth, BudgetAbsorption])
def test_what_depends_on_a_step_that_is_over_shows_in_a_long_tail(cls):
    make = functools.partial(cls, epsilon=1, window=3, bins=1)
    pairs = [pair for pair in neighbouring_pairs(3, 1, 1, (6,)) if "long" in pair.name]
    assert can_be_replayed(make, pairs[0].stream)
    worst = most_telling_transcript(MechanismSubject(make, Seeded), make, pairs, runs=2_000)
    assert (worst.bound > 1 + 1e-9) == (cls is RemembersTheTruth), worst


def test_a_transcript_that_one_stream_makes_impossible_tells_everything():
    make = functools.partial(LooksAtEvenCounts, epsilon=1, window=3, bins=1)
    assert can_be_replayed(make, QUIET[0].stream)
    assert most_telling_transcript(MechanismSubject(make, Seeded), make, QUIET, runs=10).bound == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("window", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_a_plain_class_that_remembers_the_truth_is_found(window):
    begin = time.process_time()
    verdict = audit_mechanism(PlainlyRemembersTheTruth, 1.0, window, 1)
    print(f"found in {time.process_time() - begin:.0f} seconds of processor time: {verdict}")
    assert verdict.broken, str(verdict)


def test_a_hopeless_class_is_refuted_early():
    """A third of the noise, 200,000 runs allowed: the first round is enough, and counts a few thousand."""
    told = []
    options = {"progress": lambda stage, done, planned: told.append((stage, done, planned))}
    verdict = audit_mechanism(ThirdOfTheNoise, 1.0, window=1, bins=1, alpha=1e-3, **options)
    assert verdict.broken, str(verdict)
    assert verdict.runs <= 1600
    stages, done, planned = zip(*told, strict=True)
    assert set(stages) == {"round 1 of 4: exploring", "round 1 of 4: measuring"}
    assert list(done) == sorted(done)
    assert done[-1] < 20_000 < 1_000_000 < min(planned)


@pytest.mark.parametrize("broken", [ThinLaplace, OneDrawForAllBins, RemembersTheTruth])
def test_exact_is_said_only_of_what_is_exact(broken):
    """The first draws other noise, the second replaces the measurement; the third only asks what it should not."""
    pairs = [pair for pair in neighbouring_pairs(2, 2, 1, ()) if pair.name.startswith("after a quiet time")]
    verdict = audit_mechanism(broken, 1.0, window=2, bins=2, runs=1_000, finalists=1, pairs=pairs)
    assert ("exact" in str(verdict)) == (verdict.proof is not None) == (broken is RemembersTheTruth)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "sound", "epsilon", "runs"),
    [
        (NeverSilent, BudgetAbsorption, 2, 1_500_000),
        pytest.param(RecyclesEarly, BudgetDistribution, 3, 3_500_000, marks=pytest.mark.nightly),
    ],
)
def test_the_exact_likelihood_on_alternating_changes(broken, sound, epsilon, runs):
    """A look leaves the release above the truth, so a removal at the next step is what moves the distance most."""
    pairs = [pair for pair in neighbouring_pairs(3, 1, 1, ()) if pair.name.startswith("after a quiet time, +-+")]
    for cls, count, alpha in ((broken, runs, 0.05), (sound, runs // 5, 1e-6)):
        make = functools.partial(cls, epsilon=epsilon, window=3, bins=1)
        attacks = {"exact likelihood ratio": exact_likelihood_ratio(make)}
        verdict = audit(MechanismSubject(make, Seeded), pairs, epsilon, runs=count, alpha=alpha, attacks=attacks)
        assert verdict.broken == (cls is broken), str(verdict)


@pytest.mark.slow
def test_floating_point_noise_gives_itself_away():
    verdict = audit_mechanism(FloatLaplace, epsilon=1, window=1, bins=1, runs=5_000, alpha=1e-6)
    assert verdict.broken, str(verdict)
    assert verdict.attack == "grid of doubles"
    integer = audit_mechanism(Uniform, epsilon=1, window=1, bins=1, runs=5_000, secure=True, alpha=1e-12)
    assert not integer.broken, str(integer)


@pytest.mark.parametrize("accounting", ["fixed-bin", "moving"])
def test_groups_with_budgets_of_their_own_fail_against_a_person_who_hops(accounting):
    """BD, 8 bins in 8 groups: as published a possible transcript tells more than epsilon, with one ledger none does."""
    make = functools.partial(BudgetDistribution, epsilon=4, window=8, bins=8, groups=8, accounting=accounting)
    pairs = [pair for pair in neighbouring_pairs(8, 8, 1, ()) if pair.name == "after a quiet time, ++++++++ hopping"]
    worst = most_telling_transcript(MechanismSubject(make, Seeded), make, pairs, runs=2_000)
    assert (worst.bound > 4 * (1 + 1e-9)) == (accounting == "fixed-bin"), worst
