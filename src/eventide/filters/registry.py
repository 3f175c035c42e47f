"""Filters by name, for command lines and saved states. Imports `filters`."""

from __future__ import annotations

from typing import Any

from eventide.errors import InputError
from eventide.filters.base import Filter, Repeat
from eventide.filters.kalman import Kalman
from eventide.filters.posterior_median import PosteriorMedian
from eventide.filters.truncate import Truncate

_FILTERS: dict[str, type[Filter]] = {"kalman": Kalman, "repeat": Repeat, "truncate": Truncate}


def names() -> list[str]:
    """The names a filter can be asked for by."""
    return sorted(_FILTERS)


def by_name(name: str, **parameters: Any) -> Filter:
    """A new filter; its parameters are those of its class."""
    if name not in _FILTERS:
        raise InputError(f"there is no filter {name!r}; choose one of {', '.join(names())}")
    return _FILTERS[name](**parameters)


def name_of(chosen: Filter) -> str | None:
    """The name under which the class of `chosen` is registered, if it is."""
    return next((name for name, cls in _FILTERS.items() if cls is type(chosen)), None)
