"""What a service is told: where to listen, whom to answer, and its streams.

These are records, which check nothing: `config_reader` does. Defaults are the careful ones: it listens on this machine
only, and nobody reads without a token.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from eventide.events.reader import Columns, EventReader
from eventide.events.timeline import Timeline
from eventide.live.publisher.window_queries import Questions
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.registry import mechanism
from eventide.privacy.amounts import nano
from eventide.windows.workload import Query

PORT = 8710


@dataclass(frozen=True)
class Server:
    """Where the service listens; on this machine only, unless told otherwise."""

    host: str = "127.0.0.1"
    port: int = PORT
    certificate: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class Access:
    """Whose requests are answered."""

    tokens: Path
    open_reading: bool = False


@dataclass(frozen=True)
class Limits:
    """What one client may ask of the service."""

    body_megabytes: int = 8
    body_seconds: int = 20
    requests_per_second: int = 200
    connections: int = 200
    waiting_batches: int = 64


@dataclass(frozen=True)
class Stream:
    """One stream: how its steps are cut, its events bounded, its counts published, and where all that is kept.

    Of `epsilon`, the budget of every window, `queries_epsilon` is for answers to `queries`.
    """

    name: str
    population: str
    epsilon: Fraction
    window: int
    step: str
    start: str
    bins: tuple[str, ...]
    store: str | Path
    zone: str = "UTC"
    late: str | None = None
    other: str | None = None
    time: str = "time"
    bin: str = "bin"
    user: str | None = None
    max_per_step: int = 1
    mechanism: str = "tide"
    parameters: dict[str, Any] = field(default_factory=dict)
    filter: str = "truncate"
    queries: tuple[Query, ...] = ()
    queries_epsilon: Fraction = Fraction(0)
    queries_of: str = "bins"

    @property
    def budget(self) -> int:
        """Its epsilon as its store counts it, in nano-epsilon."""
        return nano(self.epsilon - self.queries_epsilon) + (nano(self.queries_epsilon) if self.queries else 0)

    def timeline(self) -> Timeline:
        """The times of the stream's steps."""
        return Timeline(self.start, self.step, self.zone)

    def reader(self) -> EventReader:
        """What reads the stream's events, new."""
        columns = Columns(self.time, self.user, self.bin)
        return EventReader(self.bins, columns, other=self.other, zone=self.zone)

    def build(self) -> Mechanism:
        """The stream's mechanism, new."""
        return mechanism(
            self.mechanism,
            epsilon=self.epsilon - self.queries_epsilon,
            window=self.window,
            bins=self.bins,
            sensitivity=self.max_per_step if self.user else 1,
            filter=None if self.filter == "none" else self.filter,
            **self.parameters,
        )

    def questions(self) -> Questions | None:
        """The window queries that are answered besides, if there are any."""
        if not self.queries:
            return None
        truncate = self.filter == "truncate"
        return Questions(self.queries, self.queries_epsilon, self.queries_of, truncate=truncate)


@dataclass(frozen=True)
class Config:
    """Everything a service needs to know. `populations` holds the epsilon of each, together over its streams."""

    server: Server
    access: Access
    limits: Limits
    populations: dict[str, Fraction]
    streams: tuple[Stream, ...]


def defaults(cls: type[Server | Access | Limits | Stream]) -> dict[str, Any]:
    """What holds where a setting is left out."""
    plain = {each.name: each.default for each in fields(cls) if each.default is not MISSING}
    made = {each.name: each.default_factory() for each in fields(cls) if each.default_factory is not MISSING}
    return plain | made
