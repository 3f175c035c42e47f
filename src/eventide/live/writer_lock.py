"""One writer at a time: a lock on a file beside the store, which also says who holds it and how far the store came.

The operating system lets go of the lock when its holder dies. The step noted in the file outlives a store that lost
its last commits (a backup was put back, or its log was damaged): it is written after each commit, so a store that is
behind it has forgotten something. May import `errors`.
"""

from __future__ import annotations

import fcntl
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eventide.errors import StoreError

_LENGTH = 240  # bytes; every note has the same length, so that one write replaces it whole


class WriterLock:
    """The place of the only writer of the store at `path`, taken from the moment it is made until `release`."""

    def __init__(self, path: Path, *, take_over: bool = False) -> None:
        self._path = lock_path(path)
        noted = read_note(path)
        if take_over:  # whoever holds the old file keeps a lock on something that has no name any more
            self._path.unlink(missing_ok=True)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            who, since = noted.get("pid", "unknown"), noted.get("since", "an unknown time")
            raise StoreError(
                f"{path} is being written by process {who} since {since}; stop it, or take its place with --take-over"
            ) from None
        self._note = noted | {"pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
        self._write()

    def reached(self, store: str) -> int:
        """The last step that the store of this name is known to have committed, -1 where nothing is known."""
        return int(self._note["step"]) if self._note.get("store") == store else -1

    def note(self, store: str, step: int) -> None:
        """Remember that a store has committed a step."""
        self._note |= {"store": store, "step": step}
        self._write()

    def release(self) -> None:
        """Let the next writer in."""
        os.close(self._file)

    def _write(self) -> None:
        os.pwrite(self._file, json.dumps(self._note).ljust(_LENGTH - 1).encode() + b"\n", 0)


def lock_path(path: Path) -> Path:
    """The file beside a store that its writer locks."""
    return path.with_name(path.name + ".lock")


def read_note(path: Path) -> dict[str, Any]:
    """What the last writer of the store at `path` noted; empty where nothing can be read."""
    try:
        note = json.loads(lock_path(path).read_bytes())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}
