"""When requests arrived, and which of them are still being worked on.

A request is stamped once, when the last byte of its body is here and before anything is made of it. From then on
nothing that others send decides whether its events count: they are judged by the stamp, and no step whose deadline is
later is closed until they have been counted or refused. Before that moment a part of the batch has not arrived, and
whoever sends it slowly would hold back everybody's step; after it only our own work is left, which has an end. So no
sender can keep a step open: a body that never ends is never stamped.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from eventide.events.clock import Clock


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
