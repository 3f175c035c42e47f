"""Addresses of NATS and the one connection behind each: what source and sink share.

nats-py speaks asyncio, publishing does not: a connection has an event loop of its own, which runs while something is
asked of it. Lost connections are made again by the client for as long as it takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import closing, suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from eventide.errors import InputError

PATIENCE = 5.0  # seconds until an answer is no longer waited for


class NatsAddress(NamedTuple):
    """A server, a stream on it, and a subject: empty for all of the stream's."""

    server: str
    stream: str
    subject: str


def parse_address(url: str) -> NatsAddress:
    """Read nats://host:port/STREAM?subject=name.

    >>> parse_address("nats://127.0.0.1:4222/EVENTS?subject=city.>")
    NatsAddress(server='nats://127.0.0.1:4222', stream='EVENTS', subject='city.>')
    """
    parts = urlsplit(url)
    stream = parts.path.strip("/")
    asked = parse_qs(parts.query)
    if not parts.hostname or not stream or "/" in stream or set(asked) - {"subject"}:
        raise InputError("a NATS address reads nats://host:port/STREAM, perhaps with ?subject=NAME; correct it")
    return NatsAddress(f"{parts.scheme}://{parts.netloc}", stream, asked.get("subject", [""])[0])


class NatsConnection:
    """A connection to the JetStream of a server, which is given `patience` seconds for each answer."""

    def __init__(self, address: NatsAddress, patience: float = PATIENCE) -> None:
        try:
            import nats
        except ImportError:
            raise InputError("NATS needs the extra nats; install it with: pip install 'eventide[nats]'") from None
        self.address, self.patience = address, patience
        self._runner = asyncio.Runner()
        connecting = nats.connect(
            address.server,
            connect_timeout=patience,
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.5,
            error_cb=_quiet,
        )
        try:
            self.client = self.ask(asyncio.wait_for(connecting, patience))
        except BaseException:
            self._runner.close()
            raise
        self.stream = self.client.jetstream(timeout=patience)

    def ask(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of something that a beginning depends on; refused where no answer comes."""
        import nats

        try:
            return self.wait(work)
        except nats.js.errors.NotFoundError:
            raise
        except (OSError, TimeoutError, nats.errors.Error) as problem:
            raise InputError(
                f"no NATS server with JetStream answers at {urlsplit(self.address.server).hostname} "
                f"({type(problem).__name__}); start it, or correct the address"
            ) from None

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of something asynchronous."""
        return self._runner.run(work)

    def close(self) -> None:
        """Let go of the connection, and of what still runs in the background; also where the server is away."""
        import nats

        with closing(self._runner), suppress(OSError, nats.errors.Error):
            if not self.client.is_closed:
                self.wait(self.client.close())


async def _quiet(_: Exception) -> None:
    """What goes wrong in the background shows where it is asked for."""
