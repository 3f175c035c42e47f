"""What goes into a plan at work and what is said about it: refusals, the end of a plan, guarantees, attributes."""

import numpy as np
import pytest

from eventide import windows
from eventide.bench.study.workloads import general
from eventide.errors import InputError, StateError
from eventide.privacy.noise import Zero
from eventide.windows import Query
from eventide.windows.answering import estimates


def counts_of(ticks, seed=0, bins=None):
    return np.random.default_rng(seed).integers(0, 1_000, ticks if bins is None else (ticks, bins))


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ([-1], "between 0 and 2"),
        ([1.5], "whole numbers"),
        ([float("nan")], "between 0 and 2"),
        ([2**60], "between 0 and 2"),
        (["7701"], "must be numbers"),
        ([True], "must be numbers"),
        ([[1, 2]], "shape"),
        ([[1], [1, 2]], "must be numbers, one for each bin"),
        (7701, "shape"),
        ([None], "must be numbers"),
    ],
)
def test_bad_counts_are_refused_without_showing_or_charging_any(counts, says):
    answers = windows.plan([Query(2, 1)]).start(noise=Zero())
    with pytest.raises(InputError, match=says) as refusal:
        answers.push_many(counts)
    assert "7701" not in str(refusal.value)
    assert answers.tick == 0
    with pytest.raises(InputError, match="give a row of 2 numbers for each tick"):
        windows.plan([Query(2, 1)]).start(bins=2).push(5)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"bins": 0}, "bins is 0"),
        ({"bins": "ab"}, "number of bins"),
        ({"bins": ["a", "a"]}, "appears twice"),
        ({"window": 0}, "window is 0"),
        ({"window": 2_000_000}, "less than 0.000001 for each of 2,000,000 ticks"),
        ({"sensitivity": 0}, "sensitivity is 0"),
        ({"sensitivity": 10**9}, "at most"),
        ({"replicas": 0}, "replicas is 0"),
        ({"replicas": 10**400}, "replicas can be 1,000,000,000 at most"),
        ({"bins": 10**400}, "bins can be 1,000,000,000 at most"),
        ({"tick": 10**400}, "tick can be 1,000,000,000,000 at most"),
        ({"noise": "loud"}, "noise is"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_settings_are_refused(settings, says):
    with pytest.raises(InputError, match=says):
        windows.plan([Query(2, 1)]).start(**settings)


def test_chains_cannot_be_refined():
    with pytest.raises(InputError, match="start it without refine"):
        windows.plan([Query(2, 1)], planner="base").start(refine=True)


def test_a_plan_with_a_horizon_ends():
    ticks = 1_500
    answers = windows.plan(general(1, 40), horizon=ticks).start(seed=1)
    answers.push_many(counts_of(ticks - 10))
    with pytest.raises(StateError, match="ends after 10 more ticks"):
        answers.push_many(np.ones(11, dtype=int))
    assert answers.tick == ticks - 10
    answers.push_many(np.ones(10, dtype=int))
    with pytest.raises(StateError, match="ends after 0 more ticks"):
        answers.push(1)


def test_the_guarantee_says_what_is_promised():
    plan = windows.plan([Query(2, 1)], epsilon=0.7)
    assert str(plan.guarantee).startswith("All events of one person inside any single step are hidden by event-level")
    assert "epsilon 0.7" in str(plan.guarantee)
    assert str(plan.start().guarantee) == str(plan.guarantee)
    longer = plan.start(window=9, sensitivity=3).guarantee
    assert (longer.notion, longer.window, longer.sensitivity, longer.epsilon) == ("w-event", 9, 3, 0.7)
    assert "any 9 consecutive steps" in str(longer)
    assert str(plan.start(seed=1).guarantee).startswith("NOT PRIVATE (the noise is seeded")


def test_open_slots_are_raw_and_shown_by_nothing():
    answers = windows.plan([Query(4, 4)]).start()
    assert not answers.holds_raw
    answers.push(7_701_234_567_890)  # longer than an address in memory, which may look like anything
    assert answers.holds_raw
    assert "7701234567890" not in repr(answers) + str(vars(answers))
    answers.push_many([0, 0, 0])
    assert not answers.holds_raw


def test_a_push_that_was_broken_off_is_not_gone_on_from(monkeypatch):
    answers = windows.plan([Query(4, 4)]).start()
    answers.push(1)

    def broken_off(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(estimates.Estimates, "release", broken_off)
        with pytest.raises(KeyboardInterrupt):
            answers.push(1)
    with pytest.raises(StateError, match="broken off"):
        answers.push(1)
    assert answers.tick == 2
