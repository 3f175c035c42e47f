"""The tables of a store in PostgreSQL, in a schema of their own, made whole or not at all; and what analysts may see.

The view `releases` shows one row for each step and bin, of private releases only: grant it, and nothing else, to
whoever reads. Needs the extra `postgres`. May import `errors` and its neighbours.
"""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from eventide.errors import InputError, StoreError
from eventide.live.digests import digest

VERSION = 1

_TABLES = """
CREATE SCHEMA "{schema}";
SET LOCAL search_path TO "{schema}";
CREATE TABLE store (
    id integer PRIMARY KEY CHECK (id = 1), name text NOT NULL, key bytea NOT NULL, for_tests integer NOT NULL,
    digest bytea NOT NULL);
CREATE TABLE head (
    id integer PRIMARY KEY CHECK (id = 1), fence bigint NOT NULL, step bigint NOT NULL, chain bytea NOT NULL);
CREATE TABLE epoch (
    number bigint PRIMARY KEY, first_step bigint NOT NULL, measured_from bigint NOT NULL, restored integer NOT NULL,
    setting text NOT NULL, guarantee text NOT NULL, digest bytea NOT NULL);
CREATE TABLE step (
    step bigint PRIMARY KEY, epoch bigint NOT NULL REFERENCES epoch, entries text NOT NULL, chain bytea NOT NULL,
    position text NOT NULL, seal bytea NOT NULL, release bytea NOT NULL, tape bytea NOT NULL);
CREATE TABLE snapshot (
    id integer PRIMARY KEY CHECK (id = 1), step bigint NOT NULL REFERENCES step, state bytea NOT NULL,
    digest bytea NOT NULL);
CREATE TABLE kept (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, step bigint NOT NULL, tally bytea NOT NULL,
    digest bytea NOT NULL);
CREATE TABLE batch (name text PRIMARY KEY, step bigint NOT NULL);
CREATE TABLE delivery (sink text PRIMARY KEY, step bigint NOT NULL);
CREATE TABLE migration (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
CREATE VIEW releases AS
    SELECT step.step, body ->> 'start' AS start, (body ->> 'fresh')::boolean AS fresh, bin.name AS bin,
        (body -> 'values' ->> (bin.place - 1)::integer)::double precision AS value,
        (body -> 'scale' ->> (bin.place - 1)::integer)::double precision AS scale
    FROM step JOIN epoch ON epoch.number = step.epoch,
        LATERAL (SELECT convert_from(step.release, 'UTF8')::jsonb AS body) AS released,
        LATERAL jsonb_array_elements_text(epoch.setting::jsonb -> 'bins') WITH ORDINALITY AS bin (name, place);
INSERT INTO head VALUES (1, 0, -1, '');
INSERT INTO migration (version) VALUES ({version});
"""


def parse_address(url: str) -> tuple[str, str]:
    """The address without its fragment, and the schema that the fragment names.

    >>> parse_address("postgresql://127.0.0.1/city#traffic")
    ('postgresql://127.0.0.1/city', 'traffic')
    """
    parts = urlsplit(url)
    schema = parts.fragment or "eventide"
    if not schema.replace("_", "").isalnum():
        raise InputError("behind the # of a PostgreSQL address stands the name of a store, in letters and digits")
    return urlunsplit(parts._replace(fragment="")), schema


def find_or_make(connection: Any, schema: str, *, for_tests: bool, read_only: bool) -> None:
    """See that the schema is a store of this version; make it where there is none and a writer asks."""
    found = connection.execute("SELECT to_regnamespace(%s), to_regclass(%s)", (f'"{schema}"', f'"{schema}".migration'))
    exists, migrations = found.fetchone()
    if exists is None:
        if read_only:
            raise InputError(f"there is no store {schema} in this database; `eventide publish --store` makes one")
        _make(connection, schema, for_tests=for_tests)
    elif migrations is None:
        raise StoreError(f"the schema {schema} is there but no store of eventide; choose another name behind the #")
    else:
        (version,) = connection.execute(f'SELECT MAX(version) FROM "{schema}".migration').fetchone()
        if version is None or version > VERSION:
            raise StoreError(
                f"the store {schema} was written by a newer eventide (version {version}, this one knows {VERSION}); "
                "update"
            )


def _make(connection: Any, schema: str, *, for_tests: bool) -> None:
    row = (secrets.token_hex(16), secrets.token_bytes(16), int(for_tests))
    with connection.transaction():
        connection.execute(_TABLES.format(schema=schema, version=VERSION))
        connection.execute("INSERT INTO store VALUES (1, %s, %s, %s, %s)", (*row, digest(*row)))
