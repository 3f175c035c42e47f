"""Pages of stored releases and of answers to window queries: JSON, CSV or an Arrow stream, of all bins or of some.

Numbers are those that were stored, and whole releases in JSON the stored bytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import orjson
import pyarrow as pa

from eventide.arrays import Array
from eventide.live.stores.stored_releases import Answer, answers_in
from eventide.releases.answer_formats import OWN_COLUMNS, AnswerCsv, AnswerTable, rows_of
from eventide.releases.formats import Csv, Tabular
from eventide.releases.level_values import EVENTS, WINDOW, Groups, LevelValues
from eventide.releases.lines import ReleaseLine, read_line, write_line
from eventide.service.http.problems import Problem
from eventide.service.live_stream import LiveStream
from eventide.windows.workload import Query

STEPS_AT_ONCE = 1_000  # that are looked up one by one

Lines = Sequence[tuple[int, bytes]]
"""Steps with their releases as they are stored."""

Numbers = TypeVar("Numbers", ReleaseLine, LevelValues)

DueAnswers = list[tuple[int, Answer]]
"""Answers with the steps at whose ends they were due."""


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


class AnswerArrowStream(AnswerTable, ArrowStream):
    """The same for answers."""


def chosen_bins(bins: Sequence[str], names: Sequence[str]) -> Array | None:
    """The places of the named bins, each once, or None for all."""
    if not names:
        return None
    places = {name: place for place, name in enumerate(bins)}
    if not places.keys() >= set(names):
        raise Problem(404, "unknown-bin", "one of the bins asked for is not in the list of bins")
    return np.array([places[name] for name in dict.fromkeys(names)])


def release_page(
    lines: Lines,
    bins: Sequence[str],
    chosen: Array | None,
    form: str,
    following: int | None,
    groups: Groups | None = None,
    statistics: Sequence[str] = (EVENTS,),
    layout: str | None = None,
) -> bytes:
    """Releases in the form asked for; in JSON with the step to ask for next. Of chosen bins there are no levels.

    A table without a layout is wide or long by the number of bins and statistics, as files of releases are.
    """
    if form == "json":
        texts = [line if chosen is None else _part_of_line(line, chosen) for _, line in lines]
        return b'{"releases":[%s],"next":%s}' % (b",".join(texts), orjson.dumps(following))
    names = bins if chosen is None else [bins[place] for place in chosen]
    stream = io.BytesIO()
    layout = "long" if {"step", "start"} & set(names) else layout
    table = (Csv if form == "csv" else ArrowStream)(
        stream, names, layout, starts=True, groups=groups, statistics=statistics
    )
    for _, line in lines:
        release = read_line(line)
        table.add(release if chosen is None else _part(release, chosen))
    table.close()
    return stream.getvalue()


def _part(release: ReleaseLine, chosen: Array) -> ReleaseLine:
    told = release.statistics
    return replace(
        _of_bins(release, chosen),
        levels=None,
        named={},
        statistics=None if told is None else {name: _of_bins(each, chosen) for name, each in told.items()},
    )


def _of_bins(told: Numbers, chosen: Array) -> Numbers:
    arrays = {name: getattr(told, name, None) for name in ("values", "scale", "low", "high", *WINDOW)}
    return replace(told, **{name: array[chosen] for name, array in arrays.items() if array is not None})


def _part_of_line(line: bytes, chosen: Array) -> bytes:
    release = _part(read_line(line), chosen)
    return write_line(release, release.start)


class AskedAnswers(NamedTuple):
    """Which queries of a stream, and which of the values of each answer."""

    stream: LiveStream
    queries: tuple[Query, ...]
    names: Sequence[str]
    places: Sequence[int] | None  # None for all

    @classmethod
    def of(cls, stream: LiveStream, queries: Sequence[str], bins: Sequence[str]) -> AskedAnswers:
        """What a request asks for, or why that cannot be had."""
        settings, questions = stream.settings, stream.publisher.questions
        if questions is None:
            raise Problem(404, "no-queries", "this stream answers no window queries")
        known = {str(query): query for query in settings.queries}
        if not known.keys() >= set(queries):
            raise Problem(404, "unknown-query", "one of the queries asked for is not answered by this stream")
        names = questions.names(stream.bins)
        places = chosen_bins(names, bins)
        chosen = tuple(known[name] for name in queries) if queries else settings.queries
        if places is None:
            return cls(stream, chosen, names, None)
        return cls(stream, chosen, [names[place] for place in places], places.tolist())

    def between(self, first: int, last: int) -> DueAnswers:
        """The answers that were due from one step to another."""
        first = max(first, self.stream.answered_from)
        return self._among(self.stream.lines(first, last - first + 1, last) if first <= last else [])

    def latest(self, first: int, last: int, number: int) -> DueAnswers:
        """The last answers to each query: it was due at the end of every step that ends one of its own."""
        first = max(first, self.stream.answered_from)
        due = {
            (str(query), end)
            for query in self.queries
            for end in range((last + 1) // query.step * query.step, first, -query.step)[:number]
        }
        steps = sorted({end - 1 for _, end in due})[-STEPS_AT_ONCE:]
        found = self._among(line for step in steps for line in self.stream.lines(step, 1))
        return [(step, answer) for step, answer in found if (answer["query"], answer["end"]) in due]

    def _among(self, lines: Iterable[tuple[int, bytes]]) -> DueAnswers:
        """The answers asked for among those that releases hold."""
        wanted = {str(query) for query in self.queries}
        found = [(step, answer) for step, line in lines for answer in answers_in(line) if answer["query"] in wanted]
        if (places := self.places) is None:
            return found
        return [(step, answer | {"values": [answer["values"][place] for place in places]}) for step, answer in found]


def answer_page(
    answers: DueAnswers, names: Sequence[str], start_of: Callable[[int], str | None], form: str, following: int | None
) -> bytes:
    """Answers in the form asked for; in JSON with the times between which their events fell, and the step to ask next.

    A table is wide or long by the number of bins, as files of answers are.
    """
    if form == "json":
        dated = [
            {"step": step, "start": start_of(answer["begin"]), "until": start_of(answer["end"])} | answer
            for step, answer in answers
        ]
        return orjson.dumps({"answers": dated, "next": following})
    stream = io.BytesIO()
    layout = "long" if set(OWN_COLUMNS) & set(names) else None
    table: Any = (AnswerCsv if form == "csv" else AnswerArrowStream)(stream, names, layout)
    if answers:
        table.add(rows_of([answer for _, answer in answers]))
    table.close()
    return stream.getvalue()
