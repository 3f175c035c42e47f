"""Whether a file that grew by a step at a time still holds what a store released, from its first line to its last."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice, product
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from eventide.errors import InputError
from eventide.live.sinks.appending_file import AppendingFile, AppendingTable
from eventide.live.stores.base import Store
from eventide.live.stores.stored_releases import all_statistics, levels_of
from eventide.releases.level_values import either_way
from eventide.releases.lines import read_line


class Comparison(NamedTuple):
    """How many steps of a file are as they were stored, and the first step where something else stands, if any.

    `lost` are those that only the file has: they were released behind the backup that the store was restored from.
    """

    alike: int
    differs_at: int | None
    lost: tuple[int, ...] = ()


def compare(store: Store, path: Path) -> Comparison:
    """Compare a .jsonl or .csv file with what a store released, byte for byte."""
    sink = _sink(store, path)
    with path.open("rb") as file:
        file.seek(len(sink.header))
        begin, alike, place, kept_from = -1, 0, file.tell(), store.kept_from()
        for line in iter(file.readline, b""):
            if (begin := _step_of(sink, line)) >= kept_from:  # what is not kept cannot be compared
                break
            place = file.tell()
        if place > len(sink.header) and begin > kept_from:
            return Comparison(0, kept_from)
        file.seek(place)
        end, step, lost = path.stat().st_size, begin - 1, list[int]()
        restored = {epoch.first_step for epoch in store.epochs() if epoch.restored}
        for following, release in store.releases(begin):
            if following in restored:
                lost += _passed_over(sink, file, step, following)
            step = following
            if file.tell() == end:
                return Comparison(alike, None, tuple(lost))
            expected = sink.encode(release)
            found = file.read(len(expected))
            if found != expected:
                return Comparison(alike, step, tuple(lost))
            alike += 1
        return Comparison(alike, step + 1 if file.read(1) else None, tuple(lost))


def _passed_over(sink: AppendingFile, file: BinaryIO, after: int, until: int) -> list[int]:
    """Pass over the lines of steps between two that are stored; give these steps."""
    passed: dict[int, None] = {}
    while True:
        place = file.tell()
        line = file.readline()
        if not line or not after < (step := _step_of(sink, line)) < until:
            file.seek(place)
            return list(passed)
        passed[step] = None


def _sink(store: Store, path: Path) -> AppendingFile:
    """What writes a file like this one, by its ending and its first line."""
    if path.suffix.lower() == ".jsonl":
        return AppendingFile(path)
    if path.suffix.lower() != ".csv":
        raise InputError(f"{path.name} ends neither in .jsonl nor in .csv; only these are compared")
    epochs, first = store.epochs(), store.kept_from()
    starts = any(read_line(release).start is not None for _, release in store.releases(first, first))
    statistics = either_way(all_statistics(store))
    for epoch, layout, intervals, told in product(reversed(epochs), ("wide", "long"), (False, True), statistics):
        with suppress(InputError):  # bins that a table of that kind cannot have, or that the file has not
            levels = levels_of(epoch.setting)
            how: dict[str, Any] = {"starts": starts, "intervals": intervals, "groups": levels and levels.groups}
            sink = AppendingTable(path, epoch.setting.bins, layout, **how, statistics=told)
            with path.open("rb") as file:
                if file.readline() == sink.header:
                    sink.refuse_other_rows(b"".join(islice(file, sink.lines_per_step)))
                    return sink
    raise InputError(f"{path.name} does not begin with the columns of this store; it was written from another one")


def _step_of(sink: AppendingFile, line: bytes) -> int:
    try:
        return sink.step_of_line(line)
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{sink.path.name} holds something else than releases") from None
