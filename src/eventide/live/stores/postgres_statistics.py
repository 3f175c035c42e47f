"""PostgreSQL samples columns for its planner, and what it sampled outlives the rows: so it samples nothing that is raw.

A list of the commonest values of open events would stay after their step, and the commonest steps of batches would tell
how many came.
"""

from __future__ import annotations

from collections.abc import Iterator

RAW = {
    "head": {"position": "text", "seal": "bytea"},
    "kept": {"id": "bigint", "step": "bigint", "tally": "bytea", "digest": "bytea"},
    "batch": {"name": "text", "step": "bigint", "digest": "bytea"},
    "snapshot": {"state": "bytea", "digest": "bytea"},
    "plan": {"state": "bytea", "digest": "bytea"},
}
"""Columns, by their tables, that are raw or count events; with their types."""


def without_statistics() -> Iterator[str]:
    """What forbids statistics of raw columns, and drops those there are: a type that is set drops them."""
    for table, columns in RAW.items():
        changes = [
            f"ALTER COLUMN {name} TYPE {kind}, ALTER COLUMN {name} SET STATISTICS 0" for name, kind in columns.items()
        ]
        yield f"ALTER TABLE {table} {', '.join(changes)}"
