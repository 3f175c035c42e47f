"""eventide publishes statistics of live event streams with w-event differential privacy.

The public names are resolved on first use, so that importing eventide loads no numpy. Editors and type checkers read
them from `__init__.pyi`. A source of noise is `eventide.noise.Source`, a source of events is `eventide.EventSource`.

>>> import eventide as ev
>>> mech = ev.Uniform(epsilon=1.0, window=2, bins=["north", "south"], noise=ev.noise.Zero())
>>> mech.release([3, 5]).values
array([3., 5.])
"""

from __future__ import annotations

import importlib
from typing import Any

from eventide.errors import BudgetExceeded, EventideError, InputError, StateError, StoreError
from eventide.mechanisms.registry import MECHANISMS

__version__ = "0.1.0"

_HOMES = {
    "Mechanism": "eventide.mechanisms.base",
    "Release": "eventide.mechanisms.release",
    "Run": "eventide.mechanisms.run",
    "run": "eventide.mechanisms.run",
    "load": "eventide.mechanisms.saving",
    "mechanism": "eventide.mechanisms.registry",
    "mechanism_names": "eventide.mechanisms.registry",
    "check_mechanism": "eventide.mechanisms.contract",
    "check_two_worlds": "eventide.audit.two_worlds",
    "Guarantee": "eventide.privacy.guarantees",
    "Measured": "eventide.privacy.measured",
    "SealedStep": "eventide.privacy.sealed",
    "WindowLedger": "eventide.privacy.ledger",
    "share": "eventide.privacy.amounts",
    "Query": "eventide.windows.workload",
    "Publisher": "eventide.live.publisher.publisher",
    "Releases": "eventide.live.publisher.releases",
    "publish": "eventide.live.publisher.publish_frame",
    "Questions": "eventide.live.publisher.window_queries",
    "StreamSpec": "eventide.live.stream_spec",
    "EventBatch": "eventide.live.sources.base",
    "EventReader": "eventide.events.reader",
    "EventSource": "eventide.live.sources.base",
    "MemoryFeed": "eventide.live.feeds.count_feed",
    "Sink": "eventide.live.sinks.base",
    "Store": "eventide.live.stores.base",
    "open_store": "eventide.live.stores.open_store",
} | {cls: module for module, cls in MECHANISMS.values()}
_MODULES = {
    "audit": "eventide.audit",
    "bench": "eventide.bench",
    "windows": "eventide.windows",
    "noise": "eventide.privacy.noise",
    "filters": "eventide.filters",
}

__all__ = [
    "DSAT",
    "FAST",
    "SPAS",
    "AdaPub",
    "BudgetAbsorption",
    "BudgetDistribution",
    "BudgetExceeded",
    "EventBatch",
    "EventReader",
    "EventSource",
    "EventideError",
    "Guarantee",
    "Hybrid",
    "InputError",
    "Measured",
    "Mechanism",
    "MemoryFeed",
    "PeGaSus",
    "Publisher",
    "Query",
    "Questions",
    "Release",
    "Releases",
    "RescueDP",
    "RetroactiveGrouping",
    "Run",
    "Sample",
    "SealedStep",
    "Sink",
    "StateError",
    "Store",
    "StoreError",
    "StreamSpec",
    "Tide",
    "TimeUnitBaseline",
    "Uniform",
    "WindowBaseline",
    "WindowLedger",
    "audit",
    "bench",
    "check_mechanism",
    "check_two_worlds",
    "filters",
    "load",
    "mechanism",
    "mechanism_names",
    "noise",
    "open_store",
    "publish",
    "run",
    "share",
    "windows",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'eventide' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
