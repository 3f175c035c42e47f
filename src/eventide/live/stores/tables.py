"""The tables of a store, the same in every database but for the words it has for types.

One text makes them all, so that stores differ in nothing else. Where a source stands counts its events, so it is known
of the last step alone, in the head.

The release of a step that has a base is what differs from the release of that one (`differences`).

PostgreSQL samples columns for its planner, and what it sampled outlives the rows: so it samples nothing that is raw. A
list of the commonest values of open events would stay after their step, and the commonest steps of batches would tell
how many came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from eventide.live.stores.digests import digest

VERSION = 3  # of the tables; `migrations` brings older ones to it
NO_CHAIN, NO_POSITION = b"", "null"  # of a head before the first step

_TABLES = """
CREATE TABLE store (
    id {number} PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL, key {binary} NOT NULL, for_tests {number} NOT NULL,
    digest {binary} NOT NULL);
CREATE TABLE head (
    id {number} PRIMARY KEY CHECK (id = 1), fence {number} NOT NULL, step {number} NOT NULL, chain {binary} NOT NULL,
    position TEXT NOT NULL, seal {binary} NOT NULL);
CREATE TABLE epoch (
    number {number} PRIMARY KEY, first_step {number} NOT NULL, measured_from {number} NOT NULL,
    restored {number} NOT NULL, setting TEXT NOT NULL, guarantee TEXT NOT NULL, digest {binary} NOT NULL);
CREATE TABLE step (
    step {number} PRIMARY KEY, epoch {number} NOT NULL REFERENCES epoch, entries TEXT NOT NULL, chain {binary} NOT NULL,
    seal {binary} NOT NULL, release {binary} NOT NULL, tape {binary} NOT NULL, base {number});
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
INSERT INTO head VALUES (1, 0, -1, {chain}, '{position}', {seal});
"""


INTRUSIONS = """
CREATE TABLE IF NOT EXISTS intrusion (
    number bigint PRIMARY KEY, at bigint NOT NULL, first bigint NOT NULL, last bigint NOT NULL, noted bigint NOT NULL,
    digest {binary} NOT NULL)
"""
"""Only stores of pan-private mechanisms have it, so that it is no part of the version. Nothing in it is raw."""


RAW = {
    "head": {"position": "text", "seal": "bytea"},
    "kept": {"id": "bigint", "step": "bigint", "tally": "bytea", "digest": "bytea"},
    "batch": {"name": "text", "step": "bigint", "digest": "bytea"},
    "snapshot": {"state": "bytea", "digest": "bytea"},
    "plan": {"state": "bytea", "digest": "bytea"},
}
"""Columns, by their tables, that are raw or count events; with their types."""


def table_statements(*, number: str, counter: str, binary: str, literal: Callable[[bytes], str]) -> list[str]:
    """What makes the tables: with a type for numbers, for numbers that count by themselves and for bytes.

    `literal` writes bytes as SQL does.

    >>> kinds = {"number": "INTEGER", "counter": "INTEGER", "binary": "BLOB"}
    >>> table_statements(**kinds, literal=lambda data: f"x'{data.hex()}'")[-1]
    "INSERT INTO head VALUES (1, 0, -1, x'', 'null', x'043a068223a789171e205199392fc904')"
    """
    head = {"chain": literal(NO_CHAIN), "position": NO_POSITION, "seal": literal(digest(NO_CHAIN, NO_POSITION))}
    text = _TABLES.format(number=number, counter=counter, binary=binary, **head)
    return [statement.strip() for statement in text.split(";") if statement.strip()]


def without_statistics() -> Iterator[str]:
    """What forbids statistics of raw columns, and drops those there are: a type that is set drops them."""
    for table, columns in RAW.items():
        changes = [
            f"ALTER COLUMN {name} TYPE {kind}, ALTER COLUMN {name} SET STATISTICS 0" for name, kind in columns.items()
        ]
        yield f"ALTER TABLE {table} {', '.join(changes)}"
