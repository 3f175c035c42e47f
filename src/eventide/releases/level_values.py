"""What a release says of one level, or of one statistic besides the first: a number for each group or bin, in order.

Nothing here is raw. A long table has a row for each bin and then for each group, from the smallest level to the total,
or for each bin of every further statistic: `Rows` are their names, and `flat` puts a release in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from eventide.arrays import Floats
from eventide.events.levels import BIN

Line = TypeVar("Line", bound=Any)
Groups = Mapping[str, Sequence[str]]
"""What is released besides the bins: the groups of each level, or as `OfStatistics` the bins of other statistics."""


class OfStatistics(dict[str, Sequence[str]]):
    """The bins of each statistic besides the first, whose name is `first`."""

    def __init__(self, first: str, others: Groups) -> None:
        super().__init__(others)
        self.first = first


@dataclass(frozen=True, slots=True)
class LevelValues:
    """The values of a level, each the sum of the values of the group's bins, exactly; or those of a statistic.

    Parameters
    ----------
    values
        The estimates of the groups' counts, or of what the statistic is of each bin.
    scale
        Noise scale of its own measurement behind each value; infinite before the first.
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
    """The names of a release's rows. `levels` says to which level each belongs, `statistics` to which statistic.

    Either is None where there is one only.
    """

    names: tuple[str, ...]
    levels: tuple[str, ...] | None = None
    statistics: tuple[str, ...] | None = None

    @classmethod
    def of(cls, bins: Sequence[str], groups: Groups | None = None) -> Rows:
        """Those of some bins, and of the groups of each level or of other statistics.

        >>> Rows.of(["a", "b"], {"total": ["total"]})
        Rows(names=('a', 'b', 'total'), levels=('bin', 'bin', 'total'), statistics=None)
        >>> Rows.of(["a"], OfStatistics("people", {"mean:fare": ["a"]})).columns()
        {'bin': ('a', 'a'), 'statistic': ('people', 'mean:fare')}
        """
        if not groups:
            return cls(tuple(bins))
        of_statistics = isinstance(groups, OfStatistics)
        every = {groups.first if isinstance(groups, OfStatistics) else BIN: bins, **groups}
        names = tuple(name for names in every.values() for name in names)
        parts = tuple(part for part, names in every.items() for _ in names)
        return cls(names, None, parts) if of_statistics else cls(names, parts)

    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of a long table that say which row is which, in their order."""
        told = {"level": self.levels, "bin": self.names, "statistic": self.statistics}
        return {name: cells for name, cells in told.items() if cells is not None}


def flat(release: Line, rows: Rows) -> Line:
    """A release of bins and levels, or of statistics, as one of rows; what it does not know is NaN."""
    if rows.levels is None and rows.statistics is None:
        return release
    every = [release, *((release.levels if rows.levels else release.statistics) or {}).values()]

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
    beside = {"levels": None} if rows.levels else {"statistic": None, "statistics": None}
    return replace(release, values=joined("values"), scale=joined("scale"), **beside, **ends)


def unflat(release: Line, bins: Sequence[str], groups: Groups) -> Line:
    """A release of rows as one of bins and levels, or of statistics: what `flat` was given."""
    ends = np.cumsum([len(bins), *map(len, groups.values())])[:-1]
    parts = {name: np.split(getattr(release, name), ends) for name in ("values", "scale", "low", "high")}
    first, *rest = ({name: cells[place] for name, cells in parts.items()} for place in range(len(groups) + 1))
    told = {name: LevelValues(fresh=release.fresh, **each) for name, each in zip(groups, rest, strict=True)}
    if isinstance(groups, OfStatistics):
        return replace(release, statistic=groups.first, statistics=told, **first)
    return replace(release, levels=told, **first)
