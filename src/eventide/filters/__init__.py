"""Filters: what is released, for free, from the measurements so far.

What leaves the meter is private, so any function of it is too. Imports `privacy` and what stands left of it.
"""

from eventide.filters.base import Filter, Repeat
from eventide.filters.kalman import Kalman
from eventide.filters.registry import by_name, names
from eventide.filters.truncate import Truncate

__all__ = ["Filter", "Kalman", "Repeat", "Truncate", "by_name", "names"]
