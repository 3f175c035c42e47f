"""A line of CSV stands for itself: one that ends inside quotes must not swallow those after it.

Such lines are left out and counted, all others stay as they are, byte for byte.
"""

from __future__ import annotations

import numpy as np

from eventide.compiling import kernel

_QUOTE, _COMMA, _NEWLINE, _RETURN = 34, 44, 10, 13


@kernel(nogil=True)
def without_torn_lines(data):  # type: ignore[no-untyped-def]
    """The bytes of all lines but those that end inside quotes, and how many these were; the last has a newline."""
    kept = np.empty_like(data)
    size, torn, begin, place = 0, 0, 0, 0
    quoted, cell_begins = False, True
    while place < len(data):
        byte = data[place]
        kept[size] = byte
        size += 1
        if byte == _NEWLINE:
            if quoted:
                torn += 1
                size = begin
            begin, quoted, cell_begins = size, False, True
        elif quoted:
            if byte == _QUOTE and data[place + 1] == _QUOTE:
                place += 1
                kept[size] = byte
                size += 1
            elif byte == _QUOTE:
                quoted = False
        elif byte == _QUOTE and cell_begins:
            quoted, cell_begins = True, False
        else:
            cell_begins = byte in (_COMMA, _RETURN)
        place += 1
    return kept[:size], torn
