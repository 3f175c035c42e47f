"""What one client may ask: so many requests a second, so large a body, arriving in so long a time.

Beyond them nothing is read and nobody remembered, so memory is bounded.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.requests import ClientDisconnect, Request

from eventide.service.config.settings import Limits
from eventide.service.http.problems import Problem

MEGABYTE = 1 << 20
CLIENTS = 10_000  # remembered; the one heard of longest ago is forgotten


class RequestRate:
    """A bucket for each client, which fills at a steady rate and holds a second's worth."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second = per_second
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> None:
        """Let a request of this client pass, or refuse it."""
        now = self._clock()
        level, since = self._buckets.pop(client, (self.per_second, now))
        level = min(self.per_second, level + (now - since) * self.per_second)
        self._buckets[client] = (level - 1 if level >= 1 else level, now)
        if len(self._buckets) > CLIENTS:
            self._buckets.popitem(last=False)
        if level < 1:
            wait = math.ceil((1 - level) / self.per_second)
            raise Problem(429, "too-many-requests", "too many requests; wait and try again", Retry_After=str(wait))


async def read_body(request: Request, limits: Limits) -> bytes:
    """The body of a request, unless it is too large, too slow or compressed."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem(415, "compressed", "compressed bodies are not read; send it as it is", Connection="close")
    largest = limits.body_megabytes * MEGABYTE
    if _length(request) > largest:
        raise _too_large(limits)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > largest:
                    raise _too_large(limits)
    except TimeoutError:
        raise Problem(408, "too-slow", "the body took too long to arrive", Connection="close") from None
    except ClientDisconnect:
        raise Problem(400, "broken-off", "the body ended early", Connection="close") from None
    return bytes(body)


def _length(request: Request) -> int:
    written = request.headers.get("content-length", "0")
    return int(written) if written.isdecimal() else 0


def _too_large(limits: Limits) -> Problem:
    title = f"the body is larger than {limits.body_megabytes} MB; send smaller batches"
    return Problem(413, "too-large", title, Connection="close")
