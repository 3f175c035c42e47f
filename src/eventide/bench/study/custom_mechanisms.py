"""Mechanisms that are not ours: named module:Class, and let into a study only if they keep the contract.

What it refuses it refuses with a sentence that says why.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
from typing import Any

from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.contract import check_mechanism


def is_custom(name: str) -> bool:
    """Whether a name means somebody's class, not one of the registry."""
    return ":" in name


def why_refused(cls: type[Mechanism], parameters: dict[str, Any]) -> str | None:
    """The first rule of the contract that a class breaks, or None if it keeps them all."""
    try:
        check_mechanism(cls, **parameters)
    except AssertionError as broken:
        return str(broken)
    return None


def source_digest(name: str) -> str | None:
    """What tells one version of somebody's code from another; None for ours, whose version says it."""
    if not is_custom(name):
        return None
    module = importlib.import_module(name.partition(":")[0])
    return hashlib.sha256(inspect.getsource(module).encode()).hexdigest()
