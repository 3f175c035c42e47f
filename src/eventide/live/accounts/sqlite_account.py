"""An account in a SQLite file: any number of processes of one machine, each of whose transactions is on disk when it
returns. The file appears under its name when it is whole, never over another one.
"""

from __future__ import annotations

import os
import secrets
import shlex
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from eventide.errors import InputError, StoreError
from eventide.live.accounts.database import TABLES, VERSION
from eventide.live.stores.sqlite_database import file_at
from eventide.live.stores.sqlite_file import refusals, refuse_log

APPLICATION = int.from_bytes(b"evta", "big")  # marks the file as an account in its header
PATIENCE = 30.0  # seconds to wait for other processes' transactions


def create_file(path: Path, row: Sequence[Any]) -> None:
    """Make the file of a new account with the row that describes it."""
    with refusals(path):
        if not path.exists():
            refuse_log(path, "put the account back beside it, or remove the log and restore a backup")
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with closing(_connect(unfinished, "rw")) as connection:
                connection.execute("PRAGMA journal_mode = MEMORY")  # no file beside it that could be left
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
                connection.execute("BEGIN")
                for statement in TABLES:
                    connection.execute(statement.format(number="INTEGER", binary="BLOB"))
                connection.execute("INSERT INTO account VALUES (?, ?, ?, ?, ?)", row)
                connection.execute("COMMIT")
            os.link(unfinished, path)  # unlike a rename it fails where something is
        except FileExistsError:
            raise InputError(
                f"there is something at {path} already; `eventide account show {path}` looks at it"
            ) from None
        finally:
            unfinished.unlink(missing_ok=True)


class AccountMissing(InputError):
    """There is nothing at a path; the advice is for the people of `population`."""

    def __init__(self, path: str | Path, population: str = "NAME") -> None:
        make = f"eventide account create {path} --population {shlex.quote(population)} --epsilon 1 --window 7d"
        back = "if there was one, put it back or restore a backup"
        super().__init__(f"there is no account at {path}; {back}, else run `{make}`")
        self.path = path


class SqliteAccount:
    """The file at `path`, which exists."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.place, self._path, self._turn = str(path), path, threading.RLock()
        with refusals(path):
            if not path.exists():
                raise AccountMissing(path)
            self._file = file_at(path)
            self._connection = _connect(path, "ro" if read_only else "rw")
            try:
                self._check_kind()
                if not read_only:
                    self._connection.execute("PRAGMA journal_mode = WAL")
                    self._connection.execute("PRAGMA synchronous = FULL")
            except BaseException:
                self._connection.close()
                raise

    def _check_kind(self) -> None:
        (kind,), (version,) = (
            self._connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if kind != APPLICATION:
            raise StoreError(f"{self.place} is no account; make one with `eventide account create` under another name")
        if version > VERSION:
            raise StoreError(
                f"{self.place} was written by a newer eventide (version {version}, this one knows {VERSION}); update"
            )

    def all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self._turn, refusals(self._path):
            return self._connection.execute(query, values).fetchall()

    def change(self, query: str, *values: Any) -> None:
        """Do something inside a transaction."""
        with refusals(self._path):
            self._connection.execute(query, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, on disk at the end, and alone."""
        with self._inside("BEGIN IMMEDIATE"):
            yield
        self._refuse_removed()

    def _refuse_removed(self) -> None:
        """Refuse if the file was removed, moved or replaced: nobody else sees what is charged to the open one."""
        with refusals(self._path):
            if file_at(self._path) != self._file:
                raise StoreError(
                    f"{self.place} was removed, moved or replaced while it was in use, and nothing is published any "
                    f"more; put it back, or restore a backup and run `eventide account restored {self.place}`"
                )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What is read inside is of one moment."""
        with self._inside("BEGIN"):
            yield

    @contextmanager
    def _inside(self, begin: str) -> Iterator[None]:
        with self._turn, refusals(self._path):
            self._connection.execute(begin)
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.rollback()
                raise

    def come_back(self) -> None:
        """A file does not go away."""

    def close(self) -> None:
        """Let go of the file."""
        with self._turn:
            self._connection.close()


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,
        check_same_thread=False,
    )
