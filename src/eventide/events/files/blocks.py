"""A complete file as blocks of rows, each of which can be read by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from eventide.events.rows import ParsedRows


class FileBlock(NamedTuple):
    """A piece of a file that is still to be read into rows, and where the next one begins."""

    content: Any
    end: int


class EventFile(Protocol):
    """A complete file of events, as blocks of rows."""

    name: str
    path: Path

    def blocks(self, begin: int) -> Iterator[FileBlock]:
        """The blocks from where one begins."""

    def rows(self, content: Any, wanted: list[str]) -> ParsedRows:
        """The wanted columns of a block; may be called by several threads."""
