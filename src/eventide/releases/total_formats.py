"""How totals of groups of bins are written: JSON lines, CSV and Parquet.

JSON lines hold one object a step: step, start (where there is a clock), totals and errors by the names of the groups.
Tables are long: step, start, group, total, error. The error is a standard error, with bins taken as independent: from
the interval around each value where the mechanism gives one, else from the noise of the looks behind the values alone,
without what has changed since. It is null where a bin was not looked at yet.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.errors import InputError
from eventide.releases.bin_groups import Groups
from eventide.releases.formats import Csv, Format, Formats, Parquet, Tabular
from eventide.releases.lines import ReleaseLine, plain

NINE_IN_TEN = 1.645  # deviations to either side of a normal mean hold so much


def totals(release: ReleaseLine, places: Sequence[Ints]) -> ReleaseLine:
    """A release of groups, each given by the places of its bins, whose scale is the standard error of its total.

    Laplace noise of scale s has the variance 2 s^2.
    """
    values = np.array([release.values[place].sum() for place in places])
    variance = _variance(release)
    errors = np.array([np.sqrt(variance[place].sum()) for place in places])
    return ReleaseLine(release.step, release.fresh, values, errors, start=release.start)


def places_of(groups: Groups, bins: Sequence[str]) -> list[Ints]:
    """Where the bins of each group stand."""
    place = {name: number for number, name in enumerate(bins)}
    return [np.array([place[name] for name in members]) for members in groups.values()]


def _variance(release: ReleaseLine) -> Floats:
    """Of every value; an interval of nine in ten is taken for that of a normal distribution."""
    if release.low is None or release.high is None:
        return np.asarray(2 * np.square(release.scale))
    return np.asarray(np.square((release.high - release.low) / (2 * NINE_IN_TEN)))


class TotalLines(Format):
    """One JSON object a line, one line a step."""

    def __init__(self, stream: BinaryIO, groups: Sequence[str], layout: str | None) -> None:
        _refuse_layout(layout)
        self.stream = stream
        self.groups = groups

    def add(self, release: ReleaseLine) -> None:
        """Write the totals of a step."""
        line: dict[str, Any] = {"step": release.step} | ({} if release.start is None else {"start": release.start})
        for name, numbers in (("totals", release.values), ("errors", release.scale)):
            line[name] = dict(zip(self.groups, plain(numbers), strict=True))
        self.stream.write(json.dumps(line, allow_nan=False).encode() + b"\n")

    def close(self) -> None:
        """Nothing is held back."""


class TotalTable(Tabular):
    """One row for each group of a step."""

    def __init__(self, stream: BinaryIO, groups: Sequence[str], layout: str | None, *, starts: bool) -> None:
        _refuse_layout(layout)
        super().__init__(stream, groups, "long", starts=starts)

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
    tables = {
        ending: partial(table, starts=starts) for ending, table in ((".csv", TotalCsv), (".parquet", TotalParquet))
    }
    return {".jsonl": TotalLines, **tables}


def _refuse_layout(layout: str | None) -> None:
    if layout is not None:
        raise InputError("totals have one layout, a row for each group; leave --layout out")
