"""Totals of named groups of bins, such as the roads of each district: the file of groups, the totals, their formats.

A TOML file has a line `name = ["bin", "bin"]` for each group, a CSV file the columns group and bin. Groups may share
bins. A CSV file of levels (`eventide.events.levels`) serves as well: its groups are named level/group, and the total is
there. Of totals, JSON lines hold one object a step: step, start (where there is a clock), totals and errors by the
names of the groups. Tables are long: step, start, group, total, error. The error is a standard error, with bins taken
as independent: from the interval around each value where the mechanism gives one, else from the noise of the looks
behind the values alone, without what has changed since. It is null where a bin was not looked at yet.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.errors import InputError, unknown
from eventide.events.levels import TOTAL, Levels, csv_rows
from eventide.releases.formats import Csv, Formats, Lines, Parquet, Tabular, by_ending
from eventide.releases.level_values import LevelValues
from eventide.releases.lines import ReleaseLine, plain

NINE_IN_TEN = 1.645  # deviations to either side of a normal mean hold so much
NO_LAYOUT = "totals have one layout, a row for each group; leave --layout out"

Groups = dict[str, list[str]]


def read_groups(path: Path, bins: Sequence[str]) -> Groups:
    """The groups in a file, each with at least one of `bins`, and with no other."""
    try:
        if path.suffix.lower() == ".csv":
            groups = _from_csv(path, bins)
        else:
            groups = _from_toml(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"cannot read {path}: {problem}; give a TOML or CSV file of groups") from None
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        raise InputError(
            f'{path} holds no groups of bins; write lines such as north = ["a", "b"], or a CSV with the columns '
            "group and bin"
        ) from None
    known = set(bins)
    for name, members in groups.items():
        if not members:
            raise InputError(f"group {name!r} of {path} has no bins; give it some or leave it out")
        if strange := [member for member in members if member not in known]:
            raise InputError(f"group {name!r} of {path} names {strange[0]!r}: {unknown('bin', strange[0], bins)}")
        if len(set(members)) < len(members):
            raise InputError(f"group {name!r} of {path} names a bin twice; a total counts it once")
    if not groups:
        raise InputError(f"{path} names no group")
    return groups


def _from_toml(document: dict[str, Any]) -> Groups:
    if not all(isinstance(members, list) for members in document.values()):
        raise TypeError
    return {name: [str(member) for member in members] for name, members in document.items()}


def _from_csv(path: Path, bins: Sequence[str]) -> Groups:
    header, *rows = csv_rows(path)
    if "group" not in header and "bin" not in header[1:]:
        levels = Levels.of(path, bins)
        return {
            TOTAL if level == TOTAL else f"{level}/{group}": members
            for (level, group), members in levels.members().items()
        }
    groups: Groups = {}
    for row in rows:
        cells = dict(zip(header, row, strict=False))
        if not (cells["group"] and cells["bin"]):
            raise KeyError
        groups.setdefault(cells["group"], []).append(cells["bin"])
    return groups


def totals(release: ReleaseLine, places: Sequence[Ints]) -> ReleaseLine:
    """A release of groups, each given by the places of its bins, whose scale is the standard error of its total.

    Laplace noise of scale s has the variance 2 s^2.
    """
    values = np.array([release.values[place].sum() for place in places])
    variance = _variance(release)
    errors = np.array([np.sqrt(variance[place].sum()) for place in places])
    return ReleaseLine(release.step, release.fresh, values, errors, start=release.start)


def with_sums(release: ReleaseLine, levels: Levels) -> ReleaseLine:
    """A release with these levels, each group the sum of its bins, with an interval of nine in ten around it."""
    variance, told = _variance(release), {}
    natural = bool((release.values >= 0).all())
    for level, labels in levels.labels.items():
        values: Floats = np.bincount(labels, release.values).astype(np.float64)
        reach = NINE_IN_TEN * np.sqrt(np.bincount(labels, np.where(np.isfinite(variance), variance, 0.0)))
        reach[np.unique(labels[~np.isfinite(variance)])] = np.nan
        low = values - reach
        scale = np.full(values.shape, np.inf)
        told[level] = LevelValues(values, scale, release.fresh, np.maximum(low, 0) if natural else low, values + reach)
    unknown = np.full(release.values.shape, np.nan)
    low, high = (unknown if end is None else end for end in (release.low, release.high))
    return replace(release, low=low, high=high, levels=told)


def places_of(groups: Groups, bins: Sequence[str]) -> list[Ints]:
    """Where the bins of each group stand."""
    place = {name: number for number, name in enumerate(bins)}
    return [np.array([place[name] for name in members]) for members in groups.values()]


def _variance(release: ReleaseLine) -> Floats:
    """Of every value; an interval of nine in ten is taken for that of a normal distribution."""
    if release.low is None or release.high is None:
        return np.asarray(2 * np.square(release.scale))
    return np.asarray(np.square((release.high - release.low) / (2 * NINE_IN_TEN)))


class TotalLines(Lines):
    """One line a step."""

    no_layout = NO_LAYOUT

    def lines(self, release: ReleaseLine) -> Iterable[bytes]:
        """The totals of a step."""
        line: dict[str, Any] = {"step": release.step} | ({} if release.start is None else {"start": release.start})
        for name, numbers in (("totals", release.values), ("errors", release.scale)):
            line[name] = dict(zip(self.bins, plain(numbers), strict=True))
        return [json.dumps(line, allow_nan=False).encode()]


class TotalTable(Tabular):
    """One row for each group of a step."""

    def __init__(self, stream: BinaryIO, groups: Sequence[str], layout: str | None, *, starts: bool) -> None:
        if layout is not None:
            raise InputError(NO_LAYOUT)
        super().__init__(stream, groups, "long", starts=starts, intervals=False)

    def columns(self, bins: Sequence[str]) -> dict[str, Any]:
        """As for releases, but named for what they are."""
        names = {"bin": "group", "value": "total", "scale": "error"}
        return {names.get(name, name): kind for name, kind in super().columns(bins).items()}


class TotalCsv(TotalTable, Csv):
    """Comma-separated values in UTF-8."""


class TotalParquet(TotalTable, Parquet):
    """Apache Parquet."""


def total_formats(*, starts: bool) -> Formats:
    """The formats of totals, whose tables also tell when steps begin if that is known."""
    return by_ending(TotalLines, TotalCsv, TotalParquet, starts=starts)
