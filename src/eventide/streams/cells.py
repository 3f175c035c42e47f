"""Cells of a table as whole numbers, and a sentence for the first that is none.

One rule for every kind of file: 7, 007, 3.0 and 1e3 are whole numbers; 3.5, -1, an empty cell, NaN and words are not.
The sentence names column and row, never what stands there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import LARGEST_COUNT, Floats, Ints
from eventide.errors import InputError

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def whole_numbers(arrays: Sequence[Any], columns: Sequence[str], first_row: int, place: str) -> Ints:
    """Arrow arrays, one a column, as a matrix (rows, columns) of whole numbers from 0 up."""
    if len({array.type for array in arrays}) == 1:
        arrays = [pa.concat_arrays(arrays)]  # one conversion for all columns, of which there may be very many
    numbers = np.concatenate([_floats(array) for array in arrays]).reshape(len(columns), -1).T
    good = (numbers >= 0) & (numbers <= LARGEST_COUNT) & (numbers == np.floor(numbers))
    if not good.all():
        row, column = np.argwhere(~good)[0]
        raise InputError(
            f"{place}: column {columns[column]!r} in row {first_row + row} {_fault(numbers[row, column])}; "
            "every cell must be a whole number from 0 up, so correct the file (0 where nothing was counted)"
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
