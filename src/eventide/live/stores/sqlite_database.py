"""A SQLite file as the database of a store: each transaction is on disk when it returns.

What was erased (kept events, an old snapshot, an old position of the source) is overwritten in the file, and the log
that may still show it is cut when a writer opens the file, by the first commit, of a step or of events, that comes a
second after the last cut, and at the end. What is committed to a file that was removed meanwhile is refused.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from eventide.errors import StoreError
from eventide.live.stores.database import Database, WriterPlace
from eventide.live.stores.home import Home, move_in
from eventide.live.stores.sqlite_file import PATIENCE, connect, refusals, version_of
from eventide.live.stores.tables import INTRUSIONS
from eventide.live.stores.writer_lock import WriterLock

WORTH_COMPRESSING = 256  # bytes
CUT_LOG_EVERY = 1.0  # seconds, while there is something erased in it


class SqliteDatabase(Database):
    """The file at `path`, which exists."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        super().__init__()
        self.place = str(path)
        self._path, self._log = path, path.with_name(path.name + "-wal")
        with refusals(path):
            file = file_at(path)
        self._connection = connect(path, read_only=read_only)
        self.version = version_of(self._connection)
        self._erased, self._log_cut_at = True, -CUT_LOG_EVERY  # a log that was left behind may show something
        try:
            if not read_only:
                self._cut_log()
            self._files = file, file_at(self._log)
            self.check_in_place()
        except BaseException:
            self._connection.close()
            raise

    def all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self.turn, refusals(self._path):
            return self._connection.execute(query, values).fetchall()

    def has_table(self, name: str) -> bool:
        """Whether there is a table that not every store has."""
        return bool(self.all("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name))

    def make_intrusions(self) -> None:
        """Make the table of announced intrusions, inside a transaction, where there is none."""
        self._connection.execute(INTRUSIONS.format(binary="BLOB"))

    def change(self, query: str, *values: Any) -> int:
        """Do something inside a transaction; give how many rows it touched."""
        return self._connection.execute(query, values).rowcount

    def change_each(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Do something for each row, inside a transaction."""
        self._connection.executemany(query, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, on disk at the end."""
        with self.turn, refusals(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.rollback()
                raise

    def writer_place(self, *, take_over: bool) -> WriterPlace:
        """The lock beside the file."""
        with refusals(self._path):
            return WriterLock(self._path, take_over=take_over)

    def check_structure(self) -> str | None:
        """What SQLite finds."""
        found = [text for (text,) in self.all("PRAGMA integrity_check") if text != "ok"]
        return found[0] if found else None

    def move_in(self, place: WriterPlace, *, after_restore: bool) -> None:
        """Refuse a copy of the file, or write down in it where it is."""
        move_in(self._connection, Home.of(self._path), place, after_restore=after_restore)

    def check_in_place(self) -> None:
        """Refuse if the file or its log was removed, moved or replaced: what is in the open ones is lost with them."""
        with refusals(self._path):
            found = file_at(self._path), file_at(self._log)
        if found != self._files:
            raise StoreError(
                f"{self._path} or its log was removed, moved or replaced while it was in use, and nothing is published "
                "any more; put both back, or restore a backup and go on with --after-restore"
            )

    def compressed(self, data: bytes) -> bytes:
        """Long text deflated, which then begins with an x."""
        return zlib.compress(data, 1) if len(data) >= WORTH_COMPRESSING else data

    def expanded(self, data: bytes) -> bytes:
        """The text; older versions stored it as it was."""
        return zlib.decompress(data) if data.startswith(b"x") else data

    def forget(self, erased: Collection[str]) -> None:
        """Empty the log of what was erased, unless a reader is in it; then the next commit does."""
        self._erased = self._erased or bool(erased)
        if self._erased and time.monotonic() - self._log_cut_at >= CUT_LOG_EVERY:
            self._erased, self._log_cut_at = not self._cut_log(), time.monotonic()

    def make_room(self) -> None:
        """Empty the log: where it fills the disk, no commit would ever come to that."""
        with suppress(StoreError):
            self._cut_log()

    def _cut_log(self) -> bool:
        """Empty the log, and say whether that was possible: it is not while a reader is in it."""
        with self.turn, refusals(self._path):
            self._connection.execute("PRAGMA busy_timeout = 0")
            try:
                (busy, *_) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {round(PATIENCE * 1000)}")
        return not busy

    def close(self) -> None:
        """Let go of the file."""
        with self.turn:
            self._connection.close()


def file_at(path: Path) -> tuple[int, int] | None:
    """Which file a name means, None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - asked at every step, and half as long
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
