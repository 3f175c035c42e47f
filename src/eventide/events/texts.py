"""One text for every value, so that a person is the same whatever type a column has: 17, 17.0 and "17" are one.

A missing value is an empty text. Texts are Arrow arrays of bytes (UTF-8), which kernels read as offsets and data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import Array
from eventide.errors import InputError


def texts(column: Any) -> Any:
    """The texts of a column of Arrow or of a list of Python values."""
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        return pa.array([_text(value) for value in column], pa.binary())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        return texts(texts(column.dictionary).take(column.indices))
    if pa.types.is_floating(column.type):
        return texts(column.to_pylist())
    if not _holds_bytes(column.type):
        column = _as_string(column)
    column = pc.cast(column, pa.binary())
    return pc.fill_null(column, b"") if column.null_count else column


def distinct_texts(column: Any) -> tuple[Any, Any]:
    """Texts that hold all of a column's, and which of them stands in each row.

    In a column that is coded as a dictionary each text comes once, so whatever is made of texts is made of few.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not _is_coded(column):
        return texts(column), slice(None)
    held, rows = texts(column.dictionary), column.indices
    if rows.null_count:
        held, rows = pa.concat_arrays([held, pa.array([b""], pa.binary())]), pc.fill_null(rows, len(held))
    return held, np.asarray(rows)


def buffers(array: Any) -> tuple[Array, Array]:
    """Offsets and bytes behind an array of texts, read-only whoever made it: a kernel is compiled once for all."""
    _, offsets, data = array.buffers()
    ends, held = np.zeros(1, np.int32), np.zeros(0, np.uint8)
    if len(array):
        ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
        held = np.frombuffer(data, np.uint8) if data else held
    ends.flags.writeable = held.flags.writeable = False
    return ends, held


def _is_coded(column: Any) -> bool:
    return isinstance(column, pa.DictionaryArray) and len(column.dictionary) <= len(column)


def _holds_bytes(kind: Any) -> bool:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(test(kind) for test in tests)


def _as_string(column: Any) -> Any:
    try:
        return pc.cast(column, pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise InputError(f"a column of type {column.type} cannot be read; give text, numbers or times") from None


def _text(value: Any) -> bytes:
    """What is no single value, such as a list, counts as missing."""
    match value:
        case str():
            return value.encode(errors="surrogatepass")
        case bool():
            return b"true" if value else b"false"
        case int() | UUID() | Decimal():
            return str(value).encode()
        case float():
            return _number_text(value)
        case datetime() if value != value:  # what pandas puts where a time is missing
            return b""
        case datetime() | date():
            return value.isoformat().encode()
        case bytes():
            return value
        case np.generic():
            return _text(value.item())
    return b""


def _number_text(value: float) -> bytes:
    if math.isnan(value):
        return b""
    return str(int(value) if value.is_integer() else value).encode()


def named(rows: Any, name: str) -> Any:
    """A column of a table, or of a list of dicts, by its name."""
    if isinstance(rows, Sequence):
        return [row.get(name) for row in rows]
    if name not in rows.schema.names:
        raise InputError(f"column {name!r} is missing; there are {', '.join(rows.schema.names)}")
    return rows.column(name)
