"""A service that really runs, on a port of its own and on a clock that tests set, with a token of each kind."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction

import httpx

from eventide.events.clock import ManualClock
from eventide.privacy.noise import Zero
from eventide.service.config.settings import Access, Config, Limits, Server, StreamConfig
from eventide.service.http.tokens import ROLES, add_token
from eventide.service.live_stream import Circumstances
from eventide.service.server import HEADER_SECONDS, Doors, build_server
from eventide.service.service import Service
from eventide.service.store_wait import USUAL_PAUSES

START = "2026-01-01T00:00:00Z"
MINUTE = 60_000_000
PATIENCE = 300  # seconds; enough for a slow machine that also compiles
ALL_REFUSED = 422  # the status of a batch of which no event was taken
EXACT = {"noise": Zero()}  # for stores made for tests


def stream(folder, name="city", **changed):
    """A stream of steps of a minute, published without noise, so that every event shows."""
    settings = {
        "population": name,
        "epsilon": Fraction(1),
        "window": 5,
        "step": "1min",
        "start": START,
        "bins": ("north", "south", "harbour"),
        "store": folder / f"{name}.store",
        "user": "user",
        "mechanism": "uniform",
        "parameters": EXACT,
    }
    return StreamConfig(name=name, **settings | changed)


def configuration(folder, streams=None, **changed):
    streams = streams or (stream(folder),)
    parts = {
        "server": Server(port=0),
        "access": Access(folder / "tokens"),
        "limits": Limits(),
        "populations": {each.population: each.epsilon for each in streams},
    }
    return Config(streams=tuple(streams), **parts | changed)


@dataclass
class Running:
    """The service, its address, its clock (at the start of step 0) and the tokens by role."""

    service: Service
    address: str
    clock: ManualClock
    tokens: dict[str, str]
    clients: dict[str | None, httpx.Client] = field(default_factory=dict)
    health_address: str | None = None
    server: object = None

    def client(self, role=None):
        token = self.tokens[role] if role else None
        if token not in self.clients:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            encrypted = self.address.startswith("https")  # else no certificates need be read
            settings = {"headers": headers, "timeout": PATIENCE, "trust_env": False, "verify": encrypted}
            self.clients[token] = httpx.Client(base_url=self.address, **settings)
        return self.clients[token]

    def post(self, events, name="city", key=None, **options):
        headers = {"Idempotency-Key": key} if key else {}
        return self.client("ingest").post(f"/v1/streams/{name}/events", json=events, headers=headers, **options)

    def pass_steps(self, steps=1, name="city"):
        """Let time pass until so many more steps are released."""
        stream = self.service.streams[name]
        last = stream.notices.last + steps
        self.clock.set(stream.feed.timeline.end(last))
        wait_until(lambda: stream.notices.last >= last)

    def pass_steps_of_all(self, steps=1):
        """The same for all streams, which have the same steps."""
        streams = self.service.streams.values()
        last = max(stream.notices.last for stream in streams) + steps
        self.clock.set(next(iter(streams)).feed.timeline.end(last))
        wait_until(lambda: all(stream.notices.last >= last for stream in streams))


def wait_until(holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


@contextmanager
def running(
    config,
    *,
    for_tests=True,
    truth=None,
    clock=None,
    header_seconds=HEADER_SECONDS,
    pauses=USUAL_PAUSES,
    **circumstances,
):
    """`circumstances` are what a publisher must be told, as of `Circumstances`."""
    tokens = {role: add_token(config.access.tokens, role, role) for role in ROLES}
    clock, told = clock or ManualClock(), Circumstances(**circumstances)
    service = Service(config, clock, for_tests=for_tests, truth=truth, circumstances=told, pauses=pauses)
    if isinstance(clock, ManualClock):
        clock.set(next(iter(service.streams.values())).feed.timeline.start)
    doors = Doors.of(config)
    doors.open()
    listening, health = doors
    server = build_server(service, header_seconds=header_seconds, health=health)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    wait_until(lambda: server.started)
    scheme = "https" if config.server.certificate else "http"
    up = Running(service, f"{scheme}://127.0.0.1:{listening.getsockname()[1]}", clock, tokens, server=server)
    if health is not None:
        up.health_address = f"http://127.0.0.1:{health.getsockname()[1]}"
    try:
        yield up
    finally:
        for client in up.clients.values():
            client.close()
        server.should_exit = True
        thread.join()


def event(place="north", user="anna", minute=0, second=10):
    return {"time": f"2026-01-01T00:{minute:02}:{second:02}Z", "user": user, "bin": place}
