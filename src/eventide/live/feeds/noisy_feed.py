"""A feed that holds no events: each goes into the noisy cells of its step when it comes, and nowhere else.

Promises that between two events nothing in this process tells of an event but noisy cells, whose budgets are charged.

* There are no tallies, no counters, no memory of people, and no look at the first rows.
* No position is kept, in the store or here: it would count events. A source that can replay is opened at the beginning
  of the oldest open step, which the clock and the releases say; of one that cannot, what was in open cells is lost.
* Nothing is kept in the store, neither open events nor the key of a batch: a key tells that its sender was there.
* An event that is handed over is overwritten once it was counted, as far as numpy lets us.

Which steps are open is decided by the clock alone, as their budgets follow from it (`eventide.privacy.open_steps`): a
step is planned when it begins, and every step that is over by then has been closed. Sources that cannot hand over
events in the order of arrival have steps that overlap by one more: the next one is always open before a step is closed.

An event's time that lies a little after its arrival counts as its arrival, so that no step is open before it begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from eventide.arrays import Ints
from eventide.errors import InputError
from eventide.events.reader import Counters, Events
from eventide.live.feeds.base import ClosedStep, Promise, Resume
from eventide.live.feeds.event_feed import POLL_SECONDS, EventFeed
from eventide.live.sources.base import EventBatch

NOBODY_IS_REMEMBERED = (
    "a limit per person needs to remember who was seen, and pan_private remembers nobody; leave it out, and say with "
    "max_per_step how many events of one person a step has at the most: that is taken on trust"
)


class NoisyFeed(EventFeed):
    """An `EventFeed` for a pan-private mechanism; what `max_per_step` says is trusted."""

    trusts_bound = True

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        if self._has_users or self.cap is not None:
            raise InputError(NOBODY_IS_REMEMBERED)
        if self._source is not None and not hasattr(self._source, "in_order"):
            raise InputError(
                "pan_private needs a source that hands over events one by one: a file that is followed, a pipe, NATS, "
                "Kafka or the service; what holds many events at once is itself there to be stolen"
            )
        self._in_order = self._source is not None and self._source.in_order
        self._overlap = 0 if self._in_order else self.timeline.length
        self._nothing: Ints = np.zeros(len(self.reader.bins), dtype=np.int64)

    def promise(self) -> Promise:
        """Every event is a person of its own; or the bound is trusted, and that is said."""
        promised = super().promise()._replace(one_by_one=True)
        if self.max_per_step == 1:
            return promised
        trusted = f"it is taken on trust that one person has at most {self.max_per_step} events in a step"
        return promised._replace(unit="one person", assumptions=(trusted, *promised.assumptions))

    def steps(self, resume: Resume) -> Iterator[ClosedStep | None]:
        """Pull events one by one until the source ends or the last step is closed."""
        assert self._source is not None, "a feed without a source is pushed to"
        self.begin(resume)
        self._source.open({"since": self.timeline.begin(resume.next_step)}, self.reader)
        while not self._over and (batch := self._source.poll(POLL_SECONDS)) is not None:
            yield from self.closed_until(batch.seen_until)
            self.take(batch)
            del batch  # before the next one is waited for
            yield None

    def begin(self, resume: Resume) -> None:
        """Go on as told; nothing was kept."""
        assert resume.cells is not None, "a publisher gives the cells of its mechanism"
        super().begin(resume._replace(kept=[], keep=None))
        self._cells = resume.cells

    def closed_until(self, seen: int) -> Iterator[ClosedStep]:
        """Close the steps that were over at a moment, and open those that had begun, in the order of the clock."""
        while self._next < self._end and seen >= (deadline := self._deadline(self._next)):
            self._open_until(deadline + self._overlap - 1)
            self._cells.look_around(told=False)  # so that what was seen of the step is charged to it
            self._next += 1
            self._warn_if_ahead()
            yield ClosedStep(self._next - 1, self._nothing, None)
        self._open_until(seen)
        if self._source is not None and not self._source.records_arrival and self._clock is not None:
            self._open_until(self._clock.now())

    def take(self, batch: EventBatch) -> None:
        """Count the events of a batch, of which there is one but in a service, and forget them."""
        self.counted(batch)

    def counted(self, batch: EventBatch) -> Counters:
        """The same, and for their sender alone what became of them."""
        counters = self._refused(batch.events)
        self._cells.look_around()
        events = batch.events
        near = events.time <= events.arrival + self._ahead
        time = np.where(near, np.minimum(events.time, events.arrival), events.time)
        self._open_until(int(events.arrival.max(initial=self.timeline.start - 1)))
        for step, (_, bins) in self._countable(events._replace(time=time), counters):
            for bin in bins:
                self._cells.add(step, int(bin))
        overwrite(events)
        time.fill(0)
        return counters

    def last_open(self, next_step: int, moment: int) -> int:
        """The last step that can have been open at a moment, where `next_step` was not released yet.

        What comes in the order of its recorded arrival, as from NATS, is never read past the next step to be closed,
        however old the stream is. Any other source may open whatever has begun.
        """
        begun = self.step_at(moment)
        if self._source is None or not (self._in_order and self._source.records_arrival):
            return begun
        return min(begun, self.step_at(self._deadline(next_step) + self._overlap - 1))

    def _open_until(self, moment: int) -> None:
        step = self.step_at(moment)
        if step >= self._next:
            self._cells.open_until(step if self._stop is None else min(step, self._stop - 1))


def overwrite(events: Events) -> None:
    """Leave nothing of events in their arrays; those that Arrow made cannot be written to, and are freed."""
    columns = (events.time, events.user, events.bin, events.arrival, events.value)
    for column in (*columns, *events.refused_at.values()):
        if column is not None and column.flags.writeable:
            column.fill(0)
