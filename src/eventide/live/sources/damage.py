"""One sentence for a file that cannot be read to its end."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from eventide.errors import InputError


@contextmanager
def damage_told(name: str) -> Iterator[None]:
    """Say in one sentence that a file cannot be read; the cause would show what stands in it."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, zlib.error):
        raise InputError(f"{name} cannot be read to its end; it is damaged or cut short") from None
