"""Events from a NATS JetStream, one JSON object a message: the sequence number is the position, the append time the
arrival.

The stream keeps messages in the order in which it appended them, so whoever has read one has seen everything that
arrived before it. When nothing is left to read the server's own clock goes on: it is asked for its time, and after that
for its last message. While the server is away no step closes and nothing is lost; what the stream has dropped before it
was read, or a stream made anew, is refused whenever it happens.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import numpy as np

from eventide.errors import InputError
from eventide.events.reader import EventReader, Events
from eventide.events.zones import EARLIEST
from eventide.live.client_settings import settings_of
from eventide.live.notices import NOTICES
from eventide.live.sources.base import EventBatch, Position
from eventide.live.sources.messages import read_messages
from eventide.live.sources.nats_streams import (
    PATIENCE,
    Consumer,
    Look,
    Message,
    MessagesLost,
    NatsConnection,
    check_place,
    foreign_subject,
    look,
    parse_address,
)

log = logging.getLogger("eventide.live")

AT_A_TIME = 5_000  # messages


class JetStream:
    """The messages of a stream, all of them or those of one subject.

    clients: a file of client settings. patience: seconds for each answer. one_by_one: ask for one message at a time,
    and begin with a moment rather than a position. A server cuts off a reader for whom it holds too much
    (`max_pending`), so where messages are lost on their way fewer are asked for at a time.
    """

    complete, replays, records_arrival = False, True, True

    def __init__(
        self, url: str, *, clients: str | Path | None = None, patience: float = PATIENCE, one_by_one: bool = False
    ) -> None:
        self._at_a_time, self._since = 1 if one_by_one else AT_A_TIME, EARLIEST
        self._most = self._at_a_time
        if one_by_one:
            self.in_order = True
        self._address = parse_address(url)
        self._connection = NatsConnection(self._address, patience, settings_of(url, clients))
        self._consumer: Consumer | None = None
        self._seen_until = EARLIEST

    def open(self, position: Position, reader: EventReader) -> None:
        """Go behind a message, if the stream still is the one it was read from and holds what comes next."""
        self._reader = reader
        if position is not None and not position.keys() & {"created", "since"}:
            position = None  # a place in another kind of source
        self._sequence = 0 if position is None else int(position.get("sequence", 0))
        found = self._connection.ask(look(self._connection))
        self._created = found.created
        if told := foreign_subject(self._address, found):
            if position is None:
                raise InputError(f"{told}, so no event would come; correct the address. Nothing was charged")
            NOTICES.info("%s, so no new event comes; if that is not meant, correct the address", told)
        if position is not None and "since" in position:
            self._since = position["since"]
        elif position is not None:
            check_place(found, position["created"], self._sequence)

    def poll(self, timeout: float) -> EventBatch:
        """What the server has, at once; or after a while nothing, and its clock."""
        import nats

        events = Events.none()
        try:
            if messages := self._connection.wait(self._fetched(timeout)):
                events = self._events(messages)
            if len(messages) < self._most:
                self._connection.wait(self._catch_up())
            else:
                self._most = min(self._at_a_time, self._most + self._most // 8 + 1)
        except (nats.errors.Error, OSError, TimeoutError) as problem:
            if isinstance(problem, MessagesLost):  # perhaps they were more than the server holds for a reader
                self._most = max(1, self._most // 4)
            log.warning("source failed", extra={"fields": {"source": "nats", "problem": type(problem).__name__}})
            self._consumer = None
            self._connection.wait(asyncio.sleep(timeout))
        position = {"sequence": self._sequence, "created": self._created}
        return EventBatch(events, position, self._seen_until)

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    async def _fetched(self, timeout: float) -> list[Message]:
        if self._consumer is None:
            self._check(await look(self._connection))
            self._consumer = await self._begun()
        messages = await self._consumer.fetch(self._most, timeout)
        if messages and messages[-1].sequence != self._sequence + len(messages):  # of other subjects, or dropped
            self._check(await look(self._connection))
        return messages

    async def _begun(self) -> Consumer:
        if self._sequence or self._since == EARLIEST:
            return await Consumer.behind(self._connection, self._sequence)
        return await Consumer.since(self._connection, self._since)

    async def _catch_up(self) -> None:
        """Move to the server's time and behind its last message, if nothing of ours waits there or is on its way."""
        found = await look(self._connection)
        if self._consumer is not None and await self._consumer.is_exhausted():
            self._seen_until = max(self._seen_until, found.now)
            self._sequence = max(self._sequence, found.last)

    def _check(self, found: Look) -> None:
        """Refuse if what comes next is gone; at the very beginning, whatever the stream holds comes next."""
        check_place(found, self._created, self._sequence or found.first)

    def _events(self, messages: list[Message]) -> Events:
        arrival = np.array([message.appended for message in messages])
        self._sequence = messages[-1].sequence
        self._seen_until = max(self._seen_until, messages[-1].appended)
        return read_messages(self._reader, [message.data for message in messages], arrival)
