"""Texts that are kept beside stores and outlive each of them: a file in their folder, a row in their database.

A text has a name, is replaced as a whole, and is durable when the call returns.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from eventide.errors import StoreError
from eventide.live.addresses import is_address, without_secrets
from eventide.live.client_settings import settings_of
from eventide.live.stores.postgres_database import load_psycopg
from eventide.live.stores.postgres_schema import parse_address
from eventide.live.stores.sqlite_file import refusals

SCHEMA = "eventide_populations"  # of a database with stores; no name of a store


def place_of(store: str | Path) -> str:
    """What several stores may stand in: the folder of a file, the database of an address."""
    if is_address(store):
        return parse_address(str(store))[0]
    return str(Path(os.path.realpath(store)).parent)


def address_of(store: str | Path) -> str:
    """Where a store is, to be written down: a path from the root, an address without its password."""
    return without_secrets(str(store)) if is_address(store) else os.path.realpath(store)


def read_beside(place: str, name: str, clients: str | Path | None = None) -> str | None:
    """The text of that name, None where there is none; clients: a file of client settings."""
    if is_address(place):
        with _database(place, clients) as connection:
            if not _has_table(connection):
                return None
            row = connection.execute(f"SELECT text FROM {SCHEMA}.record WHERE name = %s", (name,)).fetchone()
            return None if row is None else str(row[0])
    path = Path(place) / name
    with refusals(path):
        return path.read_text(encoding="utf-8") if path.exists() else None


def write_beside(place: str, name: str, text: str, clients: str | Path | None = None) -> None:
    """Keep a text under that name, in the place of the one before; clients: a file of client settings."""
    if is_address(place):
        with _database(place, clients) as connection, connection.transaction():
            if not _has_table(connection):
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                connection.execute(f"CREATE TABLE {SCHEMA}.record (name TEXT PRIMARY KEY, text TEXT NOT NULL)")
            update = "ON CONFLICT (name) DO UPDATE SET text = excluded.text"
            connection.execute(f"INSERT INTO {SCHEMA}.record VALUES (%s, %s) {update}", (name, text))
        return
    path = Path(place) / name
    with refusals(path):
        fresh = path.with_name(f".{name}.part")
        fresh.unlink(missing_ok=True)  # what a process left that was killed in here
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(file, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(file)
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def _has_table(connection: Any) -> bool:
    return connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.record",)).fetchone()[0] is not None


@contextmanager
def _database(address: str, clients: str | Path | None) -> Iterator[Any]:
    psycopg, settings = load_psycopg(), settings_of(address, clients)
    try:
        with psycopg.connect(address, autocommit=True, connect_timeout=5, **settings) as connection:
            yield connection
    except psycopg.Error as problem:
        raise StoreError(
            f"{urlsplit(address).hostname or 'PostgreSQL'}: the schema {SCHEMA}, where the stores of each population "
            f"are written down, cannot be used ({type(problem).__name__}); look at the server and its user's rights"
        ) from None
