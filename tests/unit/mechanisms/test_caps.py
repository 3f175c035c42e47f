"""Mechanisms under a window sensitivity: a budget of its own for every step, and a promise that says so."""

from __future__ import annotations

import json

import numpy as np
import pytest

import eventide as ev
from eventide.errors import InputError
from eventide.mechanisms.registry import mechanism_class
from eventide.privacy.amounts import NANO
from eventide.privacy.archive import unpack

TAKE_IT = [name for name in ev.mechanism_names() if mechanism_class(name).takes_window_sensitivity]
CHEAP = [name for name in TAKE_IT if name != "tide"]
STREAM = np.random.default_rng(5).poisson(20, (40, 2))


def capped(name, **more):
    given = {"epsilon": 1, "window": 24, "bins": 2, "sensitivity": 2, "window_sensitivity": 8, "seed": 3}
    return ev.mechanism(name, **given | more)


def test_which_mechanisms_take_one():
    without = {"bd", "ba", "fast", "rescuedp"}
    assert set(TAKE_IT) == set(ev.mechanism_names()) - without


@pytest.mark.parametrize("name", ["uniform", "sample", "hybrid", "spas"])
def test_every_step_is_measured_with_its_whole_share(name):
    run = ev.run(capped(name), STREAM)
    assert run.fresh.all()
    assert np.array_equal(run.spent, np.full(len(STREAM), 0.25))


@pytest.mark.parametrize("name", CHEAP)
def test_it_is_what_the_same_mechanism_does_for_single_steps(name):
    """The ordinary ledger with window 1 and epsilon m / C, and nothing else."""
    more = {"k": 1} if name == "hybrid" else {}
    here, there = capped(name), ev.mechanism(name, epsilon="1/4", window=1, bins=2, sensitivity=2, seed=3, **more)
    one, other = ev.run(here, STREAM), ev.run(there, STREAM)
    assert np.array_equal(one.values, other.values)
    assert np.array_equal(one.spent, other.spent)
    assert here.noise_range() == there.noise_range()
    assert here.ledger.worst_window() == pytest.approx(4 * there.ledger.worst_window())
    assert here.ledger.worst_window() <= 1


def test_hybrid_still_looks_as_seldom_as_it_is_told_to():
    run = ev.run(capped("hybrid", k=3), STREAM[:7])
    assert run.fresh.tolist() == [True, False, False] * 2 + [True]
    assert run.spent.max() == 0.25


def test_the_promise_is_about_windows_and_says_what_is_trusted():
    mechanism = capped("uniform", noise="secure", seed=None)
    assert (mechanism.epsilon, mechanism.window, mechanism.sensitivity) == (1, 24, 2)
    assert (mechanism.shared_epsilon, mechanism.shared_steps) == (0.25, 1)
    assert mechanism.guarantee.window_sensitivity == 8
    assert str(mechanism.guarantee) == (
        "All events of one person inside any 24 consecutive steps are hidden by w-event differential privacy with "
        "epsilon 1. One person adds at most 2 to a step, over all bins together. If the events of one "
        "person inside one window change, the counts change by at most 8, over all steps and bins together. The counts "
        "are trusted to keep these bounds: nothing checks that. This holds for this run only: no store keeps its "
        "ledger."
    )


@pytest.mark.parametrize("name", CHEAP)
def test_it_goes_on_after_save_and_load(name):
    mechanism = capped(name)
    ev.run(mechanism, STREAM[:7])
    loaded = ev.load(mechanism.save())
    assert loaded.guarantee == mechanism.guarantee
    assert np.array_equal(ev.run(loaded, STREAM[7:]).values, ev.run(mechanism, STREAM[7:]).values)
    assert loaded.ledger.worst_window() == mechanism.ledger.worst_window()


def test_without_one_a_saved_state_is_as_it_was():
    assert "window_sensitivity" not in json.dumps(unpack(ev.Uniform(1, 3, 2).save())["parameters"])


@pytest.mark.parametrize(
    ("name", "more", "says"),
    [
        ("uniform", {"window_sensitivity": 48}, "already adds at most 48 in a window of 24 steps"),
        ("uniform", {"window_sensitivity": 1}, "window_sensitivity is 1 and sensitivity 2"),
        ("rg", {"window": 1}, "so it brings nothing"),
        ("bd", {}, "bd cannot be published with a cap or a window sensitivity: it shares the budget of a window out"),
        ("ba", {"pan_private": "single"}, "pan_private"),
        ("fast", {"accounting": "fixed-bin"}, "people move between bins"),
        ("dsat", {"as_published": True}, "as published has no proof"),
        ("adapub", {"as_published": True}, "as published has no proof"),
        ("uniform", {"epsilon": "0.000003"}, "leaves less than 0.000001 for each step"),
    ],
)
def test_what_does_not_go_together_is_refused(name, more, says):
    with pytest.raises(InputError, match=says):
        capped(name, **more)


def test_replicas_run_side_by_side():
    both = ev.run(capped("uniform", replicas=2), STREAM)
    assert both.spent.shape == (2, len(STREAM))
    assert (both.spent * NANO == NANO // 4).all()
