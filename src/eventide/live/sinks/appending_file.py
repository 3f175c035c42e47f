"""Files that grow by a step at a time: JSON lines, and CSV wide or long.

What a crash left half-written at the end is cut off when the file is opened again; the last whole step tells where to
go on. A file that holds something else is refused and stays as it was. While a step is written the file is locked, and
whoever finds it longer or shorter than it was looks again: so a writer that was paused and taken over writes nothing
twice.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, product
from pathlib import Path
from typing import Any

from eventide.errors import InputError
from eventide.live import faults
from eventide.live.sinks.base import Sink, name_of_file, refuse_unwritable
from eventide.releases.formats import Csv
from eventide.releases.level_values import EVENTS, WINDOW, Groups, either_way


class AppendingFile(Sink):
    """JSON lines: each step is one line, the stored bytes."""

    header = b""
    lines_per_step = 1

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = name_of_file(self.path)
        self._begin = self._end = 0  # of the last whole step
        self._step, self._last = -1, b""

    def check(self) -> None:
        """Look at what the file has, and leave it as it is."""
        exists = os.path.exists(self.path)  # noqa: PTH110 - False also where it cannot be looked at
        refuse_unwritable(self.path, in_place=exists)
        if exists:
            with self.path.open("rb", buffering=0) as self._file:
                self._find_last_step()

    def open(self) -> None:
        """Open or make the file, and cut off what was half-written."""
        try:
            self.path.touch()
            with ExitStack() as undone:
                self._file = undone.enter_context(self.path.open("r+b", buffering=0))
                with self._locked():
                    self._look()
                undone.pop_all()
        except BlockingIOError:
            raise InputError(f"{self.path} is being written by another process; end it, then start again") from None
        except OSError as problem:
            raise InputError(
                f"cannot write {self.path}: {problem.strerror}; choose a folder that exists and may be written to"
            ) from None

    def last_step(self) -> int:
        """The step that the file ends with."""
        return self._step

    def holds(self, release: bytes) -> bool:
        """Compare the end of the file with what would be written."""
        return self._last == self.encode(release)

    def send(self, step: int, release: bytes) -> None:
        """Append the step, or leave the file as it was; also where another writer has appended it."""
        data = self.encode(release)
        with self._locked():
            if os.fstat(self._file.fileno()).st_size != self._end:
                self._look()
            if step <= self._step:
                return
            header = self.header[self._end :]  # which a file gets with its first step
            try:
                for piece in faults.pieces("half-line", header + data):
                    self._write(piece)
            except OSError:
                self._cut()
                raise
            self._begin = self._end + len(header)
            self._end, self._step, self._last = self._begin + len(data), step, data

    def flush(self) -> None:
        """Make it durable."""
        os.fsync(self._file.fileno())

    def finish(self) -> None:
        """Make it durable; a file without any step has its header at least."""
        if self._end < len(self.header):
            with self._locked():
                self._look()
                self._write(self.header[self._end :])
                self._begin = self._end = max(self._end, len(self.header))
        self.flush()

    def close(self) -> None:
        """Close the file, which stays."""
        self._file.close()

    def encode(self, release: bytes) -> bytes:
        """What the file holds of a release."""
        return release + b"\n"

    def step_of_line(self, line: bytes) -> int:
        """The step a line belongs to."""
        return int(json.loads(line)["step"])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Nobody else of us writes meanwhile; where somebody does, `BlockingIOError`."""
        fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            yield
        finally:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_UN)

    def _write(self, data: bytes) -> None:
        while data:
            data = data[self._file.write(data) :]

    def _look(self) -> None:
        """See what the file has, and cut off what was half-written."""
        self._find_last_step()
        self._cut()

    def _find_last_step(self) -> None:
        self._begin, self._end = self._whole_steps()
        self._last = os.pread(self._file.fileno(), self._end - self._begin, self._begin)
        self._step = self._step_of(self._last) if self._last else -1

    def _cut(self) -> None:
        """Bring the file back to its whole steps."""
        self._file.truncate(self._end)
        self._file.seek(self._end)

    def _step_of(self, lines: bytes) -> int:
        try:
            return self.step_of_line(lines.partition(b"\n")[0])
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{self.path} holds something else than releases; choose another file") from None

    def _whole_steps(self) -> tuple[int, int]:
        """Where the last whole step begins and ends; both behind the header where there is none."""
        size = os.fstat(self._file.fileno()).st_size
        self._keep_columns()
        first = len(self.header)
        if os.pread(self._file.fileno(), min(size, first), 0) != self.header[:size]:
            raise InputError(f"{self.path} begins with other columns than these bins give; choose another file")
        if size <= first:
            return (first, first) if size == first else (0, 0)
        with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return self._last_whole_step(content, first)

    def _keep_columns(self) -> None:
        """Go on with the columns that the file has."""

    def _last_whole_step(self, content: mmap.mmap, first: int) -> tuple[int, int]:
        end = content.rfind(b"\n") + 1
        if end <= first:
            if len(content) - first and not self._torn(content[first:]):
                raise InputError(f"{self.path} holds something else than releases; choose another file")
            return first, first
        begin, lines = self._run_before(content, first, end)
        self.refuse_other_rows(content[begin:end])
        if lines == self.lines_per_step:
            return begin, end
        before = self._run_before(content, first, begin)[0] if begin > first else first  # a step whose rows are torn
        return before, begin

    def _run_before(self, content: mmap.mmap, first: int, end: int) -> tuple[int, int]:
        """Where the lines that end at `end` and belong to one step begin, and how many they are."""
        step, begin, lines = None, end, 0
        while begin > first and lines < self.lines_per_step:
            earlier = max(first, content.rfind(b"\n", first, begin - 1) + 1)
            of_line = self._step_of(content[earlier:begin])
            if step not in (None, of_line):
                break
            step, begin, lines = of_line, earlier, lines + 1
        return begin, lines

    def refuse_other_rows(self, lines: bytes) -> None:
        """Refuse a file whose last step, whole or torn, has rows of something else: nothing of it is cut off."""

    def _torn(self, rest: bytes) -> bool:
        """Whether a file of one line that does not end may be the beginning of a release."""
        return rest.startswith(b'{"step": '[: len(rest)])


class AppendingTable(AppendingFile):
    """CSV: one line a step and a column a bin (wide), or one line for each bin (long).

    A file that was begun with intervals or without them goes on as it was begun, whatever `intervals` says; and so does
    one with or without the histograms of sliding windows.
    """

    bins: tuple[str, ...]

    def __init__(
        self,
        path: str | Path,
        bins: Sequence[str],
        layout: str | None,
        *,
        starts: bool = False,
        intervals: bool | None = None,
        groups: Groups | None = None,
        statistics: Sequence[str] = (EVENTS,),
    ) -> None:
        self.bins, self.groups, self._first = tuple(bins), groups, ("step", "start") if starts else ("step",)
        self._asked_layout, self._statistics = layout, statistics
        self._take(self._table(statistics, intervals))
        if any("\n" in name or "\r" in name for column in self._rows.columns.values() for name in column):
            raise InputError("the name of a bin holds a line break, which a growing CSV cannot; choose .jsonl")
        super().__init__(path)

    def _table(self, statistics: Sequence[str], intervals: bool | None) -> Csv:
        """A table of these columns, whose stream has its header."""
        starts, groups = "start" in self._first, self.groups
        how: dict[str, Any] = {"starts": starts, "intervals": intervals, "groups": groups, "statistics": statistics}
        return Csv(io.BytesIO(), self.bins, self._asked_layout, **how)

    def _take(self, table: Csv) -> None:
        """Write the columns of a table."""
        self._rows, self._layout, self._intervals = table.rows, table.layout, table.intervals
        self.leaves_out_windows = len(self._statistics) > 1 and self._rows.statistics is None
        self.header = _header(table)
        self.lines_per_step = len(self._rows.names) if self._layout == "long" else 1

    def encode(self, release: bytes) -> bytes:
        """The rows of a release."""
        said = json.loads(release)
        parts = [said, *(said.get("levels", {}).values() if self.groups else ())]
        if self._rows.statistics:
            parts += said.get("statistics", {}).values()
        if self._rows.statistics and "window_values" in said:
            parts.append({name.removeprefix("window_"): said[name] for name in WINDOW if name in said})

        def numbers(kind: str) -> list[Any]:
            cells = [cell for part in parts for cell in part.get(kind, [None] * len(part["values"]))]
            return cells + [None] * (len(self._rows.names) - len(cells))  # levels before there were any

        kinds = [numbers(kind) for kind in (("values", "low", "high") if self._intervals else ("values",))]
        rows = [list(chain.from_iterable(zip(*kinds, strict=True)))]
        if self._layout == "long":
            fresh = [[json.dumps(said["fresh"])] * len(self._rows.names)] if self._intervals else []
            names = self._rows.called(said.get("bins", {})).values()
            rows = [list(row) for row in zip(*names, *kinds, numbers("scale"), *fresh, strict=True)]
        first = [said.get(name) for name in self._first]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*first, *cells] for cells in rows)
        return text.getvalue().encode()

    def refuse_other_rows(self, lines: bytes) -> None:
        """Compare the names of a long table's rows with those of the bins and groups."""
        if self._layout == "long":
            places = slice(len(self._first), len(self._first) + len(self._rows.columns))
            found = [tuple(row[places]) for row in csv.reader(lines.decode(errors="replace").split("\n")) if row]
            if not self._rows.begin_with(found):
                raise InputError(f"{self.path} has rows of other bins or groups; choose another file")

    def step_of_line(self, line: bytes) -> int:
        """The first column."""
        return int(line.partition(b",")[0])

    def _keep_columns(self) -> None:
        for statistics, intervals in product(either_way(self._statistics), (self._intervals, not self._intervals)):
            with suppress(InputError):  # bins that a table of that kind cannot have
                table = self._table(statistics, intervals)
                if os.pread(self._file.fileno(), len(header := _header(table)), 0) == header:
                    self._take(table)
                    return

    def _torn(self, rest: bytes) -> bool:
        return rest[:1].isdigit()


def _header(table: Csv) -> bytes:
    """What a table has written before its first row."""
    stream = table.stream
    assert isinstance(stream, io.BytesIO)
    return stream.getvalue()
