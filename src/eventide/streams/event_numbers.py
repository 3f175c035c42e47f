"""Events one by one as what a mechanism measures of them, and what is true of them: for studies.

Nobody is bounded: every event counts, or every person once in a bin of a step. What is true is told of the exact
numbers; of quantiles, of the values themselves, so that an error shows also where buckets are too wide. Where there are
no events there is nothing true: NaN.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventide.arrays import Array, Floats, Ints
from eventide.errors import InputError
from eventide.events.quantiles import ValueQuantiles
from eventide.events.statistic_names import parse_statistic
from eventide.events.statistics import SLOTS, OfValues, Statistic, Told
from eventide.events.sum_tally import EventSums
from eventide.streams.count_files import Matrix


def studied_statistic(
    statistic: str = "events", between: str = "", edges: str = "", quantiles: tuple[float, ...] = ()
) -> Statistic:
    """A statistic of a stream that is studied."""
    if not isinstance(statistic, str) or statistic.startswith(SLOTS):
        raise InputError(f"{statistic!r} cannot be studied; choose one statistic of steps, such as mean:COLUMN")
    return parse_statistic(statistic, between, edges, quantiles)


def numbers_of(
    statistic: Statistic, cells: Ints, steps: int, bins: tuple[str, ...], people: Ints | None, values: Array | None
) -> Matrix:
    """The numbers of all steps and bins, one bin behind another; `cells` are step times bins plus bin, of each event.

    `people` and `values` of each event, as far as the statistic is about them; values are floats that can be read.
    """
    size = steps * len(bins)
    if statistic.needs_users:
        assert people is not None
        _, first = np.unique(np.stack([cells, people]), axis=1, return_index=True)
        return Matrix(np.bincount(cells[first], minlength=size).reshape(steps, -1), bins)
    tally = statistic.tally(size, 1, b"", users=False)
    if not isinstance(statistic, OfValues):
        tally.add(None, cells)
        return Matrix(tally.counts(0).reshape(steps, -1), bins)
    assert values is not None
    assert isinstance(tally, EventSums)
    tally.add(None, cells, statistic.grid.read(pa.array(values))[0])
    numbers = tally.counts(0)
    if isinstance(statistic, ValueQuantiles):
        inside = np.clip(values, float(statistic.grid.low), float(statistic.grid.high))
        true = _quantiles(cells, inside, size, np.array(statistic.quantiles))
    else:
        exact = numbers.reshape(size, -1).astype(np.float64)
        true = np.stack([told.values for told in statistic.tell(Told(exact, np.zeros_like(exact))).values()], axis=-1)
    return Matrix(numbers.reshape(steps, -1), bins, true.reshape(steps, -1))


def _quantiles(cells: Ints, values: Floats, size: int, parts: Floats) -> Floats:
    """The quantiles of the values in each cell, `(size, parts)`, between two values in proportion."""
    ordered = values[np.lexsort((values, cells))]
    number = np.bincount(cells, minlength=size)
    first = np.cumsum(number) - number
    place = np.multiply.outer(np.maximum(number - 1, 0), parts)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(number - 1, 0)[:, None])
    low, high = (ordered[np.minimum(first[:, None] + each, len(ordered) - 1)] for each in (below, above))
    return np.where(number[:, None] > 0, low + (place - below) * (high - low), np.nan)
