"""A complete file of events as a streaming frame: lines of text are read by the code of one machine, Parquet by Spark.

So a CSV or JSONL file means the same on both, row by row. May import `live` and its neighbours; pyspark is used through
the session it is given.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import TYPE_CHECKING

from eventide.engines.spark_tallies import LINE
from eventide.errors import InputError
from eventide.live.sources.line_formats import LONGEST_LINE, CsvLines, JsonLines, is_csv, is_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_file(spark: SparkSession, path: Path) -> tuple[DataFrame, CsvLines | JsonLines | None]:
    """The frame of a file, and how its lines are to be read where it consists of lines."""
    if not path.is_file():
        raise InputError(f"{path} is not a file; check the path")
    folder, name = str(path.resolve().parent), re.sub(r"([][{}?*\\])", r"\\\1", path.name)
    one = spark.readStream.option("pathGlobFilter", name)  # a stream of files is that of a folder
    if not is_lines(path.name):
        return one.schema(spark.read.parquet(str(path.resolve())).schema).parquet(folder), None
    lines = one.option("lineSep", "\n").text(folder)
    if not is_csv(path.name):
        return lines, JsonLines()
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        header = file.readline(LONGEST_LINE)
    first = header.decode("utf-8-sig", errors="replace").rstrip("\n")
    return lines.where(lines[LINE] != first), CsvLines(header, path.name)
