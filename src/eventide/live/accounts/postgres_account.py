"""An account in a PostgreSQL database, in a schema of its own: any number of processes on any number of machines.

Transactions take turns by holding the row that describes the account. When the server goes away we wait for it. Needs
the extra `postgres`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eventide.errors import InputError
from eventide.live.accounts.database import TABLES, VERSION
from eventide.live.stores.postgres_database import PostgresDatabase


class PostgresAccount(PostgresDatabase):
    """The account that an address postgresql://user@host/database#name means; with a row, one that is made."""

    held = "account"

    def __init__(
        self,
        url: str,
        *,
        made_with: Sequence[Any] | None = None,
        read_only: bool = False,
        clients: str | Path | None = None,
    ) -> None:
        self._made_with = made_with
        super().__init__(url, read_only=read_only, waits=not read_only, clients=clients)

    def _find(self, *, for_tests: bool) -> int:
        found = self._connection.execute(
            "SELECT to_regnamespace(%s), to_regclass(%s)", (f'"{self._schema}"', f'"{self._schema}".tenure')
        )
        exists, tenures = found.fetchone()
        if self._made_with is None and tenures is None:
            raise InputError(
                f"there is no account {self.place}; if there was one, restore a backup, else make one with "
                "`eventide account create`"
            )
        if self._made_with is not None:
            if exists is not None:
                raise InputError(f"there is something at {self.place} already; choose another name behind the #")
            self._make(self._made_with)
        return VERSION

    def _make(self, row: Sequence[Any]) -> None:
        with self._connection.transaction():
            self._connection.execute(f'CREATE SCHEMA "{self._schema}"')
            self._connection.execute(f'SET LOCAL search_path TO "{self._schema}"')
            for statement in TABLES:
                self._connection.execute(statement.format(number="bigint", binary="bytea"))
            self._connection.execute("INSERT INTO account VALUES (%s, %s, %s, %s, %s)", row)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What is read inside is of one moment."""
        with self.turn, self._refusals():
            self._in_transaction = True
            try:
                with self._connection.transaction():
                    self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                    yield
            finally:
                self._in_transaction = False
