"""`eventide warm`: everything that is compiled, compiled ahead into a folder, for images of containers.

Reads no data and publishes nothing: a few steps of invented counts and events have every kernel compiled as users will
call it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

import click

from eventide.cli.progress import counting
from eventide.errors import InputError, StateError


@click.command("warm")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(folder: Path, as_json: bool) -> None:
    """Fill the folder DIR with compiled code, so that eventide starts without compiling. Takes a minute or two.

    For images of containers, and for users who cannot write to the package or to a home: fill DIR once, then set
    NUMBA_CACHE_DIR to it wherever eventide runs. There DIR may be read-only. It serves the same installation (the same
    versions in the same place) on the same kind of CPU; any other compiles again. DIR holds programs: let nobody write
    there who may not install software.

    \b
    Example: eventide warm compiled
    """
    folder = _writable(folder)
    os.environ["NUMBA_CACHE_DIR"] = str(folder)  # before anything loads numba, here and in the processes
    from eventide.bench.run.workers import in_processes

    done: Counter[str] = Counter()
    with counting("compiling", len(WORK), unit="parts") as tell:
        for _, counted in in_processes(compiled, enumerate(WORK), max(2, os.cpu_count() or 1)):
            done.update(counted, works=1)
            tell(done["works"])
    setting = f"NUMBA_CACHE_DIR={folder}"
    if as_json:
        document = {"folder": str(folder), "compiled": done["compiled"], "found": done["found"], "set": setting}
        click.echo(json.dumps(document))
    else:
        click.echo(f"{folder}: {done['compiled']} functions compiled, {done['found']} found compiled already.")
        click.echo(f"Set this where eventide runs:  {setting}")


def _writable(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as problem:
        raise InputError(f"cannot write {folder}: {problem.strerror}; choose another place") from None
    return folder.resolve()


def compiled(work: str) -> Counter[str]:
    """Do some work; give how many functions were compiled for it, and how many were found compiled."""
    from eventide import compiling

    before = compiling.counted()
    WORK[work]()
    if compiling.NOT_KEPT:
        raise StateError("the folder could not be written to the end; make room there, then run the command again")
    return compiling.counted() - before


def _tide() -> None:
    from eventide.mechanisms.saving import load
    from eventide.mechanisms.tide import Tide

    for counts, seasons in product(([5], [5, 6]), (None, (4,))):
        mechanism = Tide(epsilon=1.0, window=3, bins=len(counts), seasons=seasons)
        for _ in range(4 * mechanism.window):
            mechanism.release(counts)
        load(mechanism.save())


def _groups() -> None:
    from eventide.mechanisms.rescuedp import RescueDP
    from eventide.privacy.noise import Zero

    mechanism = RescueDP(epsilon=1.0, window=3, bins=2, noise=Zero())  # or noise would decide when bins are grouped
    for _ in range(50):
        mechanism.release([5, 6])


def _events() -> None:
    import numpy as np

    from eventide.events.cap_memory import CapMemory
    from eventide.events.caps import Cap
    from eventide.events.files.lines import CsvLineReader
    from eventide.events.reader import EventReader
    from eventide.events.slot_tally import UserFirsts
    from eventide.events.sum_tally import UserSums
    from eventide.events.tally import UserTally

    reader = EventReader(["north"])
    reader.key = bytes(16)
    lines = CsvLineReader(b"timestamp,user,bin\n", "events")
    found = lines.rows(b'2026-01-31T23:59:00Z,"17",north\n', lines.columns)
    events = reader.read(found.rows, found.unreadable)
    for form in ("s", "%Y-%m-%d"):
        EventReader(["north"], time_format=form).times(found.rows)
    tally = UserTally(len(reader.bins), 1, reader.key)
    tally.add(events.user, events.bin)
    tally.counts(0)
    tally.capped_counts(0, CapMemory(Cap(1, 2), reader.key))
    values = np.ones(len(events.bin), np.int64)
    for valued in (UserSums(len(reader.bins), 1, reader.key, 1), UserFirsts(len(reader.bins), 1, reader.key)):
        valued.add(events.user, events.bin, values)
        valued.counts(0)


def _window_queries() -> None:
    from eventide import windows
    from eventide.windows.workload import Query

    queries = [Query(window=4, step=2), Query(window=12, step=4)]
    windows.plan(queries, planner="base").start().push_many([5] * 24)
    windows.plan(queries, planner="best").start(refine=True).push_many([5] * 24)


WORK: dict[str, Callable[[], None]] = {
    "Tide": _tide,
    "window queries": _window_queries,
    "events": _events,
    "groups of RescueDP": _groups,
}
