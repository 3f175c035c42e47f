"""What a service is told: where to listen, whom to answer, and its streams.

Each key of the file stands here once, or for a stream in its description: its reader, and what holds where it is left
out. The defaults are the careful ones: it listens on this machine only, and nobody reads without a token. What several
keys must be together is checked by `config_file`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack

from eventide.live import setting_readers as readers
from eventide.live.setting_readers import DescribedSetting, defaults_of, setting, settings_of
from eventide.live.stream_spec import StreamOptions, StreamSpec
from eventide.privacy.amounts import nano

FAILED_STREAM = ("liveness", "exit")


@dataclass(frozen=True)
class Server:
    """Where the service listens, on this machine only unless told otherwise; and its file of client settings."""

    host: str = setting(
        "127.0.0.1", readers.text, "Where to listen: this machine only; for others also set TLS.", '"127.0.0.1"'
    )
    port: int = setting(
        8710, readers.whole_number(1, 65_535), "The port of everything: ingest, releases, dashboard, figures.", "8710"
    )
    health_port: int | None = setting(
        None,
        readers.whole_number(1, 65_535),
        "A port for health checks alone, without TLS, which no flood of the other reaches.",
        "8711",
    )
    certificate: str | None = setting(None, readers.text, "TLS: both files, in PEM form.", '"server.pem"')
    key: str | None = setting(None, readers.text, "The key of the certificate.", '"server.key"')
    clients: str | None = setting(
        None,
        readers.text,
        "Passwords and TLS of PostgreSQL stores; left out: the file that EVENTIDE_CLIENTS names.",
        '"clients.toml"',
    )

    failed_stream: str = setting(
        "liveness",
        readers.one_of(FAILED_STREAM),
        "A stream that has stopped for good makes /healthz fail (liveness), or ends the process (exit).",
        '"liveness"',
    )


@dataclass(frozen=True)
class Access:
    """Whose requests are answered."""

    tokens: Path = setting(
        Path("eventide.tokens"),
        readers.place,
        "The file of their digests; to take a right away at once, take its line out.",
        '"eventide.tokens"',
    )
    open_reading: bool = setting(
        False, readers.yes_or_no, "True: releases, which are private, may be read by anybody who gets here.", "false"
    )
    log: Path | None = setting(
        None,
        readers.place,
        "A file that says who read and who operated, and when; never what was sent.",
        '"access.jsonl"',
        left_out="nobody is written down",
    )


@dataclass(frozen=True)
class Limits:
    """What one client may ask of the service."""

    body_megabytes: int = setting(8, readers.whole_number(1, 1_000), "The most megabytes of one request.", "8")
    events_per_request: int = setting(
        100_000, readers.whole_number(1, 10_000_000), "The most events of one request.", "100000"
    )
    body_seconds: int = setting(
        20, readers.whole_number(1, 3_600), "The most seconds that a request may take to arrive.", "20"
    )
    requests_per_second: int = setting(
        200,
        readers.whole_number(1, 1_000_000),
        "The most requests of one token, or of one address without a token.",
        "200",
    )
    connections: int = setting(
        200, readers.whole_number(1, 100_000), "The most connections at once, of all clients together.", "200"
    )
    connections_per_address: int = setting(
        0,
        readers.whole_number(1, 100_000),
        "The most of one address; behind a proxy as many as of all.",
        "100",
        left_out="half of them",
    )
    waiting_batches: int = setting(
        64,
        readers.whole_number(1, 100_000),
        "The most batches that are not durable yet; above it the answer is 429.",
        "64",
    )


class ServedOptions(StreamOptions, total=False):
    """Everything that a `StreamConfig` is made with."""

    name: str
    store: str | Path
    out: str | Sequence[str]


@dataclass(frozen=True, init=False, kw_only=True)
class StreamConfig(StreamSpec):
    """One stream of a service: its description, its name, and where everything about it is kept.

    Its events come over HTTP, so it has no end, and the field of their time is called time.
    """

    name: str = setting("", readers.name, "What it is called; its address is /v1/streams/NAME.", '"city"')
    time: str = setting("time", *settings_of(StreamSpec)["time"])
    population: str = setting(
        "",
        readers.name,
        "Whose events these are.",
        '"residents"',
        left_out="people who appear in no other stream",
    )
    store: str | Path = setting(
        "", readers.place, "Where ledger, releases and open events are kept, readable by you alone.", '"city.store"'
    )

    out: tuple[str, ...] = setting(
        (),
        readers.places,
        "Deliver releases to these files (.jsonl, .csv, .parquet, .delta, .sqlite) and addresses, too.",
        '["city.jsonl"]',
    )

    def __init__(self, **options: Unpack[ServedOptions]) -> None:
        self._make(options)

    def _take(self, values: Mapping[str, Any]) -> None:
        super()._take({**values, "population": values["population"] or values["name"]})

    @property
    def budget(self) -> int:
        """Its epsilon as its store counts it, in nano-epsilon."""
        return nano(self.epsilon)


@dataclass(frozen=True)
class Config:
    """Everything a service needs to know.

    `populations` holds the epsilon of each, together over its streams; `accounts` the account of each that has one,
    which says what its streams may hold.
    """

    server: Server
    access: Access
    limits: Limits
    populations: dict[str, Fraction]
    streams: tuple[StreamConfig, ...]
    accounts: Mapping[str, str | Path] = field(default_factory=dict)


STREAM = {name: each for name, each in settings_of(StreamConfig).items() if each.served}
REQUIRED = ("name", "epsilon", "window", "step", "start", "bins", "store")  # of a stream
SEVERAL = ("populations", "streams")
TABLES: dict[str, dict[str, DescribedSetting]] = {
    "server": settings_of(Server),
    "access": settings_of(Access),
    "limits": settings_of(Limits),
    "populations": {
        "name": DescribedSetting(readers.name, "Streams name it as their population.", '"residents"'),
        "epsilon": DescribedSetting(
            readers.budget,
            "The budget of all their streams together, in every window.",
            "1.0",
            left_out="that of their account",
        ),
        "account": DescribedSetting(
            readers.place,
            "The account that they share with other programs, instead of an epsilon: a file or an address.",
            '"people.account"',
            left_out="this service alone publishes about them",
        ),
    },
    "streams": {"name": STREAM["name"], "population": STREAM["population"], **STREAM},
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "server": defaults_of(Server),
    "access": defaults_of(Access),
    "limits": defaults_of(Limits),
    "populations": {"account": None},
    "streams": {name: value for name, value in defaults_of(StreamConfig).items() if name not in REQUIRED},
}
