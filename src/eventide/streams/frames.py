"""Frames of any library as batches of Arrow columns, so that all of them work and none is required.

A frame is one of pandas, polars, Arrow or whatever else narwhals knows, or a dict of columns; a lazy one, such as a
relation of DuckDB; or a stream, which is anything that hands out Arrow batches (`__arrow_c_stream__`). Only the columns
that are asked for are read, some rows at a time, so a lazy frame or a stream may be larger than memory. A stream can be
read once. Messages name columns, never what stands in them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from eventide.errors import InputError
from eventide.events.texts import texts
from eventide.events.times import read_times
from eventide.events.zones import Zone

CELLS = 1 << 19  # of a batch
WRITTEN_TIME = re.compile(r"[\d\s./:+TWQZ-]*")  # 31.01.2026, 08:00 and 2026-W05, which nobody has to read here
NO_COLUMN = (pa.ArrowException, TypeError, ValueError, OverflowError)  # what objects raise that have no common type
AS_IF_ALONE = ({str}, {bool}, {int, float})  # types of objects that mean in one column what each means by itself
SAME_NAME = "the frame has two columns of the same name; give each its own"


class Frame(ABC):
    """Named columns that are read in batches."""

    name: ClassVar[str] = "the frame"
    columns: tuple[str, ...]
    levels: Mapping[str, Any] = {}  # columns that pandas keeps in an index: read where they are asked for by name
    again: ClassVar[bool] = True  # whether it can be read more than once
    held: ClassVar[bool] = False  # whether it is in memory, so that its rows come in the same order each time

    def read(self, columns: Sequence[str], rows: int | None = None) -> Iterator[Any]:
        """These columns, batch after batch, as something that has `schema`, `column(name)` and `slice`.

        rows: of a batch at the most, if it is for us to say; of a frame in memory exactly so many.
        """
        if missing := [name for name in columns if name not in self.columns and name not in self.levels]:
            raise InputError(
                f"{self.name} has no column {', '.join(map(repr, missing))}; its columns are {', '.join(self.columns)}"
            )
        return self._read(list(columns), rows or max(1, CELLS // max(len(columns), 1)))

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, list[Any]]]:
        """The same as a list of arrays, each time with the number of the first row, as files of counts are read."""
        first_row = 1
        for batch in self.read(columns):
            if batch.num_rows:
                yield first_row, [_one_chunk(batch.column(name)) for name in columns]
            first_row += batch.num_rows

    def zone_of(self, column: str) -> str | None:
        """The time zone that the type of a column names, which says nothing of what stands in it."""
        return None

    def rows_have_names(self) -> bool:
        """Whether several rows are named by something that is no time and no number, so that they are hardly steps."""
        return False

    def sorted_by(self, column: str) -> Frame | None:
        """The same rows sorted by a column of times, where whoever makes them can do that; None where nobody can."""
        return None

    @abstractmethod
    def _read(self, columns: list[str], rows: int) -> Iterator[Any]:
        """The same as `read`, of columns that are there."""


class HeldFrame(Frame):
    """A frame in memory, as narwhals shows it; of pandas, a named level of the index is a column as well."""

    held: ClassVar[bool] = True

    def __init__(self, frame: Any) -> None:
        import narwhals as nw

        index: Any = nw.maybe_get_index(frame)
        named = [] if index is None else [name for name in index.names if name is not None]
        self._names = {str(name): name for name in frame.columns}
        if len(self._names) < len(frame.columns):
            raise InputError(SAME_NAME)
        self.levels = {str(name): index.get_level_values(name) for name in named if str(name) not in self._names}
        self._frame, self._index = frame, index
        self.columns = tuple(self._names)

    def rows_have_names(self) -> bool:
        """As after `value_counts` and `groupby` of pandas, where a row is what is a bin here."""
        if len(self._frame) < 2 or self._index is None:
            return False
        if self._index.nlevels > 1:
            return True
        if self._index.inferred_type not in ("string", "categorical", "mixed"):
            return False
        if all(WRITTEN_TIME.fullmatch(str(name)) for name in self._index):
            return False
        return not read_times(texts(list(self._index)), Zone("UTC")).readable.any()

    def zone_of(self, column: str) -> str | None:
        """As of any frame."""
        if column in self._names:
            return getattr(self._frame.schema[self._names[column]], "time_zone", None)
        return None if (kind := getattr(self.levels.get(column), "tz", None)) is None else str(kind)

    def _read(self, columns: list[str], rows: int) -> Iterator[Any]:
        for begin in range(0, len(self._frame), rows):
            piece = slice(begin, begin + rows)
            yield pa.table({name: self._column(name, piece) for name in columns})

    def _column(self, name: str, piece: slice) -> Any:
        if name in self.levels:
            return _column(self.levels[name][piece])
        import narwhals as nw

        series = self._frame.get_column(self._names[name])
        if series.dtype == nw.Object:
            return _column(series[piece].to_list())
        try:
            return series[piece].to_arrow()
        except NO_COLUMN:
            return texts(series[piece].to_list())


class LazyFrame(Frame):
    """A query that is computed when it is read, as narwhals shows it; its rows may come in another order each time."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._schema = frame.collect_schema()
        self.columns = tuple(self._schema.names())

    def zone_of(self, column: str) -> str | None:
        """As of any frame."""
        return getattr(self._schema.get(column), "time_zone", None)

    def sorted_by(self, column: str) -> Frame | None:
        """Sorted by the engine, if the column holds dates or times; numbers and text do not sort as they are read."""
        is_time = column in self._schema and self._schema[column].is_temporal()
        return LazyFrame(self._frame.sort(column)) if is_time else None

    def _read(self, columns: list[str], rows: int) -> Iterator[Any]:
        query = self._frame.select(columns)
        native = query.to_native()
        if hasattr(native, "__arrow_c_stream__"):  # DuckDB
            yield from pa.RecordBatchReader.from_stream(native)
        elif hasattr(native, "collect_batches"):  # polars
            yield from (part.to_arrow() for part in native.collect_batches(chunk_size=rows, maintain_order=True))
        else:
            yield query.collect(backend="pyarrow").to_native()


class FrameStream(Frame):
    """Batches of Arrow that come once."""

    name: ClassVar[str] = "the stream"
    again: ClassVar[bool] = False

    def __init__(self, stream: Any) -> None:
        self._reader: Any = pa.RecordBatchReader.from_stream(stream)
        self.columns = tuple(self._reader.schema.names)

    def zone_of(self, column: str) -> str | None:
        """As of any frame."""
        at = self._reader.schema.get_field_index(column) if self._reader is not None else -1
        return None if at < 0 else getattr(self._reader.schema.field(at).type, "tz", None)

    def _read(self, columns: list[str], rows: int) -> Iterator[Any]:
        reader, self._reader = self._reader, None
        if reader is None:
            raise InputError("the stream was read before and is empty now; make it anew")
        for batch in reader:
            for begin in range(0, batch.num_rows, rows):
                yield batch.select(columns).slice(begin, rows)


def open_frame(frame: Any) -> Frame:
    """Whatever somebody calls a frame, ready to be read.

    >>> open_frame({"bin": ["north"], "count": [3]}).columns
    ('bin', 'count')
    """
    opened = as_frame(frame)
    if opened is None:
        raise InputError(
            f"{type(frame).__name__} is no frame; give one of pandas, polars or Arrow, a DuckDB relation, a stream of "
            "Arrow batches, a Series with a name, or a dict of columns"
        )
    return opened


def as_frame(frame: Any) -> Frame | None:
    """The same; None for what is no frame."""
    import narwhals as nw

    found = as_narwhals(_as_table(frame))
    if isinstance(found, nw.Series):
        return HeldFrame(found.to_frame()) if found.name else None
    if isinstance(found, nw.DataFrame):
        return HeldFrame(found)
    if isinstance(found, nw.LazyFrame):
        return LazyFrame(found)
    return FrameStream(frame) if hasattr(frame, "__arrow_c_stream__") else None


def as_narwhals(frame: Any) -> Any:
    """What narwhals makes of a frame or a Series; anything else as it is."""
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        return nw.from_native(frame, allow_series=True, pass_through=True)
    except DuplicateError:
        raise InputError(SAME_NAME) from None


def _as_table(frame: Any) -> Any:
    """What Arrow has besides tables, and a dict of columns, as a table."""
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if isinstance(frame, pa.Array | pa.ChunkedArray) and pa.types.is_struct(frame.type):
        return pa.Table.from_struct_array(frame)
    if not isinstance(frame, Mapping):
        return frame
    columns = {str(name): _column(values) for name, values in frame.items()}
    if len({len(column) for column in columns.values()}) > 1:
        raise InputError("the columns have different numbers of rows; give each one cell for every row")
    return pa.table(columns)


def _column(values: Any) -> Any:
    """Values as a column of Arrow, of the type that they have; objects only if each means there what it means alone.

    So how a cell is read never depends on what stands in others, which are other people's.
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if str(getattr(values, "dtype", "object")) == "object":
        held = set(map(type, values)) - {type(None)}
        if not any(held <= kinds for kinds in AS_IF_ALONE):
            return texts(list(values))
    try:
        return pa.array(values)
    except NO_COLUMN:
        return texts(list(values))


def _one_chunk(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
