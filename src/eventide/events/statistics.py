"""What is published of the events of a step: how many there are, of how many people, or what their values say.

A statistic turns the events of one step into whole numbers that are not negative, one or several for each bin, and says
how far one person can move all these numbers together: its sensitivity. Every noise scale follows from that, so a
mechanism needs to know nothing else of it. Where a bin has several numbers, or they are not what people want to read,
`tell` makes that of what was measured of them. Which of a person's events count depends on that person's events alone,
and on no order in which they came.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.events.cap_memory import CapMemory
from eventide.events.caps import Cap
from eventide.events.sum_tally import EventSums, Spread, UserSums
from eventide.events.tally import EventTally, Tally, UserTally
from eventide.events.timeline import Timeline
from eventide.events.value_edges import ValueEdges
from eventide.events.value_grid import ValueGrid
from eventide.privacy.guarantees import COUNTS, bound_of_step

SUM, MEAN, QUANTILES, SLOTS = "sum:", "mean:", "quantiles:", "people/"
NINE_IN_TEN = 2.303  # noise scales to either side hold so much of Laplace noise
DEVIATIONS = 1.645  # deviations to either side of a normal mean hold the same

Grid = ValueGrid | ValueEdges


class Told(NamedTuple):
    """What was measured of some numbers, or what it says: values, their noise scales, and intervals where known."""

    values: Floats
    scale: Floats
    low: Floats | None = None
    high: Floats | None = None

    def deviations(self) -> Floats:
        """The standard deviation of each: from the interval that a filter gave, taken for normal, or of the noise."""
        if self.low is None or self.high is None:
            return np.asarray(np.sqrt(2) * self.scale)
        return np.maximum(self.high - self.values, self.values - self.low) / DEVIATIONS

    def ends(self) -> tuple[Floats, Floats]:
        """Nine cases in ten: the interval that a filter gave, or that of the noise; nothing is below 0."""
        if self.low is not None and self.high is not None:
            return np.maximum(self.low, 0), np.maximum(self.high, 0)
        reach = NINE_IN_TEN * self.scale
        return np.maximum(self.values - reach, 0), np.maximum(self.values + reach, 0)


class Statistic(ABC):
    """Numbers for each bin of a step; `name` is what people write, `title` what they read above its numbers.

    `needs_users`: events without users do not have it. `grid` says how its values are read, where it has some, and
    `unit` what 1 in its numbers is worth. `takes` are the settings that it can be published with, of those that not
    every statistic can. `columns` is how many numbers a bin has; `direct` says that these are what is published.
    `adds_up_in_time`: the number of several steps together is the sum of theirs. `moved` is what its sensitivity is
    about, and `exchanged` says that a person moves that further by leaving one bin for another than by coming.
    """

    name: str
    title: str
    needs_users: ClassVar[bool] = False
    takes: ClassVar[frozenset[str]] = frozenset()
    adds_up_in_time: ClassVar[bool] = True
    moved: str = COUNTS
    exchanged: ClassVar[bool] = False
    grid: Grid | tuple[Grid, ...] | None = None
    columns: int = 1
    direct: bool = True

    @property
    def slots(self) -> tuple[str, ...]:
        """How long slots of several published steps are, where it is of such slots."""
        return ()

    @property
    def names(self) -> tuple[str, ...]:
        """What each of the numbers that are published of a bin is called."""
        return (self.name,)

    @property
    def unit(self) -> Fraction:
        """What 1 in its numbers is worth."""
        return self.grid.unit if isinstance(self.grid, ValueGrid) else Fraction(1)

    def described(self) -> dict[str, Any]:
        """What a store must find unchanged."""
        return {"statistic": self.name} | ({} if self.grid is None else {"between": str(self.grid)})

    def tell(self, found: Told) -> dict[str, Told]:
        """What is published of a measurement of its numbers, `(..., bins, columns)`: by name, `(..., bins)`."""
        unit = float(self.unit)
        return {self.name: Told(*(None if each is None else each[..., 0] * unit for each in found))}  # type: ignore[arg-type]

    def memory(self, cap: Cap | None, key: bytes, timeline: Timeline | None = None, most: int = 1) -> Any:
        """What remembers people from step to step: how much of a cap they have used; None where nothing has to."""
        return None if cap is None else CapMemory(cap, key)

    @abstractmethod
    def tally(self, size: int, most: int, key: bytes, *, users: bool) -> Tally:
        """What takes the events of an open step, of each user `most` of which count."""

    def sensitivity(self, most: int) -> int:
        """The most that all numbers of a step change together when one person's row is added or removed."""
        return most

    def added_by_event(self) -> int:
        """The most that one event adds to all numbers of a step together."""
        return self.sensitivity(1)

    def window_sensitivity(self, cap: Cap, window: int, most: int) -> int:
        """The most that they change over all steps and bins when one person's rows in a window do, under a cap."""
        return cap.window_sensitivity(window, most) * self.sensitivity(1)

    def for_bins(self, size: int) -> Statistic:
        """The same where it is known how many bins there are."""
        return self

    def beside_steps(self) -> Statistic:
        """The same where other statistics are published of every step."""
        return self

    def whole_slots(self, end: int, timeline: Timeline) -> int:
        """The first step from `end` on before which no slot of several steps is open."""
        return end

    def values_of(self, time: Ints, value: Array | None, timeline: Timeline) -> Array | None:
        """What is tallied of events besides user and bin: their values, where they have some."""
        return value

    def adds_up(self, most: int) -> bool:
        """Whether the number of several bins together is the sum of theirs."""
        return True

    def bound(self, most: int) -> str:
        """How far one person moves its numbers of a step, in words."""
        return bound_of_step(self.sensitivity(most), self.moved, self.unit, exchanged=self.exchanged)

    def assumptions(self, most: int) -> tuple[str, ...]:
        """What the guarantee has to say of it besides."""
        return ()

    def first_ones(self, number: int) -> str:
        """What of a person counts under a cap, with its verb."""
        return "the first event counts" if number == 1 else f"the first {number} events count"


class EventCount(Statistic):
    """How many events there are, of each person at most so many as count in a step."""

    name, title = "events", "counts"
    takes = frozenset({"cap", "levels", "queries"})

    def described(self) -> dict[str, Any]:
        """Nothing: it is what stores have always counted."""
        return {}

    def tally(self, size: int, most: int, key: bytes, *, users: bool) -> Tally:
        """With users a table of their events, without them counts."""
        return UserTally(size, most, key) if users else EventTally(size)


class PeopleCount(Statistic):
    """How many different people there are: each once in a bin however often, in at most so many bins as count.

    Private because: of a person's bins in a step at most `most` count, each by 1, so a row that is added or removed
    moves all bins together by at most `most`. Which bins count is decided by a keyed hash of the person, the step and
    the bin, so less room under a cap leaves the first of the same ones, as with events.
    """

    name, title = "people", "numbers of different people"
    needs_users = True
    takes = frozenset({"cap", "levels"})
    adds_up_in_time = False
    moved = "the numbers of different people"

    def tally(self, size: int, most: int, key: bytes, *, users: bool) -> Tally:
        """A table of users and bins in which a second event of the same user and bin changes nothing."""
        return UserTally(size, most, key, once=True)

    def adds_up(self, most: int) -> bool:
        """Only where a person is in one bin of a step, and so in one group of bins."""
        return most == 1

    def assumptions(self, most: int) -> tuple[str, ...]:
        """In how many bins somebody counts."""
        return (f"each person counts once in a bin of a step, however often they come, and {in_bins(most)}",)

    def first_ones(self, number: int) -> str:
        """A person's further events in the same bin and step use no room."""
        return "the first bin of a step counts" if number == 1 else f"the first {number} bins of steps count"


class OfValues(Statistic):
    """A statistic of the values of a column: `spread` says what an event with a value adds to its bin's numbers."""

    grid: Grid
    takes = frozenset({"cap"})

    @abstractmethod
    def spread(self, values: Ints) -> Spread:
        """Pairs of columns and what events with these values add there; each pair for every event."""

    def tally(self, size: int, most: int, key: bytes, *, users: bool) -> Tally:
        """With users a table of their values, without them sums."""
        if users:
            return UserSums(size, most, key, self.grid.largest, self.columns, self.spread)
        return EventSums(size, self.columns, self.spread)

    def hidden(self, times: Fraction) -> str:
        """How well values are hidden where it is known that events happened."""
        again = "with epsilon as well" if times == 1 else f"with {float(times):.4g} times epsilon"
        told = f"only {again}, so less well" if times > 1 else again
        return f"where it is known that somebody's events happened, their values are hidden {told}"

    def cut(self) -> str:
        """What the values are cut to."""
        grid = self.grid
        counted = f" and rounded to units of {float(grid.unit):g}" if isinstance(grid, ValueGrid) else ""
        return f"values of {grid.column} are cut to the range from {float(grid.low):g} to {float(grid.high):g}{counted}"


class ValueSum(OfValues):
    """The sum of a column, whose values are cut to a range and rounded to a grid, in units of that grid.

    Of a range that reaches below 0 the numbers of a bin are what values above 0 add up to, and what those below do
    without their sign; what is published is their difference. So every mechanism and filter sees numbers as of counts.

    Private because: of a person's values at most `most` count in a step, over all bins, and each adds at most `largest`
    to one number of its bin; so a row that is added or removed moves all numbers together by at most most x largest.
    Which events count does not depend on their values, and those of a person and bin stand in the order of their
    values: with other values in the same events no place in that order moves by more than the range is wide, so all
    numbers together by at most most x (highest - lowest). Under a cap less room leaves the first of the same events
    with the same values, so the events that differ are those of counts, and each moves a number by at most `largest`.
    """

    grid: ValueGrid

    def __init__(self, grid: ValueGrid) -> None:
        self.name, self.title, self.grid = f"{SUM}{grid.column}", f"sums of {grid.column}", grid
        self.moved = f"the {self.title}"
        self._signs = [sign for sign, there in ((1, grid.highest > 0), (-1, grid.lowest < 0)) if there]
        self.columns, self.direct = len(self._signs), self._signs == [1]

    def spread(self, values: Ints) -> Spread:
        """The size of a value, to the number of its sign."""
        below = (values < 0) if self.columns > 1 else np.zeros(len(values), np.bool_)
        return [(below.astype(np.int64), np.abs(values))]

    def sensitivity(self, most: int) -> int:
        """In units of the grid."""
        return most * self.grid.largest

    def tell(self, found: Told) -> dict[str, Told]:
        """What is above 0 less what is below; errors of both add up as those of independent ones do."""
        if self.direct:
            return super().tell(found)
        unit, signs = float(self.unit), np.array(self._signs)
        values = (found.values * signs).sum(axis=-1)
        scale = np.sqrt(np.square(found.scale).sum(axis=-1))
        low, high = found.ends()
        down = np.where(signs > 0, found.values - low, high - found.values)
        up = np.where(signs > 0, high - found.values, found.values - low)
        reach = [np.sqrt(np.square(np.maximum(each, 0)).sum(axis=-1)) for each in (down, up)]
        return {self.name: Told(values * unit, scale * unit, (values - reach[0]) * unit, (values + reach[1]) * unit)}

    def assumptions(self, most: int) -> tuple[str, ...]:
        """What a unit is, and how well values are hidden where it is known that events happened."""
        grid = self.grid
        return (self.cut(), self.hidden(Fraction(grid.highest - grid.lowest, grid.largest)))


def in_bins(most: int) -> str:
    """In how many bins a person counts."""
    return "in one bin only" if most == 1 else f"in at most {most} bins"


EVENTS = EventCount()
