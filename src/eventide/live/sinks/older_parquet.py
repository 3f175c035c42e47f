"""The Parquet file that a run is about to replace: which steps it has, and what it says of them.

It is only read; one that holds something else is refused.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

from eventide.arrays import Array, Floats, Ints
from eventide.errors import InputError
from eventide.releases.formats import Parquet
from eventide.releases.lines import ReleaseLine


class OlderParquet:
    """The file at `path`, which must have the columns that would be written now; without steps where there is none."""

    def __init__(self, path: Path, bins: Sequence[str], layout: str | None, *, starts: bool) -> None:
        self._path, self._bins = path, bins
        self.steps: Ints = np.zeros(0, np.int64)
        if not path.exists():
            return
        form = Parquet(io.BytesIO(), bins, layout, starts=starts)
        form.abandon()
        self._wide = form.layout == "wide"
        try:
            if not pa_parquet.read_schema(path).equals(form.schema):
                raise InputError(f"{path} has other columns than these bins give; choose another file")
            self.steps = np.unique(pa_parquet.read_table(path, columns=["step"])["step"])
        except (pa.ArrowException, OSError):
            raise InputError(f"{path} holds something else than releases; choose another file") from None

    def releases(self, first: int, end: int) -> Iterator[ReleaseLine]:
        """What it says of the steps from `first` up to `end`, in order; scales only where they were written."""
        if np.equal(*np.searchsorted(self.steps, [first, end])):
            return
        table = pa_parquet.read_table(self._path, filters=[("step", ">=", first), ("step", "<", end)])
        if self._wide:
            values = np.column_stack([_numbers(table[name]) for name in self._bins])
            scales = np.full_like(values, np.inf)
        else:
            values, scales = (_numbers(table[name]).reshape(-1, len(self._bins)) for name in ("value", "scale"))
        rows = table.take(np.arange(0, len(table), len(table) // len(values)))
        starts = rows["start"].to_pylist() if "start" in rows.schema.names else [None] * len(rows)
        for step, start, value, scale in zip(rows["step"].to_pylist(), starts, values, scales, strict=True):
            yield ReleaseLine(step, False, value, scale, start=start)


def _numbers(column: Any) -> Floats:
    numbers: Array = column.to_numpy()
    return numbers.astype(np.float64)
