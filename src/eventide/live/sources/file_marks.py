"""By what a file is known again after a restart: a keyed digest, which tells nothing of what is in it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from eventide.events.files.members import SourceFile

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


def mark_of_files(members: Sequence[SourceFile], key: bytes | None) -> str:
    """The mark of several files with their names; of one it is its own, whatever its name."""
    marks = [mark_of_file(member.path, key) for member in members]
    if len(members) == 1:
        return marks[0]
    return mark_of(_joined(f"{mark} {member.name}" for mark, member in zip(marks, members, strict=True)), key)


def mark_of_names(members: Sequence[SourceFile], key: bytes | None) -> str:
    """The mark of the names alone, which tells a file that changed from one that came or went."""
    return mark_of(_joined(member.name for member in members), key)


def _joined(texts: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(text) + b"\0" for text in texts)
