"""Open a store by its name: a path is a SQLite file, made where nothing is; other databases have addresses.

A reader never makes a store, and what is there is never begun anew.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from eventide.errors import InputError
from eventide.live.addresses import without_secrets
from eventide.live.stores.base import Store, StoreMissing
from eventide.live.stores.database import Database
from eventide.live.stores.database_store import DatabaseStore
from eventide.live.stores.postgres_database import PostgresDatabase
from eventide.live.stores.sqlite_database import SqliteDatabase
from eventide.live.stores.sqlite_file import create, is_created, refusals, refuse_remains


def open_store(
    place: str | Path,
    *,
    for_tests: bool = False,
    read_only: bool = False,
    waits: bool | None = None,
    clients: str | Path | None = None,
    patience: float | None = None,
) -> Store:
    """The store at `place`; a reader never makes one, and what is there is never begun anew.

    Parameters
    ----------
    place
        The path of a SQLite file, or an address such as postgresql://host/database.
    for_tests
        Make a store that also takes noise which is not private, and that says so for ever.
    read_only
        Only look: a store that is not there is an error.
    waits
        Wait for a server that is away; a writer does where this is left out, and who only looks is told at once.
    clients
        A file of client settings, for an address; the one that EVENTIDE_CLIENTS names where left out.
    patience
        Seconds to wait for a server that goes away later, before whoever asked is told; a minute where left out.
    """
    waits = not read_only if waits is None else waits
    store = DatabaseStore(_database(place, for_tests, read_only, waits, clients, patience))
    if for_tests and not store.for_tests:
        store.close()
        raise InputError(f"{without_secrets(str(place))} is a store for real data; tests need one of their own")
    return store


def _database(
    place: str | Path,
    for_tests: bool,
    read_only: bool,
    waits: bool,
    clients: str | Path | None,
    patience: float | None,
) -> Database:
    scheme, address, _ = str(place).partition("://")
    if address:
        if scheme not in ("postgresql", "postgres"):
            raise InputError(f"{scheme}:// is no store that eventide knows; give postgresql:// or the path of a file")
        how: dict[str, Any] = {"waits": waits, "clients": clients, "patience": patience}
        return PostgresDatabase(str(place), for_tests=for_tests, read_only=read_only, **how)
    path = Path(place)
    with refusals(path):
        if path.is_dir():
            raise InputError(f"{path} is a folder; give the name of a file for the store")
        path = Path(os.path.realpath(path))  # one lock for all names of a store
        if not path.exists():
            if read_only:
                raise StoreMissing(f"there is no store at {place}; `eventide publish --store {place}` makes one")
            refuse_remains(path)
        if not read_only and not is_created(path):
            create(path, for_tests=for_tests)
    return SqliteDatabase(path, read_only=read_only)
