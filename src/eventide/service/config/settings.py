"""What a service is told: where to listen, whom to answer, and its streams.

Each key of the file stands here once: its reader, and what holds where it is left out. The defaults are the careful
ones: it listens on this machine only, and nobody reads without a token. What several keys must be together is checked
by `config_file`.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from eventide.events.reader import Columns, EventReader
from eventide.events.timeline import Timeline
from eventide.live.publisher.window_queries import OF, Questions
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.registry import mechanism
from eventide.privacy.amounts import nano
from eventide.service.config import keys
from eventide.service.config.keys import Key
from eventide.windows.workload import Query


@dataclass(frozen=True)
class Server:
    """Where the service listens; on this machine only, unless told otherwise."""

    host: str = field(default="127.0.0.1", metadata=keys.key(keys.text))
    port: int = field(default=8710, metadata=keys.key(keys.whole_number(1, 65_535)))
    certificate: str | None = field(default=None, metadata=keys.key(keys.text))
    key: str | None = field(default=None, metadata=keys.key(keys.text))


@dataclass(frozen=True)
class Access:
    """Whose requests are answered."""

    tokens: Path = field(metadata=keys.key(keys.text))
    open_reading: bool = field(default=False, metadata=keys.key(keys.yes_or_no))


@dataclass(frozen=True)
class Limits:
    """What one client may ask of the service."""

    body_megabytes: int = field(default=8, metadata=keys.key(keys.whole_number(1, 1_000)))
    body_seconds: int = field(default=20, metadata=keys.key(keys.whole_number(1, 3_600)))
    requests_per_second: int = field(default=200, metadata=keys.key(keys.whole_number(1, 1_000_000)))
    connections: int = field(default=200, metadata=keys.key(keys.whole_number(1, 100_000)))
    waiting_batches: int = field(default=64, metadata=keys.key(keys.whole_number(1, 100_000)))


@dataclass(frozen=True, kw_only=True)
class StreamConfig:
    """One stream: how its steps are cut, its events bounded, its counts published, and where all that is kept.

    Of `epsilon`, the budget of every window, `queries_epsilon` is for answers to `queries`.
    """

    name: str = field(metadata=keys.key(keys.name, '"city"'))
    population: str = field(metadata=keys.key(keys.name))
    epsilon: Fraction = field(metadata=keys.key(nano, "1.0"))
    window: int = field(metadata=keys.key(keys.as_written, '"24h"'))
    step: str = field(metadata=keys.key(keys.duration, '"10min"'))
    start: str = field(metadata=keys.key(keys.moment, "2026-01-01T00:00:00Z"))
    zone: str = field(default="UTC", metadata=keys.key(keys.text))
    late: str | None = field(default=None, metadata=keys.key(keys.duration))
    bins: tuple[str, ...] = field(metadata=keys.key(keys.as_written, '["north", "south"]'))
    other: str | None = field(default=None, metadata=keys.key(keys.text))
    time: str = field(default="time", metadata=keys.key(keys.text))
    bin: str = field(default="bin", metadata=keys.key(keys.text))
    user: str | None = field(default=None, metadata=keys.key(keys.text))
    max_per_step: int = field(default=1, metadata=keys.key(keys.whole_number(1, 1_000_000)))
    mechanism: str = field(default="tide", metadata=keys.key(keys.text))
    parameters: dict[str, Any] = field(default_factory=dict, metadata=keys.key(keys.table))
    filter: str = field(default="truncate", metadata=keys.key(keys.text))
    queries: tuple[Query, ...] = field(default=(), metadata=keys.key(keys.text))
    queries_epsilon: Fraction = field(default=Fraction(0), metadata=keys.key(nano))
    queries_of: str = field(default="bins", metadata=keys.key(keys.one_of(OF)))
    store: str | Path = field(metadata=keys.key(keys.text, '"city.store"'))

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
    streams: tuple[StreamConfig, ...]


def _keys(of: type[Any]) -> dict[str, Key]:
    return {each.name: each.metadata["key"] for each in fields(of)}


def _defaults(of: type[Any]) -> dict[str, Any]:
    plain = {each.name: each.default for each in fields(of) if each.default is not MISSING}
    made = {each.name: each.default_factory() for each in fields(of) if each.default_factory is not MISSING}
    return plain | made


TABLES: dict[str, dict[str, Key]] = {
    "server": _keys(Server),
    "access": _keys(Access),
    "limits": _keys(Limits),
    "populations": {"name": Key(keys.name, '"residents"'), "epsilon": Key(nano, "1.0")},
    "streams": _keys(StreamConfig),
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "server": _defaults(Server),
    "access": _defaults(Access) | {"tokens": "eventide.tokens"},
    "limits": _defaults(Limits),
    "populations": {},
    "streams": _defaults(StreamConfig) | {"population": None, "queries_epsilon": 0},
}
