"""Whether the first rows can be read at all: a wrong column, time format or list of bins would publish pure noise.

Before the first release of a store, most of the first rows must be readable, or nothing is published. This looks at raw
rows, and what it says (a row number, the bin name nearest to a cell) is for the operator alone. Once a step is released
it stops nothing any more: whether later steps come out must not depend on anybody's rows. Then the operator is told.

Complete files of which no row lies between the start and the end are refused as well: a wrong year, an empty delivery.

Times with and without a zone in one column are refused as well, unless somebody said in which zone the others are: the
others would be read in UTC, and perhaps be hours off. And so are dates that are written as numbers, such as 20260131:
they would be read as seconds since 1970, all in one day.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from itertools import islice

import pyarrow as pa

from eventide.arrays import Ints
from eventide.errors import InputError
from eventide.events import numbered_dates
from eventide.events.reader import (
    UNKNOWN_BIN,
    UNREADABLE_ROW,
    UNREADABLE_TIME,
    UNREADABLE_VALUE,
    WITHOUT_USER,
    EventReader,
)
from eventide.events.rows import UnparsedRows
from eventide.events.texts import named, texts

ENOUGH = 1_000  # rows
MOST_COMPARED = 100_000  # bin names
LONGEST_COMPARED = 200  # characters
MOST_REFUSED = "more than half of the first rows were refused"
MOST_REFUSED_NOW = "more than half of the first rows of this run were refused"
ADVICE = {
    UNREADABLE_ROW: "Give one JSON object a line, or CSV lines with as many cells as the header",
    UNREADABLE_TIME: "Write times as 2026-01-31T23:59:00Z or as seconds since 1970, say how they are written with "
    "--time-format, or name another column",
    WITHOUT_USER: "Name the column that says whose event it is",
    UNKNOWN_BIN: "Correct the list of bins, name another column, or count unknown bins under one name with --other",
    UNREADABLE_VALUE: "Write numbers as 12.5, or name another column in --statistic",
}


class FirstRowsRefused(InputError):
    """The first rows cannot be meant, and nothing was published."""


class MostRowsRefused(FirstRowsRefused):
    """More than half of them were refused, most often for this reason; `reason` says what to do as well."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{MOST_REFUSED}, so nothing was published or charged. Most often: {reason}; to publish nonetheless, give "
            "--allow-refused"
        )
        self.reason = reason


class NothingInside(FirstRowsRefused):
    """No row of complete files belongs to any step: pure noise would be published."""


class MixedZones(FirstRowsRefused):
    """Some of their times name a zone and some do not."""


class NumberedDates(FirstRowsRefused):
    """Their times are dates that are written as numbers, and would be read as seconds since 1970."""


class FirstRows:
    """Counts what becomes of rows until there are enough, or until the caller must know, and then decides once."""

    def __init__(self, reader: EventReader, *, checked: bool, tell: Callable[[str], None] | None = None) -> None:
        self._reader, self._tell = reader, tell
        self._decided = not checked
        self._read = 0  # rows that were read or refused
        self._passed: Counter[str | None] = Counter()  # lines, messages or rows of tables, of each file
        self._refused: Counter[str] = Counter()
        self._in_zone = 0  # rows whose times name no zone
        self._plausible = reader.time_format_is_given  # or some time lies in our days
        self._looked_at: list[UnparsedRows] = []  # where no time does
        self._samples: dict[str, tuple[int, UnparsedRows]] = {}  # where each reason came first, and what passed before

    def add(
        self,
        rows: int,
        refused: Counter[str],
        raw: UnparsedRows | None = None,
        in_zone: int = 0,
        times: Ints | None = None,
    ) -> None:
        """Count so many rows, with those that were refused or name no zone among them; decide if that is enough.

        `times` are those of the rows that were read.
        """
        if self._decided:
            return
        faults = {reason: refused[reason] for reason in ADVICE if refused[reason]}
        self._read += rows
        self._refused.update(faults)
        self._in_zone += in_zone
        if raw is not None:
            for reason in faults:
                self._samples.setdefault(reason, (self._passed[raw.file], raw))
            self._passed[raw.file] += raw.size()
            self._plausible = self._plausible or times is None or numbered_dates.are_plausible(times)
            self._looked_at = [] if self._plausible else [*self._looked_at, raw]
        if self._read >= ENOUGH:
            self.decide()

    def decide(self) -> None:
        """Refuse if most rows were refused, or zones are mixed; the next calls say nothing more.

        Where there is somebody to tell, nothing is refused.
        """
        if self._tell is not None and not self._decided:
            if 2 * self._refused.total() > self._read:
                self._tell(
                    f"For operators only, since it depends on the events: {MOST_REFUSED_NOW}, and nothing is stopped "
                    f"for that once a step was released. Most often: {self._reason()}"
                )
            self._decided = True
        if not self._decided and 2 * self._refused.total() > self._read:
            raise MostRowsRefused(self._reason())
        with_time = self._read - self._refused[UNREADABLE_ROW] - self._refused[UNREADABLE_TIME]
        if not self._decided and not self._reader.zone_is_given and 0 < self._in_zone < with_time:
            raise MixedZones(
                f"of the first times in column {self._reader.columns.time!r} some name a zone or count since 1970 and "
                "some name none, so nothing was published or charged. Say in which zone the others are, such as --zone "
                "UTC or --zone Europe/Berlin"
            )
        if not self._decided and (form := self._form_of_dates()):
            raise NumberedDates(
                f"the first times in column {self._reader.columns.time!r} are all numbers that read like "
                "dates, such as 20260131, and would be taken for numbers since 1970, so nothing was published or "
                f"charged. If they are dates, give --time-format {form}; if they count since 1970, give "
                f"--time-format {numbered_dates.TAKEN_FOR[form]}"
            )
        self._decided = True
        self._samples.clear()
        self._looked_at.clear()

    def _form_of_dates(self) -> str | None:
        """How the first times are written, if all of them are dates written as numbers, and none of them is ours."""
        found = []
        for raw in self._looked_at:
            column = named(raw.first(min(raw.size(), ENOUGH)).rows, self._reader.columns.time)
            if isinstance(column, pa.Array | pa.ChunkedArray) and pa.types.is_temporal(column.type):
                return None
            found += texts(column).to_pylist()
        return numbered_dates.form_of(found)

    def _reason(self) -> str:
        ((reason, _),) = self._refused.most_common(1)
        details = ", ".join(self._details(reason))
        advice = ADVICE[reason]
        if reason == UNREADABLE_TIME and (form := self._reader.read_from["time_format"]) is not None:
            advice = (
                f"--time-format {form!r} must describe the whole cell; correct it, or name another column with --time"
            )
        return f"{reason}{details and f' ({details})'}. {advice}"

    def _details(self, reason: str) -> list[str]:
        """The column, the first row that was refused for this reason, and what would be near."""
        columns = self._reader.columns
        column = {
            UNREADABLE_TIME: columns.time,
            WITHOUT_USER: columns.user,
            UNKNOWN_BIN: columns.bin,
            UNREADABLE_VALUE: getattr(self._reader.grid, "column", None),  # of several, any may be meant
        }.get(reason)
        said = [] if column is None else [f"column {column!r}"]
        passed, raw = self._samples.get(reason, (0, None))
        number = 0 if raw is None else self._first_faulty(reason, raw)
        if raw is None or not number:
            return said
        said.append(f"first at row {passed + number}{f' of {raw.file}' if raw.file else ''}")
        if column is not None:
            cell = texts(named(raw.first(number).rows, column))[-1].as_py().decode(errors="replace").strip()
            if not cell:
                said.append("where it is empty or missing")
                if "." in column:
                    said.append("and fields inside others are not read")
            elif reason == UNKNOWN_BIN:
                said.append(f"the nearest bin name is {self._nearest(cell)!r}")
        return said

    def _first_faulty(self, reason: str, raw: UnparsedRows) -> int:
        """The number, from 1, of the first row that is refused for a reason; 0 where it is not among them."""

        def faulty(number: int) -> bool:
            rows, unreadable, _ = raw.first(number)
            return self._reader.read(rows, unreadable).refused[reason] > 0

        place = bisect_left(range(1, raw.size() + 1), True, key=faulty)
        return 0 if place == raw.size() else place + 1

    def _nearest(self, cell: str) -> str:
        names = {name.casefold(): name for name in islice(self._reader.bins, MOST_COMPARED)}
        (nearest,) = difflib.get_close_matches(cell[:LONGEST_COMPARED].casefold(), names, 1, cutoff=0.0)
        return names[nearest]
