"""What a terminal shows of work that takes a while.

Nothing is shown where standard error is no terminal, and nothing ever on standard output.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from eventide.arrays import Ints


def with_progress(steps: Iterable[Ints], doing: str, total: int | None, quiet: bool) -> Iterator[Ints]:
    """Show a bar on a terminal, unless the releases themselves are shown there."""
    with counting(doing, total, quiet) as tell:
        for done, step in enumerate(steps, start=1):
            yield step
            tell(done)


@contextmanager
def counting(
    doing: str, total: int | None = None, quiet: bool = False, unit: str | None = "steps"
) -> Iterator[Callable[..., None]]:
    """A bar with the time left, for work that tells how much is done; of how much, and what, where it knows.

    It is shown at once. Without a unit it says how many percent are done.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda *told: None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn() if unit is None else progress.TextColumn("{task.fields[told]}"),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=total, told=_told(0, total, unit))

        def tell(done: int, of: int | None = None, at: str | None = None) -> None:
            bar.update(task, completed=done, total=of, description=at, told=_told(done, of or total, unit))

        yield tell


def _told(done: int, total: int | None, unit: str | None) -> str:
    return f"{done:,} {unit}" if total is None else f"{done:,} of {total:,} {unit}"


@contextmanager
def resumable(can: bool = True) -> Iterator[None]:
    """Say to whoever interrupts the work that it can be gone on with, where it can."""
    try:
        yield
    except KeyboardInterrupt:
        if can:
            click.echo("The same command goes on where this one stopped.", err=True)
        raise


@contextmanager
def naming(stage: str) -> Iterator[Callable[[str], None]]:
    """The stage of work that tells what it is at, beginning with `stage`."""
    if not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console

    with Console(stderr=True).status(stage) as status:
        yield status.update
