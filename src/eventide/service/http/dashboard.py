"""The dashboard's files: a fixed list, served from memory, so no path can lead anywhere else.

plotly's script is the one that comes with the Python package: nothing is asked of any other server.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import Response

from eventide.service.http.problems import Problem

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
SCRIPTS = (
    "answers",
    "api",
    "app",
    "budget",
    "format",
    "heat",
    "history",
    "idle",
    "levels",
    "plotly",
    "range",
    "saved",
    "search",
    "series",
    "theme",
    "times",
    "windows",
)
ASSETS = ("docs.css", "icon.svg", "style.css", *(f"{name}.js" for name in SCRIPTS))

router = APIRouter(include_in_schema=False)


class Asset(NamedTuple):
    """A file as it is sent."""

    content: bytes
    compressed: bytes
    tag: str
    media_type: str


@router.api_route("/", methods=["GET", "HEAD"])
def index(request: Request) -> Response:
    """The page."""
    return _answer(request, "index.html")


@router.api_route("/assets/{name}", methods=["GET", "HEAD"])
def asset(request: Request, name: str) -> Response:
    """A script, a style or the icon."""
    if name not in ASSETS:
        raise Problem(404, "not-found", "there is nothing here")
    return _answer(request, name)


def _answer(request: Request, name: str) -> Response:
    found = load(name)
    headers = {"ETag": found.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.compressed, headers=headers | {"Content-Encoding": "gzip"}, media_type=found.media_type)
    return Response(found.content, headers=headers, media_type=found.media_type)


@cache
def load(name: str) -> Asset:
    """A file of the list, with what a browser needs to keep it."""
    content = _content(name)
    suffix = name[name.rindex(".") :]
    tag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
    return Asset(content, gzip.compress(content, 6, mtime=0), tag, TYPES[suffix])


def _content(name: str) -> bytes:
    if name == "plotly.js":
        from plotly.offline import get_plotlyjs

        return str(get_plotlyjs()).encode()
    return (files("eventide.service") / "static" / name).read_bytes()
