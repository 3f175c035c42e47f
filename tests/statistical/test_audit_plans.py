"""The auditor on sliding-window plans: sound ones pass, and plans that spend what they do not say are found."""

import functools

import pytest

from eventide import windows
from eventide.audit import audit
from eventide.audit.plans import PlanSubject, audit_plan, audit_start, slot_pairs
from eventide.audit.running_totals import RunningTotalSubject, audit_running_total
from eventide.privacy.noise import Seeded
from eventide.windows import Query, RunningTotal

QUERIES = [Query(1, 1), Query(4, 2), *[Query(8, 4)] * 4]
SETTINGS = {"event-level": {"window": 1, "bins": 1}, "w-event": {"window": 3, "bins": 2}}


@pytest.mark.slow
@pytest.mark.parametrize("planner", ["base", "emd", "best"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_sound_plans_pass(planner, setting):
    plan = windows.plan(QUERIES, 1.0, planner)
    verdict = audit_plan(plan, **SETTINGS[setting], runs=20_000, alpha=1e-6)
    assert not verdict.broken, str(verdict)
    assert verdict.bound > 0.5, str(verdict)  # every tick spends all of epsilon, and the attack sees most of it


class Quiet(Seeded):
    """Noise at four fifths of its scale."""

    def laplace_in_turn(self, numerator, charges, shape):
        return super().laplace_in_turn(numerator * 4 // 5, charges, shape)


def audited(start, noise, setting):
    plan, options = windows.plan(QUERIES), SETTINGS[setting] | {"sensitivity": 1}
    subject = PlanSubject(functools.partial(start, **SETTINGS[setting]), noise)
    return audit_start(subject, plan, 1.0, **options, runs=40_000)


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_noise_below_its_scale_is_found(setting):
    verdict = audited(windows.plan(QUERIES).start, Quiet, setting)
    assert verdict.broken, str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_budgets_above_what_is_claimed_are_found(setting):
    verdict = audited(windows.plan(QUERIES, epsilon=2).start, Seeded, setting)
    assert verdict.broken, str(verdict)


def test_a_window_of_ticks_that_shares_nothing_is_found():
    """Started for single ticks, but claimed for three."""
    plan = windows.plan(QUERIES)
    subject = PlanSubject(functools.partial(plan.start, bins=1), Seeded)
    verdict = audit_start(subject, plan, 1.0, bins=1, window=3, sensitivity=1, runs=20_000)
    assert verdict.broken, str(verdict)


def test_the_real_noise_passes():
    verdict = audit_plan(windows.plan(QUERIES), runs=3_000, alpha=1e-12, secure=True)
    assert not verdict.broken, str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_running_totals_pass(setting):
    verdict = audit_running_total(1.0, **SETTINGS[setting], horizon=60, runs=10_000, alpha=1e-6)
    assert not verdict.broken, str(verdict)
    assert verdict.bound > 0.5, str(verdict)


@pytest.mark.slow
def test_running_totals_with_too_little_noise_are_found():
    start = functools.partial(RunningTotal, 1.0, horizon=60)
    subject = RunningTotalSubject(start, Quiet)
    pairs = list(slot_pairs(7, 14, 1, 1, 1))
    verdict = audit(subject, pairs, 1.0, attacks={"slots": subject.likelihood_ratio}, runs=40_000)
    assert verdict.broken, str(verdict)


def test_a_window_that_is_longer_than_the_streams_under_attack_is_audited():
    verdict = audit_plan(windows.plan([Query(15, 5)], 1.0), bins=2, runs=500)
    assert not verdict.broken, str(verdict)
    assert verdict.bound > 0.3, str(verdict)
