"""A file that appears only when it is complete: Parquet always, and every format of a run without a store.

Each run writes it anew from the stored releases and takes its name at the end; until then an older file stays as it
was. Imports `errors` and `streams`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventide.errors import InputError
from eventide.live.sinks.base import Sink, name_of_file
from eventide.streams.release_files import open_releases
from eventide.streams.release_formats import formats
from eventide.streams.release_lines import read_line


class WholeFile(Sink):
    """A .jsonl, .csv or .parquet file of all releases; `source`, the file being read, is never replaced."""

    begins_anew = True

    def __init__(
        self,
        path: str | Path,
        bins: Sequence[str],
        layout: str | None = None,
        *,
        source: Path | None = None,
        starts: bool = False,
    ) -> None:
        self.path = Path(path)
        self.name = name_of_file(self.path)
        self._how = bins, layout, source, formats(starts=starts)
        self._held = ExitStack()

    def open(self) -> None:
        """Begin the file under another name."""
        self._file = self._held.enter_context(open_releases(str(self.path), *self._how))

    def last_step(self) -> int:
        """The step that an older Parquet file ends with; -1 for other formats, which a run without a store replaces."""
        if self.path.suffix.lower() != ".parquet" or not self.path.exists():
            return -1
        try:
            last = pc.max(pq.read_table(self.path, columns=["step"])["step"]).as_py()
        except (pa.ArrowException, KeyError, OSError):
            raise InputError(f"{self.path} holds something else than releases; choose another file") from None
        return -1 if last is None else int(last)

    def send(self, step: int, release: bytes) -> None:
        """Take a release."""
        self._file.write(read_line(release))

    def finish(self) -> None:
        """Give the file its name."""
        self._file.commit()

    def close(self) -> None:
        """Remove what was not finished."""
        self._held.close()
