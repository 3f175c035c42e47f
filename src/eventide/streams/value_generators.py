"""Made-up events of people with values, of which statistics are studied; the same arguments always make the same ones.

`VALUE_GENERATORS` finds them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.errors import InputError
from eventide.events.statistics import OfValues, Statistic
from eventide.streams.count_files import Matrix
from eventide.streams.event_numbers import numbers_of

DAY, WEEK = 24, 168  # hours, which are steps


class ValuedEvents(NamedTuple):
    """Events of people at steps and in bins, with values in a column."""

    column: str
    step: Ints
    person: Ints
    bin: Ints
    value: Floats
    steps: int
    bins: int

    def numbers(self, statistic: Statistic) -> Matrix:
        """What a mechanism measures for a statistic of them, and what is true."""
        if isinstance(statistic, OfValues) and statistic.grid.column != self.column:
            raise InputError(f"these events have the column {self.column}, not {statistic.grid.column}; name it so")
        names = tuple(map(str, range(self.bins)))
        return numbers_of(statistic, self.step * self.bins + self.bin, self.steps, names, self.person, self.value)


def fares(length: int = 6 * WEEK, level: int = 300, people: int = 40_000, bins: int = 1, seed: int = 0) -> ValuedEvents:
    """Taxi rides by the hour, around `level`, with a rhythm of day and week; `fare` is a few at least, more at night.

    Most of the people ride rarely. Of several bins each has more rides than the next.

    >>> rides = fares(length=48)
    >>> rides.steps, bool(rides.value.min() > 4)
    (48, True)
    """
    chance, hour = _begun(length, level, people, bins, seed)
    busy = level * (1 + 0.6 * np.sin((hour - 9) * np.pi / 12) + 0.3 * (hour // DAY % 7 >= 5))
    step = hour.repeat(chance.poisson(busy))
    value = 4 + chance.gamma(2, 5 + 2 * (step % DAY < 6))
    person = chance.integers(0, people, len(step))
    return ValuedEvents("fare", step, person, _bins(chance, len(step), bins), value, length, bins)


def stays(
    length: int = 6 * WEEK, level: int = 200, people: int = 30_000, bins: int = 1, tail: float = 1.3, seed: int = 0
) -> ValuedEvents:
    """Visits by the hour, around `level`, with a rhythm of the day; most stay for few `minutes`, some for hours.

    The smaller `tail`, the heavier: at 1 and below stays have no mean. Of several bins each has more visits than the
    next.
    """
    if not tail > 0:
        raise InputError("tail must be above 0")
    chance, hour = _begun(length, level, people, bins, seed)
    step = hour.repeat(chance.poisson(level * (1 + 0.8 * np.sin((hour - 8) * np.pi / 12))))
    value = 3 * chance.pareto(tail, len(step))
    person = chance.integers(0, people, len(step))
    return ValuedEvents("minutes", step, person, _bins(chance, len(step), bins), value, length, bins)


VALUE_GENERATORS: dict[str, Callable[..., ValuedEvents]] = {"fares": fares, "stays": stays}


def _begun(length: int, level: int, people: int, bins: int, seed: int) -> tuple[np.random.Generator, Ints]:
    if min(length, level, people, bins) < 1:
        raise InputError("length, level, people and bins must be above 0")
    return np.random.default_rng(seed), np.arange(length)


def _bins(chance: np.random.Generator, events: int, bins: int) -> Ints:
    weights = 1 / np.arange(1, bins + 1)
    return chance.choice(bins, events, p=weights / weights.sum()) if bins > 1 else np.zeros(events, np.int64)
