"""What the service answers when it refuses: a document with a stable code, a sentence and nothing of the request.

The form is that of RFC 9457.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

MEDIA_TYPE = "application/problem+json"
CODES = {404: "not-found", 405: "method-not-allowed"}


class ProblemDocument(BaseModel):
    """Why a request was refused; `code` stays the same between versions."""

    code: str
    status: int
    title: str


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
    return {status: {"description": "Refused", "model": ProblemDocument, "content": content} for status in statuses}


def answer_problems(app: FastAPI) -> None:
    """Turn every error into a problem document."""

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        return Problem(500, "unexpected", "a fault of the service").response()

    @app.exception_handler(Problem)
    async def refused(request: Request, problem: Problem) -> JSONResponse:
        return problem.response()

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        where = ", ".join(sorted({".".join(map(str, each["loc"])) for each in error.errors()}))
        return Problem(422, "invalid-parameter", f"not as the description asks: {where}").response()

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> JSONResponse:
        code = CODES.get(error.status_code, "refused")
        problem = Problem(error.status_code, code, str(error.detail))
        problem.headers.update(error.headers or {})
        return problem.response()


def unknown_stream() -> Problem:
    """The refusal of a stream that is not there, or that whoever asks may not know of."""
    return Problem(404, "unknown-stream", "there is no stream of this name")
