"""What the value of a key may be: each reader turns what was written into what is meant, or says why not."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from eventide.errors import InputError
from eventide.events.durations import milliseconds

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


class Key(NamedTuple):
    """How a key is read, and how one that must not be left out is written."""

    read: Callable[[Any], Any]
    example: str = ""


def key(read: Callable[[Any], Any], example: str = "") -> dict[str, Key]:
    """The metadata of a field that stands for a key."""
    return {"key": Key(read, example)}


def as_written(value: Any) -> Any:
    """Anything: it is read later, together with other keys."""
    return value


def text(value: Any) -> str:
    """Any text but an empty one."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{value!r} is no text; write it in quotation marks")
    return value


def name(value: Any) -> str:
    """A name that can stand in an address."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise InputError(f"{value!r} is no name; use up to 63 small letters, digits, - and _, such as city-centre")
    return value


def yes_or_no(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise InputError(f"{value!r} is neither true nor false; write one of them without quotation marks")
    return value


def one_of(known: Sequence[str]) -> Callable[[Any], str]:
    """One of some words."""

    def read(value: Any) -> str:
        if value not in known:
            raise InputError(f"{value!r} is none of {', '.join(known)}; choose one of them")
        return str(value)

    return read


def whole_number(smallest: int, largest: int) -> Callable[[Any], int]:
    """A whole number between two others."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not smallest <= value <= largest:
            raise InputError(f"{value!r} must be a whole number from {smallest:,} to {largest:,}")
        return value

    return read


def duration(value: Any) -> str:
    """A length of time such as 10min."""
    milliseconds(str(value))
    return str(value)


def moment(value: Any) -> str:
    """A point in time, as TOML writes it or as text, in ISO form."""
    if isinstance(value, datetime.date):  # also a datetime
        return value.isoformat()
    try:
        return datetime.datetime.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise InputError(f"{value!r} is no time; write one such as 2026-01-01T00:00:00Z") from None


def table(value: Any) -> dict[str, Any]:
    """Keys with values."""
    if not isinstance(value, dict):
        raise InputError(f"{value!r} is no table; write one such as {{ k = 3 }}")
    return value
