"""Who may see how often a PostgreSQL server is written to: whoever may connect to any of its databases.

Its statistics show how many rows were written to each table of the database that one is connected to, and totals of the
others; transactions are numbered for the whole server, and every row of one's own shows the number. Where events are
kept as they come, both count batches, which is raw. No right in the database hides it. Needs the extra `postgres`.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from eventide.live.client_settings import settings_of
from eventide.live.stores.postgres_database import load_psycopg
from eventide.live.stores.postgres_schema import parse_address

_OPEN = """
SELECT quote_ident(datname) FROM pg_database WHERE datallowconn AND has_database_privilege('public', oid, 'CONNECT')
ORDER BY datname
"""


def onlookers(url: str, clients: str | Path | None = None) -> str | None:
    """What to say to the operator where every role may connect to the server of a store; None where that is not so.

    A server that cannot be asked is passed over: whoever needs it says what is wrong.
    """
    psycopg = load_psycopg()
    address, _ = parse_address(url)
    try:
        with psycopg.connect(address, connect_timeout=5, **settings_of(url, clients)) as connection:
            found = [name for (name,) in connection.execute(_OPEN).fetchall()]
    except psycopg.Error:
        return None
    if not found:
        return None
    return (
        f"every role of the PostgreSQL server {urlsplit(address).hostname or 'of this machine'} may connect to "
        f"{', '.join(found)}, and sees there how many batches come, which is raw: give eventide a server of its own, "
        f"and there run REVOKE CONNECT ON DATABASE {', '.join(found)} FROM PUBLIC"
    )
