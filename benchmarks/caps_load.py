"""How fast are steps closed under a cap, with a million people in their blocks and a durable store?

    python benchmarks/caps_load.py [--people 1000000] [--rate 100000] [--steps 60]

Made-up events come at a steady rate, each from one of the people drawn at random, and go through feed, publisher and
SQLite store, with a cap of 2 events of a person in a block of 600 steps. When nearly everybody has used something of
their block, so many further steps are measured. Printed are, for steps of 1, 10 and 60 seconds, the events closed in a
second beside the limit (the rate at which they come, 100,000), the processor seconds a second of events costs, what the
process grew by at its peak, and the store, in bytes for each of the people.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import eventide as ev
from eventide.events.caps import Cap
from eventide.events.reader import EventReader, Events
from eventide.events.timeline import Timeline
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.base import EventBatch, Position

BINS = [f"bin {number}" for number in range(100)]
CAP = Cap(events=2, block=600)
SECOND = 1_000_000
LENGTHS = (1, 10, 60)
ACTIVE = 3  # events of each of the people, on average, before anything is measured: 95 % of them have one then


class Steady:
    """Events at a steady rate, a second in a batch, without end."""

    complete, replays, records_arrival = False, True, True

    def __init__(self, people: int, rate: int) -> None:
        self._people, self._rate, self._second = people, rate, 0
        self._chance = np.random.default_rng(7)
        self._names = self._chance.integers(0, 2**64, people, dtype=np.uint64)  # as hashes of people are

    def open(self, position: Position, reader: EventReader) -> None:
        """Nothing to open."""

    def poll(self, timeout: float) -> EventBatch | None:
        """The events of the next second."""
        times = self._second * SECOND + np.arange(self._rate) * SECOND // self._rate
        users = self._names[self._chance.integers(0, self._people, self._rate)]
        bins = self._chance.integers(0, len(BINS), self._rate).astype(np.int32)
        self._second += 1
        return EventBatch(Events(times, users, bins, times, Counter()), {"at": self._second}, self._second * SECOND)

    def close(self) -> None:
        """Nothing to close."""


def measure(people: int, rate: int, length: int, steps: int) -> None:
    """One line, for steps of so many seconds."""
    source, timeline = Steady(people, rate), Timeline("1970-01-01", f"{length}s")
    feed = EventFeed(source, timeline, EventReader(BINS), cap=CAP)
    bound = CAP.window_sensitivity(CAP.block, 1)
    mechanism = ev.Uniform(epsilon=1, window=CAP.block, bins=BINS, window_sensitivity=bound)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder, ev.Publisher(feed, mechanism, Path(folder, "store.db")) as publisher:
        first = max(2, ACTIVE * people // (rate * length))
        publisher.run(first)
        begin, worked = time.perf_counter(), time.process_time()
        publisher.run(first + steps)
        seconds, worked = time.perf_counter() - begin, time.process_time() - worked
        stored = sum(path.stat().st_size for path in Path(folder).iterdir())
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    print(
        f"steps of {length:2} s: {rate * length * steps / seconds:10,.0f} events a second (limit {rate:,}), "
        f"{worked / (length * steps):.2f} processor seconds a second, {1000 * seconds / steps:6,.0f} ms a step; "
        f"memory {grown / people:,.0f} and store {stored / people:,.0f} bytes a person",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--length", type=int, help="of a step in seconds, this one alone")
    given = parser.parse_args()
    if given.length is not None:
        measure(given.people, given.rate, given.length, given.steps)
        return
    for length in LENGTHS:  # each in a process of its own, so that the memory of one is not that of another
        words = [f"--people={given.people}", f"--rate={given.rate}", f"--length={length}"]
        words.append(f"--steps={max(5, given.steps // length)}")
        subprocess.run([sys.executable, __file__, *words], check=True)


if __name__ == "__main__":
    main()
