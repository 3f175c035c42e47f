"""A bar for work that takes a while. Imports rich when a bar is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
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


@contextmanager
def counting(doing: str, total: int | None, quiet: bool) -> Iterator[Callable[[int], None]]:
    """The same for work that tells how far it is instead of being iterated over."""
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda done: progress.update(task, completed=done)
