"""The operations under /v1, as the OpenAPI description lists them. Imports FastAPI and the service."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from eventide.errors import StateError
from eventide.service import models
from eventide.service.following import follow
from eventide.service.ingest import JSON, KEY, NDJSON, batch_name, read_events
from eventide.service.limits import read_body
from eventide.service.problems import Problem, refusals
from eventide.service.pushed_feed import Busy
from eventide.service.releases import MEDIA_TYPES, as_json, as_table, chosen_bins
from eventide.service.service import Service
from eventide.service.tokens import Token

LAST = 2**53
MOST_AT_ONCE = 1_000  # releases on a page
CELLS_AT_ONCE = 4_000_000  # numbers on a page; streams of many bins have shorter pages

Name = Annotated[str, Path(description="the stream's name", max_length=63)]
Step = Annotated[int, Query(ge=0, le=LAST)]
READ = refusals(401, 403, 404, 422, 429)

_KEY = Header(
    description="names the batch, so that it counts once",
    json_schema_extra={"pattern": f"^{KEY.pattern}$"},
)
_ONE_EVENT = {"type": "object", "additionalProperties": True}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": {"type": "array", "items": _ONE_EVENT}},
            NDJSON: {"schema": {"type": "string"}},
        },
    }
}
_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "releases as server-sent events", "content": {"text/event-stream": {}}}
}
_TABLES: dict[int | str, dict[str, Any]] = {
    200: {"model": models.ReleasesAnswer, "content": {kind: {} for kind in MEDIA_TYPES.values()}}
}


def build_router(service: Service) -> APIRouter:
    """All operations on the streams of a service."""
    router = APIRouter(prefix="/v1")
    needs = service.doorkeeper.needs
    may_read, may_operate, may_ingest = (Depends(needs(role)) for role in ("read", "operate", "ingest"))

    @router.get("/access", tags=["access"], responses=refusals(401, 403, 429))
    def access(token: Token = may_read) -> models.AccessAnswer:
        """Say what the token is good for."""
        return models.AccessAnswer(role="operate" if token.role == "operate" else "read")

    reading = APIRouter(dependencies=[may_read], tags=["releases"], responses=READ)
    _add_reading(reading, service)
    router.include_router(reading)

    @router.get("/streams/{name}/operations", tags=["operate"], responses=READ, dependencies=[may_operate])
    def operations(name: Name) -> models.OperationsAnswer:
        """Give raw figures about events, for operators only."""
        return service.operations(service.stream(name))

    @router.post(
        "/streams/{name}/events",
        tags=["ingest"],
        openapi_extra=_BODY,
        responses=refusals(400, 401, 403, 404, 408, 413, 415, 422, 429, 503),
    )
    async def events(
        request: Request,
        name: Name,
        token: Token = may_ingest,
        idempotency_key: Annotated[str | None, _KEY] = None,
    ) -> models.ReceiptAnswer:
        """Take a batch of events; the answer comes when it is durable. If none comes, send it again with its key."""
        stream = service.stream(name)
        batch = batch_name(idempotency_key, token)
        body = await read_body(request, service.config.limits)
        read = await run_in_threadpool(read_events, body, request.headers.get("content-type", ""), stream.reader)
        try:
            receipt = await asyncio.wrap_future(stream.feed.submit(read.events, batch))
        except Busy:
            title = "too many batches wait to be made durable; send this one again in a second"
            raise Problem(429, "busy", title, Retry_After="1") from None
        except StateError:
            title = "the stream takes no events now; send this batch again later with the same key"
            raise Problem(503, "closed", title, Retry_After="5") from None
        counters = receipt.counters
        return models.ReceiptAnswer(
            accepted=counters.accepted,
            duplicate=receipt.duplicate,
            refused=dict(counters.refused) | ({"late": counters.late} if counters.late else {}),
            events=[models.RefusedEvent(event=place, reason=reason) for place, reason in read.told],
        )

    return router


def _add_reading(router: APIRouter, service: Service) -> None:
    """What whoever may read can ask."""

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

    @router.get("/streams/{name}/releases", responses=_TABLES, response_model=None)
    def releases(
        name: Name,
        first: Step = 0,
        last: Annotated[int | None, Query(ge=0, le=LAST)] = None,
        latest: Annotated[int | None, Query(ge=1, le=MOST_AT_ONCE, description="only the last ones")] = None,
        limit: Annotated[int, Query(ge=1, le=MOST_AT_ONCE)] = 100,
        bin: Annotated[list[str] | None, Query(description="only these bins")] = None,
        form: Annotated[Literal["json", "csv", "arrow"], Query(alias="format")] = "json",
    ) -> Response:
        """Give stored releases, page by page: `next` (a header in other forms than JSON) begins the next page."""
        found = service.stream(name)
        end = found.board.last if last is None else min(last, found.board.last)
        if latest is not None:
            first, limit = max(first, end - latest + 1), latest
        limit = max(1, min(limit, CELLS_AT_ONCE // len(found.settings.bins)))
        chosen = chosen_bins(found.settings.bins, bin or [])
        lines = found.lines(first, limit, end) if first <= end else []
        following = first + limit if first + limit <= end else None
        if form == "json":
            content = as_json(lines, chosen, following)
        else:
            content = as_table(lines, found.settings.bins, chosen, form)
        headers = {} if following is None else {"Eventide-Next": str(following)}
        return Response(content, media_type=MEDIA_TYPES[form], headers=headers)

    @router.get("/streams/{name}/stream", responses=_STREAMED, response_class=StreamingResponse)
    def stream_of_releases(
        name: Name,
        first: Step = 0,
        last_event_id: Annotated[str | None, Header(description="the last step that was seen")] = None,
    ) -> StreamingResponse:
        """Follow the releases from step `first` on, or from the one after Last-Event-ID."""
        found = service.stream(name)
        if last_event_id is not None:
            if not (last_event_id.isdecimal() and int(last_event_id[:20]) <= LAST):
                raise Problem(422, "invalid-parameter", "Last-Event-ID is the number of a step")
            first = int(last_event_id) + 1
        return StreamingResponse(follow(found, first), media_type="text/event-stream")

    if service.truth is not None:
        truth = service.truth

        @router.get("/streams/{name}/synthetic")
        def synthetic(name: Name, first: Step = 0) -> models.SyntheticAnswer:
            """Give true counts, since this stream is made of random numbers."""
            service.stream(name)
            counts = [models.SyntheticCounts(step=step, values=values) for step, values in truth(first)]
            return models.SyntheticAnswer(counts=counts)
