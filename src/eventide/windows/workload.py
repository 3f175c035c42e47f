"""What is asked: sliding-window count queries, merged into the windows that a plan is made for.

Times are whole ticks and intervals are half-open. The windows of a query begin at every multiple of its step. Without a
horizon a workload repeats after its cycle, the least common multiple of the steps, and the windows that begin in the
first cycle stand for all; with a horizon, the windows that end by min(horizon, cycle) do. A workload may begin later
than tick 0; its own ticks count from `start`, and windows still begin at multiples of their steps in all. A bad
workload is refused with an InputError before anything is planned.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.errors import InputError

LONGEST = 10**12  # ticks: more than thirty years of milliseconds
MOST_WINDOWS = 2_000_000


def whole(value: object, name: str) -> int:
    """`value` as an int; anything but a whole number of ticks from 1 to LONGEST is refused."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{name} is {value!r}; give it as a whole number of ticks") from None
    if not 1 <= number <= LONGEST:
        raise InputError(f"{name} is {number}; it must be at least 1 tick and at most {LONGEST:,}")
    return number


@dataclass(frozen=True)
class Query:
    """How many events fell into the last `window` ticks, asked every `step` ticks.

    Parameters
    ----------
    window
        How many ticks are counted; a multiple of `step`.
    step
        How many ticks lie between two answers.
    name
        What its answers are called.

    >>> Query(window=15, step=5)
    Query(window=15, step=5, name=None)
    >>> Query(window=15, step=4)
    Traceback (most recent call last):
    eventide.errors.InputError: a window of 15 is no multiple of its step 4; use 12 or 16, or another step
    """

    window: int
    step: int
    name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "window", whole(self.window, "the window of a query"))
        object.__setattr__(self, "step", whole(self.step, "the step of a query"))
        if self.window % self.step:
            below, above = self.window // self.step * self.step, -(-self.window // self.step) * self.step
            use = f"{below} or {above}" if below else f"{above}"
            raise InputError(
                f"a window of {self.window} is no multiple of its step {self.step}; use {use}, or another step"
            )

    def __str__(self) -> str:
        return self.name or f"{self.window} every {self.step}"


@dataclass(frozen=True)
class Pieces:
    """Windows cut at the ends of the cycles: `count` times the interval [begin, end) of the cycle, for window `owner`.

    Every periodic plan has a boundary at the end of its cycle, where variances add, so this changes no answer.
    """

    begin: Ints
    end: Ints
    owner: Ints
    count: Ints

    def add_up(self, variance: Floats, windows: int) -> Floats:
        """The variance of each of the windows, given that of the intervals."""
        return sums(self.owner, self.count * variance, windows)


def sums(group: Ints, values: Floats, groups: int) -> Floats:
    """The sum of the values of each group."""
    return np.bincount(group, values, groups).astype(np.float64, copy=False)


def cut_at_cycle(begin: Ints, end: Ints, cycle: int) -> Pieces:
    """Each window as the rest of its first cycle, whole cycles, and the start of its last."""
    first = begin // cycle * cycle
    begin, end = begin - first, end - first
    owner = np.arange(len(begin), dtype=np.int64)
    crosses = end > cycle
    rest, cycles = end % cycle, end // cycle - 1
    pieces = [
        (begin, np.minimum(end, cycle), owner, np.ones_like(begin)),
        (np.zeros_like(begin), np.full_like(begin, cycle), owner, np.where(crosses, cycles, 0)),
        (np.zeros_like(begin), rest, owner, np.where(crosses & (rest > 0), 1, 0)),
    ]
    columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
    used = columns[3] > 0
    return Pieces(*(column[used] for column in columns))


class Steps(NamedTuple):
    """The distinct steps, ascending; how many queries have each; and how many slots of their own step these need."""

    sizes: list[int]
    queries: list[int]
    slots: list[int]


@dataclass(frozen=True)
class Workload:
    """Queries with the windows that stand for them; equal queries are planned once, with their number as weight.

    `window`, `step` and `count` describe the distinct queries; `kind[i]` is the distinct query that the i-th query is,
    or -1 if none of its windows ends in time. Window j is [begin[j], end[j]) after tick `start` and belongs to distinct
    query `owner[j]`.
    """

    queries: tuple[Query, ...]
    horizon: int | None
    start: int
    length: int
    periodic: bool
    window: Ints
    step: Ints
    count: Ints
    kind: Ints
    begin: Ints
    end: Ints
    owner: Ints

    @classmethod
    def of(cls, queries: Sequence[Query], horizon: int | None = None, start: int = 0) -> Workload:
        """The workload of `queries` from `start` on, over one cycle or up to the horizon.

        A workload of a whole cycle begins with the cycle that `start` lies in, so that all cycles are alike.
        """
        queries = tuple(queries)
        _check(queries)
        cycle = math.lcm(*(query.step for query in queries))
        length = cycle if horizon is None else min(whole(horizon, "the horizon"), cycle)
        if length == cycle:
            start -= start % cycle
        counts = Counter((query.window, query.step) for query in queries)
        last = math.inf if horizon is None else length
        kept = {key: count for key, count in sorted(counts.items()) if -start % key[1] + key[0] <= last}
        if not kept:
            shortest = min(query.window for query in queries)
            raise InputError(
                f"the plan covers {length:,} ticks and even the shortest window has {shortest:,}; give a longer "
                "horizon, or none if the horizon already spans the steps' least common multiple"
            )
        _check_size(length, sum(length // step for _, step in kept), horizon)
        window, step = np.array(list(kept), dtype=np.int64).T
        first = -start % step
        windows = length // step if horizon is None else (length - first - window) // step + 1
        kind = {key: i for i, key in enumerate(kept)}
        owner = np.repeat(np.arange(len(kept)), windows)
        begin = first[owner] + (np.arange(len(owner)) - np.repeat(np.cumsum(windows) - windows, windows)) * step[owner]
        return cls(
            queries=queries,
            horizon=horizon,
            start=start,
            length=length,
            periodic=length == cycle,
            window=window,
            step=step,
            count=np.array(list(kept.values()), dtype=np.int64),
            kind=np.array([kind.get((query.window, query.step), -1) for query in queries], dtype=np.int64),
            begin=begin,
            end=begin + window[owner],
            owner=owner,
        )

    @cached_property
    def dropped(self) -> tuple[Query, ...]:
        """The queries of which no window ends by the horizon."""
        return tuple(query for query, kind in zip(self.queries, self.kind, strict=True) if kind < 0)

    @cached_property
    def steps(self) -> Steps:
        """The steps of the queries, equal ones together."""
        steps = Steps(np.unique(self.step).tolist(), [], [])
        for step in steps.sizes:
            count, window = self.count[self.step == step], self.window[self.step == step]
            steps.queries.append(int(count.sum()))
            steps.slots.append(int(count @ (window // step)))
        return steps

    @cached_property
    def _merged(self) -> tuple[Ints, Ints, Ints, Floats]:
        pieces = cut_at_cycle(self.begin, self.end, self.length)
        nodes = np.unique(np.concatenate([np.zeros(1, dtype=np.int64), pieces.begin, pieces.end]))
        begin, end = np.searchsorted(nodes, pieces.begin), np.searchsorted(nodes, pieces.end)
        keys, position = np.unique(begin * len(nodes) + end, return_inverse=True)
        each = self.count / np.bincount(self.owner)
        weight = sums(position, pieces.count * each[self.owner[pieces.owner]], len(keys))
        return nodes, keys // len(nodes), keys % len(nodes), weight

    @property
    def nodes(self) -> Ints:
        """The ticks at which a window begins or ends, folded into one cycle; atoms are the gaps between them."""
        return self._merged[0]

    @property
    def pieces(self) -> tuple[Ints, Ints, Floats]:
        """Distinct intervals (begin and end as positions in `nodes`, in ascending order) and what each one weighs."""
        return self._merged[1:]


def _check(queries: tuple[Query, ...]) -> None:
    if not queries:
        raise InputError("there is no query to plan for; give at least one, such as Query(window=15, step=5)")
    for query in queries:
        if not isinstance(query, Query):
            raise InputError(f"{query!r} is not a query; give each one as Query(window=15, step=5)")
    for name, times in Counter(query.name for query in queries if query.name is not None).items():
        if times > 1:
            raise InputError(f"{times} queries are named {name!r}; give each query a name of its own, or none")


def _check_size(length: int, windows: int, horizon: int | None) -> None:
    if length > LONGEST or windows > MOST_WINDOWS:
        what = "shorten the horizon" if horizon else "give a horizon, such as the length of the stream in ticks"
        raise InputError(
            f"the plan would cover {_about(length)} ticks with {_about(windows)} windows, and {_about(LONGEST)} ticks "
            f"with {_about(MOST_WINDOWS)} windows is the most; {what}, or use steps that share more factors"
        )


def _about(number: int) -> str:
    return f"{number:,}" if number < 10**9 else f"10^{math.log10(number):.1f}"
