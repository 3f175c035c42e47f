"""A complete file of lines, plain or compressed (.gz), in blocks that end at a line's end.

Memory is bounded however long the file or a line of it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from gzip import GzipFile
from io import BufferedIOBase
from pathlib import Path

from eventide.errors import InputError
from eventide.events.files.blocks import FileBlock
from eventide.events.files.line_formats import LONGEST_LINE, CsvLineReader, JsonLineReader, is_csv
from eventide.events.rows import ParsedRows

BLOCK = 8 << 20  # bytes


class LineFile:
    """Blocks of a CSV or JSONL file; places are bytes of what is compressed."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.path = path
        self._format: CsvLineReader | JsonLineReader = JsonLineReader()
        self._body = 0
        if is_csv(path.name):
            with self._opened() as file:
                header = file.readline(LONGEST_LINE)
            self._format, self._body = CsvLineReader(header, self.name), len(header)

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

    def _opened(self) -> BufferedIOBase:
        try:
            return GzipFile(self.path) if self.path.suffix.lower() == ".gz" else self.path.open("rb")
        except OSError:
            raise InputError(f"{self.path} cannot be opened; check the path") from None
