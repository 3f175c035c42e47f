"""A NATS JetStream as a streaming frame: one row a message, its fields as text, its append time as `arrival`.

Offsets are sequence numbers of the stream. Where a batch ends is told from where it starts, which Spark keeps in its
checkpoint, and from what the server holds; nothing is remembered between calls, so a batch that Spark asks for again is
the same batch. A server that does not answer fails the query rather than looking empty: while nobody knows what has
arrived, the clock must not close steps. May import `live`; needs the extras `spark` and `nats`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from eventide.errors import InputError
from eventide.live.sources.nats_address import NatsConnection, parse_address
from eventide.live.texts import texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ARRIVAL = "arrival"
AT_A_TIME = 5_000  # messages that are asked for at once
PATIENCE = 2.0  # seconds

Offset = dict[str, Any]


def read_nats(spark: SparkSession, address: str, columns: list[str], *, max_messages: int = 1_000_000) -> DataFrame:
    """The messages of nats://host:port/STREAM?subject=NAME as a streaming frame of the columns and `arrival`.

    A message is a JSON object with the columns as fields; one that is none, or that lacks a field, has empty cells
    there and is refused later. `max_messages` is the most that a batch takes.
    """
    parse_address(address)
    spark.dataSource.register(_source_class())
    schema = ", ".join([*(f"`{name}` string" for name in columns), f"{ARRIVAL} timestamp"])
    reader = spark.readStream.format("eventide-nats").schema(schema).option("address", address)
    reader = reader.option("max_messages", max_messages)
    return reader.option("partitions", spark.sparkContext.defaultParallelism).load()


class _Look(NamedTuple):
    """What a server says about a stream: when it was made and what it holds."""

    created: str
    first: int
    last: int


class SequenceReader:
    """What Spark asks of a stream of messages with sequence numbers; an offset names the last message before it."""

    def __init__(self, address: str, columns: list[str], max_messages: int, partitions: int) -> None:
        self._address, self._columns = address, columns
        self._max_messages, self._partitions = max_messages, partitions
        self._target: int | None = None

    def initialOffset(self) -> Offset:
        """Before the first message that the stream holds."""
        look = self._look()
        return {"created": look.created, "sequence": max(look.first - 1, 0)}

    def latestOffset(self, start: Offset, limit: Any) -> Offset:
        """Where the batch that begins at `start` ends."""
        look = self._look()
        if start["created"] != look.created:
            raise InputError("the NATS stream is not the one that was read before; it was deleted and made anew")
        if look.first > start["sequence"] + 1:
            raise InputError(
                f"the NATS stream no longer holds the message after {start['sequence']}; let it keep messages for "
                "longer than a step with its lateness"
            )
        end = min(look.last, start["sequence"] + getattr(limit, "max_rows", self._max_messages))
        if self._target is not None:
            end = min(end, self._target)
        return start | {"sequence": max(end, start["sequence"])}

    def getDefaultReadLimit(self) -> Any:
        """The most messages of a batch."""
        from pyspark.sql.streaming.datasource import ReadMaxRows

        return ReadMaxRows(self._max_messages)

    def prepareForTriggerAvailableNow(self) -> None:
        """Go no further than what is there now."""
        self._target = self._look().last

    def partitions(self, start: Offset, end: Offset) -> list[Any]:
        """The messages of a batch, divided into ranges."""
        from pyspark.sql.datasource import InputPartition

        edges = np.linspace(start["sequence"], end["sequence"], self._partitions + 1).astype(int).tolist()
        return [InputPartition((after, last)) for after, last in itertools.pairwise(edges) if last > after]

    def read(self, partition: Any) -> Iterator[Any]:
        """The messages after one and up to another, as Arrow batches."""
        after, last = partition.value
        with closing(NatsConnection(parse_address(self._address))) as connection:
            subscription = connection.wait(_subscribed(connection, after))
            while after < last:
                messages, exhausted = connection.wait(_fetched(subscription, after))
                stamped = [(message.data, *_stamp(message)) for message in messages]
                yield self._batch([(data, appended) for data, sequence, appended in stamped if sequence <= last])
                if exhausted:
                    return
                after = stamped[-1][1] if stamped else after

    def commit(self, end: Offset) -> None:
        """The stream keeps messages by its own rules."""

    def stop(self) -> None:
        """Nothing is held."""

    def _look(self) -> _Look:
        with closing(NatsConnection(parse_address(self._address))) as connection:
            return _look(connection)

    def _batch(self, rows: list[tuple[bytes, int]]) -> Any:
        objects = [_object(data) for data, _ in rows]
        arrays = [texts([one.get(name) for one in objects]).cast(pa.string()) for name in self._columns]
        arrival = pa.array([appended for _, appended in rows], pa.timestamp("us", "UTC"))
        return pa.RecordBatch.from_arrays([*arrays, arrival], [*self._columns, ARRIVAL])


def _look(connection: NatsConnection) -> _Look:
    import nats

    stream = connection.address.stream
    try:
        info = connection.wait(connection.stream.stream_info(stream))
    except nats.js.errors.NotFoundError:
        raise InputError(f"NATS has no stream {stream}; make it, or correct the address") from None
    return _Look(str(info.created), info.state.first_seq, info.state.last_seq)


async def _subscribed(connection: NatsConnection, after: int) -> Any:
    """A consumer that begins behind a message, and that the server forgets soon."""
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    config = ConsumerConfig(
        deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=after + 1,
        ack_policy=AckPolicy.NONE,
        inactive_threshold=30.0,
    )
    address = connection.address
    return await connection.stream.pull_subscribe(address.subject, stream=address.stream, config=config)


async def _fetched(subscription: Any, after: int) -> tuple[list[Any], bool]:
    """Some of the messages behind one, and whether there are no more, on the server or on their way."""
    import nats

    try:
        messages = await subscription.fetch(AT_A_TIME, PATIENCE)
    except nats.errors.TimeoutError:
        messages = []
    reached = _stamp(messages[-1])[0] if messages else after
    consumer = await subscription.consumer_info()
    return messages, not consumer.num_pending and consumer.delivered.stream_seq <= reached


def _stamp(message: Any) -> tuple[int, int]:
    """Sequence number and append time in microseconds, from the subject for answers."""
    *_, sequence, _, appended, _ = message.reply.split(".")
    return int(sequence), int(appended) // 1000


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _source_class() -> Any:
    """The classes that Spark wants, made here so that this module can be imported without it."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

    class StreamReader(SequenceReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
        pass

    class NatsSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "eventide-nats"

        def streamReader(self, schema: Any) -> Any:
            columns = [name for name in schema.names if name != ARRIVAL]
            options = self.options
            return StreamReader(options["address"], columns, int(options["max_messages"]), int(options["partitions"]))

    return NatsSource
