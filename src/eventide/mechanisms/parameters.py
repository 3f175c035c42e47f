"""The parameters of a constructor, its base classes' included.

What a mechanism was made with can be read back from its attributes, for saved states and registries; what is none of a
few choices is refused.
"""

from __future__ import annotations

import inspect
from typing import Any

from eventide.errors import InputError

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def parameter_names(cls: type) -> dict[str, bool]:
    """Every name that can be given to `cls(...)`, and whether it must be; `**common` stands for the base class's."""
    found: dict[str, bool] = {}
    for owner in cls.__mro__:
        if "__init__" in vars(owner):
            signature = inspect.signature(vars(owner)["__init__"]).parameters
            for name, given in signature.items():
                if given.kind in _NAMED and name != "self":
                    found.setdefault(name, given.default is inspect.Parameter.empty)
    return found


def parameters(thing: object, but: set[str] | None = None) -> dict[str, Any]:
    """The parameters of `thing` as they are now, read from attributes of the same name; those in `but` left out."""
    return {name: getattr(thing, name) for name in parameter_names(type(thing)) if name not in (but or ())}


def check_choice(value: object, name: str, *choices: object) -> None:
    """Refuse a value that is none of the choices, which are words, True, False or None.

    >>> check_choice("moving", "accounting", "moving", "fixed-bin")
    """
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise InputError(f"{name} is {value!r}; it must be {' or '.join(map(repr, choices))}")


def per_bin(accounting: str) -> bool:
    """Whether each bin has an account of its own ("fixed-bin"): then only people who stay in one bin are protected."""
    check_choice(accounting, "accounting", "moving", "fixed-bin")
    return accounting == "fixed-bin"
