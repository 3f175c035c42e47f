"""Texts in Parquet files: few different ones stay coded, many are read as they are, and counts are the same."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pa_parquet

from eventide.events.files.parquet_file import ParquetFile


def test_only_texts_that_repeat_are_read_as_a_dictionary(tmp_path):
    many = [f"somebody {number}" for number in range(50_000)]
    table = pa.table({"user": many, "bin": ["north", "south"] * 25_000, "number": [7] * 50_000})
    pa_parquet.write_table(table, tmp_path / "events.parquet")
    rows = ParquetFile(tmp_path / "events.parquet").rows(0, ["user", "bin", "number"]).rows
    assert [pa.types.is_dictionary(kind) for kind in rows.schema.types] == [False, True, False]
    assert rows.column("bin").cast(pa.string()).to_pylist() == ["north", "south"] * 25_000
