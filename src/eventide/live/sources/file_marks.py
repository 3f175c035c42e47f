"""By what a file is known again after a restart: a keyed digest, which tells nothing of what is in it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

PIECE = 4096  # bytes
PIECES = 64


def mark_of(content: bytes, key: bytes | None) -> str:
    """The mark of some bytes of a file."""
    return hashlib.blake2b(content, digest_size=16, key=key or b"").hexdigest()


def mark_of_file(path: Path, key: bytes | None) -> str:
    """The mark of a complete file: of its length and of pieces of it, the first, the last and many between."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        last = max(size - PIECE, 0)
        places = sorted({last * number // (PIECES - 1) for number in range(PIECES)})
        pieces = [os.pread(file.fileno(), PIECE, place) for place in places]
    return mark_of(b"".join([b"%d:" % size, *pieces]), key)
