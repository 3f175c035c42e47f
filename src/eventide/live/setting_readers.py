"""What the value of a setting may be: each reader turns what was written, as text or in TOML, into what is meant.

What cannot be meant is refused with a sentence that says why. Nothing heavy is loaded before something is read.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, field, fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from eventide.errors import InputError
from eventide.events.durations import milliseconds, written

MOST_BY_HAND = 100  # numbers
LONGEST_SHOWN = 80  # characters of what somebody wrote
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


class DescribedSetting(NamedTuple):
    """How a setting is read, what it means, and how it is written.

    example: as TOML has it. metavar, option: as the command line has them. left_out: what then holds, where no default
    says it. served: whether a service has it.
    """

    read: Callable[[Any], Any]
    help: str = ""
    example: str = ""
    metavar: str = ""
    option: str = ""
    left_out: str = ""
    served: bool = True


def setting(default: Any, *described: Any, **more: Any) -> Any:
    """A field of a dataclass that is a setting."""
    given = DescribedSetting(*described, **more)
    metadata = {"setting": given._replace(metavar=given.metavar or METAVARS.get(given.read, "NAME"))}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def settings_of(cls: type[Any]) -> dict[str, DescribedSetting]:
    """The settings that a dataclass has, by name."""
    return {each.name: each.metadata["setting"] for each in fields(cls)}


def defaults_of(cls: type[Any]) -> dict[str, Any]:
    """What holds of them where they are left out."""
    plain = {each.name: each.default for each in fields(cls) if each.default is not MISSING}
    return plain | {each.name: each.default_factory() for each in fields(cls) if each.default_factory is not MISSING}


def as_written(value: Any) -> Any:
    """Anything: it is read later, together with other settings."""
    return value


def shown(value: Any) -> str:
    """A value as messages show it: what somebody wrote by hand, and of whatever may hold data only what it is.

    >>> shown(3), shown("tiden"), shown([7, 8])
    ('3', "'tiden'", 'a list')
    """
    if isinstance(value, str) and len(value) > LONGEST_SHOWN:
        return f"{value[:LONGEST_SHOWN]!r}..."
    plain = str | int | float | Fraction | Decimal | datetime.date | datetime.timedelta | None
    return repr(value) if isinstance(value, plain) else f"a {type(value).__name__}"


def text(value: Any) -> str:
    """Any text but an empty one."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{shown(value)} is no text; write it in quotation marks")
    return value


def column(value: Any) -> str:
    """The name of a column, never what stands in it."""
    if not isinstance(value, str | int | float | None):
        raise InputError(f"give the name of the column in quotation marks, not {shown(value)}")
    return text(value)


def bin_name(value: Any) -> str:
    """The name of a bin, also of one whose cells are whole numbers, or true and false."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else text(value)


def text_or_texts(value: Any) -> str | tuple[str, ...]:
    """Text, or several; one alone is the same as a list of it."""
    if isinstance(value, list | tuple):
        return text(value[0]) if len(value) == 1 else tuple(text(each) for each in value)
    return text(value)


def of_columns(value: Any) -> str | tuple[str, ...]:
    """Numbers of one column or of several, as text such as fare=0,120 or by name.

    >>> of_columns({"fare": (0, 120)}), of_columns(["fare=0,120", "stay=0,9"])
    ('fare=0,120', ('fare=0,120', 'stay=0,9'))
    """
    each_its_own = "it must give each column its numbers, such as {'fare': (0, 120)}"
    if not isinstance(value, dict):
        several = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(one, str) for one in several):
            raise InputError(each_its_own)
        return text_or_texts(value)
    try:
        return text_or_texts([f"{column}={','.join(map(str, numbers))}" for column, numbers in value.items()])
    except TypeError:
        raise InputError(each_its_own) from None


def listed(value: Any) -> Any:
    """An array or a series, of numpy, pandas, polars or Arrow, as a list; everything else as it is."""
    if type(value).__name__ == "timedelta64":  # which would else give a bare number
        return value.astype("timedelta64[us]").tolist()
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(value, method):
            return getattr(value, method)()
    return value


def cap(value: Any) -> str:
    """How many events count in how long; what it means is read later, with the length of a step."""
    if not isinstance(value, str) or "/" not in value:
        raise InputError(f"{shown(value)} is no cap; write how many events count in how long, such as 2/7d")
    return value


def is_data(value: Any) -> bool:
    """Whether this is longer than what anybody writes by hand, such as a column."""
    return isinstance(value, list | tuple) and len(value) > MOST_BY_HAND


def parts(value: Any) -> tuple[float, ...]:
    """Parts of a whole, as text such as 0.25,0.5 or as numbers, or one of them."""
    if is_data(value):
        raise InputError("give numbers such as 0.25,0.5,0.75, not a column")
    if isinstance(value, float):
        return (value,)
    try:
        return tuple(float(each) for each in (value.split(",") if isinstance(value, str) else value))
    except (TypeError, ValueError):
        raise InputError(f"{shown(value)} are no parts of a whole; give numbers such as 0.25,0.5,0.75") from None


def split(value: Any) -> dict[str, Fraction]:
    """The part of each of several things, as text such as people=0.5,mean:fare=0.5 or by name."""
    pairs = value.items() if isinstance(value, dict) else (each.rpartition("=")[::2] for each in str(value).split(","))
    try:
        return {name.strip(): Fraction(str(part).strip()) for name, part in pairs}
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{shown(value)} gives no parts; write such as people=0.5,mean:fare=0.5") from None


def of_each(written: str) -> dict[str, str]:
    """What was written for single statistics, by their names, such as people=ba,sum:fare=uniform; else nothing.

    >>> of_each("people=ba,sum:fare=uniform"), of_each("tide")
    ({'people': 'ba', 'sum:fare': 'uniform'}, {})
    """
    pairs = [each.rpartition("=")[::2] for each in written.split(",")] if "=" in written else []
    told = {name.strip(): chosen.strip() for name, chosen in pairs}
    if not all((*told, *told.values())) or len(told) < len(pairs):
        raise InputError(f"{written!r} must name each statistic once, such as people=ba,sum:fare=uniform; correct it")
    return told


def place(value: Any) -> str | Path:
    """A path or an address."""
    return value if isinstance(value, Path) else text(value)


def places(value: Any) -> tuple[str, ...]:
    """A path or an address, or a list of them."""
    return tuple(text(each) for each in (value if isinstance(value, list | tuple) else [value]))


def name(value: Any) -> str:
    """A name that can stand in an address."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise InputError(f"{shown(value)} is no name; use up to 63 small letters, digits, - and _, such as city-centre")
    return value


def yes_or_no(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise InputError(f"{shown(value)} is neither true nor false; write one of them without quotation marks")
    return value


def one_of(known: Sequence[str]) -> Callable[[Any], str]:
    """One of some words."""

    def read(value: Any) -> str:
        if value not in known:
            raise InputError(f"{shown(value)} is none of {', '.join(known)}; choose one of them")
        return str(value)

    return read


def whole_number(smallest: int, largest: int) -> Callable[[Any], int]:
    """A whole number between two others."""

    def read(value: Any) -> int:
        number = int(value) if isinstance(value, str) and value.isdecimal() else value
        if isinstance(number, bool) or not isinstance(number, int) or not smallest <= number <= largest:
            raise InputError(f"{shown(value)} is not a whole number from {smallest:,} to {largest:,}; give one")
        return number

    return read


positive = whole_number(1, 10**9)


def budget(value: Any) -> Fraction:
    """An epsilon, in whole billionths."""
    from eventide.privacy.amounts import NANO, nano

    if isinstance(value, list | tuple | dict):
        raise InputError(f"{shown(value)} is not a number that epsilon can be; give one such as 1 or 0.3")
    return Fraction(nano(value), NANO)


def duration(value: Any) -> str:
    """A length of time such as 10min."""
    given = _length(value)
    milliseconds(given)
    return given


def lateness(value: Any) -> str | None:
    """A length of time that may be none at all: 0s says what leaving it out says."""
    given = _length(value, least=0)
    return given if milliseconds(given, least=0) else None


def steps_or_duration(value: Any) -> int | str:
    """A number of steps, or a length of time."""
    if isinstance(value, datetime.timedelta):
        return duration(value)
    if isinstance(value, str) and not value.isdecimal():
        return value
    return positive(value)


def _length(value: Any, least: int = 1) -> str:
    """A length of time as text, also one of Python or pandas."""
    if not isinstance(value, datetime.timedelta):
        if not isinstance(value, str | int | float):
            raise InputError(f"{shown(value)} is no duration; write one such as 5min")
        return str(value)
    whole, rest = divmod(value, datetime.timedelta(milliseconds=1))
    if rest or whole < least:
        raise InputError(f"{str(value)!r} is no whole number of milliseconds above 0; write a duration such as 5min")
    return written(whole) if whole else "0s"


def seasons(value: Any) -> str | tuple[float, ...]:
    """The word auto or none, or periods in steps, as text such as 24,168 or as numbers."""
    if value in ("auto", "none"):
        return str(value)
    if is_data(value):
        raise InputError("give auto, none or periods in steps, such as 24,168, not a column")
    from eventide.filters.seasons import checked_periods

    try:
        return checked_periods([float(each) for each in (value.split(",") if isinstance(value, str) else value)])
    except (TypeError, ValueError):
        raise InputError(
            f"{shown(value)} is neither auto, none nor periods in steps, such as 24,168; give one"
        ) from None


def moment(value: Any) -> str:
    """A point in time, as TOML writes it or as text, in ISO form where that can be told without its zone."""
    if isinstance(value, datetime.date):  # also a datetime
        return value.isoformat()
    given = text(value)
    if given.isdecimal() and len(given) != len("20260101"):  # counted since 1970
        return given
    try:
        return datetime.datetime.fromisoformat(given).isoformat()
    except ValueError:
        return given


def time_format(value: Any) -> str:
    """How times are written: a unit or a pattern."""
    from eventide.events.time_formats import TimeFormat

    TimeFormat(text(value))
    return str(value)


def table(value: Any) -> dict[str, Any]:
    """Keys with values."""
    if not isinstance(value, dict):
        raise InputError(f"{shown(value)} is no table; write one such as {{ k = 3 }}")
    return value


METAVARS: dict[Callable[[Any], Any], str] = {
    budget: "NUMBER",
    duration: "DURATION",
    lateness: "DURATION",
    moment: "ISO",
    positive: "N",
    steps_or_duration: "STEPS",
    table: "NAME=VALUE",
    seasons: "auto|none|STEPS",
}
