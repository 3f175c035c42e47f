"""A SQLite file with releases as plain tables, for whoever reads with SQL; a store is none, since it packs its lines.

The tables `releases`, `levels` and `statistics` have the names and columns of the views of a store in PostgreSQL,
whether or not there are times, levels and sliding windows: so the same queries read both. A file of before there were
statistics goes on without them. Other tables, views and indexes in the file stay.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.errors import InputError
from eventide.events.levels import BIN
from eventide.live import faults
from eventide.live.sinks.base import name_of_file, refuse_unwritable
from eventide.live.sinks.table import TableSink
from eventide.releases.level_values import either_way, statistics_of

PATIENCE = 5.0  # seconds for somebody who is reading
_NUMBERS = "value REAL, low REAL, high REAL, scale REAL, fresh BOOLEAN NOT NULL"
_TABLES = {
    "releases": f"step INTEGER, start TEXT, bin TEXT, {_NUMBERS}, PRIMARY KEY (step, bin)",
    "levels": f"step INTEGER, start TEXT, level TEXT, bin TEXT, {_NUMBERS}, PRIMARY KEY (step, level, bin)",
    "statistics": f"step INTEGER, start TEXT, bin TEXT, statistic TEXT, {_NUMBERS}, PRIMARY KEY (step, bin, statistic)",
}
_COLUMNS = {
    "releases": ("step", "start", "bin", "value", "low", "high", "scale", "fresh"),
    "levels": ("step", "start", "level", "bin", "value", "low", "high", "scale", "fresh"),
    "statistics": ("step", "start", "bin", "statistic", "value", "low", "high", "scale", "fresh"),
}


class SqliteTables(TableSink):
    """Appends releases to the tables of a SQLite file."""

    def __init__(self, path: str | Path, bins: Sequence[str], **how: Any) -> None:
        self.path = Path(path)
        self.name = name_of_file(self.path)
        super().__init__(str(path), bins, **how)

    def check(self) -> None:
        """Look at the file, where there is one."""
        refuse_unwritable(self.path, in_place=self.path.exists())
        if self.path.exists():
            self._read("ro")
            self.close()

    def open(self) -> None:
        """Open or make the file and its tables."""
        refuse_unwritable(self.path, in_place=self.path.exists())
        self._read("rwc")

    def look(self) -> int:
        """Ask for the last step."""
        with self._failures():
            return int(self._connection.execute("SELECT coalesce(max(step), -1) FROM releases").fetchone()[0])

    def rows_of(self, step: int) -> Any:
        """Ask for a step."""
        constant = {"level": BIN, "statistic": self.statistics[0]}
        parts = []
        for table in self._tables():
            names = (name if name in _COLUMNS[table] else f":{name} AS {name}" for name in self.schema.names)
            parts.append(f"SELECT {', '.join(names)} FROM {table} WHERE step = :step")
        found = self._connection.execute(" UNION ALL ".join(parts), {"step": step, **constant})
        order = [each[0] for each in found.description]
        columns = list(zip(*found, strict=True)) or [()] * len(order)
        cells = dict(zip(order, columns, strict=True))
        cells["fresh"] = tuple(map(bool, cells["fresh"]))
        return pa.table({name: list(cells[name]) for name in self.schema.names}, schema=self.schema)

    def append(self, rows: Any, last: int) -> None:
        """One transaction."""
        if "start" not in rows.column_names:
            rows = rows.append_column("start", pa.nulls(len(rows), pa.string()))
        parts = {"releases": rows}
        for table, column, plain in (("levels", "level", BIN), ("statistics", "statistic", self.statistics[0])):
            if table in self._tables():
                is_plain = pc.equal(rows[column], plain)
                parts[table] = rows.filter(pc.invert(is_plain))
                parts["releases"] = rows = rows.filter(is_plain)
        with self._failures(), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            for table, part in parts.items():
                columns = [part[name].to_pylist() for name in _COLUMNS[table]]
                places = ", ".join("?" * len(columns))
                self._connection.executemany(f"INSERT INTO {table} VALUES ({places})", zip(*columns, strict=True))
            faults.passing("half-line")

    def _tables(self) -> list[str]:
        """Those that get rows."""
        further = {"levels": self.groups, "statistics": len(self.statistics) > 1}
        return ["releases", *(table for table, there in further.items() if there)]

    def close(self) -> None:
        """Close the file, which stays."""
        if hasattr(self, "_connection"):
            self._connection.close()

    def _read(self, mode: str) -> None:
        address = f"{self.path.absolute().as_uri()}?mode={mode}"
        try:
            with ExitStack() as undone:
                self._connection = sqlite3.connect(
                    address, PATIENCE, isolation_level=None, check_same_thread=False, uri=True
                )
                undone.callback(self._connection.close)
                self._make_or_compare(may_make=mode != "ro")
                undone.pop_all()
        except sqlite3.OperationalError as problem:
            raise InputError(
                f"cannot write {self.path} ({problem}); end who writes to it, or look at its disk"
            ) from None
        except sqlite3.DatabaseError:
            raise InputError(f"{self.path} is no SQLite file; choose another name") from None

    def _make_or_compare(self, *, may_make: bool) -> None:
        if self._has_tables():
            self._refuse_other_tables()
            self.look_and_compare()
        elif may_make:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                for name, columns in _TABLES.items():
                    self._connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns}) WITHOUT ROWID")

    def _has_tables(self) -> bool:
        return self._connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table'").fetchone() is not None

    def _refuse_other_tables(self) -> None:
        for table, columns in _COLUMNS.items():
            found = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
            names = tuple(name for (name,) in found)
            of_windows = table == "statistics" and len(either_way(self.statistics)) > 1
            if of_windows and (not names or self.look() >= 0):  # it goes on as it was begun
                begun = names and self._connection.execute("SELECT 1 FROM statistics LIMIT 1").fetchone()
                self.has(statistics_of(self.statistics[0], windows=bool(begun)))
            if names not in (columns, () if of_windows else columns):
                raise InputError(f"{self.path} is a SQLite file of something else; choose another name")

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """What may work at another time."""
        try:
            yield
        except sqlite3.Error as problem:
            raise OSError(f"SQLite did not take it ({type(problem).__name__})") from None
