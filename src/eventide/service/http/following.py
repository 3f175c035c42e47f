"""Releases as server-sent events: from the step asked for, in order, each as it is stored, for as long as one listens.

The id of an event is its step, so a browser that lost its connection goes on where it was.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool

from eventide.service.live_stream import LiveStream

AT_A_TIME = 32  # releases read from the store together
QUIET_SECONDS = 15.0  # after which a comment keeps the connection alive


async def follow(stream: LiveStream, first: int, allowed: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Events for all releases from `first` on, until whoever follows is no longer allowed to."""
    step = first
    yield b"retry: 1000\n\n"
    while stream.followed and allowed():
        lines = await run_in_threadpool(stream.lines, step, AT_A_TIME)
        for number, line in lines:
            yield b"id: %d\nevent: release\ndata: %s\n\n" % (number, line)
            step = number + 1
        if not lines and not await stream.board.beyond(step - 1, QUIET_SECONDS):
            yield b": still here\n\n"
