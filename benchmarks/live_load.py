"""How fast do raw events become bounded counts, against polars on the same file, and does memory stay flat?

Writes a CSV of 10 million events (1,000 steps, 100,000 users, 1,000 bins) into a temporary folder, brings it through
source and feed with at most 2 events of a user a step, then lets polars read the same file and do the same bounded
group-by (its first 2 instead of 2 by keyed hash), and prints the ratio of their times. With --end-to-end a publisher
releases every step into a durable store as well. With --memory, 100 million generated events go through a feed, and
the memory in use is printed every 10 million.

    python benchmarks/live_load.py [--events 10000000] [--rounds 3] [--end-to-end] [--memory]

polars is needed for this benchmark only: pip install polars
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

import eventide as ev
from eventide.events.reader import EventReader, Events
from eventide.events.timeline import Timeline
from eventide.live.feeds.base import Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.base import FOREVER, EventBatch, Position
from eventide.live.sources.open_source import open_source

STEPS, USERS, BINS, MOST = 1_000, 100_000, 1_000, 2
START = np.datetime64("2024-01-01T00:00:00", "s")
MINUTE = 60
NAMES = [f"bin {number}" for number in range(BINS)]
CHUNK = 1_000_000
KEY = bytes(range(16))


def write_events(path: Path, events: int) -> None:
    """Sorted by time, as logs are."""
    generator = np.random.default_rng(7)
    names = pa.array(NAMES)
    schema = pa.schema([("timestamp", pa.timestamp("s")), ("user", pa.string()), ("bin", pa.string())])
    with pa_csv.CSVWriter(path, schema, write_options=pa_csv.WriteOptions(quoting_style="none")) as writer:
        for first in range(0, events, CHUNK):
            size = min(CHUNK, events - first)
            seconds = (np.arange(first, first + size) * (STEPS * MINUTE)) // events
            users = pa.array(generator.integers(0, USERS, size)).cast(pa.string())
            bins = names.take(pa.array(generator.integers(0, BINS, size)))
            writer.write(pa.table([pa.array(START + seconds), users, bins], schema))


def feed_of(path: Path) -> EventFeed:
    return EventFeed(open_source(path), Timeline(str(START), "1min"), EventReader(NAMES), max_per_step=MOST)


def by_feed(path: Path) -> int:
    """Source and feed alone."""
    feed = feed_of(path)
    total = sum(int(step.counts.sum()) for step in feed.steps(Resume(0, None, KEY, [])) if step is not None)
    feed.close()
    return total


def end_to_end(path: Path) -> int:
    """Source, feed, mechanism and durable store."""
    mechanism = ev.BudgetAbsorption(epsilon=1.0, window=60, bins=NAMES, sensitivity=MOST)
    with (
        tempfile.TemporaryDirectory() as folder,
        ev.Publisher(feed_of(path), mechanism, Path(folder) / "store.db") as publisher,
    ):
        steps: int = publisher.run()
        return steps


def by_polars(path: Path) -> int:
    """Read, cut into steps, bound, count: in the fastest of the forms that were tried."""
    import polars as pl

    step = (pl.col("timestamp").str.to_datetime("%Y-%m-%d %H:%M:%S") - START.astype(object)).dt.total_minutes()
    counts = (
        pl.scan_csv(path, schema=dict.fromkeys(["timestamp", "user", "bin"], pl.String))
        .with_columns(step=step)
        .group_by("step", "user")
        .agg(pl.col("bin").head(MOST))
        .explode("bin")
        .group_by("step", "bin")
        .len()
        .collect(engine="streaming")
    )
    return int(counts["len"].sum())


def timed(name: str, work: Callable[[Path], int], path: Path, events: int) -> tuple[float, float]:
    """Seconds on the clock, and of the processors, which tell the cost also where the machine is shared."""
    begin, before = time.perf_counter(), time.process_time()
    result = work(path)
    seconds, worked = time.perf_counter() - begin, time.process_time() - before
    rate = events / seconds / 1e6
    print(
        f"{name:12} {seconds:6.2f} s, {rate:5.2f} million events a second, {worked:6.2f} processor seconds ({result:,})"
    )
    return seconds, worked


class Generated:
    """Made-up events, as a source of sorted ones hands them over."""

    complete, replays, records_arrival = True, True, True

    def __init__(self, events: int) -> None:
        self._left = self._events = events
        self._generator = np.random.default_rng(7)

    def open(self, position: Position, reader: EventReader) -> None:
        """Nothing to open."""

    def poll(self, timeout: float) -> EventBatch | None:
        """A hundred thousand events, a few thousand to a step."""
        if not self._left:
            return None
        done, size = self._events - self._left, 100_000
        self._left -= size
        times = np.arange(done, done + size) * 10_000
        users = self._generator.integers(0, USERS, size).astype(np.uint64)
        bins = self._generator.integers(0, BINS, size).astype(np.int32)
        seen_until = int(times[-1]) if self._left else FOREVER
        return EventBatch(Events(times, users, bins, times, Counter()), {"at": done + size}, seen_until)

    def close(self) -> None:
        """Nothing to close."""


def memory(events: int) -> None:
    """Megabytes in use as the events go by."""
    feed = EventFeed(Generated(events), Timeline("1970-01-01", "1min"), EventReader(NAMES), max_per_step=MOST)
    steps = 0
    for step in feed.steps(Resume(0, None, KEY, [])):
        if step is not None:
            steps += 1
        elif feed.counters.accepted % (events // 10) == 0:
            print(
                f"{feed.counters.accepted / 1e6:5.0f} million events, {steps:6,} steps, {resident():6.0f} MB",
                flush=True,
            )


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--end-to-end", action="store_true")
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    if options.memory:
        memory(10 * options.events)
        return
    try:
        import polars
    except ImportError:
        sys.exit("this benchmark compares with polars; install it with: pip install polars")
    print(f"polars {polars.__version__} on {polars.thread_pool_size()} threads")
    ours = ("end to end", end_to_end) if options.end_to_end else ("feed", by_feed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.csv"
        write_events(path, options.events)
        print(f"{path.stat().st_size / 2**20:,.0f} MB of CSV")
        ratios = []
        for _ in range(options.rounds):
            own = timed(*ours, path, options.events)
            ratios.append(np.divide(timed("polars", by_polars, path, options.events), own))
    clock, processors = np.median(ratios, axis=0)
    print(f"median ratio {clock:.2f} on the clock (target 1.0), {processors:.2f} in processor seconds")


if __name__ == "__main__":
    main()
