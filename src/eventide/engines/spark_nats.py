"""A NATS JetStream as a streaming frame: one row a message, its fields as text, its append time as `arrival`.

Offsets are sequence numbers of the stream. Where a batch ends is told from where it starts, which Spark keeps in its
checkpoint, and from what the server holds; nothing is remembered between calls, so a batch that Spark asks for again is
the same batch. A server that does not answer fails the query rather than looking empty: while nobody knows what has
arrived, the clock must not close steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from eventide.engines.spark_session import cores_of
from eventide.events.files.lines import json_object
from eventide.events.texts import texts
from eventide.live.client_settings import settings_of
from eventide.live.sources.nats_streams import (
    PATIENCE,
    Consumer,
    Look,
    Message,
    MessagesLost,
    NatsConnection,
    check_place,
    look,
    parse_address,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ARRIVAL = "arrival"
AT_A_TIME = 5_000  # messages that are asked for at once
FETCH_SECONDS = 2.0  # until it is asked whether there are more

Offset = dict[str, Any]


def read_nats(
    spark: SparkSession,
    address: str,
    columns: list[str],
    *,
    max_messages: int = 1_000_000,
    clients: str | Path | None = None,
) -> DataFrame:
    """The messages of nats://host:port/STREAM?subject=NAME as a streaming frame of the columns and `arrival`.

    A message is a JSON object with the columns as fields; one that is none, or that lacks a field, has empty cells
    there and is refused later. `max_messages` is the most that a batch takes. `clients` is the path of a file of client
    settings, as the driver and all executors see it; Spark is told the path, never what is in it. Where left out, it is
    the file that EVENTIDE_CLIENTS names on each of them.
    """
    parse_address(address)
    spark.dataSource.register(_source_class())
    schema = ", ".join([*(f"`{name}` string" for name in columns), f"{ARRIVAL} timestamp"])
    reader = spark.readStream.format("eventide-nats").schema(schema).option("address", address)
    reader = reader.option("max_messages", max_messages).option("clients", str(clients or ""))
    return reader.option("partitions", cores_of(spark)).load()


class SequenceReader:
    """What Spark asks of a stream of messages with sequence numbers; an offset names the last message before it."""

    def __init__(
        self,
        address: str,
        columns: list[str],
        max_messages: int,
        partitions: int,
        *,
        clients: str = "",
        patience: float = PATIENCE,
        fetch_seconds: float = FETCH_SECONDS,
    ) -> None:
        self._address, self._columns, self._patience = parse_address(address), columns, patience
        self._clients, self._fetch_seconds = clients, fetch_seconds
        self._max_messages, self._partitions = max_messages, partitions
        self._target: int | None = None

    def initialOffset(self) -> Offset:
        """Before the first message that the stream holds."""
        found = self._look()
        return {"created": found.created, "sequence": max(found.first - 1, 0)}

    def latestOffset(self, start: Offset, limit: Any) -> Offset:
        """Where the batch that begins at `start` ends."""
        found = self._look()
        check_place(found, **start)
        end = min(found.last, start["sequence"] + getattr(limit, "max_rows", self._max_messages))
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
        (after, last), most = partition.value, AT_A_TIME
        with closing(self._connected()) as connection:
            consumer = connection.wait(Consumer.behind(connection, after))
            while after < last:
                try:
                    messages = connection.wait(consumer.fetch(min(most, last - after), self._fetch_seconds))
                except MessagesLost:  # perhaps they were more than the server holds for a reader
                    if most == 1:
                        raise
                    most = max(1, most // 4)
                    consumer = connection.wait(Consumer.behind(connection, after))
                    continue
                yield self._batch([message for message in messages if message.sequence <= last])
                after = messages[-1].sequence if messages else after
                if connection.wait(consumer.is_exhausted()):  # the rest is of other subjects
                    return

    def commit(self, end: Offset) -> None:
        """The stream keeps messages by its own rules."""

    def stop(self) -> None:
        """Nothing is held."""

    def _connected(self) -> NatsConnection:
        """A connection, on the driver or an executor; what it needs is read there and travels nowhere."""
        return NatsConnection(self._address, self._patience, settings_of(self._address.server, self._clients))

    def _look(self) -> Look:
        with closing(self._connected()) as connection:
            found: Look = connection.ask(look(connection))
            return found

    def _batch(self, messages: list[Message]) -> Any:
        objects = [json_object(message.data) or {} for message in messages]
        arrays = [texts([one.get(name) for one in objects]).cast(pa.string()) for name in self._columns]
        arrival = pa.array([message.appended for message in messages], pa.timestamp("us", "UTC"))
        return pa.RecordBatch.from_arrays([*arrays, arrival], [*self._columns, ARRIVAL])


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
            numbers = int(options["max_messages"]), int(options["partitions"])
            return StreamReader(options["address"], columns, *numbers, clients=options["clients"])

    return NatsSource
