"""The audit of statistics: what a person adds to them is bounded as the guarantee says, and what is not is found."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import eventide as ev
from eventide.audit.events import Event, EventPair, audit_events
from eventide.audit.mechanisms import audit_mechanism
from eventide.audit.pairs import Pair
from eventide.events.caps import Cap
from eventide.events.statistics import parse_statistic
from eventide.live.feeds.base import Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.base import EventBatch
from eventide.live.stream_spec import StreamSpec
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


def slots_of(events):
    """The numbers of slots of two hours that a stream publishes; windows have three hours, so they meet two slots."""
    rows = [(START + event.time * HOUR, event.user, str(event.bin)) for event in events]
    feed = EventFeed(None, **SLOTS.counting())
    feed.begin(Resume(0, None, bytes(16), []))
    feed.take(
        EventBatch.last(feed.reader.read([dict(zip(("timestamp", "user", "bin"), row, strict=True)) for row in rows]))
    )
    return np.stack([step.counts for step in feed.closed()])


START, HOUR = datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1)
SLOTS = StreamSpec(
    epsilon=1,
    window=3,
    step="1h",
    start=START.isoformat(),
    until=(START + 8 * HOUR).isoformat(),
    statistic="people/2h",
    user="user",
    bins=["0", "1"],
)


def test_people_of_slots_pass_and_a_smaller_sensitivity_is_found():
    """Anna is added at two hours of the window and removed at the one between: both slots change in both bins."""
    always = [Event(step + 0.5, f"user {step}", step % 2) for step in range(8)]
    here = [Event(1.5, "ann", 0), Event(3.5, "ann", 0)]
    there = [Event(2.5, "ann", 1)]
    before = [Event(0.5, "ann", 1)]
    streams = [slots_of([*always, *more]) for more in ([*before, *there], [*here])]
    assert np.abs(streams[0] - streams[1]).sum(axis=1).tolist() == [2, 2, 0, 0]
    made = SLOTS.build_mechanism()
    assert (made.sensitivity, made.window) == (2, 2)
    options = {"pairs": [Pair("moves in two slots", *streams)], "runs": 20_000, "alpha": 1e-6}
    verdict = audit_mechanism(ev.Uniform, 1.0, made.window, 2, sensitivity=made.sensitivity, **options)
    assert 0.7 <= verdict.bound <= 1, str(verdict)
    assert audit_mechanism(ev.Uniform, 1.0, made.window, 2, sensitivity=1, **options).broken


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


def test_several_at_once_pass_and_the_attack_has_power():
    verdict = audit_events(Several, 1.0, **TOGETHER, runs=4_000)
    assert 0.5 <= verdict.bound <= 1, str(verdict)
    assert not verdict.broken, str(verdict)


def test_several_that_do_not_share_epsilon_are_found():
    assert audit_events(SharesNothing, 1.0, **TOGETHER, runs=4_000, alpha=1e-6).broken
