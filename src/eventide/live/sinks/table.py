"""A table of a lakehouse or a database as a sink: a row for each step and bin, and a commit for each batch of steps.

The table itself says which step it ends with, in what its last commit wrote besides the rows: so a commit that was made
and not noticed, because its writer was killed, is not made again. A table that holds something else is refused and
stays as it was.
"""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from eventide.errors import InputError
from eventide.live.sinks.base import Sink
from eventide.releases.formats import Tabular
from eventide.releases.level_values import EVENTS, Groups, either_way
from eventide.releases.lines import read_line

ROWS_AT_A_TIME = 100_000  # of a commit, where it has several steps


class LongRows(Tabular):
    """Releases as Arrow tables with the columns of a long file."""

    def __init__(self, bins: Sequence[str], **how: Any) -> None:
        super().__init__(io.BytesIO(), bins, "long", **how)

    def begin(self) -> None:
        """Nothing comes before the first row."""
        self._tables: list[Any] = []

    def put(self, columns: list[Any]) -> None:
        """Keep rows until they are asked for."""
        self._tables.append(pa.table(columns, schema=self.schema))

    def of(self, releases: Iterable[bytes]) -> Any:
        """The rows of some releases."""
        self.begin()
        for release in releases:
            self.add(read_line(release))
        self.close()
        return pa.concat_tables(self._tables)


class TableSink(Sink):
    """Appends releases to a table; `place` is how errors call it, `starts` whether it tells when steps begin.

    A table that was begun with the histograms of sliding windows or without them goes on as it was begun.
    """

    bins: tuple[str, ...]
    _last = -1
    _compared: tuple[int, Any] = -1, None  # the last step when it was opened, and its rows

    def __init__(
        self,
        place: str,
        bins: Sequence[str],
        *,
        starts: bool = False,
        groups: Groups | None = None,
        statistics: Sequence[str] = (EVENTS,),
    ) -> None:
        self.place, self.bins, self.groups = place, tuple(bins), groups
        self._starts, self._gives_windows = starts, len(statistics) > 1
        self.has(statistics)

    def has(self, statistics: Sequence[str]) -> None:
        """Write these of every bin."""
        self.statistics = statistics
        self.leaves_out_windows = self._gives_windows and len(statistics) == 1
        self._rows = LongRows(self.bins, starts=self._starts, groups=self.groups, statistics=statistics)
        self.schema = self._rows.schema
        self.steps_at_a_time = max(1, ROWS_AT_A_TIME // len(self._rows.bins))

    @abstractmethod
    def look(self) -> int:
        """The step that the table ends with now, -1 before the first; refuses a table of something else."""

    @abstractmethod
    def rows_of(self, step: int) -> Any:
        """What the table has of a step, as an Arrow table with our columns."""

    @abstractmethod
    def append(self, rows: Any, last: int) -> None:
        """Commit rows and that they end with step `last`; fail where somebody else wrote since `look`."""

    def look_and_compare(self) -> None:
        """Look, and refuse a table whose rows are those of other bins or groups: its columns do not tell."""
        self._last = self.look()
        if self._last >= 0:
            rows = self._rows.rows
            self._compared = self._last, self.rows_of(self._last)
            found = [self._compared[1][name].to_pylist() for name in rows.columns]
            if not rows.are(zip(*found, strict=True)):
                raise InputError(f"{self.place} has rows of other bins or groups; choose another table")

    def refuse_other_columns(self, found: Any) -> None:
        """Compare the names and types of columns."""
        there = [(each.name, each.type) for each in found]
        for statistics in either_way(self.statistics):
            self.has(statistics)
            if there == [(each.name, each.type) for each in self.schema]:
                return
        raise InputError(f"{self.place} has other columns than these bins give; choose another table")

    def last_step(self) -> int:
        """What the table said when it was last looked at."""
        return self._last

    def holds(self, release: bytes) -> bool:
        """Compare the rows of the last step, in whatever order the table has them."""
        order = [(name, "ascending") for name in self._rows.rows.columns]
        step, rows = self._compared  # which may have been closed again since
        there = rows if step == self._last else self.rows_of(self._last)
        found, ours = (rows.sort_by(order) for rows in (there, self._rows.of([release])))
        return bool(found.equals(ours))

    def send(self, step: int, release: bytes) -> None:
        """Commit a step."""
        self.send_all([(step, release)])

    def send_all(self, releases: Sequence[tuple[int, bytes]]) -> None:
        """Commit the steps together, except those that the table has."""
        self._last = self.look()
        lacking = [(step, release) for step, release in releases if step > self._last]
        if lacking:
            self.append(self._rows.of(release for _, release in lacking), lacking[-1][0])
            self._last = lacking[-1][0]
