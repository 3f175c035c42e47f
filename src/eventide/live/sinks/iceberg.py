"""A table of Apache Iceberg as a sink. Needs the extra `iceberg`.

The catalog is one of pyiceberg's own configuration, where its login stands too. The step is written as a property of
the table in the same commit as the rows, since snapshots expire; each snapshot names its first and last step for
people. Commits are never repeated by pyiceberg itself, which would append the same rows behind those of another writer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa

from eventide.errors import EventideError, InputError, missing_extra
from eventide.live import faults
from eventide.live.sinks.table import TableSink

FIRST, LAST = "eventide.first-step", "eventide.last-step"
RETRIES = "commit.retry.num-retries"


class IcebergAddress(NamedTuple):
    """A catalog by its name in pyiceberg's configuration, and a table in it with its namespace."""

    catalog: str
    namespace: str
    table: str


def parse_address(url: str) -> IcebergAddress:
    """Read iceberg://CATALOG/NAMESPACE.TABLE.

    >>> parse_address("iceberg://lake/city.visits")
    IcebergAddress(catalog='lake', namespace='city', table='visits')
    """
    parts = urlsplit(url)
    namespace, _, table = parts.path.strip("/").rpartition(".")
    if not parts.netloc or not namespace or not table or "/" in namespace + table or parts.query or "@" in parts.netloc:
        raise InputError(
            "an Iceberg address reads iceberg://CATALOG/NAMESPACE.TABLE, with a catalog of pyiceberg's configuration; "
            "correct it"
        )
    return IcebergAddress(parts.netloc, namespace, table)


class IcebergSink(TableSink):
    """Appends releases to an Iceberg table."""

    def __init__(self, url: str, bins: Sequence[str], **how: Any) -> None:
        self._address = parse_address(url)
        self._identifier = (*self._address.namespace.split("."), self._address.table)
        self.name = f"iceberg {self._address.catalog} {self._address.namespace}.{self._address.table}"
        super().__init__(url, bins, **how)
        try:
            import pyiceberg.catalog
        except ImportError:
            raise missing_extra("Iceberg tables need the extra iceberg", "iceberg") from None
        self._load_catalog = pyiceberg.catalog.load_catalog

    def check(self) -> None:
        """Look at the table, where there is one."""
        with self._refusals():
            catalog = self._load_catalog(self._address.catalog)
            if catalog.table_exists(self._identifier):
                self._read(catalog)

    def open(self) -> None:
        """Open the table, or make it, and its namespace where that is missing."""
        with self._refusals():
            catalog = self._load_catalog(self._address.catalog)
            catalog.create_namespace_if_not_exists(self._identifier[:-1])
            catalog.create_table_if_not_exists(self._identifier, self.schema, properties={LAST: "-1", RETRIES: "0"})
            self._read(catalog)

    def look(self) -> int:
        """Read what was committed since."""
        with self._failures():
            self._table.refresh()
        properties = self._table.properties
        if LAST not in properties:
            raise InputError(f"{self.place} was not made by eventide; choose another table")
        if properties.get(RETRIES) != "0":
            raise InputError(f"{self.place} may get steps twice; set its property {RETRIES} to 0 again")
        return int(properties[LAST])

    def rows_of(self, step: int) -> Any:
        """Read a step; only files that may have it are opened."""
        return self._table.scan(row_filter=f"step == {step}").to_arrow().cast(self.schema)

    def append(self, rows: Any, last: int) -> None:
        """One commit: the rows as a snapshot, and the step as a property."""
        with self._failures():
            commit = self._table.transaction()
            commit.append(rows, snapshot_properties={FIRST: str(rows["step"][0]), LAST: str(last)})
            commit.set_properties({LAST: str(last)})
            faults.passing("half-line")
            commit.commit_transaction()

    def _read(self, catalog: Any) -> None:
        self._table = catalog.load_table(self._identifier)
        kinds = {pa.large_string(): pa.string()}  # which Iceberg does not tell apart
        self.refuse_other_columns(
            [each.with_type(kinds.get(each.type, each.type)) for each in self._table.schema().as_arrow()]
        )
        self.look_and_compare()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """What may work at another time; the next attempt looks first whether this one was made."""
        try:
            yield
        except Exception as problem:  # errors of catalogs, of their drivers and of object stores have no common class
            raise OSError(f"the Iceberg table did not take it ({type(problem).__name__})") from None

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except EventideError:
            raise
        except Exception as problem:
            raise InputError(
                f"cannot open or make the table {self.place} ({type(problem).__name__}); see that the configuration of "
                f"pyiceberg has the catalog {self._address.catalog} and that it lets us in"
            ) from None
