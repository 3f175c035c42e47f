"""Releases as long tables for any frame library: a row for each step and bin.

The columns are step, start (where there is a clock), level (where there are levels), bin, statistic (where there are
several), value, low and high (where known), scale and fresh, in this order. What is not known, such as the scale
before the first measurement, is null. Nothing here is raw.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints
from eventide.errors import InputError
from eventide.releases.level_values import Rows

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]
    import polars as pl
    import pyarrow as pa


class LongFrames(ABC):
    """Gives what `to_arrow` gives to the libraries that analysts use."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The releases as an Arrow table, a row for each step and bin."""

    def to_pandas(self) -> pd.DataFrame:
        """The releases as a pandas frame, a row for each step and bin; needs pandas."""
        return _converted(self.to_arrow(), "pandas")

    def to_polars(self) -> pl.DataFrame:
        """The releases as a polars frame, a row for each step and bin; needs polars."""
        frame: pl.DataFrame = _converted(self.to_arrow(), "polars")
        return frame


def long_table(
    rows: Rows,
    steps: Ints,
    values: Floats,
    fresh: Bools,
    scale: Floats,
    *,
    low: Floats | None = None,
    high: Floats | None = None,
    starts: Sequence[datetime] | None = None,
    zone: str = "UTC",
) -> pa.Table:
    """A table of arrays `(T, rows)` of values, scale, low and high, and `(T,)` of steps, fresh and the starts of steps.

    >>> rows = Rows.of(["a", "b"])
    >>> long_table(rows, np.array([7]), np.array([[1.0, 2.0]]), np.array([True]), np.ones((1, 2))).column_names
    ['step', 'bin', 'value', 'scale', 'fresh']
    """
    import pyarrow as pa

    which = np.repeat(np.arange(len(steps)), len(rows.names))
    columns = {"step": pa.array(steps[which], pa.int64())}
    if starts is not None:
        columns["start"] = pa.array(starts, pa.timestamp("us", zone)).take(which)
    each = np.tile(np.arange(len(rows.names)), len(steps))
    columns |= {name: pa.array(column, pa.string()).take(each) for name, column in rows.columns.items()}
    numbers = {"value": values, "low": low, "high": high, "scale": scale}
    columns |= {name: _known(array) for name, array in numbers.items() if array is not None}
    return pa.table(columns | {"fresh": pa.array(fresh[which])})


def _known(numbers: Array) -> Any:
    import pyarrow as pa

    flat = np.ascontiguousarray(numbers, dtype=np.float64).ravel()
    return pa.array(flat, mask=~np.isfinite(flat))


def _converted(table: pa.Table, library: str) -> Any:
    import narwhals as nw

    try:
        importlib.import_module(library)
    except ImportError:
        raise InputError(f"to_{library}() needs {library}; install it with: pip install {library}") from None
    return getattr(nw.from_native(table), f"to_{library}")()
