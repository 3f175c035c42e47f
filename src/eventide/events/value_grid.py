"""Values of events as whole numbers: cut to a public range and rounded to a grid, each by itself.

Sums of whole numbers are exact whatever order they are added in, so nothing can be read from how floats were rounded.
The ends of the range are rounded outward, so that no value inside it is moved out.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import Bools, Floats, Ints
from eventide.errors import InputError
from eventide.events.texts import texts

PARTS = 1000  # of a range, where nobody says how fine its grid is
FINEST = 10**6  # units from 0 to the end of a range
MOST_SHOWN = 3  # numbers in a message
MOST_DIGITS = 10**15  # of a unit: floats hold them


class ValueGrid(NamedTuple):
    """The range of a column, and what one unit of its grid is worth."""

    column: str
    low: Fraction
    high: Fraction
    unit: Fraction

    @property
    def lowest(self) -> int:
        """The least value, in units."""
        return math.floor(self.low / self.unit)

    @property
    def highest(self) -> int:
        """The greatest value, in units."""
        return math.ceil(self.high / self.unit)

    @property
    def largest(self) -> int:
        """How far a value can be from 0, in units: what one event moves a sum by."""
        return max(abs(self.lowest), abs(self.highest))

    def read(self, column: Any) -> tuple[Ints, Bools]:
        """The values of a column in units, and which of them can be read: finite numbers, one for each row."""
        found = numbers(column)
        readable: Bools = np.isfinite(found)
        inside = np.clip(np.where(readable, found, 0.0), float(self.low), float(self.high))
        units = np.rint(inside * self.unit.denominator / self.unit.numerator)
        return np.clip(units, self.lowest, self.highest).astype(np.int64), readable

    def __str__(self) -> str:
        return f"{self.column}={written(self.low)},{written(self.high)},{written(self.unit)}"


def parse_between(text: str) -> ValueGrid:
    """A range as people write it: COLUMN=LOW,HIGH, and perhaps the unit of its grid.

    >>> grid = parse_between("fare=0,120")
    >>> grid.highest, str(grid)
    (1000, 'fare=0,120,0.12')
    """
    column, equals, numbers = text.rpartition("=")
    try:
        low, high, *unit = (Fraction(each.strip()) for each in numbers.split(","))
        grid = ValueGrid(column, low, high, *(unit or [(high - low) / PARTS]))
    except (TypeError, ValueError, ZeroDivisionError):
        grid = None
    if grid is None or not (column and equals and grid.low < grid.high and grid.unit > 0):
        raise InputError(
            f"{told(text)} is no range for `between`; write COLUMN=LOW,HIGH, the lower end first, such as fare=0,120, "
            "or with a unit, fare=0,120,0.5"
        )
    if max(grid.unit.numerator, grid.unit.denominator) > MOST_DIGITS:
        raise InputError(f"{text}: the unit has more than 15 digits; give a shorter one as a third number")
    if grid.largest > FINEST:
        raise InputError(
            f"{text}: the range reaches to more than {FINEST:,} units; give a larger one as a third number"
        )
    return grid


def outside(found: Floats, grid: Any) -> int:
    """How many numbers lie outside the range of a grid or of edges: raw, for operators only."""
    return int(np.count_nonzero(np.isfinite(found) & ((found < float(grid.low)) | (found > float(grid.high)))))


def told(text: str) -> str:
    """What was written for a column, for a message; of many numbers only the column, since they may be its cells.

    >>> told("fare=9,0"), told("fare=12,7,9,31")
    ("'fare=9,0'", "'fare=...'")
    """
    column, _, listed = text.rpartition("=")
    return repr(text) if len(listed.split(",")) <= MOST_SHOWN else repr(f"{column}=...")


def numbers(column: Any) -> Floats:
    """A column as floats; what is no number is not one here either. Each row is read by itself."""
    if isinstance(column, np.ndarray) and column.dtype == np.float64:  # which was read before
        return column
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.Array) and (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        return np.asarray(pc.fill_null(pc.cast(column, pa.float64(), safe=False), math.nan))
    found = texts(column)
    return np.fromiter(map(_number, found.to_pylist()), np.float64, len(found))


def _number(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def written(number: Fraction) -> str:
    """A number as a decimal where it is one."""
    short = f"{float(number):.15g}"
    return short if Fraction(short) == number else str(number)
