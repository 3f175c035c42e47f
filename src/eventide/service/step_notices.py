"""Notices of steps: the writer of a stream announces that one was released, and whoever follows is woken.

Threads announce, coroutines wait; what was released is read from the store, never from here.
"""

from __future__ import annotations

import asyncio
import threading


class StepNotices:
    """The last step released, -1 before the first, and those who wait for the next one."""

    def __init__(self, last: int = -1) -> None:
        self.last = last
        self._lock = threading.Lock()
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    def announce(self, step: int) -> None:
        """Say that a step was released; from any thread."""
        with self._lock:
            self.last = step
            woken, self._waiting = self._waiting, {}
        for event, loop in woken.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    async def wait_beyond(self, step: int, seconds: float) -> bool:
        """Wait until a later step than this one was released; False if none was in so many seconds."""
        event = asyncio.Event()
        with self._lock:
            if self.last > step:
                return True
            self._waiting[event] = asyncio.get_running_loop()
        try:
            await asyncio.wait_for(event.wait(), seconds)
        except TimeoutError:
            return False
        finally:
            with self._lock:
                self._waiting.pop(event, None)
        return True
