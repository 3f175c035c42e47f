"""A bar for work that takes a while. Imports rich when a bar is shown."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eventide.arrays import Ints


def with_progress(steps: Iterable[Ints], doing: str, total: int | None, quiet: bool) -> Iterable[Ints]:
    """Show a bar on a terminal, unless the releases themselves are shown there."""
    if quiet or not sys.stderr.isatty():
        return steps
    from rich.console import Console
    from rich.progress import track

    return track(steps, doing, total, console=Console(stderr=True), transient=True)
