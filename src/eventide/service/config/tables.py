"""The keys of a configuration: for each table how its values are read, and what holds where they are left out.

A key that stands in no table here is not known.
"""

from __future__ import annotations

from typing import Any

from eventide.live.publisher.window_queries import OF
from eventide.privacy.amounts import nano
from eventide.service.config import fields as kinds
from eventide.service.config.config import Access, Limits, Server, Stream, defaults
from eventide.service.config.fields import Field

SERVER = {
    "host": Field(kinds.text),
    "port": Field(kinds.whole(1, 65_535)),
    "certificate": Field(kinds.text),
    "key": Field(kinds.text),
}
ACCESS = {
    "tokens": Field(kinds.text),
    "open_reading": Field(kinds.yes_or_no),
}
LIMITS = {
    "body_megabytes": Field(kinds.whole(1, 1_000)),
    "body_seconds": Field(kinds.whole(1, 3_600)),
    "requests_per_second": Field(kinds.whole(1, 1_000_000)),
    "connections": Field(kinds.whole(1, 100_000)),
    "waiting_batches": Field(kinds.whole(1, 100_000)),
}
POPULATION = {"name": Field(kinds.name, '"residents"'), "epsilon": Field(nano, "1.0")}
STREAM = {
    "name": Field(kinds.name, '"city"'),
    "population": Field(kinds.name),
    "epsilon": Field(nano, "1.0"),
    "window": Field(lambda window: window, '"24h"'),  # read together with the step
    "step": Field(kinds.duration, '"10min"'),
    "start": Field(kinds.moment, "2026-01-01T00:00:00Z"),
    "zone": Field(kinds.text),
    "late": Field(kinds.duration),
    "bins": Field(lambda bins: bins, '["north", "south"]'),  # read together with the folder
    "other": Field(kinds.text),
    "time": Field(kinds.text),
    "bin": Field(kinds.text),
    "user": Field(kinds.text),
    "max_per_step": Field(kinds.whole(1, 1_000_000)),
    "mechanism": Field(kinds.text),
    "parameters": Field(kinds.table),
    "filter": Field(kinds.text),
    "queries": Field(kinds.text),  # read together with the folder and the step
    "queries_epsilon": Field(nano),
    "queries_of": Field(kinds.one_of(OF)),
    "store": Field(kinds.text, '"city.store"'),
}
TABLES = {"server": SERVER, "access": ACCESS, "limits": LIMITS, "populations": POPULATION, "streams": STREAM}
DEFAULTS: dict[str, dict[str, Any]] = {
    "server": defaults(Server),
    "access": defaults(Access) | {"tokens": "eventide.tokens"},
    "limits": defaults(Limits),
    "populations": {},
    "streams": defaults(Stream) | {"population": None, "queries_epsilon": 0},
}
