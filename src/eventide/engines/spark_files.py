"""A complete file of events as a streaming frame: lines of text are read by the code of one machine, Parquet by Spark.

So a CSV or JSONL file means the same on both, row by row.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import TYPE_CHECKING

from eventide.engines.spark_tallies import LINE
from eventide.errors import InputError
from eventide.events.files.lines import LONGEST_LINE, CsvLineReader, JsonLineReader, is_csv, is_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_file(spark: SparkSession, path: Path) -> tuple[DataFrame, CsvLineReader | JsonLineReader | None]:
    """The frame of a file, and how its lines are to be read where it consists of lines."""
    if not path.is_file():
        raise InputError(f"{path} is not a file; check the path")
    place = path.resolve()
    if place.name.startswith(("_", ".")):
        raise InputError(f"Spark passes over files such as {place.name}; give it a name that begins with a letter")
    pattern = _only(place)
    if not is_lines(path.name):
        return spark.readStream.schema(spark.read.parquet(pattern).schema).parquet(pattern), None
    lines = spark.readStream.option("lineSep", "\n").text(pattern)
    if not is_csv(path.name):
        return lines, JsonLineReader()
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        header = file.readline(LONGEST_LINE)
    first = header.decode("utf-8-sig", errors="replace").rstrip("\n")
    return lines.where(lines[LINE] != first), CsvLineReader(header, path.name)


def _only(path: Path) -> str:
    """A pattern that fits one file: Spark streams what fits a pattern, or else a whole folder with all below it."""
    *folder, last = re.sub(r"([][{}?*,\\])", r"\\\1", str(path)).rpartition("/")
    return f"{''.join(folder)}{{{last}}}"
