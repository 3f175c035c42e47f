"""The tables of a store in PostgreSQL, in a schema of their own, made whole or not at all; and what analysts may see.

The view `releases` shows one row for each step and bin, `answers` one for each answer to a window query and bin; both
are private: grant them, and nothing else, to whoever reads. Needs the extra `postgres`. May import `errors` and its
neighbours.
"""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from eventide.errors import InputError, StoreError
from eventide.live.digests import digest
from eventide.live.store import StoreMissing
from eventide.live.store_tables import table_statements

VERSION = 1
LONGEST_NAME = 63  # bytes; PostgreSQL cuts off the rest, and two names would be one store

_RELEASES = """
CREATE VIEW releases AS
    SELECT step.step, body ->> 'start' AS start, (body ->> 'fresh')::boolean AS fresh, bin.name AS bin,
        (body -> 'values' ->> (bin.place - 1)::integer)::double precision AS value,
        (body -> 'scale' ->> (bin.place - 1)::integer)::double precision AS scale
    FROM step JOIN epoch ON epoch.number = step.epoch,
        LATERAL (SELECT convert_from(step.release, 'UTF8')::jsonb AS body) AS released,
        LATERAL jsonb_array_elements_text(epoch.setting::jsonb -> 'bins') WITH ORDINALITY AS bin (name, place)
"""
_ANSWERS = """
CREATE VIEW answers AS
    SELECT step.step, answer ->> 'query' AS query, (answer ->> 'begin')::bigint AS begin_step,
        (answer ->> 'end')::bigint AS end_step, bin.name AS bin,
        (answer -> 'values' ->> (bin.place - 1)::integer)::double precision AS value,
        (answer ->> 'variance')::double precision AS variance
    FROM step JOIN epoch ON epoch.number = step.epoch,
        LATERAL jsonb_array_elements(convert_from(step.release, 'UTF8')::jsonb -> 'answers') AS answer,
        LATERAL jsonb_array_elements_text(
            CASE epoch.setting::jsonb -> 'queries' ->> 'of' WHEN 'bins' THEN epoch.setting::jsonb -> 'bins'
            ELSE '["total"]'::jsonb END
        ) WITH ORDINALITY AS bin (name, place)
"""


def parse_address(url: str) -> tuple[str, str]:
    """The address without its fragment, and the schema that the fragment names.

    >>> parse_address("postgresql://127.0.0.1/city#traffic")
    ('postgresql://127.0.0.1/city', 'traffic')
    """
    parts = urlsplit(url)
    schema = parts.fragment or "eventide"
    if not schema.replace("_", "").isalnum() or len(schema.encode()) > LONGEST_NAME:
        raise InputError(
            f"behind the # of a PostgreSQL address stands the name of a store, up to {LONGEST_NAME} letters and digits"
        )
    return urlunsplit(parts._replace(fragment="")), schema


def find_or_make(connection: Any, schema: str, *, for_tests: bool, read_only: bool) -> None:
    """See that the schema is a store of this version; make it where there is none and a writer asks."""
    found = connection.execute("SELECT to_regnamespace(%s), to_regclass(%s)", (f'"{schema}"', f'"{schema}".migration'))
    exists, migrations = found.fetchone()
    if exists is None:
        if read_only:
            raise StoreMissing(f"there is no store {schema} in this database; `eventide publish --store` makes one")
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
    counter = "bigint GENERATED ALWAYS AS IDENTITY"
    tables = table_statements(number="bigint", counter=counter, binary="bytea", nothing="''")
    with connection.transaction():
        for statement in (
            f'CREATE SCHEMA "{schema}"',
            f'SET LOCAL search_path TO "{schema}"',
            *tables,
            _RELEASES,
            _ANSWERS,
        ):
            connection.execute(statement)
        connection.execute("INSERT INTO migration VALUES (%s, now()::text)", (VERSION,))
        connection.execute("INSERT INTO store VALUES (1, %s, %s, %s, %s)", (*row, digest(*row)))
