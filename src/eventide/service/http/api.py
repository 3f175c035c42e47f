"""The operations under /v1, as the OpenAPI description lists them; those to read stand in `reading_routes`.

A batch of events is answered when it is durable, or refused with a sentence that says what to do; sent again with its
key, it counts once. It arrives when its body is complete, and is stamped then, before it is read: see `arrivals`. Raw
figures are for operators alone.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Header, Request

from eventide.errors import StateError
from eventide.service.config.parameters import Name
from eventide.service.http import models
from eventide.service.http.ingest import JSON, KEY, NDJSON, batch_name, read_events
from eventide.service.http.limits import read_body
from eventide.service.http.problems import Problem, refusals
from eventide.service.http.reading_routes import add_reading
from eventide.service.http.tokens import Token
from eventide.service.pushed_feed import Busy
from eventide.service.service import Service

READ = refusals(401, 403, 404, 422, 429)
BODIES_AT_ONCE = 1  # read at a time: more would be no faster, and keep the loop from stamping what arrives meanwhile

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


def build_router(service: Service) -> APIRouter:
    """All operations on the streams of a service."""
    router = APIRouter(prefix="/v1")
    needs = service.doorkeeper.needs
    may_read, may_operate = (Depends(needs(role)) for role in ("read", "operate"))

    @router.get("/access", tags=["access"], responses=refusals(401, 403, 429))
    def access(token: Token = may_read) -> models.AccessAnswer:
        """Say what the token is good for."""
        return models.AccessAnswer(role="operate" if token.role == "operate" else "read")

    reading = APIRouter(dependencies=[may_read], tags=["releases"], responses=READ)
    add_reading(reading, service, may_read)
    router.include_router(reading)

    @router.get("/streams/{name}/operations", tags=["operate"], responses=READ, dependencies=[may_operate])
    def operations(name: Name) -> models.OperationsAnswer:
        """Give raw figures about events, for operators only."""
        return service.operations(service.stream(name))

    _add_ingest(router, service)
    return router


def _add_ingest(router: APIRouter, service: Service) -> None:
    may_ingest = Depends(service.doorkeeper.needs("ingest"))
    reading = CapacityLimiter(BODIES_AT_ONCE)

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
        body, media_type = await read_body(request, service.config.limits), request.headers.get("content-type", "")
        try:
            with stream.feed.arrivals.stamp() as arrival:
                read = await to_thread.run_sync(read_events, body, media_type, stream.reader, limiter=reading)
                receipt = await asyncio.wrap_future(stream.feed.submit(read.events, arrival, batch))
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
