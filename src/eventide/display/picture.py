"""What of matplotlib is our own: a figure that a notebook shows by itself, and numbers on logarithmic axes."""

from __future__ import annotations

import io

from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter


class Picture(Figure):
    """A figure that knows its PNG, whatever the backend, with or without pyplot."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=110)
        return file.getvalue()


class PlainLogTicks(LogFormatter):
    """Plain numbers, 40 or 4,000, at those ticks of a logarithmic axis that matplotlib would label."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The label of a tick; nothing where there are too many."""
        return f"{x:,.12g}" if super().__call__(x, pos) else ""
