"""Runs the service until it is told to stop, by SIGTERM or SIGINT; the steps in hand are finished.

No request is logged, nor counted or held once it is answered: even how many there are says something about people.
Where others can reach the service and nothing is encrypted, it warns. Connections that dawdle are closed. A port for
health checks has a thread and a loop of its own: however many connect to the other port, whoever asks is answered.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from eventide.errors import EventideError, InputError, StoreError
from eventide.service.config.settings import Config
from eventide.service.config.start_check import check_certificate
from eventide.service.connections import Connections
from eventide.service.http.app import build_app, build_health_app
from eventide.service.http.guard import too_many_connections
from eventide.service.http.problems import MEDIA_TYPE
from eventide.service.live_stream import LiveStream
from eventide.service.service import Service

HEADER_SECONDS = 10.0
HEALTH_SECONDS, HEALTH_CHECKS = 2.0, 500  # of a port for health checks: to come with a request, and at once
PASSING = (errno.EADDRINUSE, errno.EADDRNOTAVAIL)  # in use for a moment, or an address that is not there yet
LOOPBACK = ("127.0.0.1", "::1", "localhost")
LOG = logging.getLogger("eventide.live.service")

_DOCUMENT = too_many_connections().document.model_dump_json().encode()
_TURNED_AWAY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
    % (MEDIA_TYPE.encode(), len(_DOCUMENT), _DOCUMENT)
)


class Doors(NamedTuple):
    """The sockets of a service, and that for health checks alone where they have a port; nobody listens there yet."""

    main: socket.socket
    health: socket.socket | None

    @classmethod
    def of(cls, config: Config) -> Doors:
        """Take the ports; one that is in use, or a certificate that is not fit, is told before any store is made."""
        check_certificate(config.server)
        main = _bound(config.server.host, config.server.port, "host or port")
        try:
            port = config.server.health_port
            return cls(main, None if port is None else _bound(config.server.host, port, "health_port"))
        except BaseException:
            main.close()
            raise

    def open(self) -> None:
        """Listen: whoever is told the address finds somebody there."""
        for door in filter(None, self):
            host, port = door.getsockname()[:2]
            with _refusals(host, port, "host or port"):
                door.listen()

    def close(self) -> None:
        """Give the ports back."""
        for door in filter(None, self):
            door.close()


def serve(
    service: Service,
    told: Callable[[str], None],
    config: Callable[[], Config] | None = None,
    doors: Doors | None = None,
) -> None:
    """Listen, tell the address, and answer until SIGTERM or SIGINT; the steps in hand are finished.

    At SIGHUP `config` is asked again, and bins that are new there get names. `doors` are those taken before.
    """
    with ExitStack() as failing:
        failing.callback(service.stop)
        doors = doors or Doors.of(service.config)
        failing.callback(doors.close)
        doors.open()
        listening, health = doors
        server = build_server(service, health=health, config=config)
        failing.pop_all()
    host, port = listening.getsockname()[:2]
    encrypted = service.config.server.certificate is not None
    if service.config.server.host not in LOOPBACK and not encrypted:
        LOG.warning("others can reach this service and nothing is encrypted: set certificate and key")
    quiet = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the server's own handler passes it on when it has ended
    told(f"{'https' if encrypted else 'http'}://{f'[{host}]' if ':' in host else host}:{port}/")
    hang_up = signal.signal(signal.SIGHUP, lambda *_: server.asked_again.set()) if config is not None else None
    try:
        server.run(sockets=[listening])
    finally:
        signal.signal(signal.SIGTERM, quiet)
        if config is not None:
            signal.signal(signal.SIGHUP, hang_up)
    if ended_by := must_end(service):
        unexpected = EventideError(f"stream {ended_by.settings.name} has stopped by an unexpected fault")
        raise ended_by.failure or unexpected


def must_end(service: Service) -> LiveStream | None:
    """The stream that has stopped for good, if the service is to end then."""
    return next(iter(service.failed), None) if service.config.server.failed_stream == "exit" else None


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with an end to patience: a request must arrive with all its headers within some seconds.

    The server's own limit is on silence between two requests; this one is on headers that never end. Where there are
    too many connections it is turned away at once.
    """

    _look: asyncio.TimerHandle | None = None
    _answered = False
    _dawdled = False  # the last time somebody looked
    _entered: str | None = None  # the address, while it is counted

    def __init__(self, *arguments: Any, others: Connections, header_seconds: float, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._others = others
        self._header_seconds = header_seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Look at the connection from now on, or close it."""
        super().connection_made(transport)
        address = self.client[0] if self.client else "unknown"
        if self._others.enter(address):
            self._entered = address
            self._look = self.loop.call_later(self._header_seconds, self._look_again)
        else:
            transport.write(_TURNED_AWAY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        if self._look is not None:
            self._look.cancel()
        if self._entered is not None:
            self._others.leave(self._entered)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """From now on silence is the server's own concern; nothing is held of what was answered, nor counted."""
        self._answered = True
        answered = self.cycle
        super().on_response_complete()
        self.server_state.total_requests = 0
        if self.cycle is answered:  # else the next request has begun
            self.scope = self.headers = self.cycle = None  # type: ignore[assignment]

    def _look_again(self) -> None:
        begun = bool(self.conn.trailing_data[0])
        dawdles = self.conn.their_state is h11.IDLE and (begun or not self._answered)
        if dawdles and (self._dawdled or not begun):
            self.transport.close()
            return
        self._dawdled = dawdles
        self._look = self.loop.call_later(self._header_seconds, self._look_again)


class _HealthServer:
    """Answers health checks at a socket of their own, in a thread of its own, until it is told to end."""

    def __init__(self, service: Service, listening: socket.socket) -> None:
        few = Connections(HEALTH_CHECKS, HEALTH_CHECKS)
        protocol = partial(PatientProtocol, others=few, header_seconds=HEALTH_SECONDS)
        self._server = uvicorn.Server(_settings(build_health_app(service), protocol, lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, args=[[listening]], name="health", daemon=True)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def end(self) -> None:
        """Answer no more; returns when that is so."""
        self._server.should_exit = True
        self._thread.join()


class _Server(uvicorn.Server):
    """A server that sends those who follow a stream away before it waits for the others."""

    def __init__(
        self,
        config: uvicorn.Config,
        service: Service,
        health: _HealthServer | None,
        reread: Callable[[], Config] | None = None,
    ) -> None:
        super().__init__(config)
        self.service = service
        self._health, self._reread = health, reread
        self.asked_again = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, also for those who only look whether all is well."""
        await super().startup(sockets)
        if self._health is not None:
            self._health.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what would not end by itself, then wait for what is being answered."""
        for stream in self.service.streams.values():
            stream.dismiss()
        await super().shutdown(sockets)
        if self._health is not None:
            self._health.end()

    def _look_again(self) -> None:
        assert self._reread is not None
        try:
            self.service.take_names(self._reread())
        except EventideError as problem:
            LOG.warning("the configuration cannot be read again, so the service keeps the old one: %s", problem)

    async def on_tick(self, counter: int) -> bool:
        """Whether to end; and whether the configuration is to be looked at again."""
        self.service.pulse.beat()
        if self.asked_again.is_set() and self._reread is not None:
            self.asked_again.clear()
            await asyncio.get_running_loop().run_in_executor(None, self._look_again)
        return await super().on_tick(counter) or must_end(self.service) is not None


def build_server(
    service: Service,
    *,
    header_seconds: float = HEADER_SECONDS,
    health: socket.socket | None = None,
    config: Callable[[], Config] | None = None,
) -> _Server:
    """The server; requests are not logged, since even how many there are says something about people.

    `health` is a socket of its own for health checks, which no flood of the other reaches. `config` reads the
    configuration again.
    """
    told = service.config.server
    connections = Connections.within(service.config.limits)
    settings = _settings(
        build_app(service, crowded=lambda: connections.crowded),
        partial(PatientProtocol, others=connections, header_seconds=header_seconds),
        ssl_certfile=told.certificate,
        ssl_keyfile=told.key,
    )
    settings.load()
    return _Server(settings, service, None if health is None else _HealthServer(service, health), config)


def _settings(app: ASGIApp, protocol: Callable[..., Any], **more: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=protocol,  # type: ignore[arg-type]  # is only called
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=16_384,
        **more,
    )


@contextmanager
def _refusals(host: str, port: int, way_out: str) -> Iterator[None]:
    """Say in a sentence that a port cannot be had; what may pass by itself is no mistake of the configuration."""
    try:
        yield
    except OSError as problem:
        what = f"cannot listen on {host} port {port}: {problem.strerror}"
        if problem.errno in PASSING:
            raise StoreError(f"{what}; end what listens there, or choose another {way_out}") from None
        raise InputError(f"{what}; choose another {way_out}") from None


def _bound(host: str, port: int, way_out: str) -> socket.socket:
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        with _refusals(host, port, way_out):
            found.bind((host, port))
    except BaseException:
        found.close()
        raise
    return found
