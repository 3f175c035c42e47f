"""The outermost layer: what every answer carries, and what becomes of a fault.

An unexpected error could hold somebody's data in its message, so only its kind and place are logged.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eventide.service.http.problems import Problem

LOG = logging.getLogger("eventide.live.service")

# plotly writes styles of its own, so inline styles are allowed; scripts come from our files alone
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def too_many_connections() -> Problem:
    """The refusal of whoever comes while there are too many."""
    title = "too many connections, of all clients or of your address; wait and try again"
    return Problem(503, "too-many-connections", title, Retry_After="1", Connection="close")


def is_health_check(path: str) -> bool:
    """Whether a request only asks if all is well."""
    return path in ("/healthz", "/readyz") or path.startswith("/readyz/")


class Guard:
    """Adds the headers, refuses while it is crowded, and keeps faults from being logged as they are."""

    def __init__(self, app: ASGIApp, *, encrypted: bool = False, crowded: Callable[[], bool] = lambda: False) -> None:
        self.app = app
        self.crowded = crowded
        self.headers = HEADERS | ({"Strict-Transport-Security": "max-age=31536000"} if encrypted else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and its answer back."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        if self.crowded() and not is_health_check(scope["path"]):
            await too_many_connections().response()(scope, receive, with_headers)
            return
        try:
            await self.app(scope, receive, with_headers)
        except Exception as error:  # it was answered inside
            place = traceback.extract_tb(error.__traceback__)[-1]
            LOG.error("unexpected %s at %s, line %s", type(error).__name__, place.name, place.lineno)
