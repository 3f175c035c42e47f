"""Plain data as bytes: a ZIP of one JSON document and an .npy member for each array, never pickle.

Promises that `unpack(pack(document))` is the document again, its tuples become lists, and that reading runs no code.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from eventide.errors import StateError

_DOCUMENT = "state.json"
_LEVEL = 1  # of deflate: a snapshot is written while a step waits, so speed counts for more than the last bytes
_DAMAGE = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, EOFError, RuntimeError, OSError)


def pack(document: dict[str, Any]) -> bytes:
    """Dictionaries, lists, numbers, text and arrays as the bytes of a ZIP archive.

    >>> unpack(pack({"name": "a", "values": np.arange(3)}))
    {'name': 'a', 'values': array([0, 1, 2])}
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    text = json.dumps(_without_arrays(document, arrays), default=_plain)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_DOCUMENT), text, zipfile.ZIP_DEFLATED, _LEVEL)
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(name), member.getvalue(), zipfile.ZIP_DEFLATED, _LEVEL)
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, Any]:
    """The document that `pack` put away."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise StateError("a saved state is given as bytes; read the file first")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            document = _with_arrays(json.loads(archive.read(_DOCUMENT)), archive)
            return dict(document)
    except _DAMAGE as problem:
        raise StateError(f"the saved bytes cannot be read ({type(problem).__name__}); they are damaged") from None


def _plain(value: Any) -> Any:
    """Numbers that JSON does not know: numpy's as Python's, exact ones as text."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Fraction | Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be saved")


def _without_arrays(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.ndarray):
        name = f"{len(arrays)}.npy"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, dict):
        return {key: _without_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_arrays(item, arrays) for item in value]
    return value


def _with_arrays(value: Any, archive: zipfile.ZipFile) -> Any:
    if isinstance(value, list):
        return [_with_arrays(item, archive) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        return np.load(io.BytesIO(archive.read(value["array"])), allow_pickle=False)
    return {key: _with_arrays(item, archive) for key, item in value.items()}
