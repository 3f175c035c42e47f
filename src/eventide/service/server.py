"""Runs the service until it is told to stop, by SIGTERM or SIGINT; the steps in hand are finished.

No request is logged, since even how many there are says something about people. Where others can reach the service and
nothing is encrypted, it warns. Connections that dawdle are closed.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from eventide.errors import EventideError, InputError
from eventide.service.config.settings import Config
from eventide.service.http.app import build_app
from eventide.service.live_stream import LiveStream
from eventide.service.service import Service

HEADER_SECONDS = 10.0
LOOPBACK = ("127.0.0.1", "::1", "localhost")
LOG = logging.getLogger("eventide.live.service")


def serve(service: Service, told: Callable[[str], None]) -> None:
    """Listen, tell the address, and answer until SIGTERM or SIGINT; the steps in hand are finished."""
    try:
        server, listening = build_server(service), listen(service.config)
    except BaseException:
        service.stop()
        raise
    host, port = listening.getsockname()[:2]
    encrypted = service.config.server.certificate is not None
    if service.config.server.host not in LOOPBACK and not encrypted:
        LOG.warning("others can reach this service and nothing is encrypted: set certificate and key")
    quiet = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the server's own handler passes it on when it has ended
    told(f"{'https' if encrypted else 'http'}://{f'[{host}]' if ':' in host else host}:{port}/")
    try:
        server.run(sockets=[listening])
    finally:
        signal.signal(signal.SIGTERM, quiet)
    if ended_by := must_end(service):
        unexpected = EventideError(f"stream {ended_by.settings.name} has stopped by an unexpected fault")
        raise ended_by.failure or unexpected


def must_end(service: Service) -> LiveStream | None:
    """The stream that has stopped for good, if the service is to end then."""
    return next(iter(service.failed), None) if service.config.server.failed_stream == "exit" else None


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with an end to patience: a request must arrive with all its headers within some seconds.

    The server's own limit is on silence between two requests; this one is on headers that never end.
    """

    _look: asyncio.TimerHandle | None = None
    _answered = False
    _dawdled = False  # the last time somebody looked

    def __init__(self, *arguments: Any, header_seconds: float = HEADER_SECONDS, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._header_seconds = header_seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Look at the connection from now on."""
        super().connection_made(transport)
        self._look = self.loop.call_later(self._header_seconds, self._look_again)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """From now on silence is the server's own concern."""
        self._answered = True
        super().on_response_complete()

    def _look_again(self) -> None:
        begun = bool(self.conn.trailing_data[0])
        dawdles = self.conn.their_state is h11.IDLE and (begun or not self._answered)
        if dawdles and (self._dawdled or not begun):
            self.transport.close()
            return
        self._dawdled = dawdles
        self._look = self.loop.call_later(self._header_seconds, self._look_again)


class _Server(uvicorn.Server):
    """A server that sends those who follow a stream away before it waits for the others."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what would not end by itself, then wait for what is being answered."""
        for stream in self.service.streams.values():
            stream.dismiss()
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Whether to end."""
        return await super().on_tick(counter) or must_end(self.service) is not None


def build_server(service: Service, *, header_seconds: float = HEADER_SECONDS) -> uvicorn.Server:
    """The server; requests are not logged, since even how many there are says something about people."""
    config, limits = service.config.server, service.config.limits
    settings = uvicorn.Config(
        build_app(service),
        http=partial(PatientProtocol, header_seconds=header_seconds),  # type: ignore[arg-type]  # is only called
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=limits.connections + 1,  # from that many on, uvicorn refuses
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=16_384,
        ssl_certfile=config.certificate,
        ssl_keyfile=config.key,
    )
    try:
        settings.load()
    except OSError:  # also what is wrong with certificates
        files = f"{config.certificate} and {config.key}"
        raise InputError(f"cannot use {files} as certificate and key; give two files in PEM form that match") from None
    return _Server(settings, service)


def listen(config: Config) -> socket.socket:
    """The socket to listen on, refused in a sentence where it cannot be had."""
    server = config.server
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((server.host, server.port))
        listening.listen()  # whoever is told the address finds somebody there
    except OSError as problem:
        listening.close()
        raise InputError(
            f"cannot listen on {server.host} port {server.port}: {problem.strerror}; choose another host or port"
        ) from None
    return listening
