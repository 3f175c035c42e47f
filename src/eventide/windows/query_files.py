"""Queries from a TOML file: one table [[query]] each, with window, step and perhaps a name.

Windows and steps are whole ticks, or durations such as "15min" where the length of a tick is known.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from eventide.errors import InputError
from eventide.events.durations import milliseconds
from eventide.windows.workload import Query


def read_queries(path: str | Path, tick: str | None = None) -> list[Query]:
    """The queries of a file; `tick` is the length of a tick, such as "5min", if the stream has a clock."""
    path = Path(path)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path} cannot be read; give a text file of queries") from None
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{path.name} is no TOML file: {problem}; correct it") from None
    tables = document.get("query")
    if set(document) != {"query"} or not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise InputError(f"{path.name} must hold a table [[query]] for each query, and nothing else")
    length = None if tick is None else milliseconds(tick)
    return [_query(table, f"{path.name}, query {number}", length) for number, table in enumerate(tables, start=1)]


def _query(table: dict[str, Any], place: str, length: int | None) -> Query:
    if missing := {"window", "step"} - set(table):
        raise InputError(f"{place}: {min(missing)} is missing; write it, such as {min(missing)} = 15")
    if unknown := set(table) - {"window", "step", "name"}:
        raise InputError(f"{place}: {min(unknown)!r} means nothing; a query has a window, a step and perhaps a name")
    name = table.get("name")
    if not isinstance(name, str | None) or name == "":
        raise InputError(f'{place}: a name is text in quotes, such as name = "last hour"')
    try:
        return Query(_ticks(table["window"], "window", length), _ticks(table["step"], "step", length), name)
    except InputError as problem:
        raise InputError(f"{place}: {problem}") from None


def _ticks(value: Any, which: str, length: int | None) -> Any:
    """A number of ticks as it is, a duration in ticks."""
    if not isinstance(value, str):
        return value
    duration = milliseconds(value)
    if length is None:
        raise InputError(
            f"the {which} {value!r} is a duration, but nothing says how long a tick is; give --step, or write "
            "a number of ticks"
        )
    if duration % length:
        raise InputError(f"the {which} {value!r} is no whole number of ticks; use a multiple of the length of a tick")
    return duration // length
