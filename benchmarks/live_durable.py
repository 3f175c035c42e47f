"""Durable releases per second: steps charged, drawn, committed and appended to a file. And the room of a step.

All steps are at hand, as those of a file are, so that many become durable in one commit. The peer writes the same
release bytes into a SQLite table, one commit each, with the same settings (WAL, synchronous FULL), in the same run and
on the same disk; rounds alternate, and the medians are compared. The room is measured on a longer stream, a week of
minutes by default, that moves slowly: most of its steps repeat.

A quiet machine of two cores gave 3,847 releases a second of Uniform, 4,332 of BA and 635 of Tide (wanted: 2,000, 2,000
and 400), and 6,200 to 7,200 plain commits. A step took 4.11, 0.40 and 4.06 kB in the store. Uniform's is a measurement
of every bin at every step. Run:

    python benchmarks/live_durable.py [--bins 1000] [--steps 1000] [--long 10080] [--folder DIR]
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np

import eventide as ev
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.stores.open_store import open_store

ROUNDS = 5
MECHANISMS = ("uniform", "ba", "tide")
DAY = 1440  # steps, in the long stream


def publish(name: str, counts: np.ndarray, folder: Path) -> tuple[float, float]:
    """Seconds for all steps with a store and a growing file: by the clock, and of processors."""
    mechanism = ev.mechanism(name, epsilon=1.0, window=100, bins=counts.shape[1], filter="truncate")
    with ev.Publisher(MemoryFeed(counts), mechanism, folder / "store.db", [folder / "out.jsonl"]) as publisher:
        begin, before = time.perf_counter(), time.process_time()
        publisher.run()
        return time.perf_counter() - begin, time.process_time() - before


def room(name: str, counts: np.ndarray, where: Path | None) -> tuple[float, float, int]:
    """Bytes of a step in the store and in the output, and how many steps were new, with a window of two hours."""
    with tempfile.TemporaryDirectory(dir=where) as scratch:
        store, out = Path(scratch, "store.db"), Path(scratch, "out.jsonl")
        mechanism = ev.mechanism(name, epsilon=1.0, window=120, bins=counts.shape[1], filter="truncate")
        with ev.Publisher(MemoryFeed(counts), mechanism, store, [out]) as publisher:
            publisher.run()
        return store.stat().st_size / len(counts), out.stat().st_size / len(counts), publisher.fresh_looks


def long_stream(steps: int, bins: int) -> np.ndarray:
    """Counts that follow the time of day, of bins from busy to almost empty."""
    rng = np.random.default_rng(2)
    day = 1 + 0.6 * np.sin(2 * np.pi * np.arange(steps)[:, None] / DAY)
    return rng.poisson(rng.lognormal(2.5, 1.2, bins) * day)


def commit_plainly(releases: list[tuple[int, bytes]], folder: Path) -> float:
    """Seconds to commit the same bytes one by one."""
    with closing(sqlite3.connect(folder / "plain.db", isolation_level=None)) as connection:
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("CREATE TABLE release (step INTEGER PRIMARY KEY, line BLOB)")
        begin = time.perf_counter()
        for pair in releases:
            connection.execute("INSERT INTO release VALUES (?, ?)", pair)
        return time.perf_counter() - begin


def measured(name: str, counts: np.ndarray, where: Path | None) -> list[float]:
    """The median rates of both, in steps per second, and of ours per processor second."""
    rates: list[tuple[float, float, float]] = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=where) as scratch:
            ours, worked = publish(name, counts, Path(scratch))
            with closing(open_store(Path(scratch, "store.db"), read_only=True)) as store:
                releases = list(store.releases())
            plain = commit_plainly(releases, Path(scratch))
            rates.append((len(counts) / ours, len(counts) / plain, len(counts) / worked))
    return [statistics.median(each) for each in zip(*rates, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bins", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--long", type=int, default=7 * DAY, help="steps of the stream whose room is measured")
    parser.add_argument("--folder", type=Path, help="on the disk to be measured")
    given = parser.parse_args()
    steps = np.arange(given.steps)[:, None]
    level = 200 + 100 * np.sin(2 * np.pi * steps / 100)
    counts = np.random.default_rng(1).poisson(np.broadcast_to(level, (given.steps, given.bins)))
    names = [name for name in MECHANISMS if name in ev.mechanism_names()]
    print(f"{given.steps:,} steps of {given.bins:,} bins, median of {ROUNDS} rounds")
    for name in names:
        ours, plain, busy = measured(name, counts, given.folder)
        rates = f"{ours:8,.0f} releases/s, {busy:8,.0f} per processor second"
        print(f"{name:8} {rates}   plain commits {plain:8,.0f}/s   ratio {ours / plain:.2f}")
    print(f"{given.long:,} steps of {given.bins:,} bins, a step in the mean (target 4 kB where most repeat)")
    for name in names:
        stored, shown, new = room(name, long_stream(given.long, given.bins), given.folder)
        print(f"{name:8} {stored / 1000:8.1f} kB in the store   {shown / 1000:8.1f} kB in the output   {new:,} new")


if __name__ == "__main__":
    main()
