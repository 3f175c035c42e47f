"""Mechanisms on the command line: parameters given as `--set NAME=VALUE`, and classes of the user's own.

Every verb that takes a mechanism reads them in the same way. A class is named module:Class and found by
`eventide.mechanisms.registry.find_mechanism`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import click

from eventide.errors import InputError

PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}  # what they are in JSON
DECIDED_ELSEWHERE = ("epsilon", "window", "bins", "replicas", "noise", "seed")

settings_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the mechanism, as JSON; may be repeated.",
)


def parse_settings(settings: Iterable[str], fixed: Collection[str] = ()) -> dict[str, Any]:
    """The parameters that were given as NAME=VALUE; a value that is no JSON is taken as text.

    `fixed` are those that the verb decides otherwise, besides the ones that every verb does.

    >>> parse_settings(["k=5", "smoother=median", "gains=[0.9, 0.1, 0]", "shift_budget=true"])
    {'k': 5, 'smoother': 'median', 'gains': [0.9, 0.1, 0], 'shift_budget': True}
    """
    given: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        name = name.strip()
        if not (equals and name):
            raise InputError(f"--set {setting} must read NAME=VALUE")
        if name in (*DECIDED_ELSEWHERE, *fixed):
            raise InputError(f"--set {name}=... is not possible; {name} has an option of its own or is fixed here")
        if name in given:
            raise InputError(f"--set {name}=... was given twice; give it once")
        if value in PYTHON_WORDS:
            raise InputError(f"--set {setting}: values are written as JSON; give {name}={PYTHON_WORDS[value]}")
        try:
            given[name] = json.loads(value)
        except json.JSONDecodeError:
            given[name] = value
    return given


def written_settings(parameters: dict[str, Any]) -> list[str]:
    """Words that `parse_settings` reads back as these parameters.

    >>> written_settings({"k": 5, "smoother": "median"})
    ['--set', 'k=5', '--set', 'smoother=median']
    """
    return [word for name, value in parameters.items() for word in ("--set", f"{name}={_text(value)}")]


def _text(value: Any) -> str:
    plain = (
        isinstance(value, str) and value not in PYTHON_WORDS and parse_settings([f"value={value}"]) == {"value": value}
    )
    return value if plain else json.dumps(value)


def import_from_here() -> None:
    """Let module:Class be found in the folder that the command is given in."""
    here = str(Path.cwd())  # in full, so that the processes of a study find it too
    if here not in sys.path:
        sys.path.insert(0, here)
