"""A PostgreSQL database as the home of a store.

The writer's place is a lock that the server lets go of when the writer's session ends; the fence inside the rows is
what makes a second one harmless. When the server goes away we wait for it: a read is asked again, a transaction ends
with `ConnectionLost`, and the store reads whether it was committed. Needs the extra `postgres`.
"""

from __future__ import annotations

import logging
import select
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from eventide.errors import StoreError, missing_extra
from eventide.live.client_settings import settings_of
from eventide.live.stores.database import ConnectionLost, Database, Unavailable, Unreachable, WriterPlace
from eventide.live.stores.postgres_schema import LOCK, find_or_make, lock_name, parse_address, show_epoch
from eventide.live.stores.tables import INTRUSIONS, RAW

log = logging.getLogger("eventide.live")

PATIENCE = 60.0  # seconds to wait for a server that went away, or for a row that another session holds
PAUSE = 0.25
ENDING = 3.0  # seconds that a server may take to notice that a session has ended
REMEMBERED = 1.0  # seconds for which somebody who waits for nothing takes a server that was away as away
INTRUSIONS_CHANNEL = "eventide_intrusion"
_AWAY = (  # what a client or server says of a fault that passes
    *("refused", "No such file", "timeout expired", "unexpectedly", "reset by peer", "No route", "unreachable"),
    *("starting up", "shutting down", "recovery mode", "accepting connections", "too many clients", "connection slots"),
)
_WAY_BACK = "nothing is published any more: restore a backup and go on with --after-restore"


class PostgresDatabase(Database):
    """The store that an address postgresql://user@host/database#name means; clients: a file of client settings.

    patience: seconds to wait for a server that goes away later; 0 for somebody who asks again anyway.
    """

    held = "head"
    """The table of one row that a transaction holds."""

    def __init__(
        self,
        url: str,
        *,
        for_tests: bool = False,
        read_only: bool = False,
        waits: bool = True,
        clients: str | Path | None = None,
        patience: float | None = None,
    ) -> None:
        super().__init__()
        self._psycopg = load_psycopg()
        self._address, self._schema = parse_address(url)
        self._settings = settings_of(url, clients)
        self.place = f"{urlsplit(self._address).hostname or 'PostgreSQL'}#{self._schema}"
        self._read_only, self._patience = read_only, PATIENCE if patience is None else patience
        self._in_transaction = self._writes = self._listens = False
        self._away_since = -REMEMBERED  # when it was last found away
        self._told_of_intrusion = True  # or nobody knows
        self._erased = set(RAW)  # what was left behind, or ends with an epoch, goes as well
        with self._opening():
            self._connection = self._first_connection(max(self._patience, PATIENCE) if waits else 0.0)
        try:
            with self._opening():
                self.version = self._find(for_tests=for_tests)
                self._prepare()
                self._head = self._connection.execute(f"SELECT tableoid FROM {self.held}").fetchone()
        except BaseException:
            self._connection.close()
            raise

    def all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query, asked again where the server had gone away."""
        with self.turn:
            while True:
                try:
                    with self._refusals():
                        return list(self._execute(query, values).fetchall())
                except ConnectionLost:
                    if self._in_transaction:
                        raise
                    self.wait_until_back()

    @property
    def is_lost(self) -> bool:
        """Whether the connection has ended; the server is asked nothing, as it counts its statements."""
        if not self.turn.acquire(blocking=False):
            return False  # whoever uses it finds out
        try:
            connection = self._connection.pgconn
            if select.select([connection.socket], [], [], 0)[0]:
                connection.consume_input()
        except (self._psycopg.Error, OSError, ValueError):
            return True
        finally:
            self.turn.release()
        return bool(self._connection.closed)

    def has_table(self, name: str) -> bool:
        """Whether there is a table that not every store has."""
        return bool(self.all("SELECT 1 WHERE to_regclass(?) IS NOT NULL", name))

    def make_intrusions(self) -> None:
        """Make the table of announced intrusions, inside a transaction, where there is none."""
        self._connection.execute(INTRUSIONS.format(binary="bytea"))

    def listen_for_intrusions(self) -> None:
        """Have the server tell this session."""
        with self.turn, self._refusals():
            self._listens = True
            self._listen()

    def tell_of_intrusion(self) -> None:
        """Tell those who listen, when the transaction is committed."""
        self._connection.execute("SELECT pg_notify(%s, %s)", (INTRUSIONS_CHANNEL, self._schema))

    def is_told_of_intrusion(self) -> bool:
        """Whether the server has told us since the last time; it is asked nothing."""
        with self.turn:
            connection = self._connection.pgconn
            try:
                connection.consume_input()
                while (told := connection.notifies()) is not None:
                    self._hear(told)
            except self._psycopg.Error:  # the connection is lost, and who looks will make it again
                return True
            looks, self._told_of_intrusion = self._told_of_intrusion, False
            return looks

    def change(self, query: str, *values: Any) -> int:
        """Do something inside a transaction; give how many rows it touched."""
        return int(self._execute(query, values).rowcount)

    def change_each(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Do something for each row, inside a transaction."""
        with self._connection.cursor() as cursor:
            cursor.executemany(_placed(query), list(rows))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, durable at the end; the row of the head is held meanwhile, so writers take turns."""
        with self.turn, self._refusals():
            self._in_transaction = True
            try:
                with self._connection.transaction():
                    held = self._connection.execute(f"SELECT tableoid FROM {self.held} FOR UPDATE").fetchone()
                    if held != self._head:
                        raise StoreError(f"{self.place} was replaced while it was in use; {_WAY_BACK}")
                    yield
            finally:
                self._in_transaction = False

    def writer_place(self, *, take_over: bool) -> WriterPlace:
        """The session's lock; a server keeps that of a session that has ended until it notices."""
        until = time.monotonic() + ENDING
        with self._refusals():
            self._writes = True
            while not (held := self._locked()) and not take_over and time.monotonic() < until:
                time.sleep(PAUSE)
            if not held and not take_over:
                raise StoreError(
                    f"{self.place} is being written by another process; stop it, or take its place with --take-over"
                )
        return WriterPlace()

    def show_epoch(self, *, levels: bool) -> None:
        """Make the views anew."""
        with self._refusals():
            show_epoch(self._connection, self._schema, levels=levels)

    def check_structure(self) -> str | None:
        """The server looks after its files."""
        return None

    def come_back(self) -> None:
        """Connect again, for as long as patience lasts."""
        until = time.monotonic() + self._patience
        while not (self._patience == 0 and time.monotonic() - self._away_since < REMEMBERED):
            with suppress(self._psycopg.Error):
                self._connection.close()
                self._connection = self._connected()
                self._prepare()
                if self._writes:
                    self._locked()  # where the old session still seems to live, the fence has the last word
                return
            if time.monotonic() >= until or self.gives_up():
                self._away_since = time.monotonic()
                break
            time.sleep(PAUSE)
        raise Unavailable(
            f"{self.place} went away and did not come back", "nothing is lost: start again when it answers"
        )

    def forget(self, erased: Collection[str]) -> None:
        """Let the server overwrite what was erased."""
        self._erased.update(erased)
        with self.turn, suppress(self._psycopg.Error):  # the next commit tries again
            if self._erased:
                self._connection.execute(f"VACUUM {', '.join(sorted(self._erased))}")
                self._erased.clear()

    def close(self) -> None:
        """End the session, which gives up the lock."""
        self._connection.close()

    def _find(self, *, for_tests: bool) -> int:
        """See that what the address means is there, or make it; give its version."""
        return find_or_make(self._connection, self._schema, for_tests=for_tests, read_only=self._read_only)

    @contextmanager
    def _opening(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as problem:
            raise Unreachable(
                f"{self.place} cannot be opened ({self._told(problem)}); look at the address, the server, the "
                "rights of its user, and the password or TLS in the settings of its client"
            ) from None

    def _told(self, problem: Any) -> str:
        """What the client library says of a connection that failed, without secrets; of everything else the kind."""
        said = str(problem).strip().splitlines()
        if not said or not said[0].startswith("connection "):
            return type(problem).__name__
        secrets = [urlsplit(self._address).password, self._settings.get("password"), self._settings.get("sslpassword")]
        sentence = said[0].rstrip(".")
        for secret in filter(None, secrets):
            sentence = sentence.replace(secret, "...")
        return sentence

    def _first_connection(self, patience: float) -> Any:
        """A connection, waited for while there is no server or it is starting; what it refuses will not pass."""
        until, told = time.monotonic() + patience, False
        while True:
            try:
                return self._connected()
            except self._psycopg.OperationalError as problem:
                if time.monotonic() >= until or not any(words in str(problem) for words in _AWAY):
                    raise
            if not told:
                log.warning("%s does not answer; waiting for it", self.place)
            told = True
            time.sleep(PAUSE)

    def _connected(self) -> Any:
        return self._psycopg.connect(self._address, autocommit=True, connect_timeout=5, **self._settings)

    def _prepare(self) -> None:
        self._connection.execute(f'SET search_path TO "{self._schema}"')
        self._connection.execute("SET synchronous_commit TO on")
        self._connection.execute(f"SET lock_timeout TO {round((self._patience or PATIENCE) * 1000)}")
        if self._read_only:
            self._connection.execute("SET default_transaction_read_only TO on")
        if self._listens:
            self._listen()

    def _listen(self) -> None:
        """Listen from now on; what was told before is not known."""
        self._connection.add_notify_handler(self._hear)
        self._connection.execute(f"LISTEN {INTRUSIONS_CHANNEL}")
        self._told_of_intrusion = True

    def _hear(self, told: Any) -> None:
        """Take what a server tells: of which store, as text where psycopg read it, as bytes where we did."""
        store = told.payload if hasattr(told, "payload") else told.extra.decode()
        self._told_of_intrusion |= store == self._schema

    def _locked(self) -> bool:
        query = f"SELECT pg_try_advisory_lock({LOCK})"
        return bool(self._connection.execute(query, (lock_name(self._schema),)).fetchone()[0])

    def _execute(self, query: str, values: tuple[Any, ...]) -> Any:
        return self._connection.execute(_placed(query), values)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Say in one sentence what is wrong; a lost connection is something else."""
        try:
            yield
        except self._psycopg.Error as problem:
            if self._connection.closed or self._is_away(problem):
                raise ConnectionLost from None
            raise _refusal(self.place, problem) from None

    def _is_away(self, problem: Any) -> bool:
        """Whether the server went away, or is about to; what it refuses while it works will not pass by itself."""
        state = problem.sqlstate or ""
        return isinstance(problem, self._psycopg.OperationalError) and (not state or state.startswith(("08", "57P")))


def _refusal(place: str, problem: Any) -> StoreError:
    match problem.sqlstate:
        case "53100":
            return Unavailable(f"{place} has no room left on its disk", "make room and start again, nothing is lost")
        case "55P03":
            what = f"{place} is held by another process in the middle of a commit"
            return Unavailable(what, "end that process, then start again")
        case "42P01" | "3F000":
            return StoreError(f"{place} was removed from its database while it was in use; {_WAY_BACK}")
    what, otherwise = f"{place} refused ({type(problem).__name__})", "look at the server's log, then start again"
    if str(problem.sqlstate).startswith("53") or problem.sqlstate == "25006":  # short of something; in recovery
        return Unavailable(what, otherwise)
    return StoreError(f"{what}; {otherwise}")


def _placed(query: str) -> str:
    return query.replace("?", "%s")


def load_psycopg() -> Any:
    """The package psycopg, or a refusal that says how to get it."""
    try:
        import psycopg
    except ImportError:
        raise missing_extra("a PostgreSQL store needs the extra postgres", "postgres") from None
    return psycopg
