"""The audit's intrusions through the whole publisher: cells seen once between two events, and every release."""

import functools
import json

import numpy as np
import pytest
from noisy_lives import MINUTE, START

import eventide as ev
from eventide.audit import Transcript, audit
from eventide.audit.pairs import Pair
from eventide.events.clock import ManualClock
from eventide.events.reader import Events
from eventide.events.zones import EARLIEST
from eventide.live.feeds.noisy_feed import NoisyFeed
from eventide.live.sources.base import EventBatch
from eventide.live.stream_spec import StreamSpec
from eventide.privacy.measured import Measured
from eventide.privacy.noisy_cells import NoisyCells

SEEN_AT = 2  # the step in whose middle the memory is seen
SPEC = StreamSpec(bins=("a",), step="1min", start="2026-01-01", parameters={"pan_private": "single"})


class Script:
    """Events of one bin, one by one, in the middle of their steps."""

    complete, replays, records_arrival, in_order = False, False, True, True

    def __init__(self, counts, clock):
        self._clock = clock
        self._left = [(step, place) for step, count in enumerate(counts) for place in range(int(count))]
        self._steps, self._begun = len(counts), -1

    def open(self, position, reader):
        pass

    def poll(self, timeout):
        step = self._left[0][0] if self._left else self._steps
        if step > self._begun:
            self._begun = step
            self._clock.set(START + step * MINUTE)
            return EventBatch(Events.none(), None, self._clock.now())
        if not self._left:
            return None
        at = np.array([START + self._left.pop(0)[0] * MINUTE + 1])
        return EventBatch(Events(at, None, np.zeros(1, np.int32), at, Events.none().refused), None, EARLIEST)

    def close(self):
        pass


class Seized:
    """A publisher whose cells are seen once, after `first` events of a step."""

    def __init__(self, make, first):
        self.make, self.first = make, first

    def observe(self, stream, runs, seed):
        found = [self._run(stream[:, 0], [seed, number]) for number in range(runs)]
        values, seen = zip(*found, strict=True)
        return Transcript(np.array(values), extra=np.array(seen))

    def _run(self, counts, seed):
        clock = ManualClock(START)
        feed = NoisyFeed(Script(counts, clock), clock=clock, **SPEC.counting())
        publisher = ev.Publisher(feed, self.make(seed=np.random.SeedSequence(seed).generate_state(1)[0].item()))
        mechanism, events, seen = publisher.mechanism, 0, None
        for closed in publisher._closed_steps():
            if closed is not None:
                publisher._publish(closed)
                continue
            cells = mechanism._open._cells
            if mechanism.step == SEEN_AT and cells:
                if events == self.first:
                    seen = np.concatenate([cells[0]._decision[0], cells[0]._look[0]])
                events += 1
        values = [json.loads(line)["values"] for _, line in publisher.store.releases()]
        publisher.close()
        return values, seen


MAKE = functools.partial(ev.BudgetDistribution, epsilon=1, window=6, bins=["a"], pan_private="single")


def read_as_sketched(self, meter, where):
    amount = np.where(where, self.look_budget, 0)
    meter.ledger.charge(amount)
    return Measured(self._look.copy(), np.ones((1, 1)), amount > 0)


def pairs():
    """One event more after the memory was seen."""
    stream = np.array([[3], [3], [4]])
    return [Pair("one more afterwards", stream, np.array([[3], [3], [5]]))]


@pytest.mark.nightly
def test_what_is_seen_of_a_publisher_stays_within_epsilon():
    verdict = audit(Seized(MAKE, first=2), pairs(), 1.0, runs=1_000, alpha=1e-6)
    assert not verdict.broken, str(verdict)


@pytest.mark.nightly
def test_the_papers_sketch_is_found_out_through_the_publisher(monkeypatch):
    monkeypatch.setattr(NoisyCells, "read", read_as_sketched)
    monkeypatch.setattr(NoisyCells, "distance", lambda self, *_: self.decision_budget * 0 + 2**61)
    verdict = audit(Seized(MAKE, first=2), pairs(), 1.0, runs=1_000, alpha=1e-6)
    assert verdict.broken, str(verdict)
