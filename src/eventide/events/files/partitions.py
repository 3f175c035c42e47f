"""Columns that the names of folders give to all rows below them, as Hive writes them: day=2026-01-31/part-0.parquet.

Their values are text. A column that a file or a row has of its own counts before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from eventide.events.files.lines import LineFile
from eventide.events.files.parquet_file import ParquetFile
from eventide.events.rows import FileBlock, ParsedRows, UnparsedRows

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def columns_of_folders(path: Path) -> dict[str, str | None]:
    """The columns that the folders of a path give.

    >>> columns_of_folders(Path("visits/day=2026-01-31/page=a%2Fb/part-0.parquet"))
    {'day': '2026-01-31', 'page': 'a/b'}
    """
    parts = (folder.partition("=") for folder in path.parts[:-1])
    return {unquote(name): None if value == NO_VALUE else unquote(value) for name, sign, value in parts if sign}


class PartitionedFile:
    """A file whose rows have further columns, each with one value."""

    def __init__(self, file: LineFile | ParquetFile, columns: dict[str, str | None]) -> None:
        self._file = file
        self._columns = {name: value for name, value in columns.items() if name not in file.columns}
        self.columns = (*file.columns, *self._columns)

    def blocks(self, begin: int) -> Iterator[FileBlock]:
        """The blocks of the file."""
        return self._file.blocks(begin)

    def rows(self, content: Any, wanted: list[str]) -> ParsedRows:
        """The wanted columns of a block; at least one is read from the file, to know how many rows there are."""
        added = {name: self._columns[name] for name in wanted if name in self._columns}
        own = [name for name in wanted if name not in added] or list(self._file.columns[:1])
        return self._with(self._file.rows(content, own), added)

    def earliest(self, content: Any, column: str) -> Any:
        """What the file says."""
        return None if column in self._columns else self._file.earliest(content, column)

    def _with(self, found: ParsedRows, added: dict[str, str | None]) -> ParsedRows:
        rows, raw = found.rows, found.raw
        if isinstance(rows, list):
            rows = [added | row for row in rows]
        else:
            for name, value in added.items():
                rows = rows.append_column(name, pa.repeat(pa.scalar(value, pa.string()), len(rows)))
        if raw is not None:
            first = raw.first
            raw = UnparsedRows(raw.size, lambda number: self._with(first(number), added))
        return ParsedRows(rows, found.unreadable, raw)
