"""Files and frames of counts: one reader for wide and long, whatever they stand in, which gives them step after step.

Wide: one column a bin, one row a step, and perhaps a first column t or step (0, 1, 2, ...), or time or start (not
read). Long: columns t or step, bin, and count or value, sorted by step; a cell or step that is absent is 0, and the
bins must be given. The header says which: a column named bin makes the file long. Memory stays bounded however long the
file is.

A `Matrix` is a whole file in memory, for studies on data one may look at; nothing is published there, so the bins of a
long file may be taken from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import Array, Floats, Ints
from eventide.errors import InputError
from eventide.events.texts import texts
from eventide.streams.frames import Frame
from eventide.streams.named_counts import misfit
from eventide.streams.tables import EVENTS_INSTEAD, Table, open_table, whole_numbers

STEP_NAMES = ("t", "step")
TIME_NAMES = ("time", "start")
COUNT_NAMES = ("count", "value")
LONGEST_GAP = 1_000_000  # steps without a row in a long file; more is surely a time where a step number should be


@dataclass(frozen=True)
class CountFile(ABC):
    """A stream of counts in a file or frame; `steps` may be called as often as that can be read."""

    layout: ClassVar[str]
    table: Table | Frame
    bins: tuple[str, ...]

    @abstractmethod
    def steps(self) -> Iterator[Ints]:
        """Give the counts of each step, `(d,)`; an `InputError` stops at the first row that is wrong."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.table.name

    @property
    def path(self) -> Path | None:
        """Where it lies, if it is a file."""
        return self.table.path if isinstance(self.table, Table) else None


def open_counts(source: str | Path | Frame, bins: Sequence[str] | None = None) -> CountFile:
    """Open a file or frame of counts; `bins` may be left out for a wide one, whose header names them."""
    table = source if isinstance(source, Frame) else open_table(source)
    return _open_long(table, bins) if "bin" in map(str.lower, table.columns) else _open_wide(table, bins)


@dataclass(frozen=True)
class WideFile(CountFile):
    """One column a bin, one row a step."""

    layout: ClassVar[str] = "wide"
    step_column: str | None

    def steps(self) -> Iterator[Ints]:
        """Give each row."""
        columns = self.bins if self.step_column is None else (self.step_column, *self.bins)
        for first_row, arrays in self.table.batches(columns):
            numbers = whole_numbers(arrays, columns, first_row, self.name)
            if self.step_column is not None:
                self._check_steps(numbers[:, 0], first_row)
                numbers = numbers[:, 1:]
            yield from numbers

    def _check_steps(self, steps: Ints, first_row: int) -> None:
        wrong = np.flatnonzero(steps != np.arange(first_row - 1, first_row - 1 + len(steps)))
        if wrong.size:
            row = first_row + wrong[0]
            fault = "does not begin with 0" if row == 1 else "does not go on from the row before"
            raise InputError(
                f"{self.name}: column {self.step_column!r} in row {row} {fault}; it must count 0, 1, 2, ... without a "
                "gap, so sort the rows or add the missing ones (a column of times may be named time)"
            )


@dataclass(frozen=True)
class LongFile(CountFile):
    """One row a cell that is not zero, sorted by step."""

    layout: ClassVar[str] = "long"
    columns: tuple[str, str, str]

    def steps(self) -> Iterator[Ints]:
        """Give the cells of each step as a vector."""
        step, counts, rows_of_bin = 0, self._zeros(), self._zeros()
        for first_row, arrays in self.table.batches(self.columns):
            where, bins, values = self._parsed(arrays, first_row)
            self._check_order(np.concatenate([[step], where]), first_row)
            edges = np.flatnonzero(np.diff(where)) + 1
            for begin, end in zip([0, *edges], [*edges, len(where)], strict=True):
                while step < where[begin]:
                    yield counts
                    step, counts, rows_of_bin = step + 1, self._zeros(), self._zeros()
                counts[bins[begin:end]] = values[begin:end]
                np.add.at(rows_of_bin, bins[begin:end], 1)
                self._check_once(rows_of_bin[bins[begin:end]], first_row + begin)
        yield counts

    def _zeros(self) -> Ints:
        return np.zeros(len(self.bins), dtype=np.int64)

    def _parsed(self, arrays: list[Any], first_row: int) -> tuple[Ints, Array, Ints]:
        steps, names, values = arrays
        step_column, bin_column, count_column = self.columns
        numbers = whole_numbers([steps, values], [step_column, count_column], first_row, self.name)
        try:
            given = pc.utf8_trim_whitespace(pc.cast(texts(names), pa.string()))
        except (pa.ArrowInvalid, InputError):
            raise InputError(f"{self.name}: column {bin_column!r} holds no names; write them as text") from None
        bins = pc.index_in(given, value_set=pa.array(self.bins, pa.string()))
        if bins.null_count:
            row = first_row + np.argmax(bins.is_null())
            raise InputError(
                f"{self.name}: column {bin_column!r} in row {row} is not one of the {len(self.bins)} bins; "
                "add it to the list given with --bins, or remove the row"
            )
        return numbers[:, 0], bins.to_numpy(), numbers[:, 1]

    def _check_order(self, steps: Ints, first_row: int) -> None:
        ahead = np.diff(steps)
        wrong = np.flatnonzero((ahead < 0) | (ahead > LONGEST_GAP))
        if wrong.size:
            fault = "goes back to an earlier step; sort the file by it"
            if ahead[wrong[0]] > 0:
                fault = f"is more than {LONGEST_GAP:,} steps ahead; number the steps 0, 1, 2, ..."
            raise InputError(f"{self.name}: column {self.columns[0]!r} in row {first_row + wrong[0]} {fault}")

    def _check_once(self, rows_of_bin: Ints, first_row: int) -> None:
        repeated = np.flatnonzero(rows_of_bin > 1)
        if repeated.size:
            raise InputError(
                f"{self.name}: row {first_row + repeated[-1]} repeats a bin within its step; join the rows of a cell"
            )


class Matrix(NamedTuple):
    """Counts of shape `(T, d)` with the names of the d bins.

    truth: where counts are not what is asked, but numbers of which that is told, what is true of each step.
    """

    counts: Ints
    bins: tuple[str, ...]
    truth: Floats | None = None


def read_matrix(path: str | Path, steps: int = 0, *, named: bool = False) -> Matrix:
    """Read a file of counts; empty steps are added at the end until there are `steps`.

    named: a wide file is known to begin with names, though they may be numbers, as those of counties are.
    """
    bins = bins_in_file(path)
    if named and bins is None:
        bins = _counted_columns(open_table(path))
    file = open_counts(path, bins)
    rows = list(file.steps())
    rows += [np.zeros(len(file.bins), dtype=np.int64)] * (steps - len(rows))
    return Matrix(np.stack(rows), file.bins)


def bins_in_file(path: str | Path) -> tuple[str, ...] | None:
    """Every name that occurs in a long file; None for a wide one, whose header names them."""
    table = open_table(path)
    columns = [column for column in table.columns if column.lower() == "bin"]
    if not columns:
        return None
    names = {name for _, (array,) in table.batches(columns) for name in pc.unique(text(array)).to_pylist()}
    return tuple(sorted(names))


def text(array: pa.Array) -> pa.Array:
    """Names as text without outer blanks; an empty cell is an empty name."""
    return pc.utf8_trim_whitespace(pc.fill_null(pc.cast(array, pa.string()), ""))


def _counted_columns(table: Table | Frame) -> tuple[str, ...]:
    """The columns of a wide file that count: all but a leading one of steps or times."""
    return table.columns[1:] if table.columns[0].lower() in STEP_NAMES + TIME_NAMES else table.columns


def _open_wide(table: Table | Frame, bins: Sequence[str] | None) -> WideFile:
    header = _counted_columns(table)
    if not header:
        raise InputError(f"{table.name} has no column of counts; give it one column for each bin")
    if bins is None and all(_is_number(name) for name in header):
        raise InputError(
            f"{table.name} begins with a row of numbers instead of names, and names are published; "
            "add a header, or if these numbers are the names of the bins, list them with --bins FILE"
        )
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise InputError(f"{table.name} has one column only; separate columns by commas")
    names = header if bins is None else tuple(bins)
    if set(names) != set(header):
        raise InputError(
            f"{table.name}: the columns do not fit the list of bins ({misfit(header, names)}); correct one of them"
            f"{EVENTS_INSTEAD}"
        )
    return WideFile(table, names, table.columns[0] if table.columns[0].lower() in STEP_NAMES else None)


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _open_long(table: Table | Frame, bins: Sequence[str] | None) -> LongFile:
    columns = tuple(_column(table, names) for names in (STEP_NAMES, ("bin",), COUNT_NAMES))
    if bins is None:
        raise InputError(
            f"{table.name} is long, and bins are never taken from the data; give the list of all bins (--bins FILE)"
        )
    return LongFile(table, tuple(bins), columns)  # type: ignore[arg-type]


def _column(table: Table | Frame, names: Sequence[str]) -> str:
    """Find the column that goes by one of these names."""
    for column in table.columns:
        if column.lower() in names:
            return column
    raise InputError(
        f"{table.name}: column {' or '.join(names)} is missing; "
        "a long file has the columns t (or step), bin and count (or value)"
    )
