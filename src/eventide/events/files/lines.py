"""Lines of text as rows: CSV with a header, or one JSON object a line; a line is a row, so no cell may break over two.

A line that is no row is counted and left out, and never changes what is read from another: lines come from different
people. A complete file of lines, plain or compressed (.gz), is read in blocks that end at a line's end, so memory is
bounded however long the file or a line of it is.
"""

from __future__ import annotations

import codecs
import csv
import json
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from gzip import GzipFile
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from eventide.errors import InputError
from eventide.events.files.torn_line_kernels import without_torn_lines
from eventide.events.rows import FileBlock, ParsedRows, unparsed_lines

BLOCK = 8 << 20  # bytes of a file that are read at a time
LONGEST_LINE = 1 << 20  # bytes
CSV_ENDINGS = (".csv",)
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}  # that other tools write
JSON_ENDINGS = (".jsonl", ".ndjson")
STANDARD_INPUT = "standard input"


class CsvLineReader:
    """Comma-separated lines below a header, which names the columns."""

    def __init__(self, header: bytes, name: str) -> None:
        if header.startswith((b"\x1f\x8b", b"PAR1")):
            kind, ending = ("Parquet", ".parquet") if header.startswith(b"PAR1") else ("compressed (gzip)", ".gz")
            advice = f"rename it so that it ends in {ending}"
            if name == STANDARD_INPUT:
                advice = "give the path of the file instead of -"
            raise InputError(f"{name} is {kind}, and lines of text are read here; {advice}")
        try:
            names = next(csv.reader([header.decode("utf-8-sig").rstrip("\r\n")]), [])
        except UnicodeDecodeError:
            raise InputError(f"the first line of {name} is not in UTF-8; save the file in UTF-8") from None
        except csv.Error:
            raise InputError(f"the first line of {name} has a carriage return inside; write it anew") from None
        if not names:
            raise InputError(f"{name} is empty or begins with an empty line; its first line must name the columns")
        self.name = name
        self.columns = [column.strip() for column in names]

    def rows(self, lines: bytes, wanted: Sequence[str]) -> ParsedRows:
        """The wanted columns of whole lines, as bytes."""
        self._check(wanted)
        raw = unparsed_lines(lines, partial(self.rows, wanted=wanted))
        lines, refused = without_long_lines(lines)
        if b'"' in lines:
            kept, torn = without_torn_lines(np.frombuffer(lines.removesuffix(b"\n") + b"\n", np.uint8))
            lines, refused = kept.tobytes(), refused + torn
        tables, unreadable = self._tables(lines, wanted)
        return ParsedRows(pa.concat_tables(tables) if tables else [], refused + unreadable, raw)

    def _tables(self, lines: bytes, wanted: Sequence[str]) -> tuple[list[Any], int]:
        """Whole lines as tables, and how many are no rows; where Arrow gives up, the halves by themselves."""
        unreadable = 0

        def skip(row: Any) -> str:
            nonlocal unreadable
            unreadable += 1
            return "skip"

        if not lines.strip(b"\r\n"):
            return [], 0
        given = b"\n" + lines if lines.startswith(codecs.BOM_UTF8) else lines  # or it would be taken off, here only
        try:
            table = pa_csv.read_csv(
                pa.BufferReader(given),
                pa_csv.ReadOptions(column_names=self.columns, use_threads=False, block_size=len(given) + 1),
                pa_csv.ParseOptions(invalid_row_handler=skip if _is_utf8(lines) else None),  # which is shown text only
                pa_csv.ConvertOptions(column_types=dict.fromkeys(wanted, pa.binary()), include_columns=list(wanted)),
            )
        except pa.ArrowInvalid:
            half = len(lines) // 2
            cut = lines.rfind(b"\n", 0, half) + 1 or lines.find(b"\n", half, -1) + 1
            if not cut:
                return [], 1
            first, second = self._tables(lines[:cut], wanted), self._tables(lines[cut:], wanted)
            return first[0] + second[0], first[1] + second[1]
        return [table], unreadable

    def _check(self, wanted: Sequence[str]) -> None:
        """Refuse a missing column. What stands in the header is not shown: where there is none, it is an event."""
        for column in wanted:
            if (number := self.columns.count(column)) > 1:
                raise InputError(
                    f"{self.name} has {number} columns {column!r}; its first line must name each once, so "
                    "rename the others"
                )
            if not number and (separator := self._other_separator()):
                raise InputError(
                    f"{self.name} has no column {column!r}: its first line has {separator} between names and no comma, "
                    "and only commas are read; write it anew with commas"
                )
            if not number:
                raise InputError(
                    f"{self.name} has no column {column!r}. Its first line must name all columns; say which ones are "
                    "meant with --time, --user and --bin (in Python time=, user=, bin=)"
                )

    def _other_separator(self) -> str | None:
        """What else than a comma seems to stand between the names."""
        if len(self.columns) > 1:
            return None
        return next((told for mark, told in SEPARATORS.items() if mark in self.columns[0]), None)


class JsonLineReader:
    """One JSON object a line."""

    def rows(self, lines: bytes, wanted: Sequence[str]) -> ParsedRows:
        """The objects of whole lines; one by one, so that none can reach into another."""
        raw = unparsed_lines(lines, partial(self.rows, wanted=wanted))
        lines, refused = without_long_lines(lines)
        given = [line for line in lines.split(b"\n") if line.strip()]
        objects = [row for line in given if (row := json_object(line)) is not None]
        return ParsedRows(objects, refused + len(given) - len(objects), raw)


class LineFile:
    """Blocks of a CSV or JSONL file; places are bytes of what is compressed."""

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.name = name or path.name
        self.path = path
        self._format: CsvLineReader | JsonLineReader = JsonLineReader()
        self._body = 0
        self.columns: tuple[str, ...] = ()
        if is_csv(path.name):
            header = self._first_line()
            self._format, self._body = CsvLineReader(header, self.name), len(header)
            self.columns = tuple(self._format.columns)

    def blocks(self, begin: int) -> Iterator[FileBlock]:
        """Blocks of whole lines; of one that is too long, and will be refused, only the beginning."""
        with self._opened() as file:
            place = file.seek(max(begin, self._body))
            while content := file.read(BLOCK):
                content += (rest := file.readline(LONGEST_LINE + 1))
                place += len(content)
                while len(rest) > LONGEST_LINE and not rest.endswith(b"\n"):
                    rest = file.readline(LONGEST_LINE + 1)
                    place += len(rest)
                yield FileBlock(content, place)

    def rows(self, content: bytes, wanted: list[str]) -> ParsedRows:
        """The wanted columns of a block."""
        return self._format.rows(content, wanted)

    def earliest(self, content: bytes, column: str) -> None:
        """Lines do not say it before they are read."""

    def _first_line(self) -> bytes:
        try:
            with self._opened() as file:
                return file.readline(LONGEST_LINE)
        except (OSError, EOFError, zlib.error):
            raise InputError(f"{self.name} cannot be read; it is damaged or cut short") from None

    def _opened(self) -> BufferedIOBase:
        try:
            return GzipFile(self.path) if self.path.suffix.lower() == ".gz" else self.path.open("rb")
        except OSError:
            raise InputError(f"{self.path} cannot be opened; check the path") from None


def without_long_lines(lines: bytes) -> tuple[bytes, int]:
    """The lines but those that are longer than a line may be, and how many these were; looks at few of the bytes."""
    kept, refused, begin, place = [], 0, 0, 0
    while len(lines) - place > LONGEST_LINE:
        end = lines.rfind(b"\n", place, place + LONGEST_LINE + 1)
        if end < 0:
            kept.append(lines[begin:place])
            refused += 1
            end = lines.find(b"\n", place)
            begin = len(lines) if end < 0 else end + 1
        place = max(begin, end + 1)
    return (b"".join([*kept, lines[begin:]]) if refused else lines), refused


def _is_utf8(text: bytes) -> bool:
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False


def json_object(text: bytes) -> dict[str, Any] | None:
    """The object that a text holds, None if it holds none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def is_csv(name: str) -> bool:
    """Whether a file of lines is CSV by its name; else it is JSONL."""
    return _plain(name).endswith(CSV_ENDINGS)


def is_lines(name: str) -> bool:
    """Whether a name is that of a file of lines."""
    return _plain(name).endswith(CSV_ENDINGS + JSON_ENDINGS)


def _plain(name: str) -> str:
    return name.lower().removesuffix(".gz")
