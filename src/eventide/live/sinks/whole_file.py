"""A file that appears only when it is complete: Parquet always, and every format of a run without a store.

Each run writes it anew from the stored releases and takes its name at the end; until then an older file stays as it
was. What a Parquet file has and its store has lost (a backup was restored) was published: it is taken over into the new
one.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

from eventide.arrays import Array, Floats, Ints
from eventide.errors import InputError
from eventide.live.sinks.base import Sink, name_of_file, refuse_unwritable
from eventide.releases.files import open_releases
from eventide.releases.formats import Parquet, formats, with_ends
from eventide.releases.level_values import EVENTS, Groups, either_way, unflat
from eventide.releases.lines import ReleaseLine, read_line


class WholeFile(Sink):
    """A .jsonl, .csv or .parquet file of all releases.

    With `keeps`, which is for Parquet, steps of an older file that are not sent stay in it, and it keeps its columns:
    with intervals and the histograms of sliding windows or without them, as it was begun.
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
        intervals: bool | None = None,
        keeps: bool = False,
        groups: Groups | None = None,
        statistics: Sequence[str] = (EVENTS,),
    ) -> None:
        self.path = Path(path)
        self.name = name_of_file(self.path)
        self.bins = tuple(bins)
        self._layout, self._starts, self._intervals, self._keeps = layout, starts, intervals, keeps
        self.groups, self._statistics, self._gives_windows = groups, statistics, len(statistics) > 1
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
        told: dict[str, Any] = {"starts": self._starts, "intervals": self._intervals}
        kinds = formats(**told, groups=self.groups, statistics=self._statistics)
        self._file = self._held.enter_context(open_releases(str(self.path), self.bins, self._layout, None, kinds))

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
            self._older = OlderParquet(
                self.path,
                self.bins,
                self._layout,
                starts=self._starts,
                intervals=self._intervals,
                groups=self.groups,
                statistics=self._statistics,
            )
            self._intervals, self._statistics = self._older.intervals, self._older.statistics
        as_table = self.path.suffix.lower() != ".jsonl" and self._gives_windows
        self.leaves_out_windows = as_table and (self._layout == "wide" or len(self._statistics) == 1)

    def _keep_before(self, step: int) -> None:
        """Take over what was not sent and would be missed."""
        if self._older is not None:
            for release in self._older.releases(self._sent + 1, step):
                self._file.write(release)


class OlderParquet:
    """The Parquet file at `path` that a run is about to replace: which steps it has, and what it says of them.

    It is only read, and must have the columns that would be written now, with intervals and sliding windows or without
    them; `intervals` and `statistics` say whether it has them. Without steps where there is no file.
    """

    def __init__(
        self,
        path: Path,
        bins: Sequence[str],
        layout: str | None,
        *,
        starts: bool,
        intervals: bool | None,
        groups: Groups | None = None,
        statistics: Sequence[str] = (EVENTS,),
    ) -> None:
        self._path, self._bins, self._groups = path, bins, groups
        self.intervals, self.statistics = intervals, statistics
        self.steps: Ints = np.zeros(0, np.int64)
        if not path.exists():
            return
        try:
            how: dict[str, Any] = {"starts": starts, "groups": groups}
            self._form, self.statistics = _form_of(
                pa_parquet.read_schema(path), path, bins, layout, statistics=statistics, **how
            )
            self.intervals = self._form.intervals
            self._refuse_other_rows()
            self.steps = np.unique(pa_parquet.read_table(path, columns=["step"])["step"])
        except (pa.ArrowException, OSError):
            raise InputError(f"{path} holds something else than releases; choose another file") from None

    def releases(self, first: int, end: int) -> Iterator[ReleaseLine]:
        """What it says of the steps from `first` up to `end`, in order, as far as it was written."""
        if np.equal(*np.searchsorted(self.steps, [first, end])):
            return
        table = pa_parquet.read_table(self._path, filters=[("step", ">=", first), ("step", "<", end)])
        values, low, high, scales = self._numbers(table)
        rows = table.take(np.arange(0, len(table), len(table) // len(values)))
        own = rows.schema.names if self._form.layout == "long" else ()  # a bin may be named fresh
        fresh = rows["fresh"].to_pylist() if "fresh" in own else [False] * len(rows)
        starts = rows["start"].to_pylist() if self._form.starts else [None] * len(rows)
        for place, row in enumerate(
            zip(rows["step"].to_pylist(), fresh, values, scales, low, high, starts, strict=True)
        ):
            line = replace(ReleaseLine(*row), named=self._named(table, place))
            yield unflat(line, self._bins, self._groups, self._form.rows)

    def _named(self, table: Any, place: int) -> dict[str, str]:
        """The names that spare bins have in the rows of a step."""
        if self._form.layout == "wide":
            return {}
        names = self._form.rows.names
        found = table["bin"].slice(place * len(names), len(names)).to_pylist()
        return {own: name for own, name in zip(names, found, strict=True) if own != name}

    def _refuse_other_rows(self) -> None:
        """Refuse a long table whose first step has rows of something else: the columns do not tell."""
        if self._form.layout == "wide":
            return
        rows, ours = self._form.rows, self._form.rows.columns
        with pa_parquet.ParquetFile(self._path) as file:
            found = next(file.iter_batches(len(rows.names), columns=[*ours]), None)
        if found is not None and not rows.begin_with(
            list(zip(*(found[name].to_pylist() for name in ours), strict=True))
        ):
            raise InputError(f"{self._path} has rows of other bins or groups; choose another file")

    def _numbers(self, table: Any) -> tuple[Floats, Floats, Floats, Floats]:
        """Values, both ends of intervals and scales, `(steps, d)`; NaN or, of scales, inf where they are not known."""

        def cells(*names: str) -> Floats:
            return np.column_stack([_numbers(table[name]) for name in names]).reshape(-1, len(self._form.rows.names))

        wide = self._form.layout == "wide"
        values = cells(*self._bins) if wide else cells("value")
        scales = np.full_like(values, np.inf) if wide else cells("scale")
        if not self._form.intervals:
            unknown = np.full_like(values, np.nan)
            return values, unknown, unknown, scales
        _, low, high = zip(*map(with_ends, self._bins), strict=True) if wide else ((), ("low",), ("high",))
        return values, cells(*low), cells(*high), scales


def _form_of(
    schema: Any, path: Path, bins: Sequence[str], layout: str | None, *, statistics: Sequence[str], **how: Any
) -> tuple[Parquet, tuple[str, ...]]:
    """The form in which a file with these columns is written, and what it has of every bin."""
    for told, intervals in product(either_way(statistics), (False, True)):
        with suppress(InputError):  # bins that a table of that kind cannot have
            form = Parquet(io.BytesIO(), bins, layout, intervals=intervals, statistics=told, **how)
            form.abandon()
            if schema.equals(form.schema):
                return form, told
    raise InputError(f"{path} has other columns than these bins give; choose another file")


def _numbers(column: Any) -> Floats:
    numbers: Array = column.to_numpy()
    return numbers.astype(np.float64)
