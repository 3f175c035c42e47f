"""A release line as what differs from an earlier one: its step, its time, and the numbers that have changed since.

Lines are cut at ", ", so that each number of a list is a part. A difference names the parts that are not those of the
earlier line, one a line: the number of the part, a space, the part. It gives the line back byte for byte, and is text,
so that SQL can read it too.
"""

from __future__ import annotations

from itertools import compress
from operator import ne

_CUT, _KEY = b", ", b', "'
WORTH_IT = 4  # a difference is used where it is so many times shorter than the line


def difference(line: bytes, earlier: bytes) -> bytes | None:
    """What differs from an earlier line, None where that is much.

    >>> base = b'{"step": 7, "values": [4, 0, 5, 700000, 900000, 1100000, 1200000, 1300000, 1400000]}'
    >>> difference(base.replace(b"7", b"8", 1).replace(b"5", b"3"), base)
    b'0 {"step": 8\\n3 3'
    """
    fields, fields_before = line.split(_KEY), earlier.split(_KEY)
    if len(fields) != len(fields_before):
        return None
    told: list[tuple[int, bytes]] = []
    number, quote = 0, b""
    for field, before in zip(fields, fields_before, strict=True):  # most are alike, and not looked at number by number
        if field != before:
            parts, parts_before = (quote + field).split(_CUT), (quote + before).split(_CUT)
            if len(parts) != len(parts_before):
                return None
            told += compress(enumerate(parts, number), map(ne, parts, parts_before))
        number, quote = number + before.count(_CUT) + 1, b'"'
    text = b"\n".join([b"%d %s" % each for each in told])
    return text if len(text) * WORTH_IT < len(line) else None


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
