"""What operations are asked with: names, steps and sizes of pages, as the OpenAPI description shows them.

A page has an end: so many steps, and fewer where each has many numbers.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from fastapi.responses import Response

from eventide.service.http.releases import MEDIA_TYPES

LAST = 2**53
MOST_AT_ONCE = 1_000  # steps on a page
CELLS_AT_ONCE = 4_000_000  # numbers on a page; streams of many bins have shorter pages

Name = Annotated[str, Path(description="the stream's name", max_length=63)]
Step = Annotated[int, Query(ge=0, le=LAST)]
LastStep = Annotated[int | None, Query(ge=0, le=LAST)]
Limit = Annotated[int, Query(ge=1, le=MOST_AT_ONCE, description="steps on a page")]
SomeBins = Annotated[list[str] | None, Query(description="only these bins")]
Form = Annotated[Literal["json", "csv", "arrow"], Query(alias="format")]


def page_length(limit: int, size: int) -> int:
    """How many steps of so many numbers each a page holds."""
    return max(1, min(limit, CELLS_AT_ONCE // size))


def paged(content: bytes, form: str, following: int | None) -> Response:
    """A page; the step at which the next one begins stands in a header, too."""
    headers = {} if following is None else {"Eventide-Next": str(following)}
    return Response(content, media_type=MEDIA_TYPES[form], headers=headers)


def tables(model: Any) -> dict[int | str, dict[str, Any]]:
    """What the description says about a page in any of its forms."""
    return {200: {"model": model, "content": {kind: {} for kind in MEDIA_TYPES.values()}}}
