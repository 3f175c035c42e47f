"""Levels: which district, ward or hospital each bin belongs to, from small groups to large ones.

A file of levels is a CSV whose first column names the bins and whose further columns name the groups that each bin
belongs to, a level for each column. Every bin is in one group of each level, and the total of all bins is always there.
Groups are public knowledge, as bins are.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eventide.arrays import Ints
from eventide.errors import InputError, unknown
from eventide.events.bins import SPARE, is_spare

TOTAL = "total"
BIN = "bin"
MOST_GROUPS = 2_000  # of all levels together: adding up solves as many equations at every step


class Levels:
    """The groups of each level, for bins in a certain order.

    Parameters
    ----------
    groups
        For each level, from small groups to large ones, the group of every bin in the order of the bins; or a mapping
        from bins to groups, with `bins`.
    bins
        The names of the bins in their order.

    >>> levels = Levels({"district": ["north", "north", "south"]}, ["a", "b", "c"])
    >>> levels.names, levels.groups["district"], levels.labels["district"].tolist()
    (('district', 'total'), ('north', 'south'), [0, 0, 1])
    """

    def __init__(self, groups: Mapping[str, Sequence[str] | Mapping[str, str]], bins: Sequence[str]) -> None:
        self.bins = tuple(bins)
        given = {str(level): _in_order(str(level), each, self.bins) for level, each in groups.items()}
        named = dict(sorted(given.items(), key=lambda each: -len(set(each[1]))))  # from many groups to few
        for level in named:
            if level in (TOTAL, BIN) or not level:
                raise InputError(f"a level cannot be named {level!r}; choose another name")
        named[TOTAL] = (TOTAL,) * len(self.bins)
        self.groups = {level: tuple(dict.fromkeys(each)) for level, each in named.items()}
        places = {level: {name: place for place, name in enumerate(each)} for level, each in self.groups.items()}
        self.labels: dict[str, Ints] = {
            level: np.array([places[level][name] for name in each], dtype=np.int64) for level, each in named.items()
        }
        self._refuse_repeated()

    @classmethod
    def of(cls, given: Any, bins: Sequence[str]) -> Levels:
        """The levels that were given: as they are, as a mapping, as `described` has them, or as the path of a file."""
        if isinstance(given, Levels):
            return given if given.bins == tuple(bins) else cls(given.by_bin(), bins)
        if isinstance(given, str | Path):
            return cls(read_levels(Path(given)), bins)
        if isinstance(given, Mapping) or (isinstance(given, list) and all(map(_is_pair, given))):
            return cls(dict(given), bins)
        raise InputError(
            "levels are the path of a CSV file, or for each level the group of every bin, such as "
            "{'district': ['north', 'north', 'south']}"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The levels above the bins, from small groups to large ones; the total is the last."""
        return tuple(self.groups)

    def by_bin(self) -> dict[str, dict[str, str]]:
        """For each level but the total, the group of each bin."""
        return {level: dict(zip(self.bins, each, strict=True)) for level, each in self.described()}

    def described(self) -> list[list[Any]]:
        """Each level but the total with the group of every bin, as pairs, so that JSON keeps their order."""
        return [
            [level, [self.groups[level][place] for place in self.labels[level].tolist()]]
            for level in self.names
            if level != TOTAL
        ]

    def members(self) -> dict[tuple[str, str], list[str]]:
        """The bins of each group, by level and group."""
        found: dict[tuple[str, str], list[str]] = {}
        for level, groups in self.groups.items():
            for name, place in zip(self.bins, self.labels[level].tolist(), strict=True):
                found.setdefault((level, groups[place]), []).append(name)
        return found

    def digest(self) -> str:
        """A mark of the groups that all bins are in."""
        return hashlib.sha256(json.dumps(self.described()).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Levels) and (self.bins, self.described()) == (other.bins, other.described())

    def __hash__(self) -> int:
        return hash((self.bins, self.names))

    def __repr__(self) -> str:
        return f"Levels({', '.join(f'{len(groups)} x {level}' for level, groups in self.groups.items())})"

    def _refuse_repeated(self) -> None:
        """Refuse a level that says nothing new: it would cost budget all the same."""
        seen = {self._division(np.arange(len(self.bins))): "the bins themselves"}
        for level in reversed(self.names):
            division = self._division(self.labels[level])
            if division in seen:
                raise InputError(
                    f"the groups of level {level!r} are those of {seen[division]}, which are there anyway; leave it out"
                )
            seen[division] = "the total" if level == TOTAL else f"level {level!r}"
        groups = sum(map(len, self.groups.values()))
        if groups > MOST_GROUPS:
            raise InputError(f"the levels have {groups:,} groups in all; give at most {MOST_GROUPS:,}")

    @staticmethod
    def _division(labels: Ints) -> tuple[int, ...]:
        """The same for labels that divide the bins in the same way."""
        return tuple(np.unique(labels, return_index=True)[1][np.unique(labels, return_inverse=True)[1]].tolist())


def read_levels(path: Path) -> dict[str, dict[str, str]]:
    """The levels in a CSV file: for each, the group of every bin that the file names."""
    header, *rows = csv_rows(path)
    return levels_of_rows(header, rows, path.name, "line", 2)


def levels_of_rows(
    header: Sequence[str], rows: Sequence[Sequence[str]], place: str, row_name: str, first: int
) -> dict[str, dict[str, str]]:
    """The levels in rows of cells, the first of which is called `row_name` so and so."""
    if len(set(header)) < len(header) or not all(header):
        raise InputError(f"{place} needs a first line such as bin,district,city: the bins, then a name for each level")
    found: dict[str, dict[str, str]] = {level: {} for level in header[1:]}
    seen = set[str]()
    for number, row in enumerate(rows, start=first):
        if len(row) != len(header) or not all(row):
            raise InputError(
                f"{place}: {row_name} {number} must name a bin and its group of each level; fill all cells"
            )
        if row[0] in seen:
            which = f"the bin {row[0]!r}" if row_name == "line" else "a bin"  # of a frame perhaps somebody's event
            raise InputError(f"{place}: {row_name} {number} names {which} again; a bin is in one group of each level")
        seen.add(row[0])
        for level, group in zip(header[1:], row[1:], strict=True):
            found[level][row[0]] = group
    if not rows:
        raise InputError(f"{place} names no bin; write a line for each")
    return found


def bins_in(path: Path) -> tuple[str, ...]:
    """The bins that a file of levels names, in its order."""
    read_levels(path)
    return tuple(row[0] for row in csv_rows(path)[1:])


def with_spare_groups(given: Any, bins: Sequence[str]) -> Any:
    """Levels in which spare bins that are in no group of a level are in one of their own."""
    if isinstance(given, Levels):
        given = given.by_bin()
    if not isinstance(given, Mapping | list):
        return given
    spares = [name for name in bins if is_spare(name)]
    found: dict[str, Any] = {}
    for level, groups in dict(given).items():
        if isinstance(groups, Mapping):
            found[level] = {**dict.fromkeys(spares, SPARE), **groups}
        else:
            found[level] = [*groups, *[SPARE] * (len(bins) - len(groups))]
    return found


def csv_rows(path: Path) -> list[list[str]]:
    """The lines of a CSV file that are not empty, their cells without outer blanks."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"cannot read {path}: {problem}; give a CSV file of bins and their groups") from None
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines) if any(map(str.strip, row))]
    if not rows:
        raise InputError(f"{path} is empty; give a CSV file of bins and their groups")
    return rows


def _in_order(level: str, given: Sequence[str] | Mapping[str, str], bins: Sequence[str]) -> tuple[str, ...]:
    """The group of every bin, or a refusal."""
    if isinstance(given, Mapping):
        missing, strange = [name for name in bins if name not in given], _first_of(given, set(bins))
        if missing:
            near = f"; {unknown('bin', strange, missing)}" if strange else ""
            raise InputError(
                f"bin {missing[0]!r} is in no group of level {level!r}; every bin is in one of each level{near}"
            )
        if strange:
            raise InputError(f"level {level!r}: {unknown('bin', strange, bins)}")
        given = [given[name] for name in bins]
    if isinstance(given, str) or len(given) != len(bins):
        raise InputError(f"level {level!r} must name the group of each of the {len(bins):,} bins, in their order")
    named = tuple(str(name) for name in given)
    if not all(named):
        raise InputError(f"a group of level {level!r} has an empty name; give it one")
    return named


def _is_pair(each: Any) -> bool:
    return isinstance(each, list | tuple) and len(each) == 2


def _first_of(given: Iterable[str], known: set[str]) -> str | None:
    return next((name for name in given if name not in known), None)
