"""The SQLite file of a store: made whole or not at all, opened only if it is what it should be, its schema versioned.

A file that is empty, cut, of a newer version or something else is refused; nothing is ever begun over it. All that
SQLite may complain about becomes one sentence.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from eventide.errors import StoreError
from eventide.live import faults
from eventide.live.stores.database import Unavailable, unusable
from eventide.live.stores.digests import digest
from eventide.live.stores.home import Home, write_home
from eventide.live.stores.migrations import to_second_in_sqlite, to_third_in_sqlite
from eventide.live.stores.tables import VERSION, table_statements
from eventide.live.stores.writer_lock import WriterLock, lock_path, read_note

APPLICATION = int.from_bytes(b"evtd", "big")  # marks the file as eventide's in its header
PATIENCE = 5.0  # seconds to wait for another process's transaction

Migration = Callable[[sqlite3.Connection], None]


MIGRATIONS: dict[int, Migration] = {2: to_second_in_sqlite, 3: to_third_in_sqlite}
"""What brings a file to each version from the one before; run in order, each in a transaction of its own."""


def create(path: Path, *, for_tests: bool) -> None:
    """Make a new store with its secret key; it appears under its name when it is whole, never over another file.

    What a process left that was killed in here is removed; a store that is there already stays as it is.
    """
    with refusals(path), _folder_locked(path.parent):
        unfinished = _unfinished(path)
        unfinished.unlink(missing_ok=True)
        if path.exists():
            return
        os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with closing(_connect(unfinished, "rw")) as connection:
                connection.execute("PRAGMA journal_mode = MEMORY")  # no file beside it that could be left
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute("BEGIN")
                _make_tables(connection)
                row = (secrets.token_hex(16), secrets.token_bytes(16), int(for_tests))
                connection.execute("INSERT INTO store VALUES (1, ?, ?, ?, ?)", (*row, digest(*row)))
                write_home(connection, Home(path, Home.of(unfinished).file))  # which keeps its number
                connection.execute("COMMIT")
            os.link(unfinished, path)  # unlike a rename it fails where something else has come
        finally:
            unfinished.unlink(missing_ok=True)


def _make_tables(connection: sqlite3.Connection) -> None:
    types = {"number": "INTEGER", "counter": "INTEGER", "binary": "BLOB"}
    for statement in table_statements(**types, literal=lambda data: f"x'{data.hex()}'"):
        connection.execute(statement)
    _note_version(connection, VERSION)


def _note_version(connection: sqlite3.Connection, version: int) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    connection.execute("INSERT INTO migration VALUES (?, ?)", (version, now))
    connection.execute(f"PRAGMA user_version = {version}")


def is_created(path: Path) -> bool:
    """Whether there is a store, or something else, and nothing that was left when it was made."""
    return path.exists() and not _unfinished(path).exists()


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


@contextmanager
def _folder_locked(folder: Path) -> Iterator[None]:
    """Nobody else makes a store in a folder meanwhile; what was done is on disk at the end."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
        os.fsync(handle)
    finally:
        os.close(handle)


def refuse_log(path: Path, otherwise: str) -> None:
    """Refuse to make a file beside the log of one that is missing: SQLite would take that log for the new one's."""
    for suffix in ("-wal", "-journal"):
        if path.with_name(path.name + suffix).exists():
            raise StoreError(f"{path} is missing but its log {path.name}{suffix} is there; {otherwise}")


def refuse_remains(path: Path) -> None:
    """Refuse to begin a store where one was: its log or its lock file says that it is missing, not new."""
    refuse_log(path, "put the store back beside it, or restore a backup and go on with --after-restore")
    if (note := read_note(path)) and note["step"] >= 0:
        raise StoreError(
            f"{path} is missing but had come to step {note['step']}; restore a backup and go on with --after-restore, "
            f"or remove {lock_path(path).name} to begin with an empty ledger"
        )


def connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """Open a store that exists and bring it to this version; a reader changes nothing and takes it as it is."""
    with refusals(path):
        if path.stat().st_size == 0:
            raise StoreError(f"{path} is empty; that is no store: restore a backup, or remove the file to begin anew")
        connection = _connect(path, _reading_mode(path) if read_only else "rw")
        try:
            _check_kind(connection, path)
            _refuse_cut(connection, path)
            connection.execute("PRAGMA cell_size_check = ON")
            if not read_only:
                connection.execute("PRAGMA journal_mode = WAL")
                for pragma in ("synchronous = FULL", "secure_delete = ON"):
                    connection.execute(f"PRAGMA {pragma}")
                _migrate_alone(connection, path)
                connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection


def _refuse_cut(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not as long as its header says; SQLite does not mind some lost bytes.

    The file is not opened for that: closing it would give up the locks of this process's other connections, and then
    another process would take the log for its own and delete it.
    """
    if _has_log(path):
        return  # then it may be longer or shorter for now
    length = _number(connection, "page_count") * _number(connection, "page_size")
    if path.stat().st_size != length and not _has_log(path):
        raise StoreError(f"{path} is damaged: its length is not what it was; restore a backup, then --after-restore")


def _has_log(path: Path) -> bool:
    try:
        return path.with_name(path.name + "-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the tables in an open file."""
    return _number(connection, "user_version")


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a file to this version, one step after the other."""
    version = version_of(connection)
    for newer in sorted(number for number in MIGRATIONS if number > version):
        connection.execute("BEGIN IMMEDIATE")
        try:
            MIGRATIONS[newer](connection)
            _note_version(connection, newer)
            faults.passing("inside-migration")
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise


def _migrate_alone(connection: sqlite3.Connection, path: Path) -> None:
    """Bring an old file to this version while nobody writes to it."""
    if version_of(connection) < max(MIGRATIONS):
        lock = WriterLock(path, otherwise="stop it: nobody may write while a store is brought to a new version")
        try:
            migrate(connection)
        finally:
            lock.release()
        faults.passing("after-migration")


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Say in one sentence what is wrong with a store."""
    try:
        yield
    except sqlite3.Error as problem:
        raise _refusal(path, problem) from None
    except UnicodeDecodeError:  # SQLite quotes damaged text in what it says
        raise StoreError(f"{path} is damaged; restore a backup and go on with --after-restore") from None
    except OSError as problem:
        raise unusable(f"{path} cannot be used", problem, "look at its folder, its rights and its disk") from None


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,
        check_same_thread=False,
    )


def _reading_mode(path: Path) -> str:
    """A reader makes files for a log beside the store; where it cannot and there is no log, nobody writes either."""
    at_rest = not path.with_name(path.name + "-wal").exists() and not os.access(path.parent, os.W_OK)
    return "ro&immutable=1" if at_rest else "ro"


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    if _number(connection, "application_id") != APPLICATION:
        raise StoreError(f"{path} is a database but no store of eventide; choose another file")
    version, newest = version_of(connection), max(MIGRATIONS)
    if version > newest:
        raise StoreError(f"{path} was written by a newer eventide (version {version}, this one knows {newest}); update")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _refusal(path: Path, problem: sqlite3.Error) -> StoreError:
    match code := getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return Unavailable(f"{path} has no room left on its disk", "make room and start again, nothing is lost")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            what = f"{path} is held by another process in the middle of a commit"
            return Unavailable(what, "end that process, then start again")
        case sqlite3.SQLITE_IOERR:
            what = f"{path} cannot be read or written ({problem})"
            return Unavailable(what, "look at its disk, then start again")
    return StoreError(f"{path} {_sentence(code, problem)}")


def _sentence(code: int, problem: sqlite3.Error) -> str:
    match code:
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return "cannot be opened or written; look at the rights of the file and its folder"
        case sqlite3.SQLITE_ERROR:
            return (
                f"was brought to another version meanwhile, or is damaged ({problem}); start again, or restore a "
                "backup and go on with --after-restore"
            )
        case sqlite3.SQLITE_NOTADB:
            return (
                "is no store of eventide; give the file that was made with --store, or restore a backup if it was one"
            )
        case _:
            return f"is damaged or no store ({problem}); restore a backup and go on with --after-restore"
