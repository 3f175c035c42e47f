"""Values of events as buckets: between which two of some public numbers a value lies, each by itself.

The buckets are ordered; a value at an edge lies in the bucket that begins there, and values outside lie in the first or
the last one.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Bools, Floats, Ints
from eventide.errors import InputError
from eventide.events.value_grid import numbers, told, written

MOST_BUCKETS = 256


class ValueEdges(NamedTuple):
    """The column, and the numbers between which its buckets lie, from the least to the greatest."""

    column: str
    edges: tuple[Fraction, ...]

    @property
    def low(self) -> Fraction:
        """Where the first bucket begins."""
        return self.edges[0]

    @property
    def high(self) -> Fraction:
        """Where the last bucket ends."""
        return self.edges[-1]

    @property
    def buckets(self) -> int:
        """How many there are."""
        return len(self.edges) - 1

    @property
    def largest(self) -> int:
        """The number of the last bucket."""
        return self.buckets - 1

    def floats(self) -> Floats:
        """The edges, as they are compared with values."""
        return np.array([float(edge) for edge in self.edges])

    def read(self, column: Any) -> tuple[Ints, Bools]:
        """The bucket of each value of a column, and which values can be read: finite numbers, one for each row."""
        found = numbers(column)
        readable: Bools = np.isfinite(found)
        inner = self.floats()[1:-1]
        return np.searchsorted(inner, np.where(readable, found, 0.0), side="right").astype(np.int64), readable

    def __str__(self) -> str:
        return f"{self.column}={','.join(map(written, self.edges))}"


def parse_edges(text: str) -> ValueEdges:
    """Buckets as people write them: COLUMN=EDGE,EDGE,...

    >>> str(parse_edges("stay=0,5,10,20.5"))
    'stay=0,5,10,20.5'
    """
    column, equals, listed = text.rpartition("=")
    try:
        edges = tuple(Fraction(each.strip()) for each in listed.split(","))
    except (ValueError, ZeroDivisionError):
        edges = ()
    rising = all(float(one) < float(other) for one, other in itertools.pairwise(edges))
    if not (column and equals and len(edges) > 2 and rising):
        raise InputError(f"{told(text)} are no buckets; write COLUMN=EDGE,EDGE,..., three numbers or more that rise")
    if len(edges) > MOST_BUCKETS + 1:
        raise InputError(f"{told(text)} are more than {MOST_BUCKETS} buckets; give fewer edges")
    return ValueEdges(column, edges)
