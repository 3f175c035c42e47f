"""Stored answers to window queries in the form somebody asks for: JSON, CSV or an Arrow stream, of all or of some.

Numbers are those that were stored.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import orjson

from eventide.live.stores.stored_releases import Answer, answers_in
from eventide.releases.answer_formats import OWN_COLUMNS, AnswerCsv, AnswerTable, rows_of
from eventide.service.http.problems import Problem
from eventide.service.http.releases import ArrowStream, Lines, chosen_bins
from eventide.service.live_stream import LiveStream
from eventide.windows.workload import Query

STEPS_AT_ONCE = 1_000  # that are looked up one by one

Page = list[tuple[int, Answer]]
"""Answers with the steps at whose ends they were due."""


class AnswerArrow(AnswerTable, ArrowStream):
    """Arrow's streaming form."""


class Asked(NamedTuple):
    """Which queries, and which of the values of each answer."""

    queries: tuple[Query, ...]
    names: Sequence[str]
    places: Sequence[int] | None  # None for all

    @classmethod
    def of(cls, stream: LiveStream, queries: Sequence[str], bins: Sequence[str]) -> Asked:
        """What a request asks for, or why that cannot be had."""
        settings, questions = stream.settings, stream.publisher.questions
        if questions is None:
            raise Problem(404, "no-queries", "this stream answers no window queries")
        known = {str(query): query for query in settings.queries}
        if not known.keys() >= set(queries):
            raise Problem(404, "unknown-query", "one of the queries asked for is not answered by this stream")
        names = questions.names(settings.bins)
        places = chosen_bins(names, bins)
        chosen = tuple(known[name] for name in queries) if queries else settings.queries
        if places is None:
            return cls(chosen, names, None)
        return cls(chosen, [names[place] for place in places], places.tolist())

    def among(self, lines: Iterable[tuple[int, bytes]]) -> Page:
        """The answers asked for among those that releases hold."""
        wanted = {str(query) for query in self.queries}
        found = [(step, answer) for step, line in lines for answer in answers_in(line) if answer["query"] in wanted]
        return found if self.places is None else [(step, self._part(answer)) for step, answer in found]

    def _part(self, answer: Answer) -> Answer:
        return answer | {"values": [answer["values"][place] for place in self.places or ()]}


def between(stream: LiveStream, asked: Asked, first: int, last: int) -> Page:
    """The answers that were due from one step to another."""
    first = max(first, stream.answered_from)
    lines: Lines = stream.lines(first, last - first + 1, last) if first <= last else []
    return asked.among(lines)


def latest(stream: LiveStream, asked: Asked, first: int, last: int, number: int) -> Page:
    """The last answers to each query: it was due at the end of every step that ends one of its own."""
    first = max(first, stream.answered_from)
    due = {
        (str(query), end)
        for query in asked.queries
        for end in range((last + 1) // query.step * query.step, first, -query.step)[:number]
    }
    steps = sorted({end - 1 for _, end in due})[-STEPS_AT_ONCE:]
    page = asked.among((step, line) for step in steps for _, line in stream.lines(step, 1))
    return [(step, answer) for step, answer in page if (answer["query"], answer["end"]) in due]


def as_json(page: Page, start_of: Callable[[int], str | None], following: int | None) -> bytes:
    """A page of answers, each with the times between which its events fell, and the step to ask for next."""
    answers = [
        {"step": step, "start": start_of(answer["begin"]), "until": start_of(answer["end"])} | answer
        for step, answer in page
    ]
    return orjson.dumps({"answers": answers, "next": following})


def as_table(page: Page, names: Sequence[str], form: str) -> bytes:
    """A page of answers as a table, wide or long by the number of bins, as files of answers are."""
    stream = io.BytesIO()
    layout = "long" if set(OWN_COLUMNS) & set(names) else None
    table: Any = (AnswerCsv if form == "csv" else AnswerArrow)(stream, names, layout)
    if page:
        table.add(rows_of([answer for _, answer in page]))
    table.close()
    return stream.getvalue()
