"""Standard output: the stored lines, each shown at once.

It cannot say what was read of it, so a line may come twice after a crash, and none is left out.
"""

from __future__ import annotations

import sys

from eventide.live.sinks.base import Sink


class StandardOutput(Sink):
    """Cannot say what was read of it, so the store remembers what was written."""

    name = "standard output"

    def send(self, step: int, release: bytes) -> None:
        """Write a line."""
        sys.stdout.buffer.write(release + b"\n")
        sys.stdout.buffer.flush()
