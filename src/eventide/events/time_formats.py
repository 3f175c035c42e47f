"""How a column writes its times, where somebody says it: `s`, `ms`, `us` or `ns` since 1970, or a pattern of strptime.

A pattern means what it means to Python's `datetime.strptime`, such as %d.%m.%Y %H:%M. One of numbers alone is read by
compiled code; only what that cannot read is given to Python, which also takes numbers with fewer digits.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import numpy as np

from eventide.arrays import Array, Ints
from eventide.errors import InputError
from eventide.events import time_kernels as kernels
from eventide.events.zones import EPOCH

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": kernels.NANOSECONDS}
_SAMPLE = datetime(2021, 11, 23, 16, 47, 58, tzinfo=UTC)
_COMPILED = re.compile("(%[YmdHMSf]|%%|[^%])*(%z)?", re.ASCII)


class TimeFormat:
    """A unit or a pattern.

    >>> from eventide.events.times import Zone, read_times
    >>> read_times(["31.01.2026", "1.2.2026"], Zone("UTC"), TimeFormat("%d.%m.%Y")).times // 86_400_000_000
    array([20484, 20485])
    """

    def __init__(self, text: str) -> None:
        self.given, self._text, self._unit = text, text, UNITS.get(text)
        if self._unit is None and not _tells_the_day(text):
            raise InputError(
                f"{text!r} is no format of times; write s, ms, us or ns for a number since 1970, or a pattern that "
                "has year, month and day, such as %d.%m.%Y %H:%M:%S (leave it out for ISO 8601)"
            )
        compiled = text.isascii() and _COMPILED.fullmatch(text) and text.count("%Y") == 1
        self._pattern = np.array(_codes(text) if compiled else [], dtype=np.int64)

    def read(self, offsets: Array, data: Array) -> tuple[Ints, Array]:
        """The time of each text in microseconds, and whether it is in UTC, local, or unreadable."""
        if self._unit is not None:
            times, kinds = kernels.read_numbers(offsets, data, self._unit)
            return times, kinds
        times, kinds = kernels.read_pattern(offsets, data, self._pattern)
        known: dict[bytes, tuple[int, int]] = {}  # of texts that are often the same
        for row in np.flatnonzero(kinds == kernels.UNREADABLE):
            text = data[offsets[row] : offsets[row + 1]].tobytes().strip()
            if text not in known:
                known[text] = self._read_slowly(text)
            times[row], kinds[row] = known[text]
        return times, kinds

    def _read_slowly(self, text: bytes) -> tuple[int, int]:
        try:
            moment = datetime.strptime(text.decode(), self._text)
        except ValueError:
            return 0, kernels.UNREADABLE
        kind = kernels.LOCAL if moment.tzinfo is None else kernels.IN_UTC
        since = moment.replace(tzinfo=moment.tzinfo or UTC) - EPOCH
        return since // timedelta(microseconds=1), kind


def _tells_the_day(text: str) -> bool:
    """Whether a time that is written in a format is known again; a name of a zone is not read by Python."""
    try:
        found = datetime.strptime(_SAMPLE.strftime(text), text)
    except (ValueError, re.error):
        return False
    return found.date() == _SAMPLE.date() and found.hour in (0, _SAMPLE.hour) and "%Z" not in text


def _codes(text: str) -> list[int]:
    """A pattern for the kernel."""
    found = re.findall("%.|.", text)
    return [ord(one[-1]) + (kernels.DIRECTIVE if len(one) == 2 and one != "%%" else 0) for one in found]
