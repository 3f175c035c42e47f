"""A row of numbers as bars of text, as wide as asked for; where there are more numbers, the largest of each stretch."""

from __future__ import annotations

import math
from collections.abc import Sequence

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def bars(values: Sequence[float], top: float, width: int, height: int) -> list[str]:
    """Lines of text, from the top down; a value of `top` is a bar over all of them, one above it ends in "▲".

    >>> print(*bars([0, 1, 2, 4, 5], top=4, width=5, height=2), sep="|")
       █▲| ▄███
    """
    stretch = max(1, math.ceil(len(values) / width))
    tallest = [max(values[begin : begin + stretch]) for begin in range(0, len(values), stretch)]
    lines = []
    for row in range(height, 0, -1):
        line = "".join(_EIGHTHS[_eighths(value / top * height - (row - 1))] for value in tallest)
        if row == height:
            line = "".join("▲" if value > top else cell for cell, value in zip(line, tallest, strict=True))
        lines.append(line)
    return lines


def _eighths(filled: float) -> int:
    """How many eighths of a cell to fill; whatever is not 0 shows."""
    return min(8, max(0, math.ceil(filled * 8 - 1e-9)))
