"""What is published of the events of a step: how many there are, of how many different people, or a sum of values.

A statistic turns the events of one step into a whole number for each bin, and says how far one person can move all
these numbers together: its sensitivity. Every noise scale follows from that, so a mechanism needs to know nothing else
of it. Which of a person's events count depends on that person's events alone, and on no order in which they came.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar

from eventide.arrays import Array, Ints
from eventide.errors import InputError
from eventide.events.caps import Cap
from eventide.events.sum_tally import EventSums, UserSums
from eventide.events.tally import EventTally, Tally, UserTally
from eventide.events.timeline import Timeline
from eventide.events.value_grid import ValueGrid, parse_between

NOT_YET = ("mean:", "quantiles:")
SUM, SLOTS = "sum:", "people/"


class Statistic(ABC):
    """One number for each bin of a step; `name` is what people write, `title` what they read above its numbers.

    `needs_users`: events without users do not have it. `grid` says how its values are read, where it has some, and
    `unit` what 1 in its numbers is worth. `takes` are the settings that it can be published with, of those that not
    every statistic can.
    """

    name: str
    title: str
    needs_users: ClassVar[bool] = False
    takes: ClassVar[frozenset[str]] = frozenset()
    grid: ValueGrid | None = None

    @property
    def unit(self) -> Fraction:
        """What 1 in its numbers is worth."""
        return Fraction(1) if self.grid is None else self.grid.unit

    def described(self) -> dict[str, str]:
        """What a store must find unchanged."""
        return {"statistic": self.name} | ({} if self.grid is None else {"between": str(self.grid)})

    @abstractmethod
    def tally(self, size: int, most: int, key: bytes, *, users: bool) -> Tally:
        """What takes the events of an open step, of each user `most` of which count."""

    def sensitivity(self, most: int) -> int:
        """The most that all numbers of a step change together when one person's row is added or removed."""
        return most

    def window_sensitivity(self, cap: Cap, window: int, most: int) -> int:
        """The most that they change over all steps and bins when one person's rows in a window do, under a cap."""
        return cap.window_sensitivity(window, most) * self.sensitivity(1)

    def for_bins(self, size: int) -> Statistic:
        """The same where it is known how many bins there are."""
        return self

    def values_of(self, time: Ints, value: Array | None, timeline: Timeline) -> Array | None:
        """What is tallied of events besides user and bin: their values, where they have some."""
        return value

    def adds_up(self, most: int) -> bool:
        """Whether the number of several bins together is the sum of theirs."""
        return True

    def assumptions(self, most: int) -> tuple[str, ...]:
        """What the guarantee has to say of it."""
        return ()

    def first_ones(self, number: int) -> str:
        """What of a person counts under a cap, with its verb."""
        return "the first event counts" if number == 1 else f"the first {number} events count"


class EventCount(Statistic):
    """How many events there are, of each person at most so many as count in a step."""

    name, title = "events", "counts"
    takes = frozenset({"cap", "levels", "queries"})

    def described(self) -> dict[str, str]:
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

    def tally(self, size: int, most: int, key: bytes, *, users: bool) -> Tally:
        """A table of users and bins in which a second event of the same user and bin changes nothing."""
        return UserTally(size, most, key, once=True)

    def adds_up(self, most: int) -> bool:
        """Only where a person is in one bin of a step, and so in one group of bins."""
        return most == 1

    def assumptions(self, most: int) -> tuple[str, ...]:
        """In how many bins somebody counts."""
        bins = "in one bin only" if most == 1 else f"in at most {most} bins"
        return (f"what is counted are different people: each once in a bin of a step, and {bins}",)

    def first_ones(self, number: int) -> str:
        """A person's further events in the same bin and step use no room."""
        return "the first bin of a step counts" if number == 1 else f"the first {number} bins of steps count"


class ValueSum(Statistic):
    """The sum of a column, whose values are cut to a range and rounded to a grid, in units of that grid.

    Private because: of a person's values at most `most` count in a step, over all bins, and each lies within `largest`
    of 0; so a row that is added or removed moves all sums together by at most most x largest. Which events count does
    not depend on their values, and those of a person and bin stand in the order of their values: with other values in
    the same events no place in that order moves by more than the range is wide, so all sums together by at most
    most x (highest - lowest). Under a cap less room leaves the first of the same events with the same values, so the
    events that differ are those of counts, and each moves a sum by at most `largest`.
    """

    takes = frozenset({"cap"})

    def __init__(self, grid: ValueGrid) -> None:
        self.name, self.title, self.grid = f"{SUM}{grid.column}", f"sums of {grid.column}", grid

    def tally(self, size: int, most: int, key: bytes, *, users: bool) -> Tally:
        """With users a table of their values, without them sums."""
        assert self.grid is not None
        return UserSums(size, most, key, self.grid.largest) if users else EventSums(size)

    def sensitivity(self, most: int) -> int:
        """In units of the grid."""
        assert self.grid is not None
        return most * self.grid.largest

    def assumptions(self, most: int) -> tuple[str, ...]:
        """What a unit is, and how well values are hidden where it is known that events happened."""
        assert self.grid is not None
        grid = self.grid
        times = Fraction(grid.highest - grid.lowest, grid.largest)
        again = "epsilon as well" if times == 1 else f"{float(times):.4g} times epsilon"
        return (
            f"what is published are sums of {grid.column}, whose values are cut to {float(grid.low):g} to "
            f"{float(grid.high):g} and counted in units of {float(grid.unit):g}; which values somebody's events had, "
            f"if it is known that they happened, is hidden with {again}",
        )


EVENTS = EventCount()
STATISTICS: dict[str, Statistic] = {each.name: each for each in (EVENTS, PeopleCount())}


def parse_statistic(text: str, between: str = "") -> Statistic:
    """The statistic of this name; `between` is the range of its column, if it has one.

    >>> parse_statistic("people").sensitivity(2), parse_statistic("sum:fare", "fare=0,120,0.5").sensitivity(2)
    (2, 480)
    """
    grid = parse_between(between) if between else None
    column = text.partition(":")[2]
    known = f"choose {', '.join(STATISTICS)}, {SLOTS}DURATION or {SUM}COLUMN"
    if text.startswith(SLOTS):
        return _people_of_slots(text)
    if text.startswith(NOT_YET):
        raise InputError(f"{text!r} cannot be published yet; {known}")
    if text not in STATISTICS and not (text.startswith(SUM) and column):
        raise InputError(f"{text!r} is no statistic; {known}")
    if column and grid is None:
        raise InputError(f"{text} needs the range of {column}; give it with `between`, such as {column}=0,100")
    if grid is not None and grid.column != column:
        raise InputError(f"`between` is about {grid.column}, and {text} is not; give the range of what is summed")
    return STATISTICS[text] if grid is None else ValueSum(grid)


def _people_of_slots(text: str) -> Statistic:
    """People of a slot, as people/SLOT/STEP; a stream knows its step and writes it there."""
    from eventide.events.slots import SlotPeople

    slot, _, step = text.removeprefix(SLOTS).partition("/")
    if not step:
        raise InputError(
            f"{text} needs the length of a step and a window in such steps; publish it with ev.publish, or make feed "
            "and mechanism with a StreamSpec"
        )
    return SlotPeople(slot, step)
