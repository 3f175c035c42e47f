"""Events from a Kafka topic, one JSON object a message: offsets are kept in our store, the append time is the arrival.

Partitions are shared out by the group; what was assigned is read from our own offsets, never from those of the broker.
A source has seen everything up to a moment only when it holds all partitions and each has been read that far: so a
rebalance, a partition that was added meanwhile, or a broker that is away, delays steps and loses nothing. Addresses are
shared with the sink; an option that is not known is refused.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import numpy as np

from eventide.errors import InputError, missing_extra
from eventide.events.clock import Clock, SystemClock
from eventide.events.reader import EventReader, Events
from eventide.events.zones import EARLIEST
from eventide.live.client_settings import settings_of
from eventide.live.sources.base import EventBatch, Position
from eventide.live.sources.messages import read_messages

log = logging.getLogger("eventide.live")

PATIENCE = 10.0  # seconds until an answer is no longer waited for
OPTIONS = {"group": "eventide", "arrival": "append"}
AT_A_TIME = 10_000  # messages
QUIET = {"log_level": 2}  # else the client writes 20 lines a second while brokers are away, and none of them is JSON
CLOCKS_APART = 1_000_000  # microseconds by which the clocks of brokers and ours may differ
NO_ANSWER = (
    "no Kafka broker answers at the address, or none lets us in; start it, or correct the address or the settings of "
    "its client (log_level = 6 in them shows what it says)"
)
FORGOTTEN_AFTER = 6_000  # milliseconds; until then a publisher that was killed holds its partitions
SHARED_OUT_AFTER = 10_000  # milliseconds; until then the group does not see a partition that was added


class KafkaAddress(NamedTuple):
    """Brokers, a topic, the group to read it as, and whether arrival is the broker's `append` time or our `read`."""

    brokers: str
    topic: str
    group: str
    arrival: str


def parse_address(url: str) -> KafkaAddress:
    """Read kafka://host:port[,host:port]/topic?group=NAME&arrival=append.

    >>> parse_address("kafka://127.0.0.1:9092/visits")
    KafkaAddress(brokers='127.0.0.1:9092', topic='visits', group='eventide', arrival='append')
    """
    parts = urlsplit(url)
    topic = parts.path.strip("/")
    asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
    options = OPTIONS | asked
    if not parts.netloc or not topic or "/" in topic or set(asked) - set(OPTIONS):
        raise InputError("a Kafka address reads kafka://host:port/topic, perhaps with ?group=NAME; correct it")
    if "@" in parts.netloc:
        raise InputError("a Kafka address takes no user or password; put them into a file of client settings")
    if options["arrival"] not in ("append", "read"):
        raise InputError("the arrival of a Kafka message is its append time or when it is read; write arrival=read")
    return KafkaAddress(parts.netloc, topic, options["group"], options["arrival"])


def confluent_kafka() -> Any:
    """The client library, or how to get it."""
    try:
        import confluent_kafka
    except ImportError:
        raise missing_extra("Kafka needs the extra kafka", "kafka") from None
    return confluent_kafka


def made(client: Callable[[dict[str, Any]], Any], ours: dict[str, Any], settings: Mapping[str, Any]) -> Any:
    """A client with our settings and those of a file, or a refusal that names the one it does not take."""
    try:
        return client({**QUIET, **settings, **ours})
    except (confluent_kafka().KafkaException, TypeError, ValueError) as problem:
        named = re.search(r'property "([^"]*)"', str(problem))  # what else it says could show a value
        which = named[1] if named and named[1] in settings else ", ".join(settings)
        raise InputError(
            f"Kafka's client refuses its settings, because of: {which or 'the address'}; correct them in the file of "
            "client settings"
        ) from None


class Kafka:
    """The messages of a topic; clients: a file of client settings; patience: seconds for each answer.

    one_by_one: hand over one message at a time, and begin with the first that the brokers hold, since there is no
    position. The client reads ahead all the same, by as little as it can be told to.
    """

    complete, replays = False, True

    def __init__(
        self,
        url: str,
        clock: Clock | None = None,
        *,
        clients: str | Path | None = None,
        patience: float = PATIENCE,
        one_by_one: bool = False,
    ) -> None:
        self._at_a_time = 1 if one_by_one else AT_A_TIME
        if one_by_one:
            self.in_order = False
        self._patience = patience
        self._kafka = confluent_kafka()
        self._address = parse_address(url)
        self.records_arrival = self._address.arrival == "append"
        self._clock = clock or SystemClock()
        self._problems: set[str] = set()  # that were told since the brokers answered last
        reading = {
            "bootstrap.servers": self._address.brokers,
            "group.id": self._address.group,
            "session.timeout.ms": FORGOTTEN_AFTER,
            "topic.metadata.refresh.interval.ms": SHARED_OUT_AFTER,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "error_cb": self._note,
            **({"queued.min.messages": 1, "queued.max.messages.kbytes": 1} if one_by_one else {}),
        }
        self._consumer = made(self._kafka.Consumer, reading, settings_of(url, clients))
        try:
            partitions = self._all_partitions()
        except self._kafka.KafkaException:
            raise InputError(NO_ANSWER) from None
        if not partitions:
            raise InputError(f"Kafka has no topic {self._address.topic}; make it, or correct the address")
        self._seen = dict.fromkeys(partitions, EARLIEST)
        self._no_others_until = EARLIEST  # the moment up to which there were no partitions but these
        self._assigned: set[int] = set()

    def open(self, position: Position, reader: EventReader) -> None:
        """Ask for partitions, each to be read on from the position."""
        self._reader = reader
        if position is None or "offsets" not in position:
            self._offsets = {partition: self._offset_range(partition)[0] for partition in self._seen}
        else:
            self._offsets = {partition: position["offsets"].get(str(partition), 0) for partition in self._seen}
        self._consumer.subscribe([self._address.topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def poll(self, timeout: float) -> EventBatch:
        """What the brokers have, at once; or after a while nothing, and the time up to which there was nothing."""
        values, arrivals = [], []
        messages = self._consumer.consume(self._at_a_time, timeout)
        for message in messages:
            if message.error() is not None:
                self._look_at(message)
            elif message.offset() >= self._offsets[message.partition()]:
                arrivals.append(self._arrival(message))
                values.append(message.value() or b"")
                self._offsets[message.partition()] = message.offset() + 1
        if self._knows_all() and len(messages) < self._at_a_time:
            self._catch_up()
        events = read_messages(self._reader, values, np.array(arrivals)) if values else Events.none()
        position = {"offsets": {str(partition): offset for partition, offset in self._offsets.items()}}
        return EventBatch(events, position, self._seen_until())

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def _seen_until(self) -> int:
        """The moment up to which all partitions were seen; never while one of them is somebody else's."""
        return min(self._no_others_until, *self._seen.values()) if self._assigned == set(self._seen) else EARLIEST

    def _knows_all(self) -> bool:
        """Ask which partitions there are; one that is added later holds nothing that arrived before."""
        moment = self._present()
        try:
            found = self._all_partitions()
        except self._kafka.KafkaException as problem:
            self._note(problem.args[0])
            return False
        self._problems.clear()
        for partition in found:
            self._know(partition)
        if found:  # brokers that have just started may know of none
            self._no_others_until = max(self._no_others_until, moment)
        return bool(found)

    def _know(self, partition: int) -> None:
        """Read a partition that was added from its very first message on."""
        self._seen.setdefault(partition, EARLIEST)
        self._offsets.setdefault(partition, 0)

    def _present(self) -> int:
        """The moment before which everything that arrived can be asked for now."""
        return self._clock.certain() - (CLOCKS_APART if self.records_arrival else 0)

    def _catch_up(self) -> None:
        """Move to the present in each partition whose end, asked for now, is where we are."""
        for partition in self._assigned:
            moment = self._present()
            try:
                _, end = self._offset_range(partition)
            except self._kafka.KafkaException as problem:
                self._note(problem.args[0])
                return
            if end <= self._offsets[partition]:
                self._seen[partition] = max(self._seen[partition], moment)

    def _arrival(self, message: Any) -> int:
        kind, milliseconds = message.timestamp()
        if not self.records_arrival:
            return self._clock.now()
        if kind != self._kafka.TIMESTAMP_LOG_APPEND_TIME:
            raise InputError(
                f"the topic {self._address.topic} says when a message was made, not when it was appended; set its "
                "message.timestamp.type to LogAppendTime, or take the moment of reading with ?arrival=read"
            )
        arrival = int(milliseconds) * 1000
        self._seen[message.partition()] = max(self._seen[message.partition()], arrival)
        return arrival

    def _look_at(self, message: Any) -> None:
        """What the client has to say: that messages are gone is the end, anything else passes.

        At the end of a partition it says where that is: behind our last message may be marks of transactions.
        """
        if message.error().code() == self._kafka.KafkaError._PARTITION_EOF:
            self._offsets[message.partition()] = max(self._offsets[message.partition()], message.offset())
            return
        if message.error().code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:
            raise InputError(
                f"the topic {self._address.topic} no longer holds the messages to go on with; let it keep them for "
                "longer than a step with its lateness"
            )
        self._note(message.error())

    def _note(self, problem: Any) -> None:
        """Tell of a problem once, until the brokers have answered: the client repeats it many times a second."""
        if problem.name() not in self._problems:
            self._problems.add(problem.name())
            log.warning("source failed", extra={"fields": {"source": "kafka", "problem": problem.name()}})

    def _all_partitions(self) -> list[int]:
        topics = self._consumer.list_topics(self._address.topic, self._patience).topics
        return sorted(topics[self._address.topic].partitions)

    def _offset_range(self, partition: int) -> tuple[int, int]:
        """The first offset that the brokers hold, and the one behind the last."""
        place = self._kafka.TopicPartition(self._address.topic, partition)
        first, end = self._consumer.get_watermark_offsets(place, self._patience)
        return int(first), int(end)

    def _on_assign(self, consumer: Any, partitions: list[Any]) -> None:
        for partition in partitions:
            self._know(partition.partition)
            partition.offset = self._offsets[partition.partition]
        consumer.assign(partitions)
        self._assigned = {partition.partition for partition in partitions}

    def _on_revoke(self, consumer: Any, partitions: list[Any]) -> None:
        consumer.unassign()
        self._assigned = set()
