"""What brings the tables of an older store to this version, inside a transaction of the caller.

Version 2: where a source stands is known of the last step alone. The first version kept it for every step, and the
differences told how many events each step had. The seal of a row covered it, so that all rows are sealed anew; one that
was damaged before gets no seal that fits, and is still found. The old rows are written over or thrown away as a whole,
so that nothing of them is left once the log is cut.

Version 3: a release may be told as what differs from an earlier one, its base. Rows of before have none, and stay.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from eventide.live import faults
from eventide.live.stores.digests import digest
from eventide.live.stores.tables import without_statistics

ROWS_AT_A_TIME = 64

_BASE = "ALTER TABLE step ADD COLUMN base {}"

_IN_SQLITE = """
CREATE TABLE moved (
    step INTEGER PRIMARY KEY, epoch INTEGER NOT NULL REFERENCES epoch, entries TEXT NOT NULL, chain BLOB NOT NULL,
    seal BLOB NOT NULL, release BLOB NOT NULL, tape BLOB NOT NULL);
INSERT INTO moved SELECT step, epoch, entries, chain, resealed(chain, seal, release, tape, position), release, tape
    FROM step ORDER BY step;
ALTER TABLE head ADD COLUMN position TEXT NOT NULL DEFAULT 'null';
ALTER TABLE head ADD COLUMN seal BLOB NOT NULL DEFAULT x'';
UPDATE head SET position = (SELECT position FROM step WHERE step.step = head.step) WHERE head.step >= 0;
UPDATE head SET seal = sealed(chain, position);
DROP TABLE step;
ALTER TABLE moved RENAME TO step
"""

_IN_POSTGRES = """
ALTER TABLE head ADD COLUMN position TEXT NOT NULL DEFAULT 'null', ADD COLUMN seal bytea NOT NULL DEFAULT '';
UPDATE head SET position = step.position FROM step WHERE step.step = head.step;
ALTER TABLE step DROP COLUMN position, ALTER COLUMN seal TYPE bytea USING seal || ''
"""


def to_second_in_sqlite(connection: sqlite3.Connection) -> None:
    """Copy the rows into a new table; the pages of the old one are overwritten (secure_delete). No foreign keys on."""
    connection.create_function("resealed", 5, _resealed)
    connection.create_function("sealed", 2, digest)
    for statement in _IN_SQLITE.split(";"):
        connection.execute(statement)


def to_second_in_postgres(connection: Any) -> None:
    """Seal the rows, then let the server write the table into a new file: what a column's expression does."""
    last = -1
    query = "SELECT step, chain, seal, release, tape, position FROM step WHERE step > %s ORDER BY step LIMIT %s"
    while rows := connection.execute(query, (last, ROWS_AT_A_TIME)).fetchall():
        with connection.cursor() as cursor:
            cursor.executemany(
                "UPDATE step SET seal = %s WHERE step = %s", [(_resealed(*row[1:]), row[0]) for row in rows]
            )
        last = rows[-1][0]
    for statement in (*_IN_POSTGRES.split(";"), *without_statistics()):
        connection.execute(statement)
    (chain, position) = connection.execute("SELECT chain, position FROM head").fetchone()
    connection.execute("UPDATE head SET seal = %s", (digest(chain, position),))


def to_third_in_sqlite(connection: sqlite3.Connection) -> None:
    """Make room for the base of a step."""
    connection.execute(_BASE.format("INTEGER"))


def to_third_in_postgres(connection: Any) -> None:
    """The same; the views are made anew by whoever knows them."""
    connection.execute(_BASE.format("bigint"))


def _resealed(chain: bytes, seal: bytes, release: bytes, tape: bytes, position: str) -> bytes:
    """The seal of a row without its position; none that fits where the old one did not."""
    faults.passing("migrating-step")
    intact = seal == digest(chain, position, release, tape)
    return digest(chain, release, tape) if intact else b""
