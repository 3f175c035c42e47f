"""How fast Spark counts, how fast it counts with every user bounded, and how fast the whole publisher is, in one run.

The same CSV files of events (10-second steps, 1,000 bins) go through: plain windowed counts as Spark makes them, which
bound nobody; our bounded counts; the publisher with mechanism, ledger, store and sink, all three on the same frame; and
that publisher on the files themselves, as the command has it. Sessions and compiled code are warm, every other round
goes backwards, and the best of each counts. Needs the extra `spark` and Java.

With `--cold` it times instead what somebody waits for who publishes a fifth of the events (a million) with `eventide
publish --engine spark` in a new process: by the clock, in processor seconds of it, its Java and their Python workers,
and where the time goes. Kernels are compiled already, as from the second run on. A quiet machine of two cores takes 11
s by the clock (wanted: 20) and 16 of processors: 4.6 until there is a session, 2 more until Spark has looked at the
files and answered its first query, 7 to read and tally the events, 1.5 to bound users, and 0.1 to publish 100 steps. Of
ours is little: a Python worker starts in 0.4 s and tallies 250,000 events in 0.05. Java's own plan for compiling costs
4 processor seconds more; in exchange it then does about 8 % more in a processor second, over the first 15 million
events.

From files, which our own code reads line by line, the whole publisher does 0.97 of what Spark's plain counts do in a
processor second, measured on a busy machine (wanted: 0.7). On a frame that Spark has read it does 0.65 to 0.70, and
0.59 by the clock of a quiet machine. What stands in the way there is the way of 5 million rows from Java into Python:
of its 9 processor seconds 0.9 are our tallies and 0.3 our bounding, the same code run without Spark, and 6 are what
plain counts take as well; the others bring texts over as Arrow batches, and tallies back.

    python benchmarks/spark_load.py [--events 5000000] [--rounds 4] [--master local[2]] [--cold]
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import math
import os
import subprocess
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
from eventide.engines.spark import publish, spark_feed
from eventide.engines.spark_feed import SparkFeed
from eventide.engines.spark_files import read_source
from eventide.engines.spark_tallies import Counting
from eventide.engines.spark_work_folder import WorkFolder
from eventide.live.feeds.base import Resume
from eventide.live.stream_spec import StreamSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BEGIN = datetime(2024, 3, 30, tzinfo=UTC)
STEPS, SECONDS, BINS, USERS, FILES, MOST = 100, 10, 1_000, 100_000, 4, 2
Job = Callable[["SparkSession", Path, Path], None]
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
    spec = StreamSpec(bins=NAMES, user="user", max_per_step=MOST, **CUT)
    counting = Counting(spec, arrival=None)
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


def files(spark: SparkSession, folder: Path, scratch: Path) -> None:
    """The same as `eventide publish --engine spark` does it: our own code reads the lines of the files."""
    scratch.mkdir()
    frame_of_lines, lines = read_source(spark, folder)
    spec = StreamSpec(bins=NAMES, user="user", max_per_step=MOST, **CUT)
    counting = Counting(spec, arrival=None, lines=lines)
    feed = spark_feed(frame_of_lines, counting, scratch / "work", skew="1min", available_now=True, trigger="1 second")
    mechanism = ev.mechanism("ba", epsilon=1, window=10, bins=NAMES, sensitivity=MOST)
    with ev.Publisher(feed, mechanism, scratch / "store.db", [scratch / "out.jsonl"]) as publisher:
        publisher.run()
    assert publisher.published == STEPS


def processor_seconds(of: int | None = None) -> float:
    """What a process and everything below it has used so far, read from /proc: Java and its Python workers too."""
    total, todo = 0, [of or os.getpid()]
    while todo:
        process = Path(f"/proc/{todo.pop()}")
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            total += sum(map(int, (process / "stat").read_text().rpartition(")")[2].split()[11:15]))
            for children in process.glob("task/*/children"):
                todo += map(int, children.read_text().split())
    return total / os.sysconf("SC_CLK_TCK")


def measured(
    work: Callable[[SparkSession, Path, Path], None], spark: SparkSession, folder: Path
) -> tuple[float, float]:
    """Seconds by the clock, and of processors: on a machine that others use too the second says more."""
    with tempfile.TemporaryDirectory() as scratch:
        begin, used = time.perf_counter(), processor_seconds()
        work(spark, folder, Path(scratch) / "work")
        return time.perf_counter() - begin, processor_seconds() - used


STAGES = {  # each is over when this function is called for the first time
    "Python starts": ("eventide.engines.spark_session", "quiet_session"),
    "Java and session start": ("eventide.engines.spark_files", "_folder"),
    "source is looked at": ("eventide.engines.spark_feed", "cores_of"),
    "first query": ("eventide.engines.spark_feed", "HandedOver"),
    "events are read and tallied": ("eventide.engines.spark_feed", "SparkFeed._take_batch"),
    "query ends": ("eventide.engines.spark_work_folder", "OpenSteps.add_counts"),
    "users are bounded": ("eventide.engines.spark_feed", "SparkFeed._remembering"),
    "steps are published": ("eventide.engines.spark_batches", "HandedOver.end"),
}


def publish_in_stages(arguments: list[str]) -> None:
    """`eventide` with these arguments; prints the clock and the processor seconds when a stage is over."""
    for stage, (module, path) in STAGES.items():
        owner: Any = importlib.import_module(module)
        *classes, name = path.split(".")
        owner = functools.reduce(getattr, classes, owner)
        setattr(owner, name, _marked(getattr(owner, name), stage))
    from eventide.cli import main as command

    command(arguments)


def _marked(function: Callable[..., Any], stage: str) -> Callable[..., Any]:
    seen = False

    @functools.wraps(function)
    def marked(*given: Any, **named: Any) -> Any:
        nonlocal seen
        if not seen:
            print(f"{time.time()} {processor_seconds()} {stage}", file=sys.stderr, flush=True)
        seen = True
        return function(*given, **named)

    return marked


def cold(folder: Path, master: str) -> None:
    """Time one run from the start of its process to its end, and print where the time went."""
    with tempfile.TemporaryDirectory() as scratch:
        options = {
            **{"epsilon": "1", "window": "10", "bins": str(BINS), "max-per-step": str(MOST), "mechanism": "ba"},
            **{"store": f"{scratch}/store.db", "out": f"{scratch}/out.jsonl", "engine": "spark", "user": "user", **CUT},
        }
        arguments = [str(folder), *(f"--{name}={value}" for name, value in options.items())]
        code = f"from spark_load import publish_in_stages as go; go({['publish', *arguments]!r})"
        local = {"PYSPARK_SUBMIT_ARGS": f"--master {master} pyspark-shell", "SPARK_LOCAL_IP": "127.0.0.1"}
        begin, used = time.time(), 0.0
        with subprocess.Popen(
            [sys.executable, "-c", code],
            env=os.environ | local,
            cwd=Path(__file__).parent,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        ) as process:
            while process.poll() is None:
                used = max(used, processor_seconds(process.pid))
                time.sleep(0.02)
            end = time.time()
            told = process.stderr.read() if process.stderr else ""
        assert process.returncode == 0, told
        assert len((Path(scratch) / "out.jsonl").read_text().splitlines()) == STEPS
    print(f"from a cold start: {end - begin:.1f} s by the clock, {used:.1f} processor seconds")
    told_of = [line.split(" ", 2) for line in told.splitlines()]
    marks = [(float(mark[0]), float(mark[1]), mark[2]) for mark in told_of if mark[-1] in STAGES]
    last, worked = begin, 0.0
    for moment, processors, stage in [*marks, (end, used, "everything ends")]:
        more = max(0.0, processors - worked)  # what a process used that ended between two looks is not seen
        print(f"  {stage:28} {moment - last:5.1f} s, {more:5.1f} of processors")
        last, worked = moment, worked + more


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the Spark engine.")
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--cold", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if asked.cold:
            write(Path(scratch) / "few", asked.events // 5)
            for _ in range(asked.rounds):
                cold(Path(scratch) / "few", asked.master)
            return
        few, many = Path(scratch) / "few", Path(scratch) / "many"
        write(few, asked.events // 5)
        write(many, asked.events)
        spark = session(asked.master)
        jobs = (plain, bounded, whole, files)
        for work in jobs:
            measured(work, spark, few)
        best = dict.fromkeys(jobs, (math.inf, math.inf))
        for number in range(asked.rounds):
            for work in jobs[:: -1 if number % 2 else 1]:  # whatever comes later finds Java warmer
                clock, used = measured(work, spark, many)
                best[work] = (min(best[work][0], clock), min(best[work][1], used))
        spark.stop()
    for work in jobs:
        clock, used = best[work]
        print(f"{work.__name__:8} {asked.events / clock:9,.0f} events/s, {asked.events / used:9,.0f} per busy core")
    for ours, other, least in ((whole, plain, 0.3), (whole, bounded, 0.9), (files, plain, 0.7)):
        ratios = [theirs / mine for theirs, mine in zip(best[other], best[ours], strict=True)]
        name = f"{ours.__name__} / {other.__name__}"
        print(f"{name:16} {ratios[0]:.2f} by the clock, {ratios[1]:.2f} by processors (limit {least})")


if __name__ == "__main__":
    main()
