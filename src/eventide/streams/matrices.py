"""A whole file of counts in memory, for studies on data one may look at; publishing reads step by step instead.

Wide and long files, as `count_files` describes them. Of a long file the bins are taken from the data, sorted: in a
study nothing is published.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import Ints
from eventide.streams.count_files import names_in_header, open_counts
from eventide.streams.tables import open_table


class Matrix(NamedTuple):
    """Counts of shape `(T, d)` with the names of the d bins."""

    counts: Ints
    bins: tuple[str, ...]


def read_matrix(path: str | Path, steps: int = 0, *, named: bool = False) -> Matrix:
    """Read a file of counts; empty steps are added at the end until there are `steps`.

    named: a wide file is known to begin with names, though they may be numbers, as those of counties are.
    """
    bins = bins_in_file(path)
    if named and bins is None:
        bins = names_in_header(open_table(path))
    file = open_counts(path, bins)
    rows = list(file.steps())
    rows += [np.zeros(len(file.bins), dtype=np.int64)] * (steps - len(rows))
    return Matrix(np.stack(rows), file.bins)


def bins_in_file(path: str | Path) -> tuple[str, ...] | None:
    """Every name that occurs in a long file; None for a wide one, whose header names them."""
    table = open_table(path)
    columns = [column for column in table.columns if column.lower() == "bin"]
    if not columns:
        return None
    names = {name for _, (array,) in table.batches(columns) for name in pc.unique(text(array)).to_pylist()}
    return tuple(sorted(names))


def text(array: pa.Array) -> pa.Array:
    """Names as text without outer blanks; an empty cell is an empty name."""
    return pc.utf8_trim_whitespace(pc.fill_null(pc.cast(array, pa.string()), ""))
