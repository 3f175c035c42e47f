"""Stores as the first version made them: every step with the position of its source, under its seal."""

import json
import secrets
import sqlite3

from live_stores import SETTING

from eventide.live.stores.digests import digest
from eventide.live.stores.epochs import setting_text
from eventide.live.stores.sqlite_file import APPLICATION

_TABLES = """
CREATE TABLE store (
    id {number} PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL, key {binary} NOT NULL, for_tests {number} NOT NULL,
    digest {binary} NOT NULL);
CREATE TABLE head (
    id {number} PRIMARY KEY CHECK (id = 1), fence {number} NOT NULL, step {number} NOT NULL, chain {binary} NOT NULL);
CREATE TABLE epoch (
    number {number} PRIMARY KEY, first_step {number} NOT NULL, measured_from {number} NOT NULL,
    restored {number} NOT NULL, setting TEXT NOT NULL, guarantee TEXT NOT NULL, digest {binary} NOT NULL);
CREATE TABLE step (
    step {number} PRIMARY KEY, epoch {number} NOT NULL REFERENCES epoch, entries TEXT NOT NULL, chain {binary} NOT NULL,
    position TEXT NOT NULL, seal {binary} NOT NULL, release {binary} NOT NULL, tape {binary} NOT NULL);
CREATE TABLE snapshot (
    id {number} PRIMARY KEY CHECK (id = 1), step {number} NOT NULL REFERENCES step, state {binary} NOT NULL,
    digest {binary} NOT NULL);
CREATE TABLE plan (
    step {number} NOT NULL REFERENCES step, part TEXT NOT NULL, state {binary} NOT NULL, digest {binary} NOT NULL,
    PRIMARY KEY (step, part));
CREATE TABLE kept (
    id {counter} PRIMARY KEY, step {number} NOT NULL, tally {binary} NOT NULL, digest {binary} NOT NULL);
CREATE TABLE batch (name TEXT PRIMARY KEY, step {number} NOT NULL, digest {binary} NOT NULL);
CREATE TABLE delivery (sink TEXT PRIMARY KEY, step {number} NOT NULL, digest {binary} NOT NULL);
CREATE TABLE migration (version {number} PRIMARY KEY, at TEXT NOT NULL);
"""


def position_of(step):
    """Where the source stood after a step: of some steps so long that it has pages of its own."""
    return {"offset": 700_000_000_000 + 7_003 * step, "parts": list(range(2000)) if step % 50 == 7 else []}


def mark_of(step):
    """What shows in a file that holds the position of a step."""
    return str(position_of(step)["offset"]).encode()


def release_of(step):
    return b'{"step": %d, "values": [%s]}' % (step, b"7, " * (40 + 37 * step % 700) + b"7")


def _rows(steps):
    """Statements with their values: a store that has come so far, with a snapshot of its last step."""
    row = (secrets.token_hex(16), secrets.token_bytes(16), 0)
    yield "INSERT INTO store VALUES (1, ?, ?, ?, ?)", (*row, digest(*row))
    epoch = (0, 0, 0, 0, setting_text(SETTING), "Nobody is told apart.")
    yield "INSERT INTO epoch VALUES (?, ?, ?, ?, ?, ?, ?)", (*epoch, digest(*epoch))
    chain = b""
    for step in range(steps):
        entries, position, tape = '[["point", "", 100]]', json.dumps(position_of(step)), b"tape %d" % step
        chain = digest(chain, step, 0, entries)
        content = (chain, position, digest(chain, position, release_of(step), tape), release_of(step), tape)
        yield "INSERT INTO step VALUES (?, 0, ?, ?, ?, ?, ?, ?)", (step, entries, *content)
    yield "INSERT INTO head VALUES (1, 3, ?, ?)", (steps - 1, chain)
    state = b"state"
    yield "INSERT INTO snapshot VALUES (1, ?, ?, ?)", (steps - 1, state, digest(steps - 1, state))
    yield "INSERT INTO kept (step, tally, digest) VALUES (?, ?, ?)", (steps, b"tally", digest(steps, b"tally"))
    yield "INSERT INTO migration VALUES (1, ?)", ("2026-01-01T00:00:00+00:00",)


def make_old_file(path, steps):
    """A SQLite file of the first version."""
    connection = sqlite3.connect(path, isolation_level=None)
    pragmas = ("journal_mode = WAL", f"application_id = {APPLICATION}", "user_version = 1", "secure_delete = ON")
    for statement in (*(f"PRAGMA {pragma}" for pragma in pragmas), "BEGIN"):
        connection.execute(statement)
    for statement in _TABLES.format(number="INTEGER", counter="INTEGER", binary="BLOB").split(";"):
        connection.execute(statement)
    for statement, values in _rows(steps):
        connection.execute(statement, values)
    connection.execute("COMMIT")
    connection.close()
    path.chmod(0o600)
    return path


def make_old_schema(connection, schema, steps):
    """A schema of the first version in PostgreSQL, with the view of releases."""
    counter = "bigint GENERATED ALWAYS AS IDENTITY"
    tables = _TABLES.format(number="bigint", counter=counter, binary="bytea").split(";")[:-1]
    view = "CREATE VIEW releases AS SELECT step.step, step.release FROM step JOIN epoch ON epoch.number = step.epoch"
    with connection.transaction():
        for statement in (f"CREATE SCHEMA {schema}", f"SET LOCAL search_path TO {schema}", *tables, view):
            connection.execute(statement)
        for statement, values in _rows(steps):
            connection.execute(statement.replace("?", "%s"), values)
