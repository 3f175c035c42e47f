"""Rows as a format reads them, with what they were read from, so that one of them can be found again by its number.

What they were read from is raw: it is held as long as its batch, and never kept or shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class FileBlock(NamedTuple):
    """A piece of a file that is still to be read into rows, and where the next one begins."""

    content: Any
    end: int


class UnparsedRows(NamedTuple):
    """Lines, messages or rows of a table in the order in which they came: how many, and the first few read again.

    `file` names the one of several files that they are from.
    """

    size: Callable[[], int]
    first: Callable[[int], ParsedRows]
    file: str | None = None

    def __repr__(self) -> str:
        return "<raw rows>"


class ParsedRows(NamedTuple):
    """Rows as `EventReader` takes them, how many lines were none, and what all were read from."""

    rows: Any
    unreadable: int
    raw: UnparsedRows | None = None

    def __repr__(self) -> str:
        return "<rows>"


def unparsed_lines(lines: bytes, read: Callable[[bytes], ParsedRows]) -> UnparsedRows:
    """Lines of text, as something reads whole lines."""
    return UnparsedRows(
        lambda: lines.count(b"\n") + (lines[-1:] not in (b"", b"\n")),
        lambda number: read(b"\n".join(lines.split(b"\n", number)[:number]) + b"\n"),
    )


def unparsed_list(items: Sequence[Any], read: Callable[[Sequence[Any]], ParsedRows]) -> UnparsedRows:
    """Items of a list, as something reads a list of them."""
    return UnparsedRows(lambda: len(items), lambda number: read(items[:number]))
