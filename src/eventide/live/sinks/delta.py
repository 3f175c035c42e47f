"""A Delta table in a folder as a sink. Needs the extra `delta`.

The step is written as a transaction of the application eventide, which Delta keeps for as long as the table lives, and
of which it refuses a second one at the same time. The properties of a commit name its first and last step for people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.errors import InputError, missing_extra
from eventide.live.sinks.base import name_of_file, refuse_unwritable
from eventide.live.sinks.table import TableSink

APPLICATION = "eventide"


class DeltaSink(TableSink):
    """Appends releases to the Delta table at a path."""

    def __init__(self, path: str | Path, bins: Sequence[str], **how: Any) -> None:
        self.path = Path(path)
        self.name = name_of_file(self.path)
        super().__init__(str(path), bins, **how)
        try:
            import deltalake
        except ImportError:
            raise missing_extra("Delta tables need the extra delta", "delta") from None
        self._delta = deltalake

    def check(self) -> None:
        """Look at the table, where there is one."""
        refuse_unwritable(self.path, in_place=self.path.exists())
        if self._exists():
            self._read()

    def open(self) -> None:
        """Open the table, or make it in a folder that is empty or not there."""
        with self._refusals():
            if not self._exists():
                self._delta.DeltaTable.create(self.path, self.schema, description="Private releases of eventide.")
            self._read()

    def _exists(self) -> bool:
        if not self.path.exists():
            return False
        if self.path.is_dir() and self._delta.DeltaTable.is_deltatable(str(self.path)):
            return True
        if not self.path.is_dir() or any(self.path.iterdir()):
            raise InputError(f"{self.path} holds something else than a Delta table; choose another folder")
        return False

    def _read(self) -> None:
        with self._refusals():
            self._table = self._delta.DeltaTable(self.path)
            self.refuse_other_columns(pa.schema(self._table.schema().to_arrow()))
            self.look_and_compare()

    def look(self) -> int:
        """Read what was committed since."""
        with self._failures():
            self._table.update_incremental()
            last = self._table.transaction_version(APPLICATION)
            if last is None and self._table.file_uris():
                raise InputError(f"{self.path} has rows that eventide did not write; choose another table")
        return -1 if last is None else int(last)

    def rows_of(self, step: int) -> Any:
        """Read a step; only files that may have it are opened."""
        return self._table.to_pyarrow_dataset().to_table(filter=pc.field("step") == step).cast(self.schema)

    def append(self, rows: Any, last: int) -> None:
        """One commit."""
        first = rows["step"][0].as_py()
        properties = self._delta.CommitProperties(
            custom_metadata={"eventide.first-step": str(first), "eventide.last-step": str(last)},
            app_transactions=[self._delta.Transaction(APPLICATION, last)],
        )
        with self._failures():
            self._delta.write_deltalake(self._table, rows, mode="append", commit_properties=properties)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """What may work at another time; the next attempt looks first whether this one was made."""
        try:
            yield
        except self._delta.exceptions.DeltaError as problem:
            raise OSError(f"the Delta table did not take it ({type(problem).__name__})") from None

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except (self._delta.exceptions.DeltaError, OSError) as problem:
            raise InputError(
                f"cannot open or make the Delta table {self.path} ({type(problem).__name__}); choose a folder that may "
                "be written to, or restore the table"
            ) from None
