"""What a release says of one level: a number for each of its groups, in their order. Nothing here is raw.

A long table has a row for each bin and then for each group, from the smallest level to the total: `Rows` are their
names, and `flat` puts a release in their order.
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


@dataclass(frozen=True, slots=True)
class LevelValues:
    """The values of a level; each is the sum of the values of the group's bins, exactly.

    Parameters
    ----------
    values
        The estimates of the groups' counts.
    scale
        Noise scale of the level's own measurement behind each value; infinite before the first.
    fresh
        Whether this level was measured at this step.
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
    """The names of a release's rows; `levels` says to which level each belongs, and is None where there is one only."""

    names: tuple[str, ...]
    levels: tuple[str, ...] | None = None

    @classmethod
    def of(cls, bins: Sequence[str], groups: Groups | None = None) -> Rows:
        """Those of some bins, and of the groups of each level.

        >>> Rows.of(["a", "b"], {"total": ["total"]})
        Rows(names=('a', 'b', 'total'), levels=('bin', 'bin', 'total'))
        """
        if not groups:
            return cls(tuple(bins))
        every = {BIN: bins, **groups}
        levels = tuple(level for level, names in every.items() for _ in names)
        return cls(tuple(name for names in every.values() for name in names), levels)

    def called(self, named: Mapping[str, str]) -> tuple[str, ...]:
        """The names where spare bins have got other ones."""
        return tuple(named.get(name, name) for name in self.names) if named else self.names

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """What tells each row from the others."""
        return list(zip(self.names) if self.levels is None else zip(self.levels, self.names, strict=True))

    def begin_with(self, found: Sequence[tuple[str, ...]]) -> bool:
        """Whether these are the keys of the first rows; a spare bin may have got any name."""
        return len(found) <= len(self.names) and all(
            row == own or (is_spare(own[-1]) and row[:-1] == own[:-1])
            for row, own in zip(found, self.keys, strict=False)
        )

    def are(self, found: Iterable[tuple[str, ...]]) -> bool:
        """Whether these are the keys of all rows, in any order; the same holds for spare bins."""
        there, ours = set(found), {key for key in self.keys if not is_spare(key[-1])}
        return ours <= there and len(there) == len(self.names)


def flat(release: Line, rows: Rows) -> Line:
    """A release of bins and levels as one of rows; what it does not know, as levels before there were any, is NaN."""
    if rows.levels is None:
        return release
    every = [release, *(release.levels or {}).values()]

    def joined(name: str) -> Floats:
        known = [(each.values.shape[-1], getattr(each, name)) for each in every]
        sizes = [*(size for size, _ in known), len(rows.names) - sum(size for size, _ in known)]
        steps = release.values.shape[:-1]
        parts = [part for _, part in known] + [None]
        filled = [
            np.full((*steps, size), np.nan) if part is None else part for size, part in zip(sizes, parts, strict=True)
        ]
        return np.concatenate(filled, axis=-1)

    ends = {} if release.low is None else {"low": joined("low"), "high": joined("high")}
    return replace(release, values=joined("values"), scale=joined("scale"), levels=None, **ends)


def unflat(release: Line, bins: Sequence[str], groups: Groups) -> Line:
    """A release of rows as one of bins and levels: what `flat` was given."""
    ends = np.cumsum([len(bins), *map(len, groups.values())])[:-1]
    parts = {name: np.split(getattr(release, name), ends) for name in ("values", "scale", "low", "high")}
    first, *rest = ({name: cells[place] for name, cells in parts.items()} for place in range(len(groups) + 1))
    levels = {level: LevelValues(fresh=release.fresh, **each) for level, each in zip(groups, rest, strict=True)}
    return replace(release, levels=levels, **first)
