"""Where accounts are: in a file or in PostgreSQL. Makes one, opens one, and says whether one is there."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from eventide.errors import InputError, StoreError
from eventide.events.durations import milliseconds
from eventide.live.accounts.account import MILLISECOND, Account
from eventide.live.accounts.postgres_account import PostgresAccount
from eventide.live.accounts.sqlite_account import SqliteAccount, create_file
from eventide.live.addresses import is_address
from eventide.live.stores.digests import digest
from eventide.privacy.amounts import Amount, nano


def create_account(
    place: str | Path, population: str, epsilon: Amount, window: str, *, clients: str | Path | None = None
) -> None:
    """Make an account, where nothing is yet.

    Parameters
    ----------
    place
        The path of a SQLite file, or an address such as postgresql://host/database#patients.
    population
        Whose events it is about.
    epsilon
        What everything together may cost one person inside any window.
    window
        The length of a window, such as 7d.
    clients
        A file of client settings, for an address; the one that EVENTIDE_CLIENTS names where left out.
    """
    if not population:
        raise InputError("an account is about somebody: give the population a name")
    name, length = secrets.token_hex(16), milliseconds(window) * MILLISECOND
    row = (name, population, nano(epsilon), length)
    row_with_digest = (*row, digest(*row))
    if _is_server(place):
        PostgresAccount(str(place), made_with=row_with_digest, clients=clients).close()
    else:
        create_file(Path(os.path.realpath(place)), row_with_digest)


def open_account(place: str | Path, *, read_only: bool = False, clients: str | Path | None = None) -> Account:
    """The account at a place."""
    if _is_server(place):
        return Account(PostgresAccount(str(place), read_only=read_only, clients=clients))
    return Account(SqliteAccount(Path(os.path.realpath(place)), read_only=read_only))


def is_account(place: str | Path) -> bool:
    """Whether there is an account at a place, rather than a store or nothing."""
    try:
        open_account(place, read_only=True).close()
    except (InputError, StoreError):
        return False
    return True


def _is_server(place: str | Path) -> bool:
    """Whether a place is the address of a database; other addresses are refused."""
    if is_address(place) and not str(place).startswith(("postgresql://", "postgres://")):
        raise InputError(
            "an account is a file or in PostgreSQL; give a path or an address such as postgresql://host/name"
        )
    return is_address(place)
