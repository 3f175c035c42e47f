"""Filters: what is released, for free, from the measurements so far.

What leaves the meter is private, so any function of it is too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eventide.filters.base import Filter, Repeat
from eventide.filters.kalman import Kalman
from eventide.filters.registry import by_name, names
from eventide.filters.truncate import Truncate

if TYPE_CHECKING:
    from eventide.filters.posterior_median import PosteriorMedian

__all__ = ["Filter", "Kalman", "PosteriorMedian", "Repeat", "Truncate", "by_name", "names"]


if not TYPE_CHECKING:  # a type checker reads the import above, and finds names that do not exist

    def __getattr__(name: str) -> Any:
        if name != "PosteriorMedian":
            raise AttributeError(f"module 'eventide.filters' has no attribute {name!r}")
        from eventide.filters.posterior_median import PosteriorMedian  # compiled: loaded only where it is used

        return PosteriorMedian
