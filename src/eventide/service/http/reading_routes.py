"""What whoever may read can ask: about streams, their budget and promise, and for releases and answers.

All of it was released or is public, and only read; true counts are given of synthetic streams alone. A page has an end:
so many steps, and fewer where each has many numbers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from eventide.events.levels import Levels
from eventide.live.publisher.setup import statistics
from eventide.live.stores.database import Unavailable
from eventide.service.guarantee_page import page_of_stream
from eventide.service.http import models
from eventide.service.http.problems import Problem
from eventide.service.http.result_pages import AskedAnswers, answer_page, chosen_bins, release_page
from eventide.service.http.tokens import Token
from eventide.service.live_stream import LiveStream
from eventide.service.service import Service

LAST = 2**53
MOST_AT_ONCE = 1_000  # steps on a page
CELLS_AT_ONCE = 4_000_000  # numbers on a page; streams of many bins have shorter pages
FOLLOWED_AT_A_TIME = 32  # releases read from the store together
AWAY_SECONDS = 2.0  # after which a store that is away is asked again
QUIET_SECONDS = 15.0  # after which a comment keeps the connection of one who follows alive
MEDIA_TYPES = {"json": "application/json", "csv": "text/csv", "arrow": "application/vnd.apache.arrow.stream"}

Name = Annotated[str, Path(description="The name of the stream.", max_length=63)]
Step = Annotated[int, Query(ge=0, le=LAST, description="The first step wanted.")]
LastStep = Annotated[int | None, Query(ge=0, le=LAST, description="The last step wanted. Left out: the newest.")]
Limit = Annotated[int, Query(ge=1, le=MOST_AT_ONCE, description="The most steps on a page.")]
SomeBins = Annotated[list[str] | None, Query(description="Only these bins; may be given several times.")]
Form = Annotated[
    Literal["json", "csv", "arrow"],
    Query(alias="format", description="`json`, or a table: `csv`, or `arrow` (Arrow's streaming format)."),
]
Layout = Annotated[
    Literal["long"] | None,
    Query(
        description="Of a table. `long`: a row for each step and bin, with the columns `step`, `start`, `level`, "
        "`bin`, `statistic`, `value`, `low`, `high`, `scale` and `fresh`; `level` and `statistic` only where there "
        "are several. Left out: a column for each bin, unless there are levels, several statistics or more than "
        "1,000 bins."
    ),
]

_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The releases, as server-sent events.", "content": {"text/event-stream": {}}}
}


def add_reading(router: APIRouter, service: Service, may_read: Any) -> None:
    """All of it; `may_read` is the dependency that gives the token of whoever asks."""
    _add_descriptions(router, service, may_read)
    _add_releases(router, service)
    _add_stream(router, service, may_read)
    _add_answers(router, service)
    _add_synthetic(router, service)


def _add_descriptions(router: APIRouter, service: Service, may_read: Any) -> None:
    @router.get("/streams", summary="List the streams", response_description="The streams.")
    def streams(token: Token = may_read) -> models.StreamsAnswer:
        """List the streams that the token is good for, with their public settings and how far they are."""
        seen = [stream for name, stream in service.streams.items() if token.sees(name)]
        return models.StreamsAnswer(streams=[service.describe(stream) for stream in seen])

    @router.get("/streams/{name}", summary="Describe a stream", response_description="The stream.")
    def stream(name: Name) -> models.StreamAnswer:
        """Give the public settings of a stream, and how far it is."""
        return service.describe(service.stream(name))

    @router.get("/streams/{name}/bins", summary="List the bins", response_description="The names.")
    def bins(name: Name) -> models.BinsAnswer:
        """Give the names behind the values of a release, in their order, and the groups that the bins belong to."""
        found = service.stream(name)
        return models.BinsAnswer(
            bins=list(found.bins), spare=found.spare, closed=found.closed, levels=_levels(found.levels)
        )

    @router.get("/streams/{name}/guarantee", summary="Show the guarantee", response_description="The promise.")
    def guarantee(name: Name, token: Token = may_read) -> models.GuaranteeAnswer:
        """Say what is promised to the people behind the stream, over all streams that they appear in."""
        return service.guarantee(service.stream(name), token.sees)

    @router.get(
        "/streams/{name}/guarantee.html",
        summary="Show the guarantee as a page",
        response_description="The page, to be read, printed or signed.",
        response_class=HTMLResponse,
    )
    def guarantee_to_sign(name: Name, token: Token = may_read) -> HTMLResponse:
        """Give a page with the promise, the budget, who may see what, and the proof, verified now."""
        return HTMLResponse(page_of_stream(service, service.stream(name), token.sees))

    @router.get("/streams/{name}/ledger", summary="Show the budget", response_description="The budget.")
    def ledger(name: Name) -> models.LedgerAnswer:
        """Say how much epsilon the latest windows hold, and when some comes back, from the stored entries."""
        return service.ledger(service.stream(name))


def _levels(levels: Levels | None) -> list[models.LevelAnswer]:
    if levels is None:
        return []
    return [
        models.LevelAnswer(name=name, groups=list(groups), group_of=levels.labels[name].tolist())
        for name, groups in levels.groups.items()
    ]


def _add_releases(router: APIRouter, service: Service) -> None:
    @router.get(
        "/streams/{name}/releases",
        summary="Read releases",
        response_description="A page of releases.",
        responses=_forms_of(models.ReleasesAnswer),
        response_model=None,
    )
    def releases(
        name: Name,
        first: Step = 0,
        last: LastStep = None,
        latest: Annotated[
            int | None, Query(ge=1, le=MOST_AT_ONCE, description="Only so many of the newest releases.")
        ] = None,
        limit: Limit = 100,
        bin: SomeBins = None,
        form: Form = "json",
        layout: Layout = None,
    ) -> Response:
        """Give stored releases, page by page.

        `next` is the step to ask for as `first` to get the next page. With a table it stands in the header
        `Eventide-Next`. A stream of very many bins has fewer steps on a page than `limit` says. Releases from before a
        change of the bins are left out.
        """
        found = service.stream(name)
        bins, end = found.bins, found.last_until(last)
        if first <= end < found.first_step:
            title = f"releases before step {found.first_step} have other bins; the operator has them: eventide export"
            raise Problem(404, "other-bins", title)
        if latest is not None:
            first, limit = max(first, end - latest + 1), latest
        limit = _page_length(limit, len(bins))
        chosen = chosen_bins(bins, bin or [])
        lines = found.lines(first, limit, end) if first <= end else []
        following = first + limit if first + limit <= end else None
        groups = None if chosen is not None or found.levels is None else found.levels.groups
        told = statistics(found.publisher.mechanism, found.feed)
        return _paged(release_page(lines, bins, chosen, form, following, groups, told, layout), form, following)


def _add_stream(router: APIRouter, service: Service, may_read: Any) -> None:
    @router.get(
        "/streams/{name}/stream",
        summary="Follow releases",
        responses=_STREAMED,
        response_class=StreamingResponse,
    )
    def stream_of_releases(
        name: Name,
        first: Step = 0,
        last_event_id: Annotated[str | None, Header(description="The last step that was seen.")] = None,
        token: Token = may_read,
    ) -> StreamingResponse:
        """Send stored releases from step `first` on, or from the one after `Last-Event-ID`, and then each new one.

        The answer never ends. The id of an event is its step, and its data are a release as `/releases` gives it.
        """
        found = service.stream(name)
        if last_event_id is not None:
            if not (last_event_id.isdecimal() and len(last_event_id) <= len(str(LAST)) and int(last_event_id) <= LAST):
                raise Problem(422, "invalid-parameter", "Last-Event-ID is the number of a step")
            first = int(last_event_id) + 1
        allowed = partial(service.doorkeeper.knows, token)
        return StreamingResponse(follow(found, first, allowed), media_type="text/event-stream")


def _add_answers(router: APIRouter, service: Service) -> None:
    @router.get(
        "/streams/{name}/answers",
        summary="Read answers to window queries",
        response_description="A page of answers.",
        responses=_forms_of(models.AnswersAnswer),
        response_model=None,
    )
    def answers(
        name: Name,
        first: Step = 0,
        last: LastStep = None,
        latest: Annotated[
            int | None, Query(ge=1, le=100, description="Only so many of the newest answers to each query.")
        ] = None,
        limit: Limit = 100,
        query: Annotated[
            list[str] | None, Query(description="Only these queries, by name; may be given several times.")
        ] = None,
        bin: SomeBins = None,
        form: Form = "json",
    ) -> Response:
        """Give stored answers by the step at whose end they were due, page by page as `/releases` does."""
        found = service.stream(name)
        asked = AskedAnswers.of(found, query or [], bin or [])
        end, following = found.last_until(last), None
        if latest is not None:
            due = asked.latest(first, end, min(latest, MOST_AT_ONCE))
        else:
            limit = _page_length(limit, len(found.bins))
            due = asked.between(first, min(end, first + limit - 1))
            following = first + limit if first + limit <= end else None
        return _paged(answer_page(due, asked.names, found.feed.start_of, form, following), form, following)


def _add_synthetic(router: APIRouter, service: Service) -> None:
    truth = service.truth
    if truth is None:
        return

    @router.get("/streams/{name}/synthetic", summary="Read true counts", response_description="The true counts.")
    def synthetic(name: Name, first: Step = 0) -> models.SyntheticAnswer:
        """Give true counts, since this stream is made of random numbers. Other services do not have this operation."""
        service.stream(name)
        counts = [models.SyntheticCounts(step=step, values=values) for step, values in truth(first)]
        return models.SyntheticAnswer(counts=counts)


async def follow(stream: LiveStream, first: int, allowed: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Server-sent events: all releases from `first` on, as stored, until whoever follows is no longer allowed to.

    The id of an event is its step, so a browser that lost its connection goes on where it was.
    """
    step = first
    yield b"retry: 1000\n\n"
    while stream.followed and allowed():
        try:
            lines = await run_in_threadpool(stream.lines, step, FOLLOWED_AT_A_TIME)
        except Unavailable:
            yield b": the store cannot be used now\n\n"
            await asyncio.sleep(AWAY_SECONDS)
            continue
        if lines:  # together: whoever has left is written to once, and then known to have left
            yield b"".join(b"id: %d\nevent: release\ndata: %s\n\n" % each for each in lines)
            step = lines[-1][0] + 1
        elif not await stream.notices.wait_beyond(step - 1, QUIET_SECONDS):
            yield b": still here\n\n"


def _page_length(limit: int, size: int) -> int:
    """How many steps of so many numbers each a page holds."""
    return max(1, min(limit, CELLS_AT_ONCE // size))


def _paged(content: bytes, form: str, following: int | None) -> Response:
    """A page; the step at which the next one begins stands in a header, too."""
    headers = {} if following is None else {"Eventide-Next": str(following)}
    return Response(content, media_type=MEDIA_TYPES[form], headers=headers)


def _forms_of(model: Any) -> dict[int | str, dict[str, Any]]:
    """What the description says about a page in any of its forms."""
    return {200: {"model": model, "content": {kind: {} for kind in MEDIA_TYPES.values()}}}
