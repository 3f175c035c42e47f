"""A release line as what differs from an earlier one: its step, its time, and the numbers that have changed since.

Lines are cut at ", ", so that each number of a list is a part. A difference names the parts that are not those of the
earlier line, one a line: the number of the part, a space, the part. It gives the line back byte for byte, and is text,
so that SQL can read it too.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import compress
from operator import ne

_CUT, _KEY = b", ", b', "'
WORTH_IT = 4  # a difference is used where it is so many times shorter than the line
SHORTEST = 4  # bytes that a part takes in it at the least


def difference(line: bytes, earlier: bytes) -> bytes | None:
    """What differs from an earlier line, None where that is much.

    >>> base = b'{"step": 7, "values": [4, 0, 5, 700000, 900000, 1100000, 1200000, 1300000, 1400000]}'
    >>> difference(base.replace(b"7", b"8", 1).replace(b"5", b"3"), base)
    b'0 {"step": 8\\n3 3'
    """
    fields, fields_before = _fields(line), _cut_up(earlier)
    if len(fields) != len(fields_before):
        return None
    told: list[tuple[int, bytes]] = []
    for field, (number, before, parts_before) in zip(fields, fields_before, strict=True):
        if field != before:  # most are alike, and not looked at number by number
            parts = field.split(_CUT)
            if len(parts) != len(parts_before):
                return None
            told += compress(enumerate(parts, number), map(ne, parts, parts_before))
            if len(told) * SHORTEST * WORTH_IT >= len(line):
                return None
    text = b"\n".join([b"%d %s" % each for each in told])
    return text if len(text) * WORTH_IT < len(line) else None


def _fields(line: bytes) -> list[bytes]:
    first, *others = line.split(_KEY)
    return [first, *(b'"' + field for field in others)]


@lru_cache(1)  # many lines have the same base
def _cut_up(line: bytes) -> list[tuple[int, bytes, list[bytes]]]:
    """The fields of a line, each with the number of its first part and its parts."""
    cut, number = [], 0
    for field in _fields(line):
        parts = field.split(_CUT)
        cut.append((number, field, parts))
        number += len(parts)
    return cut


def restored(told: bytes, earlier: bytes) -> bytes:
    """The line that differs so from an earlier one.

    >>> restored(b'0 {"step": 8\\n3 3', b'{"step": 7, "values": [4, 0, 5, 7, 9, 1]}')
    b'{"step": 8, "values": [4, 0, 3, 7, 9, 1]}'
    """
    parts = earlier.split(_CUT)
    for each in told.split(b"\n"):
        number, _, part = each.partition(b" ")
        parts[int(number)] = part
    return _CUT.join(parts)
