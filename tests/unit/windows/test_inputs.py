"""What goes into a plan at work and what is said about it: refusals, the end of a plan, guarantees, attributes."""

import itertools

import numpy as np
import pytest
from window_oracles import rows, truth

from eventide import windows
from eventide.errors import InputError, StateError
from eventide.privacy.noise import Seeded, Zero
from eventide.windows import Query
from eventide.windows.answering import estimates
from eventide.windows.random_workloads import general


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


@pytest.fixture
def attributes():
    ward = windows.plan([Query(6, 2), Query(4, 4)], epsilon=0.25)
    age = windows.plan([Query(9, 3)], epsilon=0.5)
    return {"ward": ward, "age": age}


def test_attributes_share_a_ledger_and_their_charges_add_up(attributes):
    answers = windows.start_many(attributes, bins={"age": 3}, noise=Zero())
    ward, age = counts_of(50), counts_of(50, seed=1, bins=3)
    due = answers.push_many({"ward": ward, "age": age})
    np.testing.assert_allclose(due["ward"].value, truth(ward, due["ward"]))
    np.testing.assert_allclose(due["age"].value, truth(age, due["age"]))
    assert answers.ledger.worst_window() == 0.75
    assert "in each of 2 attributes, whose epsilons add up: ward 0.25, age 0.5" in str(answers.guarantee)
    assert "epsilon 0.75" in str(answers.guarantee)


def test_attributes_tick_by_tick_are_those_pushed_together(attributes):
    counts = {"ward": counts_of(40), "age": counts_of(40, seed=1, bins=3)}
    together = windows.start_many(attributes, bins={"age": 3}, seed=4, window=3).push_many(counts)
    each = windows.start_many(attributes, bins={"age": 3}, seed=4, window=3)
    single = [each.push({name: own[tick] for name, own in counts.items()}) for tick in range(40)]
    for name in attributes:
        assert rows(together[name]) == rows(itertools.chain.from_iterable(due[name] for due in single))
    alone = attributes["ward"].start(seed=4).push_many(counts["ward"])
    assert not np.array_equal(alone.value, together["ward"].value)


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ({"ward": [1]}, "counts for each of ward, age"),
        ({"ward": [1], "age": [1], "sex": [1]}, "nothing else"),
        ({"ward": [1], "age": [1, 2]}, "different numbers of ticks"),
        ({"ward": [1], "age": [-1]}, "between 0"),
    ],
)
def test_attributes_are_pushed_as_one_or_not_at_all(attributes, counts, says):
    answers = windows.start_many(attributes)
    with pytest.raises(InputError, match=says):
        answers.push_many(counts)
    assert answers.tick == 0


def test_bad_attributes_are_refused(attributes):
    with pytest.raises(InputError, match="no plan to start"):
        windows.start_many({})
    with pytest.raises(InputError, match="'sex', which has no plan"):
        windows.start_many(attributes, bins={"sex": 2})
    with pytest.raises(InputError, match="no attribute 'sex'"):
        windows.start_many(attributes).replan("sex")


def test_seeded_sources_of_attributes_differ_and_a_given_one_is_shared(attributes):
    due = windows.start_many({"a": attributes["age"], "b": attributes["age"]}, seed=1).push_many(
        {"a": np.zeros(60, dtype=int), "b": np.zeros(60, dtype=int)}
    )
    assert not np.array_equal(due["a"].value, due["b"].value)
    assert windows.start_many(attributes, noise=Seeded(1)).guarantee.not_private
