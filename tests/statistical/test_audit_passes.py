"""The auditor passes what is right, has the power to see what is there, and gives no more false alarms than it says."""

import functools

import pytest

import eventide as ev
from eventide.audit import MechanismSubject, audit, audit_mechanism, neighbouring_pairs
from eventide.audit.attacks import likelihood_ratio
from eventide.mechanisms.registry import mechanism_class
from eventide.mechanisms.uniform import Uniform
from eventide.privacy.noise import Seeded

COSTLY = ("tide", "posterior-median")  # a hundred times what others cost; their long form is a slow test


QUICK = ("uniform", "ba", "rg")  # one that always looks, one that decides, one that groups


def runs_for(name):
    return 200 if name in COSTLY else 20_000


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in ev.mechanism_names()]
)
def test_sound_mechanisms_pass(name, record_property):
    verdict = audit_mechanism(mechanism_class(name), 1.0, 2, 2, runs=runs_for(name), alpha=1e-6)
    record_property("bound", verdict.bound)
    assert not verdict.broken, str(verdict)


@pytest.mark.slow
def test_tide_passes_with_many_runs():
    verdict = audit_mechanism(mechanism_class("tide"), 1.0, 2, 2, runs=20_000, alpha=1e-6)
    assert not verdict.broken, str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rg", "rg-baseline", "rg-window-baseline"])
@pytest.mark.parametrize("window", [1, 3])
def test_window_histograms_pass(name, window):
    """Event-level and w-event, with windows short enough for their histograms to tell something."""
    options = {"parameters": {"span": 2}, "runs": 10_000, "alpha": 1e-6}
    verdict = audit_mechanism(mechanism_class(name), 1.0, window, 2, **options)
    assert not verdict.broken, str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("filter_name", ev.filters.names())
@pytest.mark.parametrize("name", ["uniform", "ba", "bd"])
def test_filters_give_nothing_away(filter_name, name):
    options = {"parameters": {"filter": ev.filters.by_name(filter_name)}, "runs": runs_for(filter_name), "alpha": 1e-6}
    verdict = audit_mechanism(mechanism_class(name), 1.0, 2, 2, **options)
    assert not verdict.broken, str(verdict)


@pytest.mark.slow
def test_the_bound_has_power():
    """Uniform uses all of its epsilon, and a million runs must show at least nine tenths of it."""
    make = functools.partial(Uniform, epsilon=1, window=3, bins=1)
    pairs = [pair for pair in neighbouring_pairs(3, 1, 1, ()) if pair.name == "at the start, +++ in one bin"]
    attacks = {"likelihood ratio of looks": likelihood_ratio}
    verdict = audit(MechanismSubject(make, Seeded), pairs, 1.0, runs=1_000_000, alpha=1e-6, attacks=attacks)
    assert 0.9 <= verdict.bound <= 1.0


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_stated():
    """At 95 % confidence 200 audits of a sound mechanism may alarm 10 times; 24 is far out in the tail."""
    make = functools.partial(Uniform, epsilon=1, window=1, bins=1)
    pairs = list(neighbouring_pairs(1, 1, 1, ()))
    attacks = {"likelihood ratio of looks": likelihood_ratio}
    alarms = sum(
        audit(MechanismSubject(make, Seeded), pairs, 1.0, runs=4000, seed=seed, attacks=attacks, finalists=1).broken
        for seed in range(200)
    )
    assert alarms <= 24
