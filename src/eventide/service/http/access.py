"""Who sent a request, whether they may, and how often.

A request without a token that is good for it is refused before anything is done, and counts towards the rate of its
sender like any other. A stream that a token is not good for is as if it were not there. Of clients so many are
remembered and no more, so memory is bounded.

Whoever sends events to a stream that remembers nobody is not remembered here either: when somebody last sent, and how
much, would tell that they were there. What keeps such a stream from too much is that one batch waits and no more.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from eventide.service.http.access_log import AccessLog
from eventide.service.http.problems import Problem, unknown_stream
from eventide.service.http.tokens import Token, Tokens

CLIENTS = 10_000  # remembered; the one heard of longest ago is forgotten
LONGEST_TOKEN = 200
ANYBODY = Token("read", "anybody", "")
_BEARER = HTTPBearer(auto_error=False, description="a token made with: eventide config token ROLE CONFIG")


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


class Doorkeeper:
    """Knows tokens and how often each may knock. With `open_reading` whoever comes may read. `log` says who came.

    `forgetful` are the streams that remember nobody.
    """

    def __init__(
        self,
        tokens: Tokens,
        rate: RequestRate,
        log: AccessLog,
        open_reading: bool = False,
        forgetful: Collection[str] = (),
    ) -> None:
        self.tokens = tokens
        self.forgetful = forgetful
        self.log = log
        self.rate = rate
        self.open_reading = open_reading

    def needs(self, role: str) -> Callable[..., Awaitable[Token]]:
        """A dependency that gives the token of a request, or refuses it; at once, whatever other threads are doing."""

        async def admitted(request: Request, _: object = Depends(_BEARER)) -> Token:
            return self.admit(request, role)

        return admitted

    def admit(self, request: Request, role: str) -> Token:
        """The token of this request if it is good for the role; each request counts towards the rate."""
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        given = scheme.lower() == "bearer" and 0 < len(secret) <= LONGEST_TOKEN
        token = self.tokens.find(secret.strip()) if given else None
        anybody = token is None and scheme == "" and role == "read" and self.open_reading
        try:
            self._refuse(request, role, token, anybody)
        except Problem as problem:
            self.log.note(request, role, token, problem.document.code)
            raise
        admitted = token or ANYBODY
        self.log.note(request, role, admitted, "admitted")
        return admitted

    def _refuse(self, request: Request, role: str, token: Token | None, anybody: bool) -> None:
        address, name = request.client.host if request.client else "unknown", request.path_params.get("name")
        sends = role == "ingest" and token is not None and token.may(role) and token.sees(str(name))
        if not (sends and name in self.forgetful):
            self.rate.take(token.digest if token else address)
        if anybody:
            return
        if token is None:
            title = (
                "this token is not known, or is not one any more"
                if request.headers.get("authorization", "").lower().startswith("bearer ")
                else "this needs a token in the header Authorization: Bearer ..."
            )
            raise Problem(401, "no-token", title, WWW_Authenticate="Bearer")
        if not token.may(role):
            raise Problem(403, "wrong-token", f"this needs a token for {role}; yours is for {token.role}")
        if name is not None and not token.sees(name):
            raise unknown_stream()

    def knows(self, token: Token) -> bool:
        """Whether a token that was admitted is one still."""
        return token is ANYBODY or self.tokens.hold(token)
