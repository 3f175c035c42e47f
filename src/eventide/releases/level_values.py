"""What a release says of one level, or of one statistic besides the first: a number for each group or bin, in order.

Nothing here is raw. A long table has a row for each bin and then for each group, from the smallest level to the total,
and behind these one for each bin of every further statistic, of which the sliding window's histogram may be one: `Rows`
are their names, and `flat` puts a release in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from eventide.arrays import Floats
from eventide.events.bins import is_spare
from eventide.events.levels import BIN

Line = TypeVar("Line", bound=Any)
Groups = Mapping[str, Sequence[str]]
WINDOW = ("window_values", "window_scale", "window_low", "window_high")  # of a release, where there is one
EVENTS = "events"  # what is counted where nothing else is said


def statistics_of(name: str = EVENTS, *, windows: bool) -> tuple[str, ...]:
    """The names of what is published of every bin: a statistic of each step, and its sum over a sliding window.

    >>> statistics_of(windows=True)
    ('events', 'window:events')
    """
    return (name, f"window:{name}") if windows else (name,)


def is_window(statistic: str) -> bool:
    """Whether a statistic is that of a sliding window."""
    return statistic.startswith("window:")


def either_way(statistics: Sequence[str]) -> list[tuple[str, ...]]:
    """These, and the same with or without sliding windows: what a file that was begun may have."""
    if not is_window(statistics[-1]) and len(statistics) > 1:
        return [tuple(statistics)]
    return [tuple(statistics), statistics_of(statistics[0], windows=len(statistics) == 1)]


@dataclass(frozen=True, slots=True)
class LevelValues:
    """The values of a level, each the sum of the values of the group's bins, exactly; or those of a statistic.

    Parameters
    ----------
    values
        The estimates of the groups' counts, or of what the statistic is of each bin.
    scale
        Noise scale of the last measurement of this level or statistic itself; infinite before the first. The values
        of levels are made to add up afterwards, with what other levels measured, and their error is usually smaller.
    fresh
        Whether this level or statistic was measured at this step.
    low, high
        The ends of an interval around the values, where it is known.
    """

    values: Floats
    scale: Floats
    fresh: Any = False  # bool, or an array of them with replicas
    low: Floats | None = None
    high: Floats | None = None

    def replica(self, number: int) -> LevelValues:
        """Those of one replica, without the leading axis."""
        plain = {f.name: None if (value := getattr(self, f.name)) is None else value[number] for f in fields(self)}
        return LevelValues(**plain)  # type: ignore[arg-type]

    def first(self) -> LevelValues:
        """Those of the first replica of one release."""
        return replace(alone := self.replica(0), fresh=bool(alone.fresh))


def stacked(told: Sequence[LevelValues]) -> LevelValues:
    """Those of several steps as arrays with an axis for steps, before that of groups and behind that of replicas."""
    axis = told[0].values.ndim - 1

    def joined(name: str) -> Any:
        parts = [getattr(each, name) for each in told]
        return None if parts[0] is None else np.stack(parts, axis=axis)

    return LevelValues(**{f.name: joined(f.name) for f in fields(LevelValues)})


class Rows(NamedTuple):
    """The names of a release's rows.

    `levels` says to which level each belongs, `statistics` of which statistic it is; None where there is one only.
    """

    names: tuple[str, ...]
    levels: tuple[str, ...] | None = None
    statistics: tuple[str, ...] | None = None

    @classmethod
    def of(cls, bins: Sequence[str], groups: Groups | None = None, statistics: Sequence[str] = (EVENTS,)) -> Rows:
        """Those of some bins, of the groups of each level, and of the bins again for each further statistic.

        >>> Rows.of(["a", "b"], {"total": ["total"]})
        Rows(names=('a', 'b', 'total'), levels=('bin', 'bin', 'total'), statistics=None)
        >>> Rows.of(["a"], statistics=("events", "window:events")).columns
        {'bin': ('a', 'a'), 'statistic': ('events', 'window:events')}
        """
        first, *further = statistics
        every = {BIN: bins, **(groups or {})}
        named = [(level, name, first) for level, names in every.items() for name in names]
        named += [(BIN, name, statistic) for statistic in further for name in bins]
        levels, names, told = zip(*named, strict=True)
        return cls(names, levels if groups else None, told if further else None)

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of a long table that name its rows, in their order."""
        columns = {"level": self.levels, "bin": self.names, "statistic": self.statistics}
        return {name: column for name, column in columns.items() if column is not None}

    def called(self, named: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """The same columns where spare bins have got other names."""
        return self.columns | ({"bin": tuple(named.get(name, name) for name in self.names)} if named else {})

    def begin_with(self, found: Sequence[tuple[str, ...]]) -> bool:
        """Whether the first rows are named so; a spare bin may have got any name."""
        ours = zip(*self.columns.values(), strict=True)
        return len(found) <= len(self.names) and all(
            row == own or self._waits(row, own) for row, own in zip(found, ours, strict=False)
        )

    def are(self, found: Iterable[tuple[str, ...]]) -> bool:
        """Whether all rows are named so, in any order; the same holds for spare bins."""
        there, ours = set(found), zip(*self.columns.values(), strict=True)
        certain = {own for own in ours if not is_spare(own[self._place])}
        return certain <= there and len(there) == len(self.names)

    @property
    def _place(self) -> int:
        """Which column has the names of bins."""
        return list(self.columns).index("bin")

    def _waits(self, row: tuple[str, ...], own: tuple[str, ...]) -> bool:
        at = self._place
        return is_spare(own[at]) and (*row[:at], *row[at + 1 :]) == (*own[:at], *own[at + 1 :])


class _Window(NamedTuple):
    """The histogram of a sliding window as one more part of a release; unknown where there is none."""

    values: Any
    scale: Any
    low: Any
    high: Any


def flat(release: Line, rows: Rows) -> Line:
    """A release of bins and levels as one of rows; what it does not know, as levels before there were any, is NaN."""
    if rows.levels is None and rows.statistics is None:
        return release
    every = [release, *(release.levels or {}).values()] if rows.levels else [release]
    if rows.statistics is not None and release.window_values is not None:
        every.append(_Window(*(getattr(release, name) for name in WINDOW)))
    if rows.statistics is not None:
        every += (getattr(release, "statistics", None) or {}).values()

    def joined(name: str) -> Floats:
        known = [(each.values.shape[-1], getattr(each, name)) for each in every]
        sizes = [*(size for size, _ in known), len(rows.names) - sum(size for size, _ in known)]
        steps = release.values.shape[:-1]
        parts = [part for _, part in known] + [None]
        filled = [
            np.full((*steps, size), np.nan) if part is None else part for size, part in zip(sizes, parts, strict=True)
        ]
        return np.concatenate(filled, axis=-1)

    known = any(each.low is not None for each in every)
    ends = {"low": joined("low"), "high": joined("high")} if known else {}
    none = dict.fromkeys(WINDOW)
    none |= dict.fromkeys(("statistic", "statistics")) if hasattr(release, "statistics") else {}
    return replace(release, values=joined("values"), scale=joined("scale"), levels=None, **ends, **none)


def unflat(release: Line, bins: Sequence[str], groups: Groups | None, rows: Rows) -> Line:
    """A release of rows as one of bins, levels, further statistics and a sliding window: what `flat` was given."""
    named, *further = dict.fromkeys(rows.statistics or ("",))
    sizes = [len(bins), *map(len, (groups or {}).values()), *[len(bins)] * len(further)]
    ends = np.cumsum(sizes[:-1])
    parts = {name: np.split(getattr(release, name), ends) for name in ("values", "scale", "low", "high")}
    first, *rest = ({name: cells[place] for name, cells in parts.items()} for place in range(len(ends) + 1))
    of_statistics = dict(zip(further, rest[len(groups or ()) :], strict=True))
    rest = rest[: len(groups or ())]
    own: dict[str, Any] = dict(first)
    for name, told in of_statistics.items():
        if not is_window(name):
            own.setdefault("statistics", {})[name] = LevelValues(fresh=release.fresh, **told)
            own["statistic"] = named
        elif not np.isnan(told["values"]).all():
            known = {name: each for name, each in told.items() if name == "scale" or not np.isnan(each).all()}
            own |= {f"window_{name}": each for name, each in known.items()}
    levels = {level: LevelValues(fresh=release.fresh, **each) for level, each in zip(groups or (), rest, strict=True)}
    return replace(release, levels=levels or None, **own)
