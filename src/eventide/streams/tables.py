"""Columns of a CSV or Parquet file, batch after batch: for files of counts and results.

Memory is bounded by some blocks of a CSV file or one row group of a Parquet file, however long it is. Whatever is wrong
with a file becomes an `InputError` that names the file and, where known, the row (the first row of data is row 1),
never what stands in it.

One rule says which cells are whole numbers: 7, 007, 3.0 and 1e3 are; 3.5, -1, an empty cell, NaN and words are not.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from eventide.arrays import LARGEST_COUNT, Floats, Ints
from eventide.errors import InputError
from eventide.events.bins import checked_names

CSV_BLOCK = 1 << 20  # bytes read at a time, at the least; some dozens are read ahead
CSV_ROWS = 16  # headers that fit into a block: a row may be that much longer than the header
PARQUET_CELLS = 2 << 20  # of a batch
CSV_ENDINGS = (".csv", ".csv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


@dataclass(frozen=True)
class Table:
    """A file with named columns and at least one row; may be read any number of times."""

    path: Path
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """The file's name, as messages show it."""
        return self.path.name

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, list[Any]]]:
        """Arrow arrays of these columns, batch after batch, each with the number of its first row.

        CSV cells come as text: what is a number is for the caller to say, not for a guess on the first rows.
        """
        read = _csv_batches if _is_csv(self.path) else _parquet_batches
        first_row = 1
        try:
            for batch in read(self.path, self.columns):
                if batch.num_rows:
                    yield first_row, batch.select(list(columns)).columns
                first_row += batch.num_rows
        except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error):
            raise _damaged(self.path) from None  # the cause would show the row


def open_table(path: str | Path) -> Table:
    """Open a `.csv`, `.csv.gz`, `.parquet` or `.pq` file and read its header."""
    path = Path(path)
    if not os.path.isfile(path):  # noqa: PTH113 - False also where it cannot be looked at
        raise InputError(f"{path} is not a file; check the path")
    if not path.name.lower().endswith(CSV_ENDINGS + PARQUET_ENDINGS):
        raise InputError(
            f"{path.name} ends in none of {', '.join(CSV_ENDINGS + PARQUET_ENDINGS)}; convert or rename it"
        )
    try:
        columns = _csv_columns(path) if _is_csv(path) else _parquet_columns(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error):
        raise _damaged(path) from None
    return Table(path, checked_names(columns, path.name, "column"))


EVENTS_INSTEAD = (
    "; dates of counts are not read: in a wide file name their column time and put it first, in a long file number the "
    "steps 0, 1, 2, ... in column t; if its rows are events, give --step and name their columns with --time, --user "
    "and --bin"
)


def whole_numbers(arrays: Sequence[Any], columns: Sequence[str], first_row: int, place: str) -> Ints:
    """Arrow arrays, one a column, as a matrix (rows, columns) of whole numbers from 0 up."""
    if len({array.type for array in arrays}) == 1:
        arrays = [pa.concat_arrays(arrays)]  # one conversion for all columns, of which there may be very many
    numbers = np.concatenate([_floats(array) for array in arrays]).reshape(len(columns), -1).T
    good = (numbers >= 0) & (numbers <= LARGEST_COUNT) & (numbers == np.floor(numbers))
    if not good.all():
        row, column = np.argwhere(~good)[0]
        kind = arrays[min(column, len(arrays) - 1)].type
        events = EVENTS_INSTEAD if np.isnan(numbers[row, column]) and not pa.types.is_floating(kind) else ""
        raise InputError(
            f"{place}: column {columns[column]!r} in row {first_row + row} {_fault(numbers[row, column])}; "
            f"every cell must be a whole number from 0 up, and 0 where nothing was counted{events}"
        )
    return np.ascontiguousarray(numbers, dtype=np.int64)


def _floats(array: Any) -> Floats:
    """NaN where there is no number; a whole number that float64 cannot hold stays above LARGEST_COUNT."""
    try:
        numbers = pc.cast(array, pa.float64())
    except pa.ArrowNotImplementedError:  # dates, lists and the like
        return np.full(len(array), np.nan)
    except pa.ArrowInvalid:
        text = pc.utf8_trim_whitespace(pc.cast(array, pa.string()))
        numbers = pc.cast(pc.if_else(pc.match_substring_regex(text, _NUMBER), text, None), pa.float64())
    floats: Floats = numbers.to_numpy(zero_copy_only=False)
    return floats


def _fault(number: float) -> str:
    if np.isnan(number):
        return "is empty or not a number"
    if number < 0:
        return "is negative"
    return "is too large" if number > LARGEST_COUNT else "is not a whole number"


def _is_csv(path: Path) -> bool:
    return path.name.lower().endswith(CSV_ENDINGS)


def _csv_columns(path: Path) -> list[str]:
    with _csv_text(path) as text:
        rows = csv.reader(text)
        header, first = next(rows, None), next(rows, None)
    if header is None or first is None:
        raise _empty(path)
    return header


def _csv_batches(path: Path, header: Sequence[str]) -> Iterator[Any]:
    # The reader is given nothing of Python, neither a stream nor a handler of invalid rows: a thread of Arrow may be
    # the last to let go of it, and that aborts the process where Python is just ending.
    block = max(CSV_BLOCK, CSV_ROWS * len(",".join(header).encode()))
    try:
        yield from pa_csv.open_csv(
            str(path),
            pa_csv.ReadOptions(column_names=header, skip_rows=1, block_size=block, use_threads=False),
            pa_csv.ParseOptions(ignore_empty_lines=False),
            pa_csv.ConvertOptions(column_types=dict.fromkeys(header, pa.string())),
        )
    except pa.ArrowInvalid:
        _refuse_ragged(path, len(header))
        raise


def _refuse_ragged(path: Path, width: int) -> None:
    """Name the first row that is longer or shorter than the header, if there is one."""
    with _csv_text(path) as text:
        for row, cells in enumerate(csv.reader(text)):
            if cells and len(cells) != width:  # an empty line is a row of empty cells
                raise InputError(
                    f"{path.name}: row {row} has {len(cells)} columns where the header has {width}; correct that row"
                ) from None


def _csv_text(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(pa.input_stream(str(path)), encoding="utf-8-sig", newline="")


def _parquet_columns(path: Path) -> list[str]:
    with pa_parquet.ParquetFile(path) as file:
        if file.metadata.num_rows == 0:
            raise _empty(path)
        return list(file.schema_arrow.names)


def _parquet_batches(path: Path, header: Sequence[str]) -> Iterator[Any]:
    with pa_parquet.ParquetFile(path, pre_buffer=False) as file:  # a buffer would come to hold the whole file
        for batch in file.iter_batches(max(1, PARQUET_CELLS // len(header)), use_threads=False):
            yield batch.rename_columns(list(header))


def _empty(path: Path) -> InputError:
    return InputError(f"{path.name} has no rows; give a file with a header and at least one row")


def _damaged(path: Path) -> InputError:
    kind = "a CSV file in UTF-8" if _is_csv(path) else "a Parquet file"
    return InputError(f"{path.name} cannot be read as {kind}; it is damaged, cut short or locked, so write it again")
