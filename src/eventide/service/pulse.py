"""Whether the loop that answers requests still turns: it beats now and then, and others look when it last did."""

from __future__ import annotations

import time

LONGEST_PAUSE = 60.0  # seconds; a flood of connections takes some


class Pulse:
    """The pulse of one loop, which beats when it is made."""

    def __init__(self, longest_pause: float = LONGEST_PAUSE) -> None:
        self.longest_pause = longest_pause
        self.beat()

    def beat(self) -> None:
        """Say that the loop turns."""
        self._last = time.monotonic()

    @property
    def is_felt(self) -> bool:
        """Whether it has said so not long ago."""
        return time.monotonic() - self._last < self.longest_pause
