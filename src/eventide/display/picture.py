"""A matplotlib figure that a notebook shows by itself, whichever backend is chosen and whether pyplot is used or not.

Imports matplotlib, so it is imported where something is drawn.
"""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class Picture(Figure):
    """A figure that knows its PNG."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=110)
        return file.getvalue()
