"""Mechanisms on the command line: parameters given as `--set NAME=VALUE`, and classes of the user's own.

Every verb that takes a mechanism reads them in the same way. A class is named module:Class and found by
`eventide.mechanisms.registry.find_mechanism`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from eventide.errors import InputError

DECIDED_ELSEWHERE = ("epsilon", "window", "bins", "replicas", "noise", "seed")


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """The parameters that were given as NAME=VALUE; a value that is no JSON is taken as text.

    >>> parse_settings(["k=5", "smoother=median", "gains=[0.9, 0.1, 0]", "shift_budget=true"])
    {'k': 5, 'smoother': 'median', 'gains': [0.9, 0.1, 0], 'shift_budget': True}
    """
    given: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        name = name.strip()
        if not (equals and name):
            raise InputError(f"--set {setting} must read NAME=VALUE")
        if name in DECIDED_ELSEWHERE:
            raise InputError(
                f"--set {name}=... is not possible; {name} has an option of its own, or is decided for you"
            )
        if name in given:
            raise InputError(f"--set {name}=... was given twice; give it once")
        try:
            given[name] = json.loads(value)
        except json.JSONDecodeError:
            given[name] = value
    return given


def import_from_here() -> None:
    """Let module:Class be found in the folder that the command is given in."""
    if "" not in sys.path:
        sys.path.insert(0, "")
