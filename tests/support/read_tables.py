"""Tables that sinks have written, read back by other programs than those that wrote them; and a catalog of Iceberg."""

import json
import sqlite3
from pathlib import Path

KINDS = ("delta", "iceberg", "sqlite")
NEEDED = {"delta": "deltalake", "iceberg": "pyiceberg", "sqlite": "sqlite3"}
CATALOG = "lake"


def catalog_settings(folder):
    """What the environment says about the catalog, whose tables and database stand in a folder."""
    prefix = f"PYICEBERG_CATALOG__{CATALOG.upper()}__"
    return {
        prefix + "TYPE": "sql",
        prefix + "URI": f"sqlite:///{folder}/catalog.db",
        prefix + "WAREHOUSE": f"file://{folder}/warehouse",
    }


def place_of(kind, folder, name="releases"):
    """What --out is given."""
    return f"iceberg://{CATALOG}/city.{name}" if kind == "iceberg" else str(Path(folder) / f"{name}.{kind}")


def rows_in(place):
    """All rows, as tuples in the order of the columns, sorted."""
    if place.startswith("iceberg"):
        from pyiceberg.catalog import load_catalog
        from pyiceberg.utils.config import Config

        now = Config().get_catalog_config(CATALOG)  # pyiceberg itself keeps what it read when it was imported
        table = load_catalog(CATALOG, **now).load_table(place.rpartition("/")[2]).scan().to_arrow()
    elif place.endswith(".delta"):
        import duckdb
        from deltalake import DeltaTable

        files = DeltaTable(place).file_uris()
        table = duckdb.sql(f"SELECT * FROM read_parquet({files!r})").to_arrow_table()
    else:
        connection = sqlite3.connect(place)
        found = connection.execute("SELECT step, start, bin, value, low, high, scale, fresh FROM releases").fetchall()
        connection.close()
        return sorted(found)
    return sorted(tuple(row.values()) for row in table.to_pylist())


def rows_of(releases, bins, *, starts=False):
    """What a table must hold of stored releases."""
    rows = []
    for line in releases:
        said = json.loads(line)
        missing = [None] * len(bins)
        numbers = [said.get(kind, missing) for kind in ("values", "low", "high", "scale")]
        first = (said["step"], said.get("start")) if starts else (said["step"],)
        rows += [(*first, *cells, said["fresh"]) for cells in zip(bins, *numbers, strict=True)]
    return sorted(rows)
