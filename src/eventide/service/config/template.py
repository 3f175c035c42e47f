"""The configuration that `eventide init` writes: every key with an example and what it means, from its setting.

What may be left out stands behind a #, unless it is as if it were left out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from eventide.service.config.settings import DEFAULTS, SEVERAL, TABLES

WRITTEN = ("population", "late", "user")  # what a first stream should say, though it may be left out
HEADER = """# eventide: configuration of a service. Check it with:  eventide config check eventide.toml
# Every setting has a default unless it says "Required". Paths are relative to this file.
"""
ABOVE = {
    "access": """# Nobody can do anything without a token. Make one of each kind with:
#   eventide config token ingest eventide.toml
#   eventide config token read eventide.toml
#   eventide config token operate eventide.toml
""",
    "populations": "# People whose events appear in several streams, whose epsilons add up to at most this one.\n",
}


def template(start: str) -> str:
    """The text of a configuration with one stream, which begins at `start`."""
    return HEADER + "".join(f"\n{_table(table, start)}" for table in TABLES)


def _table(table: str, start: str) -> str:
    heading = f"[[{table}]]" if table in SEVERAL else f"[{table}]"
    return ABOVE.get(table, "") + "\n".join([heading, *_lines(table, start)]) + "\n"


def _lines(table: str, start: str) -> Iterator[str]:
    for key, setting in TABLES[table].items():
        required = key not in DEFAULTS[table]
        example = start if key == "start" else setting.example
        written = required or key in WRITTEN or value_of(example) == DEFAULTS[table][key]
        line = f"{key} = {example}" if written else f"# {key} = {example}"
        yield f"{line:<30}  # {'Required. ' if required else ''}{setting.help}"


def value_of(example: str) -> Any:
    """What an example means in TOML."""
    return tomllib.loads(f"key = {example}")["key"]
