"""Work that has every kernel compiled as users will call it: a few steps of invented counts and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from eventide.errors import StateError


def compiled(work: str) -> Counter[str]:
    """Do some work; give how many functions were compiled for it, and how many were found compiled."""
    from eventide import compiling

    before = compiling.counted()
    WORK[work]()
    if compiling.NOT_KEPT:
        raise StateError("the folder could not be written to the end; make room there, then run the command again")
    return compiling.counted() - before


def _tide() -> None:
    from eventide.mechanisms.tide import Tide

    for counts in ([5], [5, 6]):
        mechanism = Tide(epsilon=1.0, window=3, bins=len(counts))
        for _ in range(2 * mechanism.window):
            mechanism.release(counts)


def _groups() -> None:
    from eventide.mechanisms.rescuedp import RescueDP
    from eventide.privacy.noise import Zero

    mechanism = RescueDP(epsilon=1.0, window=3, bins=2, noise=Zero())  # or noise would decide when bins are grouped
    for _ in range(50):
        mechanism.release([5, 6])


def _events() -> None:
    from eventide.events.files.lines import CsvLineReader
    from eventide.events.reader import EventReader
    from eventide.events.tally import UserTally

    reader = EventReader(["north"])
    reader.key = bytes(16)
    lines = CsvLineReader(b"timestamp,user,bin\n", "events")
    found = lines.rows(b'2026-01-31T23:59:00Z,"17",north\n', lines.columns)
    events = reader.read(found.rows, found.unreadable)
    tally = UserTally(len(reader.bins), 1, reader.key)
    tally.add(events.user, events.bin)
    tally.counts(0)


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
