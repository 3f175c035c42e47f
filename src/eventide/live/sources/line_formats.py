"""Lines of text as rows: CSV with a header, or one JSON object a line; a line is a row, so no cell may break over two.

A line that is no row is counted and left out. May import `errors` and `event_reader`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from eventide.errors import InputError

LONGEST_LINE = 1 << 20  # bytes
CSV_ENDINGS = (".csv",)
JSON_ENDINGS = (".jsonl", ".ndjson")


class Rows(NamedTuple):
    """Rows as `EventReader` takes them, and how many lines were none."""

    rows: Any
    unreadable: int


class CsvLines:
    """Comma-separated lines below a header, which names the columns."""

    def __init__(self, header: bytes, name: str) -> None:
        try:
            names = next(csv.reader([header.decode("utf-8-sig").rstrip("\r\n")]), [])
        except (UnicodeDecodeError, csv.Error):
            raise InputError(f"{name} does not begin with a header in UTF-8; write it as such") from None
        if not names:
            raise InputError(f"{name} does not begin with a header; add a first line that names the columns")
        self.name = name
        self.columns = [column.strip() for column in names]

    def rows(self, lines: bytes, wanted: Sequence[str]) -> Rows:
        """The wanted columns of whole lines, as bytes."""
        unreadable = 0

        def skip(row: Any) -> str:
            nonlocal unreadable
            unreadable += 1
            return "skip"

        self._check(wanted)
        if not lines.strip():
            return Rows([], 0)
        table = pa_csv.read_csv(
            pa.BufferReader(lines),
            pa_csv.ReadOptions(column_names=self.columns, use_threads=False, block_size=len(lines) + 1),
            pa_csv.ParseOptions(invalid_row_handler=skip),
            pa_csv.ConvertOptions(column_types=dict.fromkeys(wanted, pa.binary()), include_columns=list(wanted)),
        )
        return Rows(table, unreadable)

    def _check(self, wanted: Sequence[str]) -> None:
        for column in wanted:
            if self.columns.count(column) != 1:
                raise InputError(
                    f"{self.name} has no column {column!r}, or several; its header names {', '.join(self.columns)}"
                )


class JsonLines:
    """One JSON object a line."""

    def rows(self, lines: bytes, wanted: Sequence[str]) -> Rows:
        """The wanted fields of whole lines; as texts in one go where all of them are, else object by object."""
        schema = pa.schema([(name, pa.string()) for name in wanted])
        options = pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        try:
            return Rows(
                pa_json.read_json(pa.BufferReader(lines), pa_json.ReadOptions(False, len(lines) + 1), options), 0
            )
        except pa.ArrowInvalid:
            return _one_by_one(lines)


def _one_by_one(lines: bytes) -> Rows:
    rows, unreadable = [], 0
    for line in lines.splitlines():
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict):
            rows.append(row)
        else:
            unreadable += 1
    return Rows(rows, unreadable)


def is_csv(name: str) -> bool:
    """Whether a file of lines is CSV by its name; else it is JSONL."""
    return _plain(name).endswith(CSV_ENDINGS)


def is_lines(name: str) -> bool:
    """Whether a name is that of a file of lines."""
    return _plain(name).endswith(CSV_ENDINGS + JSON_ENDINGS)


def _plain(name: str) -> str:
    return name.lower().removesuffix(".gz")
