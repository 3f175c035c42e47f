"""How answers to window queries are written: JSON lines, CSV and Parquet.

JSON lines hold one object an answer: query, begin, end, values in the order of the bins, and variance, which is the
same for all bins. Tables are wide (query, begin, end, one column a bin, variance) or long (query, begin, end, bin,
value, variance).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from eventide.arrays import Floats, Ints
from eventide.releases.formats import Csv, Lines, Parquet, Tabular, by_ending, refuse_taken
from eventide.releases.lines import plain

OWN_COLUMNS = ("query", "begin", "end", "variance")


class AnswerRows(NamedTuple):
    """Answers, one for each entry: the query's name, the window [begin, end), values `(answers, d)`, variance."""

    query: Sequence[str]
    begin: Ints
    end: Ints
    values: Floats
    variance: Floats


def objects(rows: AnswerRows) -> list[dict[str, Any]]:
    """Answers ready for JSON, one object each."""
    return [
        {"query": query, "begin": int(begin), "end": int(end), "values": plain(values), "variance": float(variance)}
        for query, begin, end, values, variance in zip(*rows, strict=True)
    ]


def rows_of(answers: Sequence[dict[str, Any]]) -> AnswerRows:
    """The same as columns again.

    >>> rows_of([{"query": "hour", "begin": 0, "end": 6, "values": [3, 4], "variance": 2.0}]).values
    array([[3., 4.]])
    """
    query, begin, end, values, variance = ([each[name] for each in answers] for name in AnswerRows._fields)
    return AnswerRows(query, np.array(begin), np.array(end), np.array(values, dtype=np.float64), np.array(variance))


class AnswerLines(Lines):
    """One line an answer."""

    no_layout = "a layout is for .csv and .parquet; JSON lines hold one object an answer, so leave it out"

    def lines(self, release: AnswerRows) -> Iterable[bytes]:
        """A line for each of the answers."""
        return (json.dumps(answer, allow_nan=False).encode() for answer in objects(release))


class AnswerTable(Tabular):
    """Writes answers as rows, wide or long, as they come."""

    def columns(self, bins: Sequence[str]) -> dict[str, Any]:
        """The columns of the layout."""
        if self.layout == "long":
            between = {"bin": pa.string(), "value": pa.float64()}
        else:
            refuse_taken(OWN_COLUMNS, bins)
            between = dict.fromkeys(bins, pa.float64())
        return {"query": pa.string(), "begin": pa.int64(), "end": pa.int64(), **between, "variance": pa.float64()}

    def add(self, rows: Any) -> None:
        """Write answers."""
        times = 1 if self.layout == "wide" else len(self.bins)
        which = np.repeat(np.arange(len(rows.query)), times)
        names = pa.array(rows.query, pa.string()).take(which)
        between = list(rows.values.T)
        if self.layout == "long":
            between = [self.bins.take(np.tile(np.arange(len(self.bins)), len(rows.query))), rows.values.ravel()]
        self.put([names, rows.begin[which], rows.end[which], *between, rows.variance[which]])


class AnswerCsv(AnswerTable, Csv):
    """Comma-separated values in UTF-8."""


class AnswerParquet(AnswerTable, Parquet):
    """Apache Parquet."""


ANSWER_FORMATS = by_ending(AnswerLines, AnswerCsv, AnswerParquet)
