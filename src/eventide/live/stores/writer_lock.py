"""One writer at a time: a lock on a file beside the store, which also says who holds it and how far the store came.

The operating system lets go of the lock when its holder dies. The step noted in the file outlives a store that lost its
last commits (a backup was put back, or its log was damaged): it is written after each commit, so a store that is behind
it has forgotten something. Beside it stands the first step that no window of a step committed so far reaches, also
under settings that a backup does not know.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eventide.errors import StoreError
from eventide.live.stores.database import WriterPlace, unusable

_LENGTH = 240  # bytes; every note has the same length, so that one write replaces it whole


class WriterLock(WriterPlace):
    """The place of the only writer of the store at `path`, held from the moment it is made until `release`.

    With `take_over` it may belong to another still; `settle` then takes it away. `otherwise` says what to do about one
    who holds it.
    """

    def __init__(
        self, path: Path, *, take_over: bool = False, otherwise: str = "stop it, or take its place with --take-over"
    ) -> None:
        self._path = lock_path(path)
        self._note = noted = read_note(path)
        with _refusals(self._path):
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        self._held = _lock(self._file)
        if not self._held and not take_over:
            os.close(self._file)
            who, since = noted.get("pid", "unknown"), noted.get("since", "an unknown time")
            raise StoreError(f"{path} is being written by process {who} since {since}; {otherwise}")

    def settle(self, store: str, last_step: int, free_from: int) -> None:
        """Say who is here; whoever held the place keeps a lock on a file that has no name any more."""
        self._note |= {"pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
        if not self._held:
            with _refusals(self._path):
                fresh = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}.part")
                file = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
                os.close(self._file)
                self._file, self._held = file, _lock(file)
                fresh.replace(self._path)
        self.note(store, max(last_step, self.reached(store)), free_from)

    def knows(self, store: str) -> bool:
        """Whether the note is about the store of this name."""
        return self._note.get("store") == store

    def learn(self, store: str, note: Mapping[str, Any]) -> None:
        """Take over what was noted of the store elsewhere, where it says more."""
        if note.get("store") == store:
            own = {"step": self.reached(store), "free_from": self.free_from(store)}
            self._note |= {"store": store} | {name: max(known, note[name]) for name, known in own.items()}

    def reached(self, store: str) -> int:
        """The last step that the store of this name is known to have committed, -1 where nothing is known."""
        return int(self._note["step"]) if self.knows(store) else -1

    def free_from(self, store: str) -> int:
        """The first step known to share no window with any that the store has committed; 0 where nothing is known."""
        return int(self._note["free_from"]) if self.knows(store) else 0

    def note(self, store: str, step: int, free_from: int) -> None:
        """Remember that a store has committed a step, and which one is the first that shares no window with it."""
        self._note |= {"store": store, "step": step, "free_from": max(free_from, self.free_from(store))}
        with _refusals(self._path):
            os.pwrite(self._file, json.dumps(self._note).ljust(_LENGTH - 1).encode() + b"\n", 0)

    def release(self) -> None:
        """Let the next writer in."""
        os.close(self._file)


def lock_path(path: Path) -> Path:
    """The file beside a store that its writer locks."""
    return path.with_name(path.name + ".lock")


def read_note(path: Path) -> dict[str, Any]:
    """What the last writer of the store at `path` noted; empty where nothing can be read."""
    try:
        note = json.loads(lock_path(path).read_bytes())
        known = {
            "pid": int(note["pid"]),
            "since": str(note["since"]),
            "store": note["store"],
            "step": int(note["step"]),
        }
        return known | {"free_from": int(note.get("free_from", 0))}  # which older versions did not note
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def is_held(path: Path) -> bool:
    """Whether a writer of the store at `path` is at work."""
    lock = lock_path(path)
    if not lock.exists():
        return False
    with _refusals(lock):
        file = os.open(lock, os.O_RDWR)
    try:
        return not _lock(file)
    finally:
        os.close(file)


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise unusable(
            f"{path} cannot be written", problem, "look at its owner, its folder and its disk, then start again"
        ) from None


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
