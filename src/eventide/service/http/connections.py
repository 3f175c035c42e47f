"""Connections that dawdle are closed: a request must arrive with all its headers within some seconds.

The server's own limit is on silence between two requests; this one is on headers that never end.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with an end to patience."""

    _look: asyncio.TimerHandle | None = None
    _answered = False
    _dawdled = False  # the last time somebody looked

    def __init__(self, *arguments: Any, header_seconds: float = HEADER_SECONDS, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._header_seconds = header_seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Look at the connection from now on."""
        super().connection_made(transport)
        self._look = self.loop.call_later(self._header_seconds, self._look_again)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """From now on silence is the server's own concern."""
        self._answered = True
        super().on_response_complete()

    def _look_again(self) -> None:
        begun = bool(self.conn.trailing_data[0])
        dawdles = self.conn.their_state is h11.IDLE and (begun or not self._answered)
        if dawdles and (self._dawdled or not begun):
            self.transport.close()
            return
        self._dawdled = dawdles
        self._look = self.loop.call_later(self._header_seconds, self._look_again)
