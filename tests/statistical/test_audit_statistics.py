"""The audit of statistics: what a person adds to them is bounded as the guarantee says, and what is not is found."""

import numpy as np
import pytest

import eventide as ev
from eventide.audit.events import Event, EventPair, audit_events
from eventide.audit.mechanisms import audit_mechanism
from eventide.events.caps import Cap
from eventide.events.statistic_names import parse_statistic
from eventide.live.feeds.event_feed import EventFeed
from eventide.mechanisms.several import Several


class CountsEveryBin(EventFeed):
    """A feed that counts a person once in a bin, and in as many bins as there are."""

    def __init__(self, *parts, max_per_step, **options):
        super().__init__(*parts, max_per_step=len(parts[2].bins), **options)


@pytest.mark.parametrize("max_per_step", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_people_pass_and_the_attack_has_power(max_per_step):
    options = {"statistic": "people", "max_per_step": max_per_step, "runs": 4_000}
    verdict = audit_events(ev.Uniform, 1.0, window=2, bins=2, **options)
    assert 0.7 <= verdict.bound <= 1, str(verdict)
    assert not verdict.broken, str(verdict)


def test_a_person_who_counts_in_every_bin_is_found():
    options = {"statistic": "people", "feed": CountsEveryBin, "runs": 4_000, "alpha": 1e-6}
    verdict = audit_events(ev.Uniform, 1.0, window=2, bins=2, **options)
    assert verdict.broken, str(verdict)
    assert "far more in every bin" in verdict.pair


class CutsNothing(EventFeed):
    """A feed of sums whose values are up to twice what its range says."""

    def take(self, batch):
        super().take(batch._replace(events=batch.events._replace(value=2 * batch.events.value)))


OF_VALUES = {"statistic": "sum:value", "between": "value=0,1,0.25", "window": 2, "bins": 2, "max_per_step": 2}


def test_sums_pass_and_the_attack_has_power():
    verdict = audit_events(ev.Uniform, 1.0, **OF_VALUES, runs=4_000)
    assert 0.7 <= verdict.bound <= 1, str(verdict)
    assert not verdict.broken, str(verdict)


def test_values_beyond_their_range_are_found():
    assert audit_events(ev.Uniform, 1.0, **OF_VALUES, feed=CutsNothing, runs=4_000, alpha=1e-6).broken


@pytest.mark.slow
def test_sums_under_a_cap_pass():
    of_one = OF_VALUES | {"window": 6, "bins": 1, "max_per_step": 1}
    verdict = audit_events(ev.Uniform, 1.0, **of_one, cap=Cap(1, 6), runs=2_000)
    assert not verdict.broken, str(verdict)


@pytest.mark.parametrize("bins", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_people_of_slots_pass_and_the_attack_has_power(bins):
    """Windows of three hours meet two slots of two hours."""
    runs = 4_000 if bins == 1 else 16_000  # the best attack on two bins tells half of epsilon, and takes more to see
    verdict = audit_events(ev.Uniform, 1.0, window=3, bins=bins, statistic="people/2h", runs=runs)
    assert not verdict.broken, str(verdict)
    assert (0.7 if bins == 1 else 0.3) <= verdict.bound <= 1, str(verdict)


def test_who_moves_between_bins_of_a_slot_needs_twice_the_noise():
    """In both slots of a window ann leaves one bin and comes to the other: with half of the noise that shows."""
    always = [Event(step + 0.5, f"user {step}", step % 2) for step in range(8)]
    there, here = (
        [Event(step + 0.5, "ann", bin_) for step, bin_ in rows] for rows in (((1, 1), (2, 1)), ((0, 0), (3, 0)))
    )
    pair = EventPair("moves", [*always, *there], [*always, *here], steps=8)
    pair.check(window=4, bins=2)
    people = parse_statistic("people/2h/1h").for_bins(2)
    counted = pair.counted(2, 1, bytes(16), statistic=people)
    assert np.abs(counted.stream - counted.neighbour).sum(axis=1).tolist() == [2, 2, 0, 0]
    options = {"pairs": [counted], "runs": 40_000, "alpha": 1e-6}
    verdict = audit_mechanism(ev.Uniform, 1.0, 2, 2, sensitivity=people.sensitivity(1), **options)
    assert 0.7 <= verdict.bound <= 1, str(verdict)
    assert audit_mechanism(ev.Uniform, 1.0, 2, 2, sensitivity=1, **options).broken


def test_values_of_events_that_are_known_are_hidden_as_the_guarantee_says():
    """Two events of somebody count in each of two steps: the least values in one list, the greatest in the other.

    Values from 3 to 4 are hidden with a quarter of epsilon.
    """
    sums = parse_statistic("sum:value", "value=3,4,1")
    lists = [[Event(step + 0.5, "ann", 0, value) for step in range(2) for _ in range(5)] for value in (3, 4)]
    pair = EventPair("other values", *lists, steps=2).counted(1, 2, bytes(16), statistic=sums)
    assert (pair.neighbour - pair.stream).ravel().tolist() == [2, 2]
    options = {"sensitivity": sums.sensitivity(2), "pairs": [pair], "runs": 20_000}
    verdict = audit_mechanism(ev.Uniform, 4.0, 2, 1, **options)
    assert 0.7 <= verdict.bound <= 1, str(verdict)


def test_values_of_a_mean_are_hidden_with_twice_epsilon_and_the_attack_has_power():
    """Of an event that is known the value is the least in one list and the greatest in the other."""
    means = parse_statistic("mean:value", "value=3,4,1")
    lists = [[Event(step + 0.5, "ann", 0, value) for step in range(2)] for value in (3, 4)]
    pair = EventPair("other values", *lists, steps=2).counted(1, 1, bytes(16), statistic=means)
    assert (pair.neighbour - pair.stream).tolist() == [[1, -1], [1, -1]]
    options = {"sensitivity": means.sensitivity(1), "pairs": [pair], "runs": 20_000}
    verdict = audit_mechanism(ev.Uniform, 0.5, 2, 2, **options)
    assert 0.5 < verdict.bound <= 2 * 0.5, str(verdict)
    assert verdict.proof.bound == pytest.approx(2 * 0.5)


class SharesNothing(Several):
    """Several statistics that each spend all of epsilon."""

    def __init__(self, epsilon, *more, **options):
        super().__init__(2 * epsilon, *more, **options)


TOGETHER = {
    "statistic": ["people", "sum:value"],
    "between": "value=0,1,0.25",
    "window": 2,
    "bins": 1,
    "parameters": {
        "statistics": [
            {"statistic": "people", "mechanism": "uniform"},
            {"statistic": "sum:value", "between": "value=0,1,0.25", "mechanism": "uniform"},
        ]
    },
}


BESIDE = {
    "statistic": ["events", "people/2h"],
    "window": 3,
    "bins": 1,
    "parameters": {
        "statistics": [
            {"statistic": "events", "mechanism": "uniform"},
            {"statistic": "people/2h/1h", "mechanism": "uniform"},
        ]
    },
}


@pytest.mark.slow
def test_slots_beside_steps_pass_and_the_attack_has_power():
    verdict = audit_events(Several, 1.0, **BESIDE, runs=4_000)
    assert 0.5 <= verdict.bound <= 1, str(verdict)
    assert not verdict.broken, str(verdict)


def test_several_at_once_pass_and_the_attack_has_power():
    verdict = audit_events(Several, 1.0, **TOGETHER, runs=4_000)
    assert 0.5 <= verdict.bound <= 1, str(verdict)
    assert not verdict.broken, str(verdict)


def test_several_that_do_not_share_epsilon_are_found():
    assert audit_events(SharesNothing, 1.0, **TOGETHER, runs=4_000, alpha=1e-6).broken
