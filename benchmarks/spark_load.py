"""How fast Spark counts, how fast it counts with every user bounded, and how fast the whole publisher is, in one run.

The same CSV files of events (10-second steps, 1,000 bins) go through: plain windowed counts as Spark makes them, which
bound nobody; our bounded counts; and the publisher with mechanism, ledger, store and sink. Sessions and compiled code
are warm, rounds alternate, and the best of each counts. Needs the extra `spark` and Java.

    python benchmarks/spark_load.py [--events 5000000] [--rounds 2] [--master local[2]]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

import eventide as ev
from eventide.engines.spark import publish
from eventide.engines.spark_feed import SparkFeed
from eventide.engines.spark_tallies import Counting
from eventide.engines.spark_work import WorkFolder
from eventide.live.event_reader import Columns
from eventide.live.feed import Resume

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BEGIN = datetime(2024, 3, 30, tzinfo=UTC)
STEPS, SECONDS, BINS, USERS, FILES, MOST = 100, 10, 1_000, 100_000, 4, 2
NAMES = [str(number) for number in range(BINS)]
CUT: dict[str, Any] = {
    "step": f"{SECONDS}s",
    "start": BEGIN.isoformat(),
    "until": (BEGIN + timedelta(seconds=STEPS * SECONDS)).isoformat(),
}


def write(folder: Path, events: int) -> None:
    """Events in the order of time, as a log has them."""
    chance = np.random.default_rng(1)
    offsets = np.sort(chance.integers(0, STEPS * SECONDS * 1_000, events))
    times = np.datetime64(BEGIN.replace(tzinfo=None), "ms") + offsets.astype("timedelta64[ms]")
    table = pa.table(
        {
            "timestamp": np.char.add(np.datetime_as_string(times), "Z"),
            "user": chance.integers(0, USERS, events),
            "bin": chance.integers(0, BINS, events),
        }
    )
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(events), FILES)):
        pa_csv.write_csv(table.slice(rows[0], len(rows)), folder / f"{number}.csv")


def session(master: str) -> SparkSession:
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).config("spark.driver.host", "127.0.0.1")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def frame(spark: SparkSession, folder: Path, time_type: str) -> DataFrame:
    schema = f"timestamp {time_type}, user string, bin string"
    return spark.readStream.schema(schema).option("header", True).csv(str(folder))


def plain(spark: SparkSession, folder: Path, scratch: Path) -> None:
    """Windowed counts with Spark's watermark, handed over batch by batch."""
    from pyspark.sql import functions

    events = frame(spark, folder, "timestamp").withWatermark("timestamp", "1 second")
    counts = events.groupBy(functions.window("timestamp", f"{SECONDS} seconds"), "bin").count()
    query = (
        counts.writeStream.outputMode("append")
        .foreachBatch(lambda batch, _: batch.toArrow())
        .option("checkpointLocation", str(scratch))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def bounded(spark: SparkSession, folder: Path, scratch: Path) -> None:
    """Bounded counts of all steps, published to nobody."""
    counting = Counting(
        bins=tuple(NAMES), columns=Columns(), arrival=None, other=None, zone="UTC", late=None, most=MOST, **CUT
    )
    feed = SparkFeed(frame(spark, folder, "string"), counting, WorkFolder(scratch), {"availableNow": True}, 0)
    steps = [step for step in feed.steps(Resume(0, None, bytes(16), [])) if step is not None]
    assert len(steps) == STEPS


def whole(spark: SparkSession, folder: Path, scratch: Path) -> None:
    """The publisher, with store and sink."""
    scratch.mkdir()
    publishing = publish(
        frame(spark, folder, "string"),
        mechanism=ev.mechanism("ba", epsilon=1, window=10, bins=NAMES, sensitivity=MOST),
        store=scratch / "store.db",
        sinks=[scratch / "out.jsonl"],
        user="user",
        bin="bin",
        arrival=None,
        **CUT,
    )
    publishing.await_termination()
    assert publishing.publisher.published == STEPS


def seconds(work: Callable[[SparkSession, Path, Path], None], spark: SparkSession, folder: Path) -> float:
    with tempfile.TemporaryDirectory() as scratch:
        begin = time.perf_counter()
        work(spark, folder, Path(scratch) / "work")
        return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the Spark engine.")
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--master", default="local[2]")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        few, many = Path(scratch) / "few", Path(scratch) / "many"
        write(few, 20_000)
        write(many, asked.events)
        spark = session(asked.master)
        jobs = (plain, bounded, whole)
        for work in jobs:
            seconds(work, spark, few)
        best = {work: float("inf") for work in jobs}
        for _ in range(asked.rounds):
            for work in jobs:
                best[work] = min(best[work], seconds(work, spark, many))
        spark.stop()
    for work in jobs:
        print(f"{work.__name__:8} {best[work]:6.1f} s  {asked.events / best[work]:9,.0f} events/s")
    print(f"whole / plain   {best[plain] / best[whole]:.2f} (at least 0.3)")
    print(f"whole / bounded {best[bounded] / best[whole]:.2f} (at least 0.9)")


if __name__ == "__main__":
    main()
