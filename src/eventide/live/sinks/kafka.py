"""A Kafka topic as a sink: each release a message whose key is the step, on one partition so that order holds.

What the topic has is asked of the topic: the last message of the partition says how far it came.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eventide.errors import InputError
from eventide.live.client_settings import settings_of
from eventide.live.sinks.base import Sink
from eventide.live.sources.kafka import NO_ANSWER, PATIENCE, confluent_kafka, made, parse_address

PARTITION = 0
LARGEST = 1_000_000_000  # bytes of a release, as far as the client goes; the brokers have a limit of their own


class KafkaSink(Sink):
    """Produces releases to a topic; clients: a file of client settings; patience: seconds for each answer."""

    def __init__(self, url: str, *, clients: str | Path | None = None, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._kafka = confluent_kafka()
        self._address = parse_address(url)
        self._settings = settings_of(url, clients)
        self.name = f"kafka {self._address.topic}"
        self._last: Any = None

    def open(self) -> None:
        """Connect, and see what the topic has."""
        brokers = {"bootstrap.servers": self._address.brokers}
        sending = {"acks": "all", "enable.idempotence": True, "message.max.bytes": LARGEST}
        self._producer = made(self._kafka.Producer, brokers | sending, self._settings)
        place = self._kafka.TopicPartition(self._address.topic, PARTITION)
        reading = {"group.id": f"{self._address.group} sink", "allow.auto.create.topics": True}
        consumer = made(self._kafka.Consumer, brokers | reading, self._settings)
        try:
            consumer.list_topics(self._address.topic, self._patience)  # where brokers make topics on demand, this does
            first, end = consumer.get_watermark_offsets(place, self._patience)
            if end > first:
                place.offset = end - 1
                consumer.assign([place])
                self._last = consumer.poll(self._patience)
        except self._kafka.KafkaException:
            raise InputError(NO_ANSWER) from None
        finally:
            consumer.close()

    def last_step(self) -> int | None:
        """The key of the last message."""
        if self._last is None:
            return -1
        key = self._last.key() or b""
        if not key.isdigit():
            raise InputError(f"the last message of {self._address.topic} is no release; give releases a topic alone")
        return int(key)

    def holds(self, release: bytes) -> bool:
        """Whether this is the last message."""
        return self._last is not None and bool(self._last.value() == release)

    def send(self, step: int, release: bytes) -> None:
        """Produce a release and wait until the brokers have it."""
        failures: list[Any] = []

        def confirmed(problem: Any, _: Any) -> None:
            failures.extend([] if problem is None else [problem.name()])

        self._producer.produce(
            self._address.topic, release, key=str(step).encode(), partition=PARTITION, on_delivery=confirmed
        )
        if self._producer.flush(self._patience) or failures:
            self._producer.purge()  # so that it is not sent behind our back
            raise OSError(f"Kafka did not confirm it ({failures[0] if failures else 'no answer'})")
