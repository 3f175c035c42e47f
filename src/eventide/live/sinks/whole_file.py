"""A file that appears only when it is complete: Parquet always, and every format of a run without a store.

Each run writes it anew from the stored releases and takes its name at the end; until then an older file stays as it
was. What a Parquet file has and its store has lost (a backup was restored) was published: it is taken over into the new
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from eventide.live.sinks.base import Sink, name_of_file, refuse_unwritable
from eventide.live.sinks.older_parquet import OlderParquet
from eventide.releases.files import open_releases
from eventide.releases.formats import formats
from eventide.releases.lines import read_line


class WholeFile(Sink):
    """A .jsonl, .csv or .parquet file of all releases.

    With `keeps`, which is for Parquet, steps of an older file that are not sent stay in it.
    """

    begins_anew = True
    bins: tuple[str, ...]

    def __init__(
        self,
        path: str | Path,
        bins: Sequence[str],
        layout: str | None = None,
        *,
        starts: bool = False,
        keeps: bool = False,
    ) -> None:
        self.path = Path(path)
        self.name = name_of_file(self.path)
        self.bins = tuple(bins)
        self._layout, self._starts, self._keeps = layout, starts, keeps
        self._older: OlderParquet | None = None
        self._sent = -1
        self._held = ExitStack()

    def check(self) -> None:
        """Look at the older file."""
        refuse_unwritable(self.path, in_place=False)
        self._look()

    def open(self) -> None:
        """Look at the older file, and begin the new one under another name."""
        self._look()
        how = self.bins, self._layout, None, formats(starts=self._starts)
        self._file = self._held.enter_context(open_releases(str(self.path), *how))

    def last_step(self) -> int:
        """The step that the older file ends with, where that counts."""
        return -1 if self._older is None else int(self._older.steps.max(initial=-1))

    def holds(self, release: bytes) -> bool:
        """Compare the values of its last step."""
        last = self.last_step()
        values = read_line(release).values
        return self._older is not None and all(
            np.array_equal(older.values, values, equal_nan=True) for older in self._older.releases(last, last + 1)
        )

    def send(self, step: int, release: bytes) -> None:
        """Take a release."""
        self._keep_before(step)
        self._file.write(read_line(release))
        self._sent = step

    def finish(self) -> None:
        """Give the file its name."""
        self._keep_before(self.last_step() + 1)
        self._file.commit()

    def close(self) -> None:
        """Remove what was not finished."""
        self._held.close()

    def _look(self) -> None:
        if self._keeps:
            self._older = OlderParquet(self.path, self.bins, self._layout, starts=self._starts)

    def _keep_before(self, step: int) -> None:
        """Take over what was not sent and would be missed."""
        if self._older is not None:
            for release in self._older.releases(self._sent + 1, step):
                self._file.write(release)
