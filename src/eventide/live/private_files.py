"""Files that hold secrets: they are read only where nobody else may read them, as for a private key."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from eventide.errors import InputError


def read_private(path: Path, what: str) -> str:
    """The text of a file that only its owner may read; or its group too, where root has made it for us."""
    try:
        with path.open(encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            text = file.read()
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path} cannot be read as {what}; check the path and its owner") from None
    mode, made_for_us = stat.S_IMODE(status.st_mode), status.st_uid == 0 != os.geteuid()
    if mode & (0o037 if made_for_us else 0o077):
        raise InputError(f"{path} may be read or written by others (mode {mode:o}); run: chmod 600 {path}")
    return text
