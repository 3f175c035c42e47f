"""What executors do: rows of events become tallies of open steps, and tallies of closed steps bounded counts.

Which events count, which step they belong to and which of a user's events are kept is decided by the code of `events`,
with the store's key: so the counts are those of one machine, in whatever partitions, batches and order events come. A
user's events of a step meet in one shard, chosen by the user's hash; shards are bounded side by side. Under a cap a
shard takes closed steps in their order, from what its users had used before them, which the driver sends along: so it
comes to the same however often a task is tried. Everything here runs without Spark, on Arrow batches.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import Array, Ints
from eventide.errors import InputError
from eventide.events.cap_memory import CapMemory, is_memory, rows_of_parts
from eventide.events.files.lines import CsvLineReader, JsonLineReader
from eventide.events.reader import Events
from eventide.events.several_statistics import SeveralMemories
from eventide.events.tally import Tally, UserTally
from eventide.events.texts import buffers, texts
from eventide.events.times import parse_times
from eventide.events.zones import EARLIEST
from eventide.live.feeds.base import Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.base import EventBatch
from eventide.live.stream_spec import StreamSpec

SUMMARY = -1  # stands for a step in the rows that sum up a partition
BYTES_AT_ONCE = 32 << 20
LINE = "value"  # the column of a frame that holds lines of text
TALLIES = pa.schema([("step", pa.int64()), ("shard", pa.int32()), ("tally", pa.binary())])
COUNTS = pa.schema(
    {"step": pa.int64(), "bins": pa.binary(), "counts": pa.binary()}
    | {"left_out": pa.int64(), "left_out_by_cap": pa.int64(), "used": pa.binary()}
)
TALLY_COLUMNS = "step long, shard int, tally binary"
COUNT_COLUMNS = "step long, bins binary, counts binary, left_out long, left_out_by_cap long, used binary"


@dataclass(frozen=True)
class Counting:
    """How events are counted, as plain values that travel to the executors; the key is the store's secret.

    `arrival` is the column of the moment at which the source got an event; None where the source is complete.
    With `lines` the frame has one column of lines of text in that format, and what is wanted is read from them.
    """

    spec: StreamSpec
    arrival: str | None
    key: bytes = field(default=b"", repr=False)
    next_step: int = 0
    shards: int = 1
    lines: CsvLineReader | JsonLineReader | None = None

    def __post_init__(self) -> None:
        if self.spec.spare_bins:
            raise InputError("Spark cannot have spare bins; publish without Spark, or leave spare_bins out")

    @property
    def wanted(self) -> list[str]:
        """The names of the columns of the frame to read."""
        if self.lines is not None:
            return [LINE]
        return [*self.spec.reader().wanted, *([] if self.arrival is None else [self.arrival])]

    def tally(self) -> Tally:
        """An empty tally."""
        spec, statistic = self.spec, self.spec.made_statistic()
        return statistic.tally(len(spec.bins), spec.max_per_step, self.key, users=spec.user is not None)


class Tallying:
    """Turns the rows of one partition into rows (step, shard, tally), and one that sums up what became of them.

    `partition` is its number, by which events without users are spread over the shards.
    """

    def __init__(self, counting: Counting, partition: int) -> None:
        self._counting, self._partition = counting, partition
        self._feed = EventFeed(None, **counting.spec.counting())
        self._latest = EARLIEST
        self._made: list[tuple[int, int, bytes]] = []

    def rows(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The rows, as Arrow batches."""
        for table in _tables(batches):
            yield from self._tallied(table)
        yield _batch([(SUMMARY, 0, self._summary())])

    def _tallied(self, table: Any) -> Iterator[Any]:
        self._feed.begin(Resume(self._counting.next_step, None, self._counting.key, [], self._keep))
        for shard, events in self._shards(self._read(table)):
            self._feed.take(EventBatch(events, None, EARLIEST, key=str(shard)))
            made, self._made = self._made, []
            yield _batch(made)

    def _keep(self, tallies: Iterable[tuple[int, bytes]], shard: str | None) -> bool:
        self._made += [(step, int(shard or 0), tally) for step, tally in tallies]
        return True

    def _read(self, table: Any) -> Events:
        reader, name, lines = self._feed.reader, self._counting.arrival, self._counting.lines
        if lines is not None:
            found = lines.rows(_text(table.column(LINE)), reader.wanted)
            return reader.read(found.rows, found.unreadable)
        if name is None:
            return reader.read(table)
        arrival, readable = parse_times(table.column(name), reader.zone)
        if not readable.all():
            table, arrival = table.filter(pa.array(readable)), arrival[readable]
        self._latest = max(self._latest, int(arrival.max(initial=EARLIEST)))
        return reader.read(table, int(np.count_nonzero(~readable)), arrival)

    def _shards(self, events: Events) -> Iterator[tuple[int, Events]]:
        shards, users, refused = self._counting.shards, events.user, events.refused
        if users is None:
            yield self._partition % shards, events
            return
        for shard, rows in enumerate(rows_of_parts(users, shards)):
            yield shard, events.of(rows)._replace(refused=refused)
            refused = Counter()

    def _summary(self) -> bytes:
        counters = self._feed.counters
        return json.dumps({"latest": self._latest, **vars(counters)}).encode()


def bounded(counting: Counting, batches: Iterable[Any]) -> Iterator[Any]:
    """From rows (step, shard, tally), sorted by step and shard, to the counts of each step: bins that have any.

    With each comes how many events the bound left out.
    """
    rows = itertools.chain.from_iterable(batch.to_pylist() for batch in batches)
    for step, of_step in itertools.groupby(rows, key=lambda row: row["step"]):
        counts, left_out = counting.tally().counts(step), 0  # none
        for _, of_shard in itertools.groupby(of_step, key=lambda row: row["shard"]):
            tally = counting.tally()
            for row in of_shard:
                tally.join(row["tally"])
            of_users = tally.counts(step)
            counts = counts + of_users
            left_out += tally.left_out(of_users)
        yield _counts(step, counts, left_out=left_out)


def remembered(memory: CapMemory | SeveralMemories, next_step: int, shards: int) -> Any:
    """What users have used of a cap before a step, as rows (step, shard, tally) of the step before it."""
    parts = memory.divided(next_step, shards)
    return pa.Table.from_batches([_batch([(next_step - 1, shard, used) for shard, used in enumerate(parts)])])


def capped(counting: Counting, batches: Iterable[Any]) -> Iterator[Any]:
    """From rows (step, shard, tally), sorted by shard and step, to the counts of each step and shard under the cap.

    The first row of a shard is what its users have used before. With the counts comes what the step used.
    """
    cap = counting.spec.cap_in_steps()
    assert cap is not None
    rows = itertools.chain.from_iterable(batch.to_pylist() for batch in batches)
    for _, of_shard in itertools.groupby(rows, key=lambda row: row["shard"]):
        memory = counting.spec.made_statistic().memory(cap, counting.key)
        for step, of_step in itertools.groupby(of_shard, key=lambda row: row["step"]):
            tally = counting.tally()
            assert isinstance(tally, UserTally)
            for row in of_step:
                if is_memory(row["tally"]):
                    memory.take_again(row["tally"])
                else:
                    tally.join(row["tally"])
            counts, used = tally.capped_counts(step, memory)
            by_cap = tally.countable() - tally.counted(counts)
            yield _counts(step, counts, left_out=tally.left_out(counts), left_out_by_cap=by_cap, used=used)


def unpacked(row: dict[str, Any]) -> tuple[int, Array, Array]:
    """The step, bins and counts of a row that `bounded` or `capped` made."""
    return row["step"], np.frombuffer(row["bins"], np.int32), np.frombuffer(row["counts"], np.int64)


def _counts(step: int, counts: Ints, **more: int | bytes) -> Any:
    """A row of counts: the bins that have any, and what comes with them."""
    bins = np.flatnonzero(counts).astype(np.int32)
    row = {"step": step, "bins": bins.tobytes(), "counts": counts[bins].tobytes(), "left_out_by_cap": 0, **more}
    return pa.RecordBatch.from_pylist([row], COUNTS)


def _tables(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches joined to tables that are worth the work of a tally."""
    waiting, size = [], 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= BYTES_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _text(lines: Any) -> bytes:
    """Lines as one text, each with its end."""
    ended = pc.binary_join_element_wise(texts(lines), b"", b"\n")
    ends, data = buffers(ended)
    return data[ends[0] : ends[-1]].tobytes()


def _batch(rows: list[tuple[int, int, bytes]]) -> Any:
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind.type) for column, kind in zip(columns, TALLIES, strict=True)], schema=TALLIES
    )
