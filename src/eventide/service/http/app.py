"""The application: operations, page, figures and health behind one guard.

It starts and stops the service with itself. Nothing it serves loads a script from elsewhere, and every refusal is a
problem document.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from eventide.service.http import dashboard, models, prometheus
from eventide.service.http.docs_page import docs_page
from eventide.service.http.guard import Guard
from eventide.service.http.ingest import add_ingest
from eventide.service.http.problems import Problem, answer_problems, refusals, refuse_misspelt
from eventide.service.http.reading_routes import Name, add_reading
from eventide.service.http.tokens import Token
from eventide.service.service import Service

TAGS = [
    {"name": "access", "description": "What a token may do. Needs a token to read."},
    {
        "name": "releases",
        "description": "What was released, and everything public about a stream. Needs a token to read.",
    },
    {"name": "ingest", "description": "Events on their way in. Needs a token to ingest."},
    {"name": "operate", "description": "Raw figures, which must not be passed on. Needs a token to operate."},
    {"name": "health", "description": "Health checks, which need no token, and figures for Prometheus."},
]


def build_app(service: Service, crowded: Callable[[], bool] = lambda: False) -> ASGIApp:
    """The application of a service, which starts and stops with it; `crowded` says that there are too many clients."""

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.stop()

    app = FastAPI(
        title="eventide",
        version=version("eventide"),
        description="Releases of live event streams under differential privacy.",
        openapi_tags=TAGS,
        generate_unique_id_function=lambda route: route.name,
        lifespan=running,
        docs_url=None,  # it would load scripts from elsewhere: the page at /docs is our own
        redoc_url=None,
        redirect_slashes=False,
    )
    answer_problems(app)
    app.include_router(dashboard.router)
    _add_docs(app)
    app.include_router(_operations(service))
    _add_health(app, service)
    _add_figures(app, service)
    return Guard(app, encrypted=service.config.server.certificate is not None, crowded=crowded)


def build_health_app(service: Service) -> ASGIApp:
    """The health checks alone, for a port of their own."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    answer_problems(app)
    _add_health(app, service)
    return Guard(app)


def _add_docs(app: FastAPI) -> None:
    @app.get("/docs", include_in_schema=False)
    def docs(request: Request) -> HTMLResponse:
        return HTMLResponse(docs_page(app.openapi(), str(request.base_url).rstrip("/")))


def _operations(service: Service) -> APIRouter:
    """All operations on the streams of a service, grouped by who may ask; raw figures are for operators alone."""
    router = APIRouter(prefix="/v1")
    refused = refusals(401, 403, 404, 422, 429)
    may_read, may_operate = (Depends(service.doorkeeper.needs(role)) for role in ("read", "operate"))

    @router.get(
        "/access",
        tags=["access"],
        summary="Check the token",
        response_description="What the token may do.",
        responses=refusals(401, 403, 429),
    )
    def access(token: Token = may_read) -> models.AccessAnswer:
        """Say whether the token may only read, or also operate. A token that may only send events is refused."""
        return models.AccessAnswer(role="operate" if token.role == "operate" else "read")

    from_stores = refused | refusals(503)
    reading = APIRouter(dependencies=[may_read, Depends(refuse_misspelt)], tags=["releases"], responses=from_stores)
    add_reading(reading, service, may_read)
    router.include_router(reading)

    @router.get(
        "/streams/{name}/operations",
        tags=["operate"],
        summary="Show raw figures",
        response_description="The raw figures since the start of the service.",
        responses=refused,
        dependencies=[may_operate],
    )
    def operations(name: Name) -> models.OperationsAnswer:
        """Say how many events were taken, refused, late or left out. These numbers are raw: for operators only."""
        return service.operations(service.stream(name))

    add_ingest(router, service)
    return router


def _add_health(app: FastAPI, service: Service) -> None:
    well = partial(app.get, tags=["health"], response_description="All is well.")

    @well("/healthz", summary="Check the service", responses=refusals(503))
    async def alive() -> models.HealthAnswer:
        """Say that the service answers requests, and that no stream has stopped for good."""
        if not service.pulse.is_felt:
            raise Problem(503, "stalled", "the service is there and answers no requests")
        if service.failed:
            raise Problem(503, "stream-stopped", "a stream has stopped for good; the log says why")
        return models.HealthAnswer(status="ok")

    @well("/readyz", summary="Check that something is published", responses=refusals(503))
    async def ready() -> models.HealthAnswer:
        """Say whether any stream takes events and publishes."""
        if not service.ready:
            raise Problem(503, "not-ready", "no stream publishes now")
        return models.HealthAnswer(status="ok")

    @well("/readyz/{name}", summary="Check that a stream is published", responses=refusals(404, 422, 503))
    async def stream_ready(name: Name) -> models.HealthAnswer:
        """Say whether this stream takes events and publishes."""
        stream = service.stream(name)
        if not stream.ready:
            ahead = (
                "the store is ahead of this machine's clock, so no event counts; correct the clock, or see the runbook"
            )
            raise Problem(503, "not-ready", ahead if stream.ahead else "the stream does not publish now")
        return models.HealthAnswer(status="ok")


def _add_figures(app: FastAPI, service: Service) -> None:
    may_read = Depends(service.doorkeeper.needs("read"))

    @app.get(
        "/metrics",
        tags=["health"],
        summary="Give figures for Prometheus",
        response_description="The figures in the text format of Prometheus.",
        response_class=Response,
        responses=refusals(401, 403, 429) | {200: {"content": {"text/plain": {}}}},
    )
    def figures(token: Token = may_read) -> Response:
        """Give figures about publishing. Needs a token to read; figures about events need a token to operate."""
        seen = [stream for name, stream in service.streams.items() if token.sees(name)]
        content = prometheus.exposition(seen, with_raw=token.role == "operate")
        return Response(content, media_type=prometheus.CONTENT_TYPE)
