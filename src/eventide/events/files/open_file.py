"""A complete file of events by the ending of its name."""

from __future__ import annotations

from pathlib import Path

from eventide.errors import InputError
from eventide.events.files.lines import CSV_ENDINGS, JSON_ENDINGS, LineFile, is_lines
from eventide.events.files.parquet_file import ParquetFile

PARQUET_ENDINGS = (".parquet", ".pq")


def open_file(path: Path) -> LineFile | ParquetFile:
    """Open a CSV, JSONL or Parquet file, the first two perhaps compressed."""
    if is_lines(path.name):
        return LineFile(path)
    if path.name.lower().endswith(PARQUET_ENDINGS):
        return ParquetFile(path)
    known = ", ".join(CSV_ENDINGS + JSON_ENDINGS + PARQUET_ENDINGS)
    raise InputError(f"{path.name} ends in none of {known} (or .gz after them); convert or rename it")
