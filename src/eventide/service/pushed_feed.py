"""A feed that events are handed to: batch by batch, from any thread, each answered when it is durable.

One thread alone takes batches and closes steps. A request is stamped once, when the last byte of its body is here and
before anything is made of it, however long that thread is busy with others; a step closes when everything that was
stamped before its deadline has been counted or refused. So whether an event counts depends on its own stamp alone.
Before that moment a part of the batch has not arrived, and whoever sends it slowly would hold back everybody's step;
after it only our own work is left, which has an end. So no sender can keep a step open: a body that never ends is never
stamped.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple, Unpack

import numpy as np

from eventide.errors import StateError
from eventide.events.clock import Clock
from eventide.events.reader import Counters, EventReader, Events
from eventide.events.timeline import Timeline
from eventide.events.zones import EARLIEST
from eventide.live.feeds.base import ClosedStep, Resume
from eventide.live.feeds.event_feed import Bounds, EventFeed
from eventide.live.sources.base import EventBatch
from eventide.service.step_notices import StepNotices

LOOK_UP = 0.1  # seconds after which the clock is looked at though no batch came
STEPS_BETWEEN = 8  # steps that are published between two batches, when many are due after a pause

Keep = Callable[[Iterable[tuple[int, bytes]], str | None], bool]


@dataclass(frozen=True, eq=False)
class Arrival:
    """The stamp of one request; two of the same moment are not the same."""

    moment: int


class Arrivals:
    """Stamps requests, from any thread, and knows those that are not worked off."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._open: set[Arrival] = set()

    @contextmanager
    def stamp(self) -> Iterator[Arrival]:
        """Stamp a request that has just arrived; at the end of the block it is worked off, whatever became of it."""
        with self._lock:
            arrival = Arrival(self._clock.now())
            self._open.add(arrival)
        try:
            yield arrival
        finally:
            self.work_off(arrival)

    def work_off(self, arrival: Arrival) -> None:
        """Say that the events of a request were counted or refused; saying it again does no harm."""
        with self._lock:
            self._open.discard(arrival)

    def worked_off_until(self) -> int:
        """The moment before which nothing arrived that is still being worked on, nor will have arrived later."""
        with self._lock:
            return min([self._clock.certain(), *(arrival.moment for arrival in self._open)])


class Receipt(NamedTuple):
    """What became of a batch."""

    counters: Counters
    duplicate: bool


class Busy(Exception):
    """As many batches are waiting as may."""


class Halted(StateError):
    """The store cannot be used now: whether a batch was kept is not known yet."""

    def __init__(self) -> None:
        super().__init__("the store cannot be used now")


class Submitted(NamedTuple):
    """A batch on its way."""

    events: Events
    arrival: Arrival
    key: str | None
    receipt: Future[Receipt]


class PushedFeed(EventFeed):
    """Events by `submit`, steps to whoever publishes them; `notices` says which steps were."""

    takes_keys = True  # whether a batch that is sent again is known by its key

    def __init__(
        self,
        timeline: Timeline,
        reader: EventReader,
        clock: Clock,
        notices: StepNotices,
        *,
        most_waiting: int = 64,
        **bounds: Unpack[Bounds],
    ) -> None:
        super().__init__(None, timeline, reader, clock, **bounds)
        self.begins_now = True  # events of steps that were over before had nobody to count them
        self._replays = False  # a batch that is sent again is known by its key
        self.clock = clock
        self.notices = notices
        self.arrivals = Arrivals(clock)
        self.totals = Counters()  # of all batches; `counters` are those of the last one
        self.begun = threading.Event()  # from then on the reader knows the store's key, and batches are taken
        self._waiting: queue.Queue[Submitted] = queue.Queue(most_waiting)
        self._door = threading.Lock()  # nothing comes in once it has ended
        self._ended = self._halted = False
        self._in_hand: Future[Receipt] | None = None
        self._kept = True  # whether the last batch was new

    @property
    def waiting(self) -> int:
        """How many batches are not durable yet."""
        return self._waiting.qsize()

    def submit(self, events: Events, arrival: Arrival, key: str | None = None) -> Future[Receipt]:
        """Hand in a batch; the receipt comes when it is durable. A batch whose key was kept before is left out."""
        receipt: Future[Receipt] = Future()
        with self._door:
            if self._ended:
                raise StateError("the stream is closed")
            if self._halted:
                raise Halted
            try:
                self._waiting.put_nowait(Submitted(events, arrival, key, receipt))
            except queue.Full:
                raise Busy from None
        return receipt

    def steps(self, resume: Resume) -> Iterator[ClosedStep | None]:
        """Take batches and give steps as they close, until `end`."""
        self.begin(resume._replace(keep=self._noticing(resume.keep)))
        self.begun.set()
        while not self._ended:
            self._take_next(0.0 if self._seen_until >= self._deadline(self._next) else LOOK_UP)
            self.take(EventBatch(Events.none(), None, self.arrivals.worked_off_until()))
            for closed in self.closed(STEPS_BETWEEN):
                yield closed
                if not closed.more:
                    self.notices.announce(closed.index)  # whoever asks for more has published this one
            yield None

    def end(self) -> None:
        """Take no more batches, and refuse those that wait."""
        with self._door:
            self._ended = True
        self._refuse_waiting(StateError("the stream was closed"))

    def halt(self) -> None:
        """Refuse batches until `go_on`, also the one in hand; if that one is kept later, its key is known then."""
        with self._door:
            self._halted = True
        if self._in_hand is not None and not self._in_hand.done():
            self._in_hand.set_exception(Halted())
        self._refuse_waiting(Halted())

    def go_on(self) -> None:
        """Take batches again."""
        with self._door:
            self._halted = False

    def _refuse_waiting(self, refusal: StateError) -> None:
        with suppress(queue.Empty):
            while True:
                receipt = self._taken_out(0).receipt
                if receipt.set_running_or_notify_cancel():
                    receipt.set_exception(refusal)

    def overdue(self) -> float:
        """The seconds that the next step should have been out already."""
        return self._overdue() / 1e6

    def lag(self) -> float:
        """The same for readers, in whole steps: finer ones would tell how long the counting takes."""
        return self._overdue() // self.timeline.length * self.timeline.length / 1e6

    def _overdue(self) -> int:
        return max(0, self.clock.now() - self._deadline(self.notices.last + 1))

    def _noticing(self, keep: Keep | None) -> Keep | None:
        """The store's `keep`, so that its answer is known here."""
        if keep is None:
            return None

        def noticed(tallies: Iterable[tuple[int, bytes]], batch: str | None = None) -> bool:
            self._kept = keep(tallies, batch)
            return self._kept

        return noticed

    def _take_next(self, patience: float) -> None:
        """Take the next batch if one comes in so many seconds."""
        try:
            submitted = self._taken_out(patience)
        except queue.Empty:
            return
        if submitted.receipt.set_running_or_notify_cancel():  # if not, its sender has left, and may send it again
            self._answer(submitted)
        self.arrivals.work_off(submitted.arrival)

    def _taken_out(self, patience: float) -> Submitted:
        """The next batch; the queue is told that it is done with, or it would count all that ever came."""
        submitted = self._waiting.get(block=patience > 0, timeout=patience)
        self._waiting.task_done()
        return submitted

    def _answer(self, submitted: Submitted) -> None:
        self._in_hand = submitted.receipt
        try:
            receipt = self._taken(submitted)
            if not self._in_hand.done():
                self._in_hand.set_result(receipt)
        except BaseException as problem:
            if not self._in_hand.done():
                self._in_hand.set_exception(StateError(f"the batch could not be kept: {type(problem).__name__}"))
            raise
        finally:
            self._in_hand = None

    def _taken(self, submitted: Submitted) -> Receipt:
        self.counters, self._kept = Counters(), True
        arrival = np.full(len(submitted.events.time), submitted.arrival.moment)
        self.take(EventBatch(submitted.events._replace(arrival=arrival), None, EARLIEST, submitted.key))
        self.totals.add(self.counters)
        return Receipt(self.counters, not self._kept)
