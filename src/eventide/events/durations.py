"""Lengths of time as people write them: 30s, 5min, 1h, 1d.

Promises whole milliseconds of at most a thousand years, or a refusal.
"""

from __future__ import annotations

import re

from eventide.errors import InputError

UNITS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
LONGEST = 365_243 * UNITS["d"]  # a thousand years; times are counted in 64 bits
_WORDS = {"d": "day", "h": "hour", "min": "minute", "s": "second", "ms": "millisecond"}  # from long to short
_NAMES = {"m": "min", "min": "min", "sec": "s", "hr": "h", "wk": "w", "week": "w"} | {
    word: unit for unit, word in _WORDS.items()
}
_OTHERWISE = re.compile(r"\s*([1-9]\d{0,11})\s*([a-z]+)\s*")
_UNEVEN = re.compile(r"\s*\d*\s*(?:M|(?i:mo|q|y|months?|quarters?|years?))\s*")
_DURATION = re.compile(r"\s*(\d{1,12})\s*(ms|s|min|h|d|w)\s*")


def milliseconds(text: str, least: int = 1) -> int:
    """A duration in whole milliseconds, at least so many.

    >>> milliseconds("5min")
    300000
    """
    found = _DURATION.fullmatch(text)
    if not found or int(found[1]) < least:
        how = f"write a whole number and a unit of {', '.join(UNITS)}, such as 5min"
        raise InputError(f"{text!r} is no duration; {_meant(text)}{how}")
    length = int(found[1]) * UNITS[found[2]]
    if length > LONGEST:
        raise InputError(f"{text!r} is longer than a thousand years; choose a shorter duration")
    return length


def _meant(text: str) -> str:
    """A question where units have other names or capital letters, and a word about those of no fixed length."""
    if _UNEVEN.fullmatch(text):
        return "months and years differ in length, so give weeks or days, such as 4w; "
    if not (found := _OTHERWISE.fullmatch(text.lower())):
        return ""
    number, name = found.groups()
    unit = name if name in UNITS else _NAMES.get(name.removesuffix("s"))
    return f"did you mean {number}{unit}? If not, " if unit else ""


def written(length: int) -> str:
    """A length as `milliseconds` reads it, in days or the largest unit of which it is a whole number.

    >>> written(604_800_000)
    '7d'
    """
    unit = next(unit for unit in _WORDS if length % UNITS[unit] == 0)
    return f"{length // UNITS[unit]}{unit}"


def in_words(length: int) -> str:
    """The same for a sentence, and not in hundreds of a small unit.

    >>> in_words(604_800_000), in_words(3_600_000), in_words(5_400_000), in_words(60_000_000)
    ('7 days', '1 hour', '90 minutes', '16 hours 40 minutes')
    """
    unit = next(unit for unit in _WORDS if length % UNITS[unit] == 0 or length >= 2 * UNITS[unit])
    number, rest = divmod(length, UNITS[unit])
    words = f"{number} {_WORDS[unit]}{'' if number == 1 else 's'}"
    return f"{words} {in_words(rest)}" if rest else words


def as_unit(length: int) -> str:
    """The same behind "every" or "any".

    >>> as_unit(604_800_000), as_unit(3_600_000)
    ('7 days', 'hour')
    """
    return in_words(length).removeprefix("1 ")


def steps_of_window(window: int | str, step: str | None) -> int:
    """How many steps a window has: a number of them, or a duration, rounded up, so that they cover all of it.

    >>> steps_of_window("90min", "1h"), steps_of_window("7", None)
    (2, 7)
    """
    if isinstance(window, int) or window.isdecimal():
        return int(window)
    duration = milliseconds(window)
    if step is None:
        raise InputError(
            f"a window of {window} needs the length of a step, such as --step 1h (for ready-made counts write the "
            "window as a number of steps)"
        )
    if duration < milliseconds(step):
        raise InputError(
            f"a window of {window} is shorter than a step of {step}, so it would protect single steps only "
            "(event-level privacy); choose a longer window or a shorter step, or write 1 if one step is what you want"
        )
    return -(-duration // milliseconds(step))
