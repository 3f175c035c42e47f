"""Stored releases in the form somebody asks for: JSON, CSV or an Arrow stream, of all bins or of some.

Numbers are those that were stored, and whole releases in JSON the stored bytes.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from eventide.arrays import Array
from eventide.releases.formats import Csv, Tabular
from eventide.releases.lines import ReleaseLine, read_line, write_line
from eventide.service.http.problems import Problem

JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"
MEDIA_TYPES = {"json": JSON, "csv": CSV, "arrow": ARROW}

Lines = Sequence[tuple[int, bytes]]


class ArrowStream(Tabular):
    """Arrow's streaming form: a schema, then one batch of rows after another."""

    def begin(self) -> None:
        """Write the schema."""
        self._writer = pa.ipc.new_stream(self.stream, self.schema)

    def put(self, columns: list[Any]) -> None:
        """Write a batch."""
        self._writer.write_table(pa.table(columns, schema=self.schema))

    def close(self) -> None:
        """Write the rest and the end mark."""
        super().close()
        self._writer.close()


def chosen_bins(bins: Sequence[str], names: Sequence[str]) -> Array | None:
    """The places of the named bins, each once, or None for all."""
    if not names:
        return None
    places = {name: place for place, name in enumerate(bins)}
    if not places.keys() >= set(names):
        raise Problem(404, "unknown-bin", "one of the bins asked for is not in the list of bins")
    return np.array([places[name] for name in dict.fromkeys(names)])


def as_json(lines: Lines, chosen: Array | None, following: int | None) -> bytes:
    """A page of releases, each as it is stored, and the step to ask for next."""
    texts = [line if chosen is None else write_line(_part(read_line(line), chosen)) for _, line in lines]
    return b'{"releases":[%s],"next":%s}' % (b",".join(texts), orjson.dumps(following))


def as_table(lines: Lines, bins: Sequence[str], chosen: Array | None, form: str) -> bytes:
    """A page of releases as a table, wide or long by the number of bins, as files of releases are."""
    names = bins if chosen is None else [bins[place] for place in chosen]
    stream = io.BytesIO()
    layout = "long" if {"step", "start"} & set(names) else None
    table = (Csv if form == "csv" else ArrowStream)(stream, names, layout, starts=True)
    for _, line in lines:
        release = read_line(line)
        table.add(release if chosen is None else _part(release, chosen))
    table.close()
    return stream.getvalue()


def _part(release: ReleaseLine, chosen: Array) -> ReleaseLine:
    arrays = {name: getattr(release, name) for name in ("values", "scale", "low", "high")}
    return replace(release, **{name: array[chosen] for name, array in arrays.items() if array is not None})
