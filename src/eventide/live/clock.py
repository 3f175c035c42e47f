"""What time it is for the curator, in microseconds UTC: a clock that never goes backwards. Imports nothing of eventide.

Steps are sealed on it, so it must not be set back under a running publisher: it then stands still until the time it had
shown is reached again.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Anything that tells the time and can wait."""

    def now(self) -> int:
        """Microseconds UTC, never less than what was told before."""

    def wait(self, seconds: float) -> None:
        """Let time pass."""


class SystemClock:
    """The machine's clock, without its steps back."""

    def __init__(self) -> None:
        self._latest = 0

    def now(self) -> int:
        """Microseconds UTC, never less than what was told before."""
        self._latest = max(self._latest, time.time_ns() // 1_000)
        return self._latest

    def wait(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)


class ManualClock:
    """A clock for tests: it shows what it is set to, and waiting moves it on."""

    def __init__(self, now: int = 0) -> None:
        self._now = now

    def now(self) -> int:
        """What it was set to."""
        return self._now

    def set(self, now: int) -> None:
        """Show another time; an earlier one is ignored."""
        self._now = max(self._now, now)

    def wait(self, seconds: float) -> None:
        """Move on at once."""
        self._now += round(seconds * 1_000_000)
