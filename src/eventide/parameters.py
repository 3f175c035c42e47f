"""The parameters of a constructor, its base classes' included, and things that can say theirs.

What mechanisms and filters were made with is read back from their attributes: to show it, to save it, and to make
another one alike.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

REQUIRED = inspect.Parameter.empty
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def parameter_defaults(cls: type) -> Mapping[str, Any]:
    """Every name that can be given to `cls(...)` with its default, or REQUIRED; `**common` is the base class's."""
    return _read_defaults(cls)


@functools.lru_cache(maxsize=64)  # signatures take a millisecond to read, and a class may be forgotten again
def _read_defaults(cls: type) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for owner in cls.__mro__:
        if "__init__" in vars(owner):
            for name, given in inspect.signature(vars(owner)["__init__"]).parameters.items():
                if given.kind in _NAMED and name != "self":
                    found.setdefault(name, given.default)
    return MappingProxyType(found)


class Parametrised:
    """Something whose constructor keeps every parameter in an attribute of the same name."""

    __slots__ = ()

    def parameters(self) -> dict[str, Any]:
        """What it was made with, by name: `type(it)(**it.parameters())` makes another one alike."""
        return {name: getattr(self, name) for name in parameter_defaults(type(self))}

    def clone(self) -> Self:
        """A new one with the same parameters, in the state of the beginning."""
        return type(self)(**self.parameters())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={_text(value)}' for name, value in self._told().items())})"

    def _told(self) -> dict[str, Any]:
        """The parameters that are shown: those that are kept and are not at their defaults."""
        defaults = parameter_defaults(type(self))
        kept = {name: getattr(self, name, default) for name, default in defaults.items()}
        return {name: value for name, value in kept.items() if not _same(value, defaults[name])}


def _same(value: Any, default: Any) -> bool:
    equal = value == default
    return isinstance(equal, bool) and equal  # arrays are compared cell by cell


def _text(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else repr(value)
