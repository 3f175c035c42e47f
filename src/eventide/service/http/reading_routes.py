"""What whoever may read can ask: about streams, their budget and promise, and for releases and answers.

All of it was released or is public, and only read; true counts are given of synthetic streams alone.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response, StreamingResponse

from eventide.service.config.parameters import (
    LAST,
    MOST_AT_ONCE,
    Form,
    LastStep,
    Limit,
    Name,
    SomeBins,
    Step,
    page_length,
    paged,
    tables,
)
from eventide.service.http import answers as answer_pages
from eventide.service.http import models
from eventide.service.http import releases as release_pages
from eventide.service.http.following import follow
from eventide.service.http.problems import Problem
from eventide.service.http.tokens import Token
from eventide.service.service import Service

_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "releases as server-sent events", "content": {"text/event-stream": {}}}
}


def add_reading(router: APIRouter, service: Service, may_read: Any) -> None:
    """All of it; `may_read` is the dependency that gives the token of whoever asks."""
    _add_descriptions(router, service)
    _add_releases(router, service)
    _add_stream(router, service, may_read)
    _add_answers(router, service)
    _add_synthetic(router, service)


def _add_descriptions(router: APIRouter, service: Service) -> None:
    @router.get("/streams")
    def streams() -> models.StreamsAnswer:
        """List the streams."""
        return models.StreamsAnswer(streams=[service.describe(stream) for stream in service.streams.values()])

    @router.get("/streams/{name}")
    def stream(name: Name) -> models.StreamAnswer:
        """Describe a stream."""
        return service.describe(service.stream(name))

    @router.get("/streams/{name}/bins")
    def bins(name: Name) -> models.BinsAnswer:
        """Name the bins."""
        return models.BinsAnswer(bins=list(service.stream(name).settings.bins))

    @router.get("/streams/{name}/guarantee")
    def guarantee(name: Name) -> models.GuaranteeAnswer:
        """Say what is promised to the people behind the stream."""
        return service.guarantee(service.stream(name))

    @router.get("/streams/{name}/ledger")
    def ledger(name: Name) -> models.LedgerAnswer:
        """Show what the windows hold, from the stored entries."""
        return service.ledger(service.stream(name))


def _add_releases(router: APIRouter, service: Service) -> None:
    @router.get("/streams/{name}/releases", responses=tables(models.ReleasesAnswer), response_model=None)
    def releases(
        name: Name,
        first: Step = 0,
        last: LastStep = None,
        latest: Annotated[int | None, Query(ge=1, le=MOST_AT_ONCE, description="only the last ones")] = None,
        limit: Limit = 100,
        bin: SomeBins = None,
        form: Form = "json",
    ) -> Response:
        """Give stored releases, page by page: `next` (a header in other forms than JSON) begins the next page."""
        found = service.stream(name)
        bins, end = found.settings.bins, found.last_until(last)
        if latest is not None:
            first, limit = max(first, end - latest + 1), latest
        limit = page_length(limit, len(bins))
        chosen = release_pages.chosen_bins(bins, bin or [])
        lines = found.lines(first, limit, end) if first <= end else []
        following = first + limit if first + limit <= end else None
        if form == "json":
            return paged(release_pages.as_json(lines, chosen, following), form, following)
        return paged(release_pages.as_table(lines, bins, chosen, form), form, following)


def _add_stream(router: APIRouter, service: Service, may_read: Any) -> None:
    @router.get("/streams/{name}/stream", responses=_STREAMED, response_class=StreamingResponse)
    def stream_of_releases(
        name: Name,
        first: Step = 0,
        last_event_id: Annotated[str | None, Header(description="the last step that was seen")] = None,
        token: Token = may_read,
    ) -> StreamingResponse:
        """Follow the releases from step `first` on, or from the one after Last-Event-ID."""
        found = service.stream(name)
        if last_event_id is not None:
            if not (last_event_id.isdecimal() and len(last_event_id) <= len(str(LAST)) and int(last_event_id) <= LAST):
                raise Problem(422, "invalid-parameter", "Last-Event-ID is the number of a step")
            first = int(last_event_id) + 1
        allowed = partial(service.doorkeeper.knows, token)
        return StreamingResponse(follow(found, first, allowed), media_type="text/event-stream")


def _add_answers(router: APIRouter, service: Service) -> None:
    @router.get("/streams/{name}/answers", responses=tables(models.AnswersAnswer), response_model=None)
    def answers(
        name: Name,
        first: Step = 0,
        last: LastStep = None,
        latest: Annotated[int | None, Query(ge=1, le=100, description="only the last ones of each query")] = None,
        limit: Limit = 100,
        query: Annotated[list[str] | None, Query(description="only these queries, by name")] = None,
        bin: SomeBins = None,
        form: Form = "json",
    ) -> Response:
        """Give answers to window queries by the step at whose end they were due, page by page as releases are."""
        found = service.stream(name)
        asked = answer_pages.Asked.of(found, query or [], bin or [])
        end = found.last_until(last)
        if latest is not None:
            page, following = answer_pages.latest(found, asked, first, end, min(latest, MOST_AT_ONCE)), None
        else:
            limit = page_length(limit, len(found.settings.bins))
            page = answer_pages.between(found, asked, first, min(end, first + limit - 1))
            following = first + limit if first + limit <= end else None
        if form == "json":
            return paged(answer_pages.as_json(page, found.feed.start_of, following), form, following)
        return paged(answer_pages.as_table(page, asked.names, form), form, following)


def _add_synthetic(router: APIRouter, service: Service) -> None:
    truth = service.truth
    if truth is None:
        return

    @router.get("/streams/{name}/synthetic")
    def synthetic(name: Name, first: Step = 0) -> models.SyntheticAnswer:
        """Give true counts, since this stream is made of random numbers."""
        service.stream(name)
        counts = [models.SyntheticCounts(step=step, values=values) for step, values in truth(first)]
        return models.SyntheticAnswer(counts=counts)
