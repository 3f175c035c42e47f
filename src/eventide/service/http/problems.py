"""What the service answers when it refuses: a document with a stable code, a sentence and nothing of the request.

The form is that of RFC 9457.
"""

from __future__ import annotations

import difflib
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from eventide.live.stores.database import Unavailable

MEDIA_TYPE = "application/problem+json"
AWAY = "the stream's store cannot be used now; ask again later"
CODES = {404: "not-found", 405: "method-not-allowed"}
MEANINGS = {
    400: "The request is not as it must be: the body is not JSON, or the key of the batch is not allowed.",
    401: "There is no token, or it is not known.",
    403: "The token is known, but not for this.",
    404: "There is no stream, bin or query of this name, or the token is not good for it.",
    408: "The body took too long to arrive.",
    413: "The batch is too large. Send smaller ones.",
    415: "The body is compressed or of another type. Send JSON or NDJSON as it is.",
    422: "A parameter is not as described here.",
    429: "Too many requests, or too many batches are waiting. Wait as many seconds as `Retry-After` says.",
    503: "Not available now. Where there is a header `Retry-After`, wait as many seconds as it says.",
}


class ProblemDocument(BaseModel):
    """Why a request was refused (RFC 9457)."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    code: str
    """A short name of the reason, which stays the same between versions."""
    status: int
    """The status of the answer."""
    title: str
    """The reason in a sentence, and what to do."""


class Problem(Exception):
    """A refusal on its way out."""

    def __init__(self, status: int, code: str, title: str, **headers: str) -> None:
        super().__init__(title)
        self.document = ProblemDocument(code=code, status=status, title=title)
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def response(self) -> JSONResponse:
        """The refusal as an answer."""
        return JSONResponse(
            self.document.model_dump(), self.document.status, headers=self.headers, media_type=MEDIA_TYPE
        )


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What the description of an operation says about the refusals it knows."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
    return {
        status: {"description": MEANINGS[status], "model": ProblemDocument, "content": content} for status in statuses
    }


def answer_problems(app: FastAPI) -> None:
    """Turn every error into a problem document."""

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        return Problem(500, "unexpected", "a fault of the service").response()

    @app.exception_handler(Unavailable)
    async def away(request: Request, error: Unavailable) -> JSONResponse:
        return Problem(503, "store-unavailable", AWAY, Retry_After="5").response()

    @app.exception_handler(Problem)
    async def refused(request: Request, problem: Problem) -> JSONResponse:
        return problem.response()

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        told = {f"{'.'.join(map(str, each['loc']))} ({each['msg']})" for each in error.errors()}
        where = ", ".join(sorted(told))
        return Problem(422, "invalid-parameter", f"not as the description asks: {where}").response()

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> JSONResponse:
        code = CODES.get(error.status_code, "refused")
        problem = Problem(error.status_code, code, str(error.detail))
        problem.headers.update(error.headers or {})
        return problem.response()


async def refuse_misspelt(request: Request) -> None:
    """Refuse a parameter that is not known and like one that is; others may be a proxy's, and are passed over."""
    known = [each.alias for each in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in known and (meant := difflib.get_close_matches(name, known, n=1)):
            title = f"not as the description asks: a parameter is not known; did you mean query.{meant[0]}?"
            raise Problem(422, "invalid-parameter", title)


def unknown_stream() -> Problem:
    """The refusal of a stream that is not there, or that whoever asks may not know of."""
    return Problem(404, "unknown-stream", "there is no stream of this name")
