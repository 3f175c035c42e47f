"""Filters by name, for command lines and saved states, resolved on first use."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TypedDict, Unpack

from eventide.errors import InputError
from eventide.filters.base import Filter

_HOMES = {
    "kalman": ("eventide.filters.kalman", "Kalman"),
    "posterior-median": ("eventide.filters.posterior_median", "PosteriorMedian"),
    "repeat": ("eventide.filters.base", "Repeat"),
    "truncate": ("eventide.filters.truncate", "Truncate"),
}


class FilterParameters(TypedDict, total=False):
    """The parameters of all filters together; which of them a filter takes, its class says."""

    coverage: float
    inner: Filter | None
    measurement_noise: float | None
    process_noise: float
    seasons: Sequence[float] | str | None


def names() -> list[str]:
    """The names a filter can be asked for by."""
    return sorted(_HOMES)


def by_name(name: str, **parameters: Unpack[FilterParameters]) -> Filter:
    """A new filter.

    Parameters
    ----------
    name
        One of `names()`.
    **parameters
        Those of its class.
    """
    if name not in _HOMES:
        raise InputError(f"there is no filter {name!r}; choose one of {', '.join(names())}")
    module, cls = _HOMES[name]
    built: Filter = getattr(importlib.import_module(module), cls)(**parameters)
    return built


def name_of(chosen: Filter) -> str | None:
    """The name under which the class of `chosen` is registered, if it is."""
    home = (type(chosen).__module__, type(chosen).__name__)
    return next((name for name, registered in _HOMES.items() if registered == home), None)
