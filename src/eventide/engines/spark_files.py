"""Complete files of events, or a table, as a streaming frame: lines of text are read by the code of one machine.

So CSV and JSONL files mean the same on both, row by row; Parquet files and tables are read by Spark. Which files a
folder means is what it means on one machine, and what Spark would read otherwise is refused.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eventide.engines.spark_session import settings_set
from eventide.engines.spark_tallies import LINE
from eventide.errors import InputError
from eventide.events.files.lines import LONGEST_LINE, CsvLineReader, JsonLineReader, is_csv, is_lines
from eventide.events.files.members import SourceFile, find_members

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "table:"  # before the name of a table of Spark's catalog
AS_TEXT = {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}  # hour=07 means 07, as on one machine
Lines = CsvLineReader | JsonLineReader


def read_source(spark: SparkSession, source: str | Path) -> tuple[DataFrame, Lines | None]:
    """The frame of a file, a folder with all that is below it or table:NAME; and how its lines are to be read."""
    if str(source).startswith(TABLE):
        return spark.readStream.table(str(source).removeprefix(TABLE)), None
    path = Path(source)
    if path.is_dir():
        return _folder(spark, path)
    if not path.is_file():
        raise InputError(f"{path} is not a file or folder; check the path, or name a table such as {TABLE}visits")
    place = path.resolve()
    if place.name.startswith(("_", ".")):
        raise InputError(f"Spark passes over files such as {place.name}; give it a name that begins with a letter")
    if not is_lines(path.name):
        return _parquet(spark, _only(place), {}), None
    return _lines(spark, _only(place), [path], {})


def _folder(spark: SparkSession, folder: Path) -> tuple[DataFrame, Lines | None]:
    members = find_members(folder)
    kinds = {is_lines(member.path.name) + is_csv(member.path.name) for member in members}
    if len(kinds) > 1:
        raise InputError(f"{folder} holds files of several formats, which Spark does not read together; name one file")
    place, below = _escaped(folder.resolve()), {"recursiveFileLookup": "true"}
    columns = _columns_of_folders(members, folder)
    if kinds == {0}:
        return _parquet(spark, place, {} if columns else below), None
    if columns:
        raise InputError(f"folders below {folder} name columns, which Spark adds to Parquet files only")
    return _lines(spark, place, [member.path for member in members], below)


def _columns_of_folders(members: Sequence[SourceFile], folder: Path) -> bool:
    """Whether the folders below one name columns, as day=2026-01-31 does: all of them, or none."""
    levels = [["=" in part for part in member.path.relative_to(folder).parts[:-1]] for member in members]
    if not any(map(any, levels)):
        return False
    if not all(level and all(level) for level in levels):
        raise InputError(f"only some folders below {folder} name columns; Spark needs the same ones for all files")
    return True


def _parquet(spark: SparkSession, place: str, options: dict[str, str]) -> DataFrame:
    with settings_set(spark, AS_TEXT):
        schema = spark.read.options(**options).parquet(place).schema
    return spark.readStream.schema(schema).options(**options).parquet(place)


def _lines(
    spark: SparkSession, place: str, files: Sequence[Path], options: dict[str, str]
) -> tuple[DataFrame, Lines | None]:
    lines = spark.readStream.options(lineSep="\n", **options).text(place)
    if not is_csv(files[0].name):
        return lines, JsonLineReader()
    headers = {_header(file) for file in files}
    if len(headers) > 1:
        raise InputError("the CSV files begin with different lines; Spark needs the same columns, in the same order")
    header = headers.pop()
    first = header.decode("utf-8-sig", errors="replace").rstrip("\n")
    return lines.where(lines[LINE] != first), CsvLineReader(header, files[0].name)


def _header(path: Path) -> bytes:
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        return file.readline(LONGEST_LINE)


def _escaped(path: Path) -> str:
    return re.sub(r"([][{}?*,\\])", r"\\\1", str(path))


def _only(path: Path) -> str:
    """A pattern that fits one file: Spark streams what fits a pattern, or else a whole folder with all below it."""
    *folder, last = _escaped(path).rpartition("/")
    return f"{''.join(folder)}{{{last}}}"
