"""Which windows are due, and their answers.

An answer is private, and says of which ticks and how precise it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Bools, Floats, Ints
from eventide.windows.workload import Query, Workload


class Answer(NamedTuple):
    """How many events fell into the ticks [begin, end), with the variance of the noise in each value.

    `value` is a number, or an array with one for each bin; with replicas it has a leading axis. A refined answer comes
    later than the one on time and is at least as precise.
    """

    query: Query
    begin: int
    end: int
    value: Any
    variance: float
    refined: bool = False


@dataclass(frozen=True)
class Due:
    """Answers that became due, in the order in which they did, as arrays; going through them gives each `Answer`.

    `query` holds positions in `queries`; `value` has the answers along its first axis.
    """

    queries: tuple[Query, ...]
    query: Ints
    begin: Ints
    end: Ints
    value: Floats
    variance: Floats
    refined: Bools

    def __len__(self) -> int:
        return len(self.query)

    def __getitem__(self, index: int) -> Answer:
        value = self.value[index]
        return Answer(
            self.queries[self.query[index]],
            int(self.begin[index]),
            int(self.end[index]),
            value if value.ndim else float(value),
            float(self.variance[index]),
            bool(self.refined[index]),
        )

    def __iter__(self) -> Iterator[Answer]:
        return map(self.__getitem__, range(len(self)))


class DueWindows(NamedTuple):
    """Windows [begin, end) of distinct queries `kind`, answered with `value` `(windows, cells)` at tick `due`."""

    kind: Ints
    begin: Ints
    end: Ints
    due: Ints
    refined: Bools
    value: Floats
    variance: Floats


class Schedule:
    """The windows of a workload's queries, at all multiples of their steps from tick 0 on."""

    def __init__(self, workload: Workload) -> None:
        self.queries, self.window, self.step = workload.queries, workload.window, workload.step
        self._members = np.argsort(workload.kind, kind="stable")[np.count_nonzero(workload.kind < 0) :]
        self._count = workload.count

    def ending(self, after: int, until: int) -> tuple[Ints, Ints, Ints]:
        """Kind, begin and end of the windows that end after one tick and no later than another."""
        first = np.maximum(-(-(after + 1 - self.window) // self.step), 0)
        count = np.maximum((until - self.window) // self.step - first + 1, 0)
        kind = np.repeat(np.arange(len(count)), count)
        begin = (first[kind] + _ranks(count)) * self.step[kind]
        return kind, begin, begin + self.window[kind]

    def due(self, answered: Sequence[DueWindows], shape: tuple[int, ...]) -> Due:
        """All answers, equal queries each with their own, in the order in which they became due."""
        kind, begin, end, due, refined, value, variance = map(np.concatenate, zip(*answered, strict=True))
        count = self._count[kind]
        which = np.repeat(np.arange(len(kind)), count)
        first = np.cumsum(self._count) - self._count
        query = self._members[first[kind[which]] + _ranks(count)]
        order = np.lexsort((query, end[which], refined[which], due[which]))
        which = which[order]
        values = value[which].reshape(-1, *shape)
        return Due(self.queries, query[order], begin[which], end[which], values, variance[which], refined[which])


def _ranks(count: Ints) -> Ints:
    """0, 1, ..., count - 1 for each of the counts."""
    return np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
