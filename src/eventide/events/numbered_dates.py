"""Numbers that read like dates, such as 20260131: as numbers they would count seconds since 1970.

What a column means is decided by the form of all its first texts together, never by one of them. Nothing is guessed:
whoever reads them refuses, and asks for a format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from eventide.arrays import Ints
from eventide.events.zones import EPOCH

_DAY = rb"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])"
_MINUTE = rb"([01]\d|2[0-3])[0-5]\d"
_FORMS = {  # of ten digits (with the hour) there is none: such numbers may well be seconds
    "%Y%m%d": re.compile(_DAY + rb"(\.0)?"),
    "%Y%m%d%H%M": re.compile(_DAY + _MINUTE + rb"(\.0)?"),
    "%Y%m%d%H%M%S": re.compile(_DAY + _MINUTE + rb"[0-5]\d(\.0)?"),
}
TAKEN_FOR = dict(zip(_FORMS, ("s", "ms", "ms"), strict=True))  # by their size
_FIRST, _END = (
    (datetime(year, 1, 1, tzinfo=UTC) - EPOCH).days * 86_400 * 1_000_000 for year in (1980, 2101)
)  # in which times of events mostly lie, and those of such numbers never


def are_plausible(times: Ints) -> bool:
    """Whether any time lies in the years 1980 to 2100."""
    return bool(((times >= _FIRST) & (times < _END)).any())


def form_of(texts: Iterable[bytes]) -> str | None:
    """How dates are written that all these texts read like, as a pattern of strptime; None where one does not.

    >>> form_of([b"20260131", b"20260201"]), form_of([b"20260131", b"20263101"]), form_of([b""])
    ('%Y%m%d', None, None)
    """
    held = {text.strip() for text in texts} - {b""}
    if not held:
        return None
    for form, pattern in _FORMS.items():
        if all(pattern.fullmatch(text) for text in held) and all(_is_date(text[:8]) for text in held):
            return form
    return None


def _is_date(digits: bytes) -> bool:
    try:
        datetime(int(digits[:4]), int(digits[4:6]), int(digits[6:]), tzinfo=UTC)
    except ValueError:
        return False
    return True
