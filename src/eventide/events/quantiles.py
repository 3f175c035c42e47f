"""Quantiles of a column: ordered buckets of its values are counted, and what lies below each edge says where they are.

What lies below the edges is made to rise from each to the next, as it does in truth: by the mean of the nearest such
curve from above and from below. A quantile is interpolated in the bucket in which it lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.errors import InputError
from eventide.events.statistics import DEVIATIONS, QUANTILES, OfValues, Told
from eventide.events.sum_tally import Spread
from eventide.events.value_edges import ValueEdges

MEDIAN = (0.5,)


class ValueQuantiles(OfValues):
    """Quantiles of a column, from how many of its values lie in each of some buckets; NaN where there are no events.

    Private because: of a person's values at most `most` count in a step, over all bins, and each adds 1 to one bucket
    of one bin; so a row that is added or removed moves all numbers together by at most `most`. With another value in an
    event that is known, one bucket loses it and another gets it: values are hidden with twice epsilon. Under a cap the
    events that differ are those of counts.
    """

    grid: ValueEdges
    direct = False

    def __init__(self, edges: ValueEdges, quantiles: Sequence[float] = ()) -> None:
        self.name, self.title, self.grid = f"{QUANTILES}{edges.column}", f"quantiles of {edges.column}", edges
        self.moved = f"the counts of the buckets of {edges.column}"
        self.quantiles = tuple(quantiles) or MEDIAN
        self.columns = edges.buckets
        if not all(0 < each < 1 for each in self.quantiles) or len(set(self.quantiles)) < len(self.quantiles):
            raise InputError("quantiles are numbers above 0 and below 1, each given once, such as 0.25,0.5,0.75")

    @property
    def names(self) -> tuple[str, ...]:
        """One for each quantile."""
        return tuple(f"quantile:{self.grid.column}:{each:g}" for each in self.quantiles)

    def described(self) -> dict[str, str]:
        """The buckets, and which quantiles are told of them."""
        return {
            "statistic": self.name,
            "edges": str(self.grid),
            "quantiles": ",".join(f"{q:g}" for q in self.quantiles),
        }

    def spread(self, values: Ints) -> Spread:
        """1 to the bucket."""
        return [(values, np.ones(len(values), np.int64))]

    def adds_up(self, most: int) -> bool:
        """Quantiles of two bins are not those of both."""
        return False

    def tell(self, found: Told) -> dict[str, Told]:
        """Each quantile with an interval of whole buckets; no data where the number of events is nearest to 0.

        An edge lies below the quantile q if less than the part q of all events lies below the edge. Where that is sure
        or impossible, nine cases in ten, the interval does not reach beyond the edge; where it is not even sure that
        there are events, it is the whole range. The scale is that of the noise in the count of a bucket.
        """
        below, variance = np.cumsum(found.values, axis=-1), np.square(found.deviations())
        rising = _rising(below)
        nothing, scale = np.rint(rising[..., -1]) < 1, found.scale.max(axis=-1)
        told = {}
        for name, part in zip(self.names, self.quantiles, strict=True):
            numbers = self._interpolated(rising, part), *self._interval(below, variance, part)
            value, low, high = (np.where(nothing, np.nan, each) for each in numbers)
            told[name] = Told(value, scale, np.minimum(low, value), np.maximum(high, value))
        return told

    def assumptions(self, most: int) -> tuple[str, ...]:
        """What is counted, and how well values are hidden where it is known that events happened."""
        counted = f"the quantiles of {self.grid.column} are made of counts in {self.columns} buckets"
        return (counted, self.cut(), self.hidden(Fraction(2)))

    def _interpolated(self, below: Floats, part: float) -> Floats:
        """Where so large a part of all events lies below, each bucket taken for evenly filled."""
        edges, wanted = self.grid.floats(), part * below[..., -1:]
        bucket = np.minimum((below < wanted).sum(axis=-1, keepdims=True), self.columns - 1)
        counts = np.diff(below, axis=-1, prepend=0)
        own = np.take_along_axis(counts, bucket, axis=-1)
        before = np.take_along_axis(below, bucket, axis=-1) - own
        inside = np.divide(wanted - before, own, out=np.full(own.shape, 0.5), where=own > 0)
        found = edges[bucket] + np.clip(inside, 0, 1) * (edges[bucket + 1] - edges[bucket])
        return np.asarray(found[..., 0])

    def _interval(self, below: Floats, variance: Floats, part: float) -> tuple[Floats, Floats]:
        """Between which edges the quantile lies: where what is below, less its part of all, may be 0."""
        before = np.cumsum(variance, axis=-1)[..., :-1]
        after = np.flip(np.cumsum(np.flip(variance, -1), axis=-1), -1)[..., 1:]
        reach = DEVIATIONS * np.sqrt((1 - part) ** 2 * before + part**2 * after)
        excess, edges = below[..., :-1] - part * below[..., -1:], self.grid.floats()
        inner, end = np.arange(1, self.columns), self.columns
        last = np.where(excess + reach < 0, inner, 0).max(axis=-1, initial=0)
        first = np.where(excess - reach > 0, inner, end).min(axis=-1, initial=end)
        unsure = below[..., -1] <= DEVIATIONS * np.sqrt(variance.sum(axis=-1))
        last, first = np.where(unsure, 0, last), np.where(unsure, end, first)
        return edges[np.minimum(first - 1, last)], edges[np.maximum(first, last + 1)]


def _rising(below: Floats) -> Floats:
    """A curve that rises from 0 on, near one that need not."""
    highest = np.maximum.accumulate(below, axis=-1)
    lowest = np.flip(np.minimum.accumulate(np.flip(below, -1), axis=-1), -1)
    return np.maximum((highest + lowest) / 2, 0)
