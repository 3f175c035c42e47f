"""How a release is written: JSON lines, CSV and Parquet, each a class that takes releases and fills a stream.

JSON lines hold one object a step, as `write_line` gives it. Tables are wide (step, then one column a bin) or long
(step, bin, value, scale); where steps have times, a column start follows step. In text, whole numbers are written as
such, without ".0"; a scale that is not known (no look yet) is null.
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
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from eventide.arrays import Floats
from eventide.errors import InputError
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
    """Collects releases and writes them many at a time as a table, wide or long; `starts` adds when steps begin."""

    def __init__(self, stream: BinaryIO, bins: Sequence[str], layout: str | None, *, starts: bool = False) -> None:
        self.stream = stream
        self.starts = starts
        self.layout = layout or ("wide" if len(bins) <= WIDEST else "long")
        if self.layout not in LAYOUTS:
            raise InputError(f"there is no layout {self.layout!r}; choose one of {', '.join(LAYOUTS)}")
        self.bins = pa.array(bins, pa.string())
        self._held: list[ReleaseLine] = []
        self.schema = pa.schema(self.columns(bins))
        self.begin()

    def columns(self, bins: Sequence[str]) -> dict[str, Any]:
        """The columns of the layout."""
        first = {"step": pa.int64()} | ({"start": pa.string()} if self.starts else {})
        if self.layout == "long":
            return first | {"bin": pa.string(), "value": pa.float64(), "scale": pa.float64()}
        refuse_taken(first, bins)
        return first | dict.fromkeys(bins, pa.float64())

    @abstractmethod
    def begin(self) -> None:
        """Write what comes before the first row."""

    @abstractmethod
    def put(self, columns: list[Any]) -> None:
        """Write rows, given column by column as arrays in the order of the schema."""

    def add(self, release: ReleaseLine) -> None:
        """Take a release; it is written when enough have come together."""
        self._held.append(release)
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
        values = np.stack([release.values for release in self._held])
        if self.layout == "wide":
            self.put([*first, *map(_known, values.T)])
        else:
            scales = np.stack([release.scale for release in self._held])
            names = self.bins.take(np.tile(np.arange(len(self.bins)), len(self._held)))
            self.put([*first, names, _known(values.ravel()), _known(scales.ravel())])
        self._held.clear()


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
        pa_csv.write_csv(table, self.stream, pa_csv.WriteOptions(include_header=False))


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


def formats(*, starts: bool) -> Formats:
    """The formats of releases, whose tables also tell when steps begin if that is known."""
    return by_ending(ReleaseLines, Csv, Parquet, starts=starts)


FORMATS = formats(starts=False)


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


def _is_whole(numbers: Any) -> bool:
    return isinstance(numbers, np.ndarray) and bool((numbers == np.rint(numbers)).all())
