"""How a release is written: JSON lines, CSV and Parquet, each a class that takes releases and fills a stream.

JSON lines hold one object a step, as `write_line` gives it. Tables are wide (step, then one column a bin) or long
(step, bin, value, low, high, scale, fresh); where steps have times, a column start follows step. Releases with levels
have long tables, with a column level before bin and rows for the groups behind those of the bins. Those of several
statistics have long tables, with a column statistic behind bin. So have releases with the histogram of a sliding
window, unless asked otherwise, with its rows behind those of the step; a wide table has the counts of single steps
alone. A wide table with
intervals has them behind each bin: north, north_low, north_high. A long one without them, as earlier versions wrote it,
has step, bin, value, scale. In text, whole numbers are written as such, without ".0"; what is not known (a scale before
the first look, an interval that the mechanism does not give) is null.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, BinaryIO, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from eventide.arrays import Floats
from eventide.errors import InputError
from eventide.releases.level_values import EVENTS, Groups, Rows, flat, is_window
from eventide.releases.lines import ReleaseLine, write_line

LAYOUTS = ("wide", "long")
WIDEST = 1_000  # bins; above it tables are long unless asked otherwise
BUFFERED_CELLS = 1 << 20


class Format(ABC):
    """Takes releases, or whatever else a format is for, and fills `stream`."""

    stream: BinaryIO

    @abstractmethod
    def add(self, release: Any) -> None:
        """Take a release."""

    @abstractmethod
    def close(self) -> None:
        """Write what was held back; the stream stays open."""

    def abandon(self) -> None:  # noqa: B027 - most have nothing to do
        """Write no more, not even when garbage is collected."""


class Lines(Format):
    """JSON objects, one a line, written as they come."""

    no_layout: ClassVar[str]  # why a layout is refused

    def __init__(self, stream: BinaryIO, bins: Sequence[str], layout: str | None) -> None:
        if layout is not None:
            raise InputError(self.no_layout)
        self.stream, self.bins = stream, bins

    @abstractmethod
    def lines(self, release: Any) -> Iterable[bytes]:
        """What is given, as lines without their ends."""

    def add(self, release: Any) -> None:
        """Write what is given."""
        for line in self.lines(release):
            self.stream.write(line + b"\n")

    def close(self) -> None:
        """Nothing is held back."""


class ReleaseLines(Lines):
    """One line a step."""

    no_layout = "a layout is for .csv and .parquet; JSON lines hold one object a step, so leave it out"

    def lines(self, release: ReleaseLine) -> Iterable[bytes]:
        """The line of a release."""
        return [write_line(release, release.start, answers=release.answers)]


class Tabular(Format):
    """Collects releases and writes them many at a time as a table, wide or long.

    `starts` adds when steps begin, `intervals` low and high, and to a long table whether anything was measured; left
    out, long tables have that and wide ones have not. `groups` are those of each level, where there are levels;
    `statistics` what is published of every bin, of which a wide table has the first.
    """

    def __init__(
        self,
        stream: BinaryIO,
        bins: Sequence[str],
        layout: str | None,
        *,
        starts: bool = False,
        intervals: bool | None = None,
        groups: Groups | None = None,
        statistics: Sequence[str] = (EVENTS,),
    ) -> None:
        self.stream = stream
        self.starts = starts
        self.layout = layout or ("wide" if len(bins) <= WIDEST and not groups and len(statistics) == 1 else "long")
        if self.layout not in LAYOUTS:
            raise InputError(f"there is no layout {self.layout!r}; choose one of {', '.join(LAYOUTS)}")
        if self.layout == "wide" and groups:
            raise InputError("releases with levels have a row for each bin and each group; leave --layout wide out")
        if self.layout == "wide" and len(statistics) > 1 and not is_window(statistics[-1]):
            raise InputError("several statistics have a row for each bin and statistic; leave --layout wide out")
        self.rows = Rows.of(bins, groups, statistics[:1] if self.layout == "wide" else statistics)
        self.intervals = self.layout == "long" if intervals is None else intervals
        self.bins = pa.array(self.rows.names, pa.string())
        self._held: list[ReleaseLine] = []
        self.schema = pa.schema(self.columns(bins))
        self.begin()

    def columns(self, bins: Sequence[str]) -> dict[str, Any]:
        """The columns of the layout."""
        first = {"step": pa.int64()} | ({"start": pa.string()} if self.starts else {})
        if self.layout == "long":
            numbers = ("value", "low", "high", "scale") if self.intervals else ("value", "scale")
            fresh = {"fresh": pa.bool_()} if self.intervals else {}
            return first | dict.fromkeys(self.rows.columns, pa.string()) | dict.fromkeys(numbers, pa.float64()) | fresh
        ends = [with_ends(name) for name in bins] if self.intervals else [(name,) for name in bins]
        refuse_taken([*first, *(end for _, *around in ends for end in around)], bins)
        return first | dict.fromkeys((name for each in ends for name in each), pa.float64())

    @abstractmethod
    def begin(self) -> None:
        """Write what comes before the first row."""

    @abstractmethod
    def put(self, columns: list[Any]) -> None:
        """Write rows, given column by column as arrays in the order of the schema."""

    def add(self, release: ReleaseLine) -> None:
        """Take a release; it is written when enough have come together."""
        self._held.append(flat(release, self.rows))
        if len(self._held) * len(self.bins) >= BUFFERED_CELLS:
            self._flush()

    def close(self) -> None:
        """Write what is still held back."""
        self._flush()

    def _flush(self) -> None:
        if not self._held:
            return
        which = np.repeat(np.arange(len(self._held)), 1 if self.layout == "wide" else len(self.bins))
        first = [np.array([release.step for release in self._held])[which]]
        if self.starts:
            first.append(pa.array([release.start for release in self._held], pa.string()).take(which))
        if self.layout == "wide":
            kinds = map(self._numbers, ("values", "low", "high") if self.intervals else ("values",))
            cells = np.stack(list(kinds), axis=-1)  # so that those of a bin stand together
            self.put([*first, *map(_known, cells.reshape(len(self._held), -1).T)])
        else:
            kinds = map(self._numbers, ("values", "low", "high", "scale") if self.intervals else ("values", "scale"))
            each = np.tile(np.arange(len(self.bins)), len(self._held))
            names = [pa.array(column, pa.string()).take(each) for column in self.rows.columns.values()]
            if any(release.named for release in self._held):
                told = [self.rows.called(release.named) for release in self._held]
                names = [
                    pa.array([name for row in told for name in row[key]], pa.string()) for key in self.rows.columns
                ]
            fresh = [pa.array([bool(release.fresh) for release in self._held]).take(which)] if self.intervals else []
            self.put([*first, *names, *(_known(numbers.ravel()) for numbers in kinds), *fresh])
        self._held.clear()

    def _numbers(self, kind: str) -> Floats:
        """What the releases say of all bins, `(steps, d)`; NaN where a release says nothing."""
        unknown = np.full(len(self.bins), np.nan)
        said = (getattr(release, kind) for release in self._held)
        return np.stack([unknown if numbers is None else numbers for numbers in said])


class Csv(Tabular):
    """Comma-separated values in UTF-8."""

    def begin(self) -> None:
        """Write the header."""
        header = io.StringIO()
        csv.writer(header, lineterminator="\n").writerow(self.schema.names)
        self.stream.write(header.getvalue().encode())

    def put(self, columns: list[Any]) -> None:
        """Write lines."""
        whole = [column.astype(np.int64) if _is_whole(column) else column for column in columns]
        table = pa.table(whole, names=self.schema.names)
        quoting = "needed" if _needs_quotes(table) else "none"  # as in files that grow
        pa_csv.write_csv(table, self.stream, pa_csv.WriteOptions(include_header=False, quoting_style=quoting))


class Parquet(Tabular):
    """Apache Parquet; values are doubles whether whole or not, so that the schema never depends on them."""

    def begin(self) -> None:
        """Open the writer."""
        self._writer = pa_parquet.ParquetWriter(self.stream, self.schema)

    def put(self, columns: list[Any]) -> None:
        """Write a row group."""
        self._writer.write_table(pa.table(columns, schema=self.schema))

    def close(self) -> None:
        """Write the rest and the footer."""
        super().close()
        self._writer.close()

    def abandon(self) -> None:
        """Keep the writer's destructor from writing a footer."""
        self._writer.is_open = False


Formats = dict[str, Callable[[BinaryIO, Sequence[str], str | None], Format]]


def by_ending(lines: type[Lines], csv: type[Tabular], parquet: type[Tabular], **options: Any) -> Formats:
    """Formats by the endings of file names; the options are those of tables."""
    return {".jsonl": lines, ".csv": partial(csv, **options), ".parquet": partial(parquet, **options)}


def formats(
    *,
    starts: bool,
    intervals: bool | None = None,
    groups: Groups | None = None,
    statistics: Sequence[str] = (EVENTS,),
) -> Formats:
    """The formats of releases, whose tables also tell when steps begin if that is known, and perhaps intervals."""
    told = {"starts": starts, "intervals": intervals, "groups": groups, "statistics": statistics}
    return by_ending(ReleaseLines, Csv, Parquet, **told)


FORMATS = formats(starts=False)


def with_ends(name: str) -> tuple[str, str, str]:
    """The columns of a bin in a wide table with intervals.

    >>> with_ends("north")
    ('north', 'north_low', 'north_high')
    """
    return name, f"{name}_low", f"{name}_high"


def refuse_taken(own: Iterable[str], bins: Sequence[str]) -> None:
    """Refuse bins that are named like a column that a wide table has of its own."""
    if taken := set(own) & set(bins):
        raise InputError(
            f"a wide table has a column {min(taken)} of its own, so no bin may be named so; choose --layout long"
        )


def _known(numbers: Floats) -> Any:
    """A column in which whatever is not known is null."""
    known = np.isfinite(numbers)
    return numbers if known.all() else pa.array(numbers, mask=~known)


def _needs_quotes(table: pa.Table) -> bool:
    """Whether a text of a table holds what separates cells and lines."""
    texts = [column for column in table.columns if column.type == pa.string()]
    return any(pc.any(pc.match_substring_regex(text, '[,"\r\n]')).as_py() for text in texts)


def _is_whole(numbers: Any) -> bool:
    return isinstance(numbers, np.ndarray) and bool((numbers == np.rint(numbers)).all())
