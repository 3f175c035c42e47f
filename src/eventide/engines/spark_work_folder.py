"""The work folder of a Spark publisher, which driver and executors see: Spark's checkpoint and tallies of open steps.

Tallies are raw: users are pseudonyms by the store's key, the folder is closed to others, and what belongs to a step is
deleted once it is published. There is a part for each batch, and a batch that Spark hands over again replaces its own.
Tallies name bins by their place in the list, and events after the end are in none of them. So a folder belongs to one
store, one list of bins and one statistic, and to the number of shards it began with; for another end it is made anew,
and the source is read from its beginning.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pa_parquet

from eventide.engines.spark_batches import HandedOver
from eventide.engines.spark_tallies import (
    COUNT_COLUMNS,
    SUMMARY,
    TALLY_COLUMNS,
    Counting,
    bounded,
    capped,
    remembered,
    unpacked,
)
from eventide.errors import InputError
from eventide.events.cap_memory import CapMemory
from eventide.events.reader import Counters
from eventide.events.several_statistics import SeveralMemories
from eventide.events.siphash_kernels import hash_texts, key_words
from eventide.events.texts import buffers, texts
from eventide.events.zones import EARLIEST
from eventide.live.feeds.base import ClosedStep
from eventide.live.setting_readers import moment
from eventide.live.stores.digests import digest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READING = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",  # tallies are few and large...
    "spark.sql.codegen.wholeStage": "false",  # ...so that to compile code for them takes longer than to go without
    "spark.sql.adaptive.enabled": "false",  # the plan says how many parts there are
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",  # a job costs more than looking at files
}


class WorkFolder:
    """A folder that the driver and all executors see under the same name; it is closed to everybody else."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()
        self.checkpoint, self.open_steps = self.path / "checkpoint", self.path / "open"
        self.handover = self.path / "handover"
        self.mark = self.path / "setting.json"

    def settle(self, counting: Counting, shards: int) -> Counting:
        """Make the folder, or refuse one that was made for something else; say how many shards it has."""
        purpose = _purpose(counting)
        discarded = self.path.with_name(f"{self.path.name}.discarded")
        shutil.rmtree(discarded, ignore_errors=True)  # which somebody was killed over
        if self._has_another_end(purpose):  # of what is open, events behind the old end are missing
            self.path.rename(discarded)
            shutil.rmtree(discarded)
        self._made_here = not self.path.exists()
        for folder in (self.path, self.open_steps):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.mark.exists():
            unfinished = self.mark.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(purpose | {"shards": shards}))
            unfinished.replace(self.mark)
        found = self._found()
        if found | purpose != found:
            raise InputError(
                f"{self.path} was made for another store or other bins; choose a new work folder, or delete this one "
                "to have the source read again from its beginning"
            )
        return dataclasses.replace(counting, shards=found["shards"])

    def _found(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.mark.read_text())
        found["until"] = found["until"] and moment(found["until"])  # which was once kept as it had been written
        return {"statistic": {}} | found  # as before there were others

    def _has_another_end(self, purpose: dict[str, Any]) -> bool:
        """Whether all but the end is as it was: then the source is read again from its beginning."""
        if not self.mark.exists():
            return False
        found = self._found()
        return found["until"] != purpose["until"] and found | purpose == found | {"until": purpose["until"]}

    def withdraw(self) -> None:
        """Remove the folder if it was made for this run, so that another one has the source read from its beginning."""
        if self._made_here:
            shutil.rmtree(self.path)


def _purpose(counting: Counting) -> dict[str, Any]:
    hashes, _ = hash_texts(key_words(counting.key), *buffers(texts(["the work folder of a store"])))
    return {
        "store": hashes[0].item(),
        "bins": digest(*counting.spec.bins).hex(),
        "users": counting.spec.user is not None,
        "until": counting.spec.until,
        "statistic": counting.spec.made_statistic().described(),
    }


class Summary(NamedTuple):
    """What became of the events of a batch, and the latest arrival among them."""

    latest: int
    counters: Counters


class Added(NamedTuple):
    """How many events the bounds left out, the cap alone, and what steps used of a cap: bytes of parts of it."""

    left_out: int
    left_out_by_cap: int
    used: dict[int, list[bytes]]


class OpenSteps:
    """Open steps in a folder."""

    def __init__(self, spark: SparkSession, folder: Path, cores: int) -> None:
        self._folder, self._cores = folder, cores
        self._spark = spark.newSession()
        for name, value in READING.items():
            self._spark.conf.set(name, value)

    def take(self, handed: HandedOver, batch: int) -> Summary:
        """Take the tallies of a batch, which are durable."""
        part = self._folder / f"batch={batch}"
        handed.take(batch, part)
        return _summary(part / f"step={SUMMARY}")

    def add_counts(
        self, steps: Sequence[ClosedStep], counting: Counting, memory: CapMemory | SeveralMemories | None
    ) -> Added:
        """Add to the counts of closed steps what was tallied of them, in one job; `memory` is that of a cap."""
        closed = {step.index: step.counts for step in steps}
        parts = [str(part) for step, part in self._parts() if step in closed]
        used: dict[int, list[bytes]] = defaultdict(list)
        if not parts:
            return Added(0, 0, used)
        tallies = self._spark.read.schema(TALLY_COLUMNS).option("basePath", str(self._folder)).parquet(*parts)
        tallies = tallies.select("step", "shard", "tally")
        if memory is None:
            width = min(len(parts) * counting.shards, max(counting.shards, self._cores))
            together = tallies.repartition(width, "step", "shard").sortWithinPartitions("step", "shard")
            bounding = together.mapInArrow(partial(bounded, counting), COUNT_COLUMNS)
        else:  # one after the other, from what was used before
            before = self._spark.createDataFrame(remembered(memory, steps[0].index, counting.shards))
            together = tallies.union(before).repartition(counting.shards, "shard")
            in_order = together.sortWithinPartitions("shard", "step")
            bounding = in_order.mapInArrow(partial(capped, counting), COUNT_COLUMNS)
        rows = bounding.toArrow().to_pylist()
        for row in rows:
            step, bins, counts = unpacked(row)
            if step in closed:
                closed[step][bins] += counts
                used[step].append(row["used"])
        return Added(sum(row["left_out"] for row in rows), sum(row["left_out_by_cap"] for row in rows), used)

    def forget(self, before: float) -> None:
        """Delete what belongs to steps before one, and batches of which nothing is left."""
        for step, part in self._parts():
            if step < before:
                shutil.rmtree(part)
        for batch in self._batches():
            if not any(batch.glob("step=*")):
                shutil.rmtree(batch)

    def _parts(self) -> Iterator[tuple[int, Path]]:
        for batch in self._batches():
            for part in batch.glob("step=*"):
                yield int(part.name.removeprefix("step=")), part

    def _batches(self) -> Iterator[Path]:
        """Batches that were written to their end."""
        for mark in self._folder.glob("batch=*/_SUCCESS"):
            yield mark.parent


def _summary(part: Path) -> Summary:
    """The summaries of all partitions as one; they have served their purpose then."""
    latest, counters = EARLIEST, Counters()
    for file in part.glob("*.parquet"):
        for row in pa_parquet.read_table(file, columns=["tally"])[0].to_pylist():
            one = json.loads(row)
            latest = max(latest, one["latest"])
            counters.add(Counters(one["accepted"], one["late"], one["again"], Counter(one["refused"])))
    shutil.rmtree(part, ignore_errors=True)  # there is none if the batch had no partition
    return Summary(latest, counters)
