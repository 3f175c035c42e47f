"""What is published of the events of a step: how many there are, of how many people, or what their values say.

A statistic turns the events of one step into whole numbers that are not negative, one or several for each bin, and says
how far one person can move all these numbers together: its sensitivity. Every noise scale follows from that, so a
mechanism needs to know nothing else of it. Where a bin has several numbers, or they are not what people want to read,
`tell` makes that of what was measured of them. Which of a person's events count depends on that person's events alone,
and on no order in which they came.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.errors import InputError
from eventide.events.cap_memory import CapMemory
from eventide.events.caps import Cap
from eventide.events.sum_tally import EventSums, Spread, UserSums
from eventide.events.tally import EventTally, Tally, UserTally
from eventide.events.timeline import Timeline
from eventide.events.value_edges import ValueEdges, parse_edges
from eventide.events.value_grid import ValueGrid, parse_between

SUM, MEAN, QUANTILES, SLOTS = "sum:", "mean:", "quantiles:", "people/"
NINE_IN_TEN = 2.303  # noise scales to either side hold so much of Laplace noise
DEVIATIONS = 1.645  # deviations to either side of a normal mean hold the same

WHICH_EDGES = (
    "choose them from what is public, such as tariffs or the limits of a form, never from these data; if nothing is, "
    "publish first with edges that double (0,1,2,4,8,16,...), which is charged, and take finer ones from its releases"
)

Grid = ValueGrid | ValueEdges
Written = str | Sequence[str]


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
    `adds_up_in_time`: the number of several steps together is the sum of theirs.
    """

    name: str
    title: str
    needs_users: ClassVar[bool] = False
    takes: ClassVar[frozenset[str]] = frozenset()
    adds_up_in_time: ClassVar[bool] = True
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
        again = "epsilon as well" if times == 1 else f"{float(times):.4g} times epsilon"
        return f"which values somebody's events had, if it is known that they happened, is hidden with {again}"

    def cut(self) -> str:
        """What the values are cut to."""
        grid = self.grid
        counted = f" and counted in units of {float(grid.unit):g}" if isinstance(grid, ValueGrid) else ""
        return f"whose values are cut to {float(grid.low):g} to {float(grid.high):g}{counted}"


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
        hidden = self.hidden(Fraction(grid.highest - grid.lowest, grid.largest))
        return (f"what is published are sums of {grid.column}, {self.cut()}; {hidden}",)


MEANT = {"median": QUANTILES, "quantile": QUANTILES, "average": MEAN, "avg": MEAN}  # what others call them
EVENTS = EventCount()
STATISTICS: dict[str, Statistic] = {each.name: each for each in (EVENTS, PeopleCount())}


def parse_statistic(
    text: Written, between: Written = "", edges: Written = "", quantiles: Sequence[float] = ()
) -> Statistic:
    """The statistic of this name, or of these names; `between` and `edges` are of the columns it is about.

    >>> parse_statistic("people").sensitivity(2), parse_statistic("sum:fare", "fare=0,120,0.5").sensitivity(2)
    (2, 480)
    """
    from eventide.events.several_statistics import SeveralStatistics

    names = list(_each(text))
    grids = [parse_between(each) for each in _each(between)]
    cuts = [parse_edges(each) for each in _each(edges)]
    if len(names) > 1 and all(name.startswith(SLOTS) for name in names):
        raise InputError(
            "all these statistics are of slots; name one that every step has as well, such as people, or publish one "
            "alone"
        )
    if len(set(names)) < len(names):
        raise InputError("a statistic is named twice; name each once")
    for name in names:
        _refuse_unknown(name)
    _refuse_unused(names, grids, cuts, quantiles)
    names.sort(key=lambda name: name.startswith(SLOTS))  # the first has a number at every step
    made = [_one(name, grids, cuts, quantiles) for name in names or [EVENTS.name]]
    return made[0] if len(made) == 1 else SeveralStatistics(made)


def with_step(written: Written, step: str) -> Written:
    """The same names, where those of slots beside other statistics say how long a step is.

    >>> with_step(["events", "people/1d"], "1h"), with_step("people/1d", "1h")
    (('events', 'people/1d/1h'), 'people/1d')
    """
    if isinstance(written, str):
        return written
    return tuple(f"{name}/{step}" if _lacks_step(name) else name for name in written)


def _lacks_step(name: str) -> bool:
    return name.startswith(SLOTS) and "/" not in name.removeprefix(SLOTS)


def statistic_of(described: Mapping[str, Any]) -> Statistic:
    """The statistic that a store describes in what may never change of it."""
    told = {name: described.get(name, "") for name in ("between", "edges")}
    quantiles = "".join(_each(described.get("quantiles", "")))
    parts = [float(each) for each in quantiles.split(",")] if quantiles else ()
    return parse_statistic(described.get("statistic", EVENTS.name), **told, quantiles=parts)


def _one(name: str, grids: list[ValueGrid], cuts: list[ValueEdges], quantiles: Sequence[float]) -> Statistic:
    from eventide.events.means import ValueMean
    from eventide.events.quantiles import ValueQuantiles

    kind, _, column = name.partition(":")
    if name.startswith(SLOTS):
        return _people_of_slots(name)
    if name in STATISTICS:
        return STATISTICS[name]
    if f"{kind}:" == QUANTILES:
        return ValueQuantiles(_of_column(name, column, cuts, "edges", f"{column}=0,5,10,20"), quantiles)
    grid = _of_column(name, column, grids, "between", f"{column}=0,100")
    return (ValueSum if f"{kind}:" == SUM else ValueMean)(grid)


def _refuse_unknown(name: str) -> None:
    kind, _, column = name.partition(":")
    if not (name in STATISTICS or name.startswith(SLOTS) or (f"{kind}:" in (SUM, MEAN, QUANTILES) and column)):
        known = f"{', '.join(STATISTICS)}, {SLOTS}DURATION, {SUM}COLUMN, {MEAN}COLUMN or {QUANTILES}COLUMN"
        meant = f"did you mean {MEANT[kind]}{column}?" if kind in MEANT and column else f"choose {known}"
        raise InputError(f"{name!r} is no statistic; {meant}")


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


def _of_column(name: str, column: str, given: list[Any], setting: str, example: str) -> Any:
    found = [each for each in given if each.column == column]
    if not found and setting == "edges":
        told = f"{name} needs the buckets of {column}; give them with `edges`, such as {example}"
        raise InputError(f"{told}; {WHICH_EDGES}")
    if not found:
        raise InputError(f"{name} needs the range of {column}; give it with `{setting}`, such as {example}")
    if len(found) > 1:
        raise InputError(f"`{setting}` names {column} twice; give each column once")
    return found[0]


def _refuse_unused(
    names: list[str], grids: list[ValueGrid], cuts: list[ValueEdges], quantiles: Sequence[float]
) -> None:
    """Refuse a range or buckets that no statistic is about: surely something else was meant."""
    asked = {
        kind: {name.removeprefix(kind) for name in names if name.startswith(kind)} for kind in (SUM, MEAN, QUANTILES)
    }
    for each in grids:
        if each.column not in asked[SUM] | asked[MEAN]:
            raise InputError(
                f"`between` is about {each.column}, and {', '.join(names) or EVENTS.name} is not; give the range of "
                "what is summed"
            )
    for cut in cuts:
        if cut.column not in asked[QUANTILES]:
            raise InputError(f"`edges` are about {cut.column}, and no quantiles of it are asked for; leave them out")
    if quantiles and not asked[QUANTILES]:
        raise InputError("`quantiles` says which ones of a column; name the column as well, as quantiles:COLUMN")


def _each(written: Written) -> Sequence[str]:
    """What was written once or several times."""
    return ([written] if written else []) if isinstance(written, str) else written
