"""Mechanisms that are not ours: found as module:Class, and let into a study only if they keep the contract.

What it refuses it refuses with a sentence that says why.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
from typing import Any

from eventide.errors import InputError
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.contract import check_mechanism
from eventide.mechanisms.registry import find_class


def is_custom(name: str) -> bool:
    """Whether a name means somebody's class, not one of the registry."""
    return ":" in name


def find_mechanism(name: str) -> type[Mechanism]:
    """The class of a registry name or of module:Class, which must be written in the frame."""
    found = find_class(name)
    if not (isinstance(found, type) and issubclass(found, Mechanism)):
        raise InputError(f"{name} is no subclass of eventide.mechanisms.base.Mechanism; write it in that frame")
    return found


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
