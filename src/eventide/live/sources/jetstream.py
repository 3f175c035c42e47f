"""Events from a NATS JetStream, one JSON object a message: the sequence number is the position, the append time the
arrival.

The stream keeps messages in the order in which it appended them, so whoever has read one has seen everything that
arrived before it. When nothing is left to read the server's own clock goes on: it is asked for its time, and after
that for its last message. While the server is away no step closes and nothing is lost. May import `errors` and its
neighbours; needs the extra `nats`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from eventide.errors import InputError
from eventide.live.event_reader import EventReader, Events
from eventide.live.feed import Position
from eventide.live.sources.base import Batch
from eventide.live.sources.messages import read_messages
from eventide.live.sources.nats_address import NatsConnection, parse_address
from eventide.live.zones import EARLIEST

log = logging.getLogger("eventide.live")

AT_A_TIME = 5_000  # messages
PATIENCE = 2.0  # seconds until an answer is no longer waited for


class _Look(NamedTuple):
    """What a server says about a stream: which it is, what it holds, and the server's own time."""

    created: str
    first: int
    last: int
    now: int


class JetStream:
    """The messages of a stream, all of them or those of one subject."""

    complete, replays, records_arrival = False, True, True

    def __init__(self, url: str) -> None:
        self._address = parse_address(url)
        self._connection = NatsConnection(self._address)
        self._subscription: Any = None
        self._seen_until = EARLIEST

    def open(self, position: Position, reader: EventReader) -> None:
        """Go behind a message, if the stream still is the one it was read from and holds what comes next."""
        self._reader = reader
        self._sequence = 0 if position is None else int(position["sequence"])
        look = self._connection.wait(self._look())
        self._created = look.created
        if position is not None and position["created"] != look.created:
            raise InputError(
                f"the stream {self._address.stream} is not the one that was read before; it was deleted and made anew, "
                "so events of open steps are missing"
            )
        if position is not None and look.first > self._sequence + 1:
            raise InputError(
                f"the stream {self._address.stream} no longer holds the message after {self._sequence}; let it keep "
                "messages for longer than a step with its lateness"
            )

    def poll(self, timeout: float) -> Batch:
        """What the server has, at once; or after a while nothing, and its clock."""
        import nats

        events = Events.none()
        try:
            if messages := self._connection.wait(self._fetched(timeout)):
                events = self._events(messages)
            if len(messages) < AT_A_TIME:
                self._connection.wait(self._catch_up())
        except (nats.errors.Error, OSError, TimeoutError) as problem:
            log.warning("source failed", extra={"fields": {"source": "nats", "problem": type(problem).__name__}})
            self._subscription = None
            self._connection.wait(asyncio.sleep(timeout))
        position = {"sequence": self._sequence, "created": self._created}
        return Batch(events, position, self._seen_until)

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    async def _fetched(self, timeout: float) -> list[Any]:
        if self._subscription is None:
            await self._subscribe()
        try:
            return list(await self._subscription.fetch(AT_A_TIME, timeout))
        except TimeoutError:  # of nats-py or of asyncio, whichever was first
            return []

    async def _subscribe(self) -> None:
        """A consumer that begins behind the last message read, and that the server forgets when nobody asks it."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self._sequence + 1,
            ack_policy=AckPolicy.NONE,
            inactive_threshold=300.0,
        )
        self._subscription = await self._connection.stream.pull_subscribe(
            self._address.subject, stream=self._address.stream, config=config
        )

    async def _catch_up(self) -> None:
        """Move to the server's time, if after that moment nothing waits for us or is on its way."""
        moment = (await self._look()).now
        consumer = await self._subscription.consumer_info()
        if not consumer.num_pending and consumer.delivered.stream_seq <= self._sequence:
            self._seen_until = max(self._seen_until, moment)

    async def _look(self) -> _Look:
        answer = await self._connection.client.request(f"$JS.API.STREAM.INFO.{self._address.stream}", b"", PATIENCE)
        found = json.loads(answer.data)
        if "error" in found:
            raise InputError(f"NATS has no stream {self._address.stream}; make it, or correct the address")
        state = found["state"]
        return _Look(found["created"], state["first_seq"], state["last_seq"], _microseconds(found["ts"]))

    def _events(self, messages: list[Any]) -> Events:
        stamps = [_stamp(message) for message in messages]
        arrival = np.array([stamp.appended for stamp in stamps]) // 1000
        self._sequence = stamps[-1].sequence
        self._seen_until = max(self._seen_until, int(arrival[-1]))
        return read_messages(self._reader, [message.data for message in messages], arrival)


class _Stamp(NamedTuple):
    sequence: int
    appended: int  # nanoseconds


def _stamp(message: Any) -> _Stamp:
    """What the server wrote into the subject for answers: ...<sequence>.<of the consumer>.<time>.<pending>."""
    *_, sequence, _, appended, _ = message.reply.split(".")
    return _Stamp(int(sequence), int(appended))


def _microseconds(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
