"""A NATS JetStream as a sink: each release a message, its id the step, so that the server drops repeats.

What the stream has is asked of the stream: its last message on the subject says how far it came. That is asked again
behind a message that was not confirmed, since the server knows an id only for a while.
"""

from __future__ import annotations

import json
from pathlib import Path

from eventide.errors import InputError
from eventide.live.client_settings import settings_of
from eventide.live.sinks.base import Sink
from eventide.live.sources.nats_streams import PATIENCE, NatsConnection, foreign_subject, look, parse_address


class JetStreamSink(Sink):
    """Publishes releases on a subject of a stream.

    clients: a file of client settings. patience: seconds for each answer.
    """

    def __init__(self, url: str, *, clients: str | Path | None = None, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._address = parse_address(url)
        self._settings = settings_of(url, clients)
        if not self._address.subject or set("*>") & set(self._address.subject):
            raise InputError("releases go to one subject of a stream; write nats://host:port/STREAM?subject=NAME")
        self.name = f"nats {self._address.stream} {self._address.subject}"
        self._last: bytes | None = None
        self._unconfirmed = False

    def open(self) -> None:
        """Connect, and see what the stream has."""
        self._connection = NatsConnection(self._address, self._patience, self._settings)
        if told := foreign_subject(self._address, self._connection.ask(look(self._connection))):
            self._connection.close()
            raise InputError(f"{told}, so it would confirm no release; correct the address")
        self._last = self._connection.ask(self._last_message())

    def last_step(self) -> int | None:
        """The step of the last message."""
        if self._last is None:
            return -1
        try:
            return int(json.loads(self._last)["step"])
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"the last message on {self._address.subject} is no release; give releases a subject of their own"
            ) from None

    def holds(self, release: bytes) -> bool:
        """Whether this is the last message."""
        return self._last == release

    def send(self, step: int, release: bytes) -> None:
        """Publish a release and wait until the stream has it."""
        import nats

        try:
            if self._unconfirmed:
                self._last = self._connection.wait(self._last_message())
            if not (self._unconfirmed and self._last == release):
                self._unconfirmed = True
                self._connection.wait(self._published(step, release))
            self._unconfirmed = False
        except nats.errors.MaxPayloadError:
            raise OSError("the release is longer than max_payload of the NATS server; raise that") from None
        except (nats.errors.Error, TimeoutError) as problem:
            raise OSError(f"NATS did not confirm it ({type(problem).__name__})") from None

    def close(self) -> None:
        """Let go of the connection."""
        if hasattr(self, "_connection"):
            self._connection.close()

    async def _last_message(self) -> bytes | None:
        from nats.js.errors import NotFoundError

        try:
            found = await self._connection.stream.get_last_msg(self._address.stream, self._address.subject)
        except NotFoundError as missing:
            if missing.err_code == _NO_MESSAGE:
                return None
            raise
        return bytes(found.data)

    async def _published(self, step: int, release: bytes) -> None:
        subject, stream = self._address.subject, self._address.stream
        await self._connection.stream.publish(
            subject, release, stream=stream, headers={"Nats-Msg-Id": f"{subject} {step}"}
        )


_NO_MESSAGE = 10037
