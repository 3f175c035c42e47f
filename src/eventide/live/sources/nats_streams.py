"""Streams of a NATS server: their addresses, the one connection behind each, and what their readers see.

nats-py speaks asyncio, publishing does not: a connection has an event loop of its own, which runs while something is
asked of it. Lost connections are made again by the client for as long as it takes.

A reader's place is the number of the last message it has read, in the stream that was made at a given time. What the
server sends is not confirmed, so a connection that breaks may swallow some of it: the server also numbers what it sends
to a reader, and a number left out shows that. Needs the extra `nats`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from eventide.errors import InputError, missing_extra
from eventide.live.tls import tls_context

PATIENCE = 5.0  # seconds until an answer is no longer waited for
NO_STREAM = 10059  # the server's number of the error


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
    """A connection to the JetStream of a server, which is given `patience` seconds for each answer.

    `settings` say who we are and how the connection is secured: `nats` in a file of client settings.
    """

    def __init__(
        self, address: NatsAddress, patience: float = PATIENCE, settings: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        if find_spec("nats") is None:
            raise missing_extra("NATS needs the extra nats", "nats")
        self.address, self.patience = address, patience
        self._trouble: Exception | None = None  # what happened last in the background
        options = _connect_options(settings)
        self.client = _client(secure="tls" in options)
        self._runner = asyncio.Runner()
        connecting = self.client.connect(
            address.server,
            connect_timeout=patience,
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.5,
            error_cb=self._noted,
            **options,
        )
        try:
            self.ask(asyncio.wait_for(connecting, patience))
        except BaseException:
            self._runner.close()
            raise
        self._trouble = None
        self.stream = self.client.jetstream(timeout=patience)

    def ask(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of something that a beginning depends on; refused where no answer comes."""
        import nats

        try:
            return self.wait(work)
        except (OSError, TimeoutError, nats.errors.Error) as problem:
            if number := getattr(problem, "err_code", None):
                raise self.refused(number) from None
            host, kind = urlsplit(self.address.server).hostname, type(self._trouble or problem).__name__
            raise InputError(
                f"no NATS server with JetStream answers at {host} ({kind}), or it does not let us in; start it, or "
                "correct the address, or the login and TLS in the file of client settings"
            ) from None

    def refused(self, number: int) -> InputError:
        """What the server's JetStream answers instead of what was asked for."""
        stream = self.address.stream
        if number == NO_STREAM:
            return InputError(f"NATS has no stream {stream}; make it, or correct the address")
        return InputError(
            f"NATS answers with error {number} when asked about the stream {stream}; find that number in the log of "
            "the server, and check that JetStream is enabled for this account"
        )

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of something asynchronous."""
        return self._runner.run(work)

    def close(self) -> None:
        """Let go of the connection, and of what still runs in the background; also where the server is away."""
        import nats

        with closing(self._runner), suppress(OSError, nats.errors.Error):
            if not self.client.is_closed:
                self.wait(self.client.close())

    async def _noted(self, problem: Exception) -> None:
        """What goes wrong in the background shows where it is asked for."""
        self._trouble = problem


def _connect_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the client is told."""
    options = {key: settings[key] for key in ("user", "password", "token") if key in settings}
    if {"credentials", "nkey"} & settings.keys() and find_spec("nkeys") is None:
        raise InputError("credentials and nkey of NATS need a package; install it with: pip install 'nats-py[nkeys]'")
    if "credentials" in settings:
        from nats.aio.client import RawCredentials

        options["user_credentials"] = RawCredentials(settings["credentials"] + "\n")
    if "nkey" in settings:
        options["nkeys_seed_str"] = settings["nkey"]
    context = tls_context(settings)
    return options if context is None else options | {"tls": context}


def _client(*, secure: bool) -> Any:
    """A client; a secure one says nothing to a server without TLS, where the plain one would send its password."""
    import nats
    from nats.aio.client import Client

    class SecureClient(Client):
        def _connect_command(self) -> Any:
            if not self._server_info.get("tls_required"):
                raise nats.errors.SecureConnWantedError
            return super()._connect_command()

    return SecureClient() if secure else Client()


class Look(NamedTuple):
    """What a server says about a stream: when it was made, what it holds, the server's own time, and which subjects.

    `subjects` is empty where that is not known, as of one that copies another.
    """

    created: str
    first: int
    last: int
    now: int  # microseconds
    subjects: tuple[str, ...] = ()


class Message(NamedTuple):
    """A message, its number in the stream and among those sent to its consumer, and when the stream got it."""

    data: bytes
    sequence: int
    delivery: int
    appended: int  # microseconds


async def look(connection: NatsConnection) -> Look:
    """Ask the server about the stream; that it is gone is the end, any other error of the server passes."""
    from nats.js.errors import APIError

    stream = connection.address.stream
    answer = await connection.client.request(f"$JS.API.STREAM.INFO.{stream}", b"", connection.patience)
    found = json.loads(answer.data)
    if "error" in found:
        if found["error"].get("err_code") == NO_STREAM:
            raise connection.refused(NO_STREAM)
        raise APIError(**found["error"])
    state = found["state"]
    config = found.get("config", {})
    subjects = () if config.keys() & {"mirror", "sources"} else tuple(config.get("subjects") or ())
    return Look(found["created"], state["first_seq"], state["last_seq"], _microseconds(found["ts"]), subjects)


def foreign_subject(address: NatsAddress, found: Look) -> str | None:
    """A sentence about a subject that the stream does not take, by its configuration alone; None where it may."""
    if not address.subject or not found.subjects or any(meet(address.subject, taken) for taken in found.subjects):
        return None
    return f"the NATS stream {address.stream} takes {', '.join(found.subjects)} and not {address.subject}"


def meet(one: str, other: str) -> bool:
    """Whether some subject is meant by both, each perhaps with * for a word or > for all that follow.

    >>> meet("city.>", "city.trams"), meet("*.trams", "city.*"), meet("city", "city.>")
    (True, True, False)
    """
    ours, theirs = one.split("."), other.split(".")
    for mine, yours in zip(ours, theirs, strict=False):
        if ">" in (mine, yours):
            return True
        if mine != yours and "*" not in (mine, yours):
            return False
    return len(ours) == len(theirs)


def check_place(found: Look, created: str, sequence: int) -> None:
    """Refuse to go on behind a message, unless the stream is the one it was read from and holds what comes next."""
    if created != found.created:
        raise InputError(
            "the NATS stream is not the one that was read before; it was deleted and made anew, so events of open "
            "steps are missing"
        )
    if found.first > sequence + 1:
        raise InputError(
            "the NATS stream no longer holds the message that comes next; let it keep messages for longer than a step "
            "with its lateness"
        )


class MessagesLost(ConnectionError):
    """What the server has sent did not come: a new consumer, behind the last message that was read, gets it again."""


class Consumer:
    """Reads the messages behind one, in order and none left out; the server forgets it when nobody asks it."""

    def __init__(self, subscription: Any) -> None:
        self._subscription = subscription
        self._read = self._sent = 0  # how many were handed over here, and at the last look by the server

    @classmethod
    async def behind(cls, connection: NatsConnection, sequence: int) -> Consumer:
        """A consumer that begins behind a message."""
        return await cls._beginning(connection, "by_start_sequence", opt_start_seq=sequence + 1)

    @classmethod
    async def since(cls, connection: NatsConnection, moment: int) -> Consumer:
        """A consumer that begins with what the stream got at a moment, in microseconds, or later."""
        at = datetime.fromtimestamp(moment // 1_000_000, UTC).isoformat()
        return await cls._beginning(connection, "by_start_time", opt_start_time=at)

    @classmethod
    async def _beginning(cls, connection: NatsConnection, policy: str, **where: Any) -> Consumer:
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        config = ConsumerConfig(
            deliver_policy=DeliverPolicy(policy), ack_policy=AckPolicy.NONE, inactive_threshold=300.0, **where
        )
        address = connection.address
        return cls(await connection.stream.pull_subscribe(address.subject, stream=address.stream, config=config))

    async def fetch(self, most: int, timeout: float) -> list[Message]:
        """The next messages, up to one that is missing; none if none comes in time."""
        try:
            found = [_message(raw) for raw in await self._subscription.fetch(most, timeout)]
        except TimeoutError:  # of nats-py or of asyncio, whichever was first
            found = []
        unbroken = [message for place, message in enumerate(found, self._read + 1) if message.delivery == place]
        if not unbroken and (found or self._sent > self._read):
            raise MessagesLost
        self._read += len(unbroken)
        return unbroken

    async def is_exhausted(self) -> bool:
        """Whether there are no more messages, on the server or on their way."""
        state = await self._subscription.consumer_info()
        self._sent = state.delivered.consumer_seq
        return not state.num_pending and self._sent <= self._read


def _message(raw: Any) -> Message:
    """The server writes into the subject for answers: ...<sequence>.<of the consumer>.<time>.<pending>."""
    *_, sequence, delivery, nanoseconds, _ = raw.reply.split(".")
    return Message(raw.data, int(sequence), int(delivery), int(nanoseconds) // 1000)


def _microseconds(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
