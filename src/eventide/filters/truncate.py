"""Counts are whole and not negative, and so may releases be.

Promises releases that are both. An interval around them does not go below 0, and is rounded too: whatever count was in
it still is.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np

from eventide.arrays import Array, Floats
from eventide.filters.base import Filter, PublicFacts
from eventide.privacy.measured import Measured

NARROW = 10  # an interval that is wider loses nothing that matters where its ends are whole


class Truncate(Filter):
    """Round to whole numbers and raise negative ones to 0, of steps and of sliding windows.

    Intervals likewise, narrow ones to hundredths. A window's histogram is truncated as it is, and not made of truncated
    steps: the sum of many of those would be too large.

    Parameters
    ----------
    inner
        The filter whose values are truncated; the mechanism's own by default.

    >>> import eventide as ev
    >>> sample = ev.Sample(epsilon=0.3, window=2, bins=1, noise=ev.noise.Unit(), filter=ev.filters.Truncate())
    >>> sample.release([5]).values
    array([8.])
    """

    state = ("inner",)

    def __init__(self, inner: Filter | None = None) -> None:
        self.inner = inner

    def over(self, own: Filter) -> Filter:
        """Truncate what `own` gives, unless another inner filter was named."""
        return Truncate(own if self.inner is None else self.inner.over(own))

    def begin(self, replicas: int, size: int, **known: Unpack[PublicFacts]) -> None:
        """Start the inner filter."""
        if self.inner is not None:
            self.inner = self.inner.started(replicas, size, **known)

    def step(self, measured: Measured | None) -> Array:
        """The inner filter's values as counts."""
        assert self.inner is not None, "a filter is put over a mechanism's own before it is started"
        values = _counts(self.inner.step(measured))
        if (low := self.inner.low) is not None and (high := self.inner.high) is not None:
            self.low, self.high = truncated_interval(low, high)
        return values

    def windows(self, histogram: Array) -> Array:
        """The histogram as counts."""
        return _counts(histogram if self.inner is None else self.inner.windows(histogram))


def truncated_interval(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The ends of intervals from 0 up, whole or of narrow ones in hundredths; whatever is whole and inside stays so."""
    narrow = high - low < NARROW
    ends = (np.maximum(np.where(narrow, np.round(edge, 2), np.rint(edge)), 0) for edge in (low, high))
    return next(ends), next(ends)


def _counts(values: Array) -> Array:
    return np.maximum(np.rint(values), 0)
