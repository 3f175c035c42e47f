"""eventide publishes statistics of live event streams with w-event differential privacy.

The public names are resolved on first use, so that importing eventide loads no numpy.

>>> import eventide as ev
>>> mech = ev.Uniform(epsilon=1.0, window=2, bins=["north", "south"], noise=ev.noise.Zero())
>>> mech.release([3, 5]).values
array([3., 5.])
"""

from __future__ import annotations

import importlib
from typing import Any

from eventide.errors import BudgetExceeded, EventideError, InputError, StateError, StoreError

__version__ = "0.1.0"

_HOMES = {
    "Release": "eventide.mechanisms.release",
    "run": "eventide.mechanisms.run",
    "load": "eventide.mechanisms.saving",
    "mechanism": "eventide.mechanisms.registry",
    "mechanism_names": "eventide.mechanisms.registry",
    "check_mechanism": "eventide.mechanisms.check",
    "check_two_worlds": "eventide.audit.two_worlds",
    "Uniform": "eventide.mechanisms.uniform",
    "Sample": "eventide.mechanisms.sample",
    "Hybrid": "eventide.mechanisms.hybrid",
    "BudgetDistribution": "eventide.mechanisms.budget_distribution",
    "BudgetAbsorption": "eventide.mechanisms.budget_absorption",
    "FAST": "eventide.mechanisms.fast",
    "DSAT": "eventide.mechanisms.dsat",
    "RescueDP": "eventide.mechanisms.rescuedp",
    "AdaPub": "eventide.mechanisms.adapub",
    "PeGaSus": "eventide.mechanisms.pegasus",
    "SPAS": "eventide.mechanisms.spas",
    "Tide": "eventide.mechanisms.tide",
    "RetroactiveGrouping": "eventide.mechanisms.retroactive_grouping",
    "TimeUnitBaseline": "eventide.mechanisms.window_baselines",
    "WindowBaseline": "eventide.mechanisms.window_baselines",
    "Query": "eventide.windows.workload",
    "Publisher": "eventide.live.publisher.publisher",
    "Questions": "eventide.live.publisher.window_queries",
}
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
    "EventideError",
    "Hybrid",
    "InputError",
    "PeGaSus",
    "Publisher",
    "Query",
    "Questions",
    "Release",
    "RescueDP",
    "RetroactiveGrouping",
    "Sample",
    "StateError",
    "StoreError",
    "Tide",
    "TimeUnitBaseline",
    "Uniform",
    "WindowBaseline",
    "audit",
    "bench",
    "check_mechanism",
    "check_two_worlds",
    "filters",
    "load",
    "mechanism",
    "mechanism_names",
    "noise",
    "run",
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
