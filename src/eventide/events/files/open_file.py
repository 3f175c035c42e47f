"""A complete file of events by the ending of its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from eventide.errors import InputError
from eventide.events.files.lines import CSV_ENDINGS, JSON_ENDINGS, LineFile, is_lines
from eventide.events.files.parquet_file import ParquetFile
from eventide.events.rows import FileBlock, ParsedRows

PARQUET_ENDINGS = (".parquet", ".pq")


class EventFile(Protocol):
    """A file of rows, block by block."""

    columns: tuple[str, ...]
    """The columns that every row has; none where each row names its own."""

    def blocks(self, begin: int) -> Iterator[FileBlock]:
        """The blocks from the place `begin` on, where one ends or the file begins (0)."""

    def rows(self, content: Any, wanted: list[str]) -> ParsedRows:
        """The wanted columns of a block."""

    def earliest(self, content: Any, column: str) -> Any:
        """The earliest moment that a column of a block holds, as one row, if the file says so; else None."""


def open_file(path: Path, name: str | None = None) -> LineFile | ParquetFile:
    """Open a CSV, JSONL or Parquet file, the first two perhaps compressed; messages show `name`, else its own."""
    refuse_ending(path, "convert or rename it")
    return LineFile(path, name) if is_lines(path.name) else ParquetFile(path, name)


def refuse_ending(path: Path, advice: str) -> None:
    """Refuse a file whose name does not say that it holds events."""
    if not is_lines(path.name) and not path.name.lower().endswith(PARQUET_ENDINGS):
        known = ", ".join(CSV_ENDINGS + JSON_ENDINGS + PARQUET_ENDINGS)
        raise InputError(f"{path.name} ends in none of {known} (or .gz after them); {advice}")
