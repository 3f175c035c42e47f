"""What an account asks of a database, and the tables it keeps there.

A transaction is all or nothing, is durable when it has ended, and no other process's runs meanwhile.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

VERSION = 1

TABLES = (
    # `account` has one row: name, population, nano-epsilon, microseconds
    "CREATE TABLE account (name TEXT PRIMARY KEY, population TEXT NOT NULL, epsilon {number} NOT NULL,"
    " length {number} NOT NULL, digest {binary} NOT NULL)",
    # what a writer needs of every tenure; follows from the entries
    "CREATE TABLE tenure (number {number} PRIMARY KEY, publication TEXT NOT NULL, terms TEXT NOT NULL,"
    " weight {number} NOT NULL, since {number} NOT NULL, ended {number} NOT NULL, token {number} NOT NULL,"
    " charged_from {number}, charged_until {number}, settled_until {number})",
    # everything that ever happened, in order; each seal covers the one before
    "CREATE TABLE entry (number {number} PRIMARY KEY, event TEXT NOT NULL, seal {binary} NOT NULL)",
)


class AccountDatabase(Protocol):
    """A connection to the database of one account."""

    place: str
    """How messages name the account."""

    def all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query with ? where a value goes."""
        ...

    def change(self, query: str, *values: Any) -> object:
        """Do something inside a transaction."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing, durable at the end, and alone."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """What is read inside is of one moment."""
        ...

    def come_back(self) -> None:
        """Connect again after the connection was lost, or refuse after a while."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...
