"""The audit from events to releases: the right bounding passes, one that keeps every event is found."""

import numpy as np
import pytest

import eventide as ev
from eventide.audit.events import Event, EventPair, audit_events, event_pairs
from eventide.errors import InputError
from eventide.events.tally import EventTally
from eventide.live.feeds.event_feed import EventFeed

KEY = bytes(range(16))


class KeepsEverything(EventFeed):
    """A feed whose bounding was left out: every event counts."""

    def _tally(self, users=None, bins=None):
        tally = EventTally(len(self.reader.bins))
        if bins is not None:
            tally.add(users, bins)
        return tally


@pytest.mark.parametrize("max_per_step", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_bounded_events_pass_and_the_attack_has_power(max_per_step):
    verdict = audit_events(ev.Uniform, 1.0, window=2, bins=2, max_per_step=max_per_step, runs=4_000)
    assert 0.7 <= verdict.bound <= 1, str(verdict)
    assert not verdict.broken, str(verdict)


@pytest.mark.parametrize("max_per_step", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_feed_that_keeps_everything_is_found(max_per_step):
    options = {"max_per_step": max_per_step, "feed": KeepsEverything, "runs": 4_000, "alpha": 1e-6}
    verdict = audit_events(ev.Uniform, 1.0, window=2, bins=2, **options)
    assert verdict.broken, str(verdict)
    assert "far more" in verdict.pair


@pytest.mark.parametrize(("window", "bins", "most"), [(1, 1, 1), (3, 2, 1), (2, 3, 4)])
def test_counted_pairs_differ_by_what_may_count_and_only_in_the_window(window, bins, most):
    pairs = list(event_pairs(window, bins, most))
    assert len({pair.name for pair in pairs}) == len(pairs)
    for pair in pairs:
        pair.check(window, bins)
        counted = pair.counted(bins, most, KEY)
        assert counted.end - counted.begin == window
        assert (np.abs(counted.neighbour - counted.stream).sum(axis=1)[counted.begin : counted.end] == most).all()
        loose = pair.counted(bins, most, KEY, KeepsEverything)
        assert loose.stream.sum() == len(pair.events)


def test_pairs_of_ones_own_are_attacked():
    """Somebody is seen at the end of step 1 in one list, and at the beginning of step 2 in the other."""
    pair = EventPair("a step later", [Event(1.9, "ann", 0)], [Event(2.0, "ann", 0)], steps=4)
    counted = pair.counted(1, 1, KEY)
    assert counted.stream.ravel().tolist() == [0, 1, 0, 0]
    assert counted.neighbour.ravel().tolist() == [0, 0, 1, 0]
    verdict = audit_events(ev.Uniform, 1.0, 2, 1, [pair], runs=1_000, finalists=1)
    assert (verdict.pair, verdict.broken) == ("a step later", False)
    with pytest.raises(InputError, match="1 consecutive steps"):
        audit_events(ev.Uniform, 1.0, 1, 1, [pair])


@pytest.mark.parametrize(
    ("events", "neighbour", "says"),
    [
        ([Event(0, "ann", 0)], [Event(0, "bob", 0)], "several people"),
        ([Event(0, "ann", 0)], [Event(0, "ann", 1)], "in both lists"),
        ([Event(0, "ann", 0)], [Event(0, "ann", 0)] * 2, "in both lists"),
        ([Event(0, "ann", 0)], [Event(0, "ann", 0)], "must differ"),
        ([], [Event(0, "ann", 0), Event(2, "ann", 0)], "2 consecutive steps"),
        ([], [Event(3, "ann", 0)], "outside of 3 steps"),
        ([], [Event(0, "ann", 2)], "and 2 bins"),
    ],
)
def test_lists_that_are_no_neighbours_are_refused(events, neighbour, says):
    with pytest.raises(InputError, match=says):
        EventPair("mine", events, neighbour, steps=3).check(window=2, bins=2)


def test_nothing_to_attack_is_said():
    pair = EventPair("alike", [], [Event(0, "ann", 0)], steps=2)

    class CountsNobody(EventFeed):
        def _tally(self, users=None, bins=None):
            return EventTally(len(self.reader.bins))

        def take(self, batch):
            super().take(batch)
            self._open.clear()

    with pytest.raises(InputError, match="nothing to attack"):
        audit_events(ev.Uniform, 1.0, 1, 1, [pair], feed=CountsNobody)
