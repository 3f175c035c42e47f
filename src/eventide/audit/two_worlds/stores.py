"""The tables of a store that are called public, as lines of text; what is raw in it is not read.

Not public are `store` (the secret key), `kept` and `snapshot` (open events and sums), the open slots of `plan`, the
names of senders' batches, and in `head` whatever says where the source stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from eventide.live.stores.database_store import DatabaseStore
from eventide.live.stores.open_store import open_store

PUBLIC = {
    "step": "SELECT * FROM step ORDER BY step",
    "epoch": "SELECT * FROM epoch ORDER BY number",
    "delivery": "SELECT * FROM delivery ORDER BY sink",
    "plan": "SELECT * FROM plan WHERE part <> 'open' ORDER BY step, part",
    "head": "SELECT fence, step, chain FROM head",
}


def public_rows(place: str | Path) -> Iterator[tuple[str, str]]:
    """The name of a public table and a row of it, for all rows of all of them."""
    with closing(open_store(place, read_only=True)) as store:
        assert isinstance(store, DatabaseStore)
        for table, query in PUBLIC.items():
            for row in store._database.all(query):
                yield table, json.dumps([_shown(value) for value in row])


def _shown(value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode("ascii")
    except UnicodeDecodeError:
        return value.hex()
