"""The tables of a store in PostgreSQL, in a schema of their own, made whole or not at all; and what analysts may see.

The view `releases` shows one row for each step and bin, `levels` one for each group, `statistics` one for each step,
bin and statistic where there are several, and one for each bin of the histogram of a sliding window, `answers` one for
each answer to a window query and bin; all are private: grant them, and nothing else, to whoever reads. Needs the extra
`postgres`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from eventide.errors import InputError, StoreError
from eventide.events.levels import BIN, TOTAL
from eventide.live import faults
from eventide.live.stores.base import StoreMissing
from eventide.live.stores.digests import digest
from eventide.live.stores.migrations import to_second_in_postgres, to_third_in_postgres
from eventide.live.stores.tables import VERSION, table_statements, without_statistics
from eventide.releases.level_values import EVENTS

LOCK = "hashtextextended(%s, 0)"  # the number of the writer's lock, from `lock_name`
VIEW_PATIENCE = 2_000  # milliseconds for which a view that somebody reads is waited for
LONGEST_NAME = 63  # bytes; PostgreSQL cuts off the rest, and two names would be one store

_OF_BIN = "(body -> '{}' ->> (bin.place - 1)::integer)::double precision"
_SHOWN = {
    "step": "step.step",
    "start": "body ->> 'start'",
    "bin": "coalesce(body -> 'bins' ->> bin.name, bin.name)",
    "value": _OF_BIN.format("values"),
    "low": _OF_BIN.format("low"),
    "high": _OF_BIN.format("high"),
    "scale": _OF_BIN.format("scale"),
    "fresh": "(body ->> 'fresh')::boolean",
}
_LEVEL = {"level": f"'{BIN}'::text"}  # of the rows of bins, where a view has levels
_WAITS = r"(bin.name ~ '^\(spare [0-9]+\)$' AND epoch.setting::jsonb ? 'named' AND body -> 'bins' ->> bin.name IS NULL)"
_EARLIER = ("step", "start", "fresh", "bin", "value", "scale")  # what a view had before it showed intervals
_RELEASED = """step JOIN epoch ON epoch.number = step.epoch LEFT JOIN step AS base ON base.step = step.base,
        LATERAL (
            SELECT string_agg(coalesce(told.part, earlier.part), ', ' ORDER BY earlier.place) AS line
            FROM unnest(string_to_array(convert_from(base.release, 'UTF8'), ', ')) WITH ORDINALITY
                AS earlier (part, place)
            LEFT JOIN (
                SELECT split_part(each, ' ', 1)::bigint + 1 AS place, substr(each, strpos(each, ' ') + 1) AS part
                FROM unnest(string_to_array(convert_from(step.release, 'UTF8'), E'\\n')) AS each
                WHERE step.base IS NOT NULL
            ) AS told USING (place)
        ) AS rebuilt,
        LATERAL (SELECT coalesce(rebuilt.line, convert_from(step.release, 'UTF8'))::jsonb AS body) AS released"""
_ANSWERS = f"""
CREATE OR REPLACE VIEW answers AS
    SELECT step.step, answer ->> 'query' AS query, (answer ->> 'begin')::bigint AS begin_step,
        (answer ->> 'end')::bigint AS end_step, {_SHOWN["bin"]} AS bin,
        (answer -> 'values' ->> (bin.place - 1)::integer)::double precision AS value,
        (answer ->> 'variance')::double precision AS variance
    FROM {_RELEASED},
        LATERAL jsonb_array_elements(body -> 'answers') AS answer,
        LATERAL jsonb_array_elements_text(
            CASE epoch.setting::jsonb -> 'queries' ->> 'of' WHEN 'bins' THEN epoch.setting::jsonb -> 'bins'
            ELSE '["total"]'::jsonb END
        ) WITH ORDINALITY AS bin (name, place)
    WHERE NOT {_WAITS}
"""
_OF_GROUP = "(body -> 'levels' -> told.level -> '{}' ->> (told.place - 1)::integer)::double precision"
_LEVELS = f"""
CREATE OR REPLACE VIEW levels AS
    SELECT step.step, body ->> 'start' AS start, told.level, told.name AS bin, {_OF_GROUP.format("values")} AS value,
        {_OF_GROUP.format("low")} AS low, {_OF_GROUP.format("high")} AS high, {_OF_GROUP.format("scale")} AS scale,
        (body -> 'levels' -> told.level ->> 'fresh')::boolean AS fresh
    FROM {_RELEASED},
        LATERAL (
            SELECT given ->> 0 AS level, member.name,
                row_number() OVER (PARTITION BY given ->> 0 ORDER BY min(member.place)) AS place
            FROM jsonb_array_elements(epoch.setting::jsonb -> 'mechanism' -> 'parameters' -> 'levels') AS given,
                LATERAL jsonb_array_elements_text(given -> 1) WITH ORDINALITY AS member (name, place)
            GROUP BY given ->> 0, member.name
            UNION ALL SELECT '{TOTAL}', '{TOTAL}', 1
        ) AS told
    WHERE body -> 'levels' IS NOT NULL
"""
_OF_STATISTIC = "(told.said -> '{}' ->> (bin.place - 1)::integer)::double precision"
_STATISTICS = f"""
CREATE OR REPLACE VIEW statistics AS
    SELECT step.step, body ->> 'start' AS start, bin.name AS bin, told.statistic,
        {_OF_STATISTIC.format("values")} AS value, {_OF_STATISTIC.format("low")} AS low,
        {_OF_STATISTIC.format("high")} AS high, {_OF_STATISTIC.format("scale")} AS scale,
        (told.said ->> 'fresh')::boolean AS fresh
    FROM {_RELEASED},
        LATERAL (
            SELECT body ->> 'statistic' AS statistic, body AS said WHERE body -> 'statistics' IS NOT NULL
            UNION ALL SELECT other.key, other.value FROM jsonb_each(body -> 'statistics') AS other
            UNION ALL SELECT 'window:' || coalesce(epoch.setting::jsonb -> 'steps' ->> 'statistic', '{EVENTS}'),
                jsonb_build_object(
                    'values', body -> 'window_values', 'scale', body -> 'window_scale', 'fresh', body -> 'fresh',
                    'low', body -> 'window_low', 'high', body -> 'window_high'
                ) WHERE body -> 'window_values' IS NOT NULL
        ) AS told,
        LATERAL jsonb_array_elements_text(epoch.setting::jsonb -> 'bins') WITH ORDINALITY AS bin (name, place)
"""
_LATER_VIEWS = {"levels": _LEVELS, "statistics": _STATISTICS}  # which older stores have not


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


def lock_name(schema: str) -> str:
    """What the writer of a store locks."""
    return f"eventide {schema}"


def find_or_make(connection: Any, schema: str, *, for_tests: bool, read_only: bool) -> int:
    """See that the schema is a store, and say of which version; for a writer make it, or bring it to this one."""
    found = connection.execute("SELECT to_regnamespace(%s), to_regclass(%s)", (f'"{schema}"', f'"{schema}".migration'))
    exists, migrations = found.fetchone()
    if exists is None:
        if read_only:
            raise StoreMissing(f"there is no store {schema} in this database; `eventide publish --store` makes one")
        _make(connection, schema, for_tests=for_tests)
        return VERSION
    if migrations is None:
        raise StoreError(f"the schema {schema} is there but no store of eventide; choose another name behind the #")
    version = _version(connection, schema)
    if version > VERSION:
        raise StoreError(
            f"the store {schema} was written by a newer eventide (version {version}, this one knows {VERSION}); update"
        )
    if read_only:
        return version
    if version < VERSION:
        _migrate(connection, schema)
        faults.passing("after-migration")
    _show_intervals(connection, schema)
    _show_later_views(connection, schema)
    return VERSION


def _version(connection: Any, schema: str) -> int:
    (version,) = connection.execute(f'SELECT MAX(version) FROM "{schema}".migration').fetchone()
    if version is None:
        raise StoreError(f"the store {schema} is damaged: it has no version; restore a backup, then --after-restore")
    return int(version)


def _migrate(connection: Any, schema: str) -> None:
    """Bring an old store to this version while nobody writes to it."""
    with connection.transaction():
        if not connection.execute(f"SELECT pg_try_advisory_xact_lock({LOCK})", (lock_name(schema),)).fetchone()[0]:
            raise StoreError(
                f"the store {schema} is being written by another process; stop it: nobody may write while a store is "
                "brought to a new version"
            )
        connection.execute(f'SET LOCAL search_path TO "{schema}"')
        for newer in range(_version(connection, schema) + 1, VERSION + 1):
            MIGRATIONS[newer](connection)
            connection.execute("INSERT INTO migration VALUES (%s, now()::text)", (newer,))
        faults.passing("inside-migration")


def _releases(columns: Iterable[str]) -> str:
    """What makes the view of releases, or adds columns behind those that it has: so that grants of it stay.

    A view with a column level has the rows of groups, too. Spare bins that wait for a name are left out.
    """
    columns = list(columns)
    shown = ", ".join(f"{(_SHOWN | _LEVEL)[name]} AS {name}" for name in columns)
    groups = f"UNION ALL SELECT {', '.join(columns)} FROM levels" if "level" in columns else ""
    return f"""
CREATE OR REPLACE VIEW releases AS
    SELECT {shown}
    FROM {_RELEASED},
        LATERAL jsonb_array_elements_text(epoch.setting::jsonb -> 'bins') WITH ORDINALITY AS bin (name, place)
    WHERE body <> '{{}}'  -- which stands where a release is not kept any more
        AND NOT {_WAITS}
    {groups}
"""


def _columns(connection: Any, view: str) -> list[str]:
    """What a view shows, in its order; nothing where there is none."""
    query = "SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute WHERE attrelid = to_regclass(%s)"
    return list(connection.execute(query, (view,)).fetchone()[0] or ())


def _show_intervals(connection: Any, schema: str) -> None:
    """Let the view of an older store show intervals too; where somebody just reads it, at another start."""
    import psycopg

    if _columns(connection, f'"{schema}".releases') != list(_EARLIER):
        return
    with suppress(psycopg.errors.LockNotAvailable, psycopg.errors.InsufficientPrivilege), connection.transaction():
        connection.execute(f'SET LOCAL search_path TO "{schema}"')
        connection.execute(f"SET LOCAL lock_timeout TO {VIEW_PATIENCE}")
        connection.execute(_releases([*_EARLIER, "low", "high"]))


def _show_later_views(connection: Any, schema: str) -> None:
    """Give an older store the views of levels and of statistics, which the next step or epoch may have."""
    import psycopg

    for name, view in _LATER_VIEWS.items():
        if _columns(connection, f'"{schema}".{name}'):
            continue
        with suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute(f'SET LOCAL search_path TO "{schema}"')
            connection.execute(view)


def show_epoch(connection: Any, schema: str, *, levels: bool) -> None:
    """Let the views show what an epoch has that just began: names of spare bins, and where there are levels, these.

    Where nobody reads the view of releases yet, its columns come in their usual order; else level is the last.
    """
    import psycopg

    with suppress(psycopg.errors.LockNotAvailable, psycopg.errors.InsufficientPrivilege), connection.transaction():
        connection.execute(f'SET LOCAL search_path TO "{schema}"')
        connection.execute(f"SET LOCAL lock_timeout TO {VIEW_PATIENCE}")
        columns = _columns(connection, "releases")
        if levels and "level" not in columns:
            granted = connection.execute("SELECT relacl FROM pg_class WHERE oid = 'releases'::regclass").fetchone()[0]
            if granted is None and columns == list(_SHOWN):
                connection.execute("DROP VIEW releases")
                columns.insert(columns.index("bin"), "level")
            else:
                columns.append("level")
        connection.execute(_releases(columns))
        connection.execute(_ANSWERS)


def _to_third(connection: Any) -> None:
    """Let steps have a base, and the views that are there follow it."""
    to_third_in_postgres(connection)
    if (columns := _columns(connection, "releases")) and _SHOWN.keys() >= set(columns):
        connection.execute(_releases(columns))
    if _columns(connection, "answers"):
        connection.execute(_ANSWERS)


MIGRATIONS: dict[int, Callable[[Any], None]] = {2: to_second_in_postgres, 3: _to_third}
"""What brings a schema to each version from the one before; run in order, all in one transaction."""


def _make(connection: Any, schema: str, *, for_tests: bool) -> None:
    row = (secrets.token_hex(16), secrets.token_bytes(16), int(for_tests))
    counter = "bigint GENERATED ALWAYS AS IDENTITY"
    types = {"number": "bigint", "counter": counter, "binary": "bytea"}
    tables = table_statements(**types, literal=lambda data: f"'\\x{data.hex()}'")
    with connection.transaction():
        for statement in (
            f'CREATE SCHEMA "{schema}"',
            f'SET LOCAL search_path TO "{schema}"',
            *tables,
            _releases(_SHOWN),
            _ANSWERS,
            *_LATER_VIEWS.values(),
            *without_statistics(),
        ):
            connection.execute(statement)
        connection.execute("INSERT INTO migration VALUES (%s, now()::text)", (VERSION,))
        connection.execute("INSERT INTO store VALUES (1, %s, %s, %s, %s)", (*row, digest(*row)))
