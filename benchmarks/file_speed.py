"""How fast is a Parquet file of events published, against DuckDB and polars counting the same file?

Writes events (50 bins, 720 hours, 200,000 people) into a temporary folder and publishes them from end to end: read,
bound, release every step with Tide into a durable store. DuckDB and polars read the same file and do the same bounded
group-by (anybody's one event of an hour), and release nothing. Then the same without people, against a plain group-by.
Prints the time of the faster one of the two over ours, and the peak of memory.

On a quiet machine of two cores, with people: 1.8 times as fast as the faster one, and 0.48 GB. Without people ours
should take no more than twice the time of a plain group-by. It takes 0.8 of DuckDB's and 6.3 times polars' (0.76,
0.93 and 0.12 seconds for 20 million events; 1.0, 1.7 and 0.24 of processors). What stands in the way is what the
others do not do: 720 durable releases with Tide take 0.55 to 0.6 processor seconds with hardly any events at all,
more than twice polars' whole time. The rest, reading and counting, is twice polars' time.

    python benchmarks/file_speed.py [--events 20000000] [--rounds 3] [--ids text]

DuckDB and polars are needed for this benchmark only: pip install duckdb polars
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import eventide as ev

HOURS, PEOPLE, BINS, CHUNK = 720, 200_000, 50, 1_000_000
START = np.datetime64("2024-01-01T00:00:00", "us")
NAMES = [f"place {number}" for number in range(BINS)]
SECOND = 1_000_000


def write_events(path: Path, events: int, ids: str) -> None:
    """Sorted by time, as logs are."""
    generator = np.random.default_rng(7)
    kind = pa.int64() if ids == "numbers" else pa.string()
    schema = pa.schema([("timestamp", pa.timestamp("us", "UTC")), ("user", kind), ("bin", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, events, CHUNK):
            size = min(CHUNK, events - first)
            moments = (np.arange(first, first + size) * (HOURS * 3600)) // events * SECOND
            users = pa.array(generator.integers(0, PEOPLE, size)).cast(kind)
            bins = pa.array(NAMES).take(pa.array(generator.integers(0, BINS, size)))
            writer.write_table(pa.table([pa.array(START + moments), users, bins], schema))


def by_eventide(path: Path, *, people: bool) -> None:
    """Everything, from the file to durable releases."""
    with tempfile.TemporaryDirectory() as folder:
        ev.publish(
            str(path),
            epsilon=1,
            window=24,
            step="1h",
            start="2024-01-01",
            until="2024-01-31",
            user="user" if people else None,
            bins=NAMES,
            store=Path(folder) / "store.db",
        )


def by_duckdb(path: Path, *, people: bool) -> None:
    """One query; `any_value` takes one event of each person and hour."""
    hour = "date_trunc('hour', timestamp) AS hour"
    once = f"SELECT {hour}, \"user\", any_value(bin) AS bin FROM '{path}' GROUP BY ALL"
    query = once if people else f"SELECT {hour}, bin FROM '{path}'"
    duckdb.execute(f"SELECT hour, bin, count(*) FROM ({query}) GROUP BY ALL").fetchall()


def by_polars(path: Path, *, people: bool) -> None:
    """One lazy query on the streaming engine."""
    events = pl.scan_parquet(path).with_columns(hour=pl.col("timestamp").dt.truncate("1h"))
    if people:
        events = events.group_by("hour", "user").agg(pl.col("bin").first())
    events.group_by("hour", "bin").len().collect(engine="streaming")


def timed(work: Callable[..., None], path: Path, *, people: bool) -> tuple[float, float]:
    """Seconds on the clock, and of the processors, which tell the cost also where the machine is shared."""
    begin, before = time.perf_counter(), time.process_time()
    work(path, people=people)
    return time.perf_counter() - begin, time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ids", choices=["text", "numbers"], default="text")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, few = Path(folder) / "events.parquet", Path(folder) / "few.parquet"
        with ProcessPoolExecutor(1) as apart:  # whose memory is not ours
            apart.submit(write_events, few, 100_000, options.ids).result()
            apart.submit(write_events, path, options.events, options.ids).result()
        by_eventide(few, people=True)  # compiled, or read from the cache
        for people in (True, False):
            own = np.median([timed(by_eventide, path, people=people) for _ in range(options.rounds)], axis=0)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(f"{'with' if people else 'without'} people: eventide {own[0]:.2f} s, {own[1]:.2f} processor seconds")
            if people:
                print(f"  peak of memory so far {peak:.2f} GB")
            others = [
                np.median([timed(work, path, people=people) for _ in range(options.rounds)], axis=0)
                for work in (by_duckdb, by_polars)
            ]
            for name, other in zip(("DuckDB", "polars"), others, strict=True):
                print(f"  {name} {other[0]:.2f} s, {other[1]:.2f} processor seconds")
            clock, processors = np.min(others, axis=0) / own
            print(f"  the faster one / eventide: {clock:.2f} on the clock, {processors:.2f} in processor seconds")


if __name__ == "__main__":
    main()
