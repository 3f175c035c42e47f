"""Pages of the reference that follow from the code: the command line, the configuration of a service, and errors.

They are made when the site is built and are kept nowhere, so none of them can go stale. Imports eventide, with what the
extra `service` brings.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import click

import eventide.errors
import eventide.service
from eventide.cli import EXIT_CODES, main
from eventide.live.setting_readers import DescribedSetting
from eventide.service.config.settings import DEFAULTS, SEVERAL, TABLES
from eventide.service.config.template import template, value_of

KINDS = {str: "text", int: "whole number", float: "number", bool: "true or false", list: "list", dict: "table"}

COMMAND_LINE = """# The command line

What `--help` says of every verb, as it is in this version. Documents for programs (`--json`) go to standard output,
messages and progress to standard error. [Exit codes](errors.md#exit-codes) tell what happened.
"""
CONFIGURATION = """# The configuration of a service

`eventide init` writes a file like this one, and `eventide config check eventide.toml` names every mistake in one with
its line and a way out. An unknown key is a mistake. Paths are relative to the file.
[Run the service](../how-to/serve.md) shows it at work.
"""
ERRORS = """# Errors and exit codes

A message says what is wrong and what to do, and never shows a true count.

## Exit codes

| code | meaning | error |
|---:|---|---|
| 0 | done; also after SIGTERM, when the step in hand is finished | |
| 1 | unexpected: a fault of eventide; `EVENTIDE_DEBUG=1` shows where, and may show data | |
"""
FURTHER_CODES = {2: "bad input or usage", 3: "refused for budget", 5: "store busy, damaged, full or of another version"}


def command_line() -> str:
    """The help of every verb and its own verbs."""
    return COMMAND_LINE + "\n".join(
        _helped(main, click.Context(main, info_name="eventide", **main.context_settings), "##")
    )


def _helped(command: click.Command, context: click.Context, level: str) -> Iterator[str]:
    context.terminal_width = context.max_content_width
    yield f"\n{level} {context.command_path}\n\n```text\n{command.get_help(context)}\n```"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            deeper = level if context.parent is None else level + "#"
            yield from _helped(below, click.Context(below, info_name=name, parent=context), deeper)


def configuration() -> str:
    """Every key of a configuration, from its setting: what it is, what holds when it is left out, what it means."""
    lines = [CONFIGURATION]
    for table, settings in TABLES.items():
        lines += [
            f"\n## {f'[[{table}]]' if table in SEVERAL else f'[{table}]'}\n",
            "| key | is a | left out | |",
            "|---|---|---|---|",
        ]
        for key, setting in settings.items():
            kind = KINDS.get(type(value_of(setting.example)), "time")
            lines.append(f"| `{key}` | {kind} | {_left_out(table, key, setting)} | {setting.help} |")
    text = template("2026-01-01T00:00:00Z").rstrip()
    return "\n".join([*lines, "\n## The whole file\n", '```toml title="eventide.toml"', text, "```"]) + "\n"


def _left_out(table: str, key: str, setting: DescribedSetting) -> str:
    if key not in DEFAULTS[table]:
        return "required"
    default = DEFAULTS[table][key]
    if setting.left_out or isinstance(default, dict | tuple | Fraction | None):
        return setting.left_out
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def errors() -> str:
    """Exit codes, classes of errors, and what the service refuses with."""
    named: dict[int, list[str]] = {}
    for kind, code in EXIT_CODES.items():
        named.setdefault(code, []).append(f"[`{kind.__name__}`](api/eventide.md#{kind.__name__.lower()})")
    rows = {code: f"| {code} | {FURTHER_CODES[code]} | {', '.join(kinds)} |" for code, kinds in named.items()}
    rows |= {
        4: "| 4 | guarantee violated: by an audit, or by the charges in a store | |",
        130: "| 130 | interrupted | |",
    }
    classes = [kind for kind in vars(eventide.errors).values() if inspect.isclass(kind)]
    told = [f"| `{kind.__name__}` | {' '.join((inspect.getdoc(kind) or '').split())} |" for kind in classes]
    refusals = [f"| {status} | `{code}` | {title} |" for status, code, title in sorted(problems())]
    return "\n".join(
        [
            ERRORS + "\n".join(rows[code] for code in sorted(rows)),
            "\n## Classes\n\nAll are in `eventide`, and all but the first are kinds of the first.\n",
            *("| error | raised when |", "|---|---|", *told),
            "\n## What the service refuses with\n\nAs `application/problem+json`; the `code` stays the same.\n",
            *("| status | code | for example |", "|---:|---|---|", *refusals),
        ]
    )


def problems() -> set[tuple[int, str, str]]:
    """Status, code and title of every refusal that stands in the code of the service."""
    found: dict[tuple[int, str], str] = {}
    for path in sorted(Path(eventide.service.__path__[0]).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Problem":
                status, code, title = node.args[:3]
                if isinstance(status, ast.Constant) and isinstance(code, ast.Constant):
                    found.setdefault((int(str(status.value)), str(code.value)), _text(title))
    return {(status, code, title) for (status, code), title in found.items()}


def _text(title: ast.expr) -> str:
    """What a title says, with dots for what is filled in; nothing for one that is put together elsewhere."""
    parts = title.values if isinstance(title, ast.JoinedStr) else [title]
    words = "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in parts)
    return "" if words == "..." else words


def reference_pages() -> dict[str, str]:
    """All pages by their place in the site."""
    return {
        "reference/command-line.md": command_line(),
        "reference/configuration.md": configuration(),
        "reference/errors.md": errors(),
    }
