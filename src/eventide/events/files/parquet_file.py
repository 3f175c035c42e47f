"""A complete Parquet file, a row group at a time.

Only the wanted columns of one row group are in memory. Texts that are stored as a dictionary stay one, so that each
different text is looked at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet

from eventide.errors import InputError
from eventide.events.rows import FileBlock, ParsedRows, UnparsedRows


class ParquetFile:
    """Row groups of a Parquet file; places are their numbers."""

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.name = name or path.name
        self.path = path
        try:
            self._metadata = pa_parquet.read_metadata(path)
        except (pa.ArrowException, OSError):
            raise InputError(f"{path} cannot be read as a Parquet file; check the path and the file") from None
        schema = self._metadata.schema.to_arrow_schema()
        self.columns = tuple(schema.names)
        self._texts = {field.name for field in schema if pa.types.is_string(field.type)}
        self._moments = {field.name: field.type for field in schema if getattr(field.type, "tz", None) is not None}

    def blocks(self, begin: int) -> Iterator[FileBlock]:
        """The numbers of the row groups; what is in them is read by whoever needs it."""
        for number in range(begin, self._metadata.num_row_groups):
            yield FileBlock(number, number + 1)

    def rows(self, content: int, wanted: list[str]) -> ParsedRows:
        """The wanted columns of a row group."""
        if missing := [name for name in wanted if name not in self.columns]:
            raise InputError(f"{self.name} has no column {missing[0]!r}; its columns are {', '.join(self.columns)}")
        count, table = self._metadata.row_group(content).num_rows, self._table(content, wanted)
        again = UnparsedRows(lambda: count, lambda number: ParsedRows(self._table(content, wanted)[:number], 0))
        return ParsedRows(table, 0, again)

    def earliest(self, content: int, column: str) -> Any:
        """The least of a column of moments, from what a row group says of itself; None where it does not.

        Times without a zone may go back by an hour, so the least of them need not be the earliest.
        """
        chunks = map(self._metadata.row_group(content).column, range(self._metadata.num_columns))
        chunk = next((chunk for chunk in chunks if chunk.path_in_schema == column and column in self._moments), None)
        if chunk is None or not chunk.is_stats_set or not chunk.statistics.has_min_max:
            return None
        return pa.table({column: pa.array([chunk.statistics.min_raw], pa.int64()).cast(self._moments[column])})

    def _table(self, group: int, wanted: list[str]) -> Any:
        coded = self._coded(group)
        with pa_parquet.ParquetFile(
            self.path, metadata=self._metadata, read_dictionary=coded, pre_buffer=False
        ) as file:
            return file.read_row_group(group, wanted, use_threads=False)

    def _coded(self, group: int) -> list[str]:
        """Columns of texts that a row group holds as a dictionary: otherwise the length of each takes four bytes."""
        chunks = map(self._metadata.row_group(group).column, range(self._metadata.num_columns))
        coded = [chunk.path_in_schema for chunk in chunks if chunk.total_uncompressed_size < 4 * chunk.num_values]
        return [name for name in coded if name in self._texts]
