"""Somebody takes the machine away between two events: all that a publisher holds then, as one view.

The view is what two worlds compare at every event: every array, number and text that can be reached from the publisher
and from whatever reads its events, frames of generators included; every row of its store, raw ones too; and of a store
in a file every byte on disk: its pages, free ones too, its log, the index of the log and the note of its writer. Noisy
cells are left out of it, since the budget of what they show is charged; `cells_of` gives them, to see that an event
changed those of its own step by one and nothing else.

What a log has by chance is left out as well: its salts, and the checksums that begin with them.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from eventide.arrays import Array
from eventide.live.publisher.publisher import Publisher
from eventide.live.stores.base import Store
from eventide.live.stores.database import Database, WriterPlace
from eventide.live.stores.database_store import DatabaseStore
from eventide.live.stores.sqlite_database import SqliteDatabase
from eventide.live.stores.writer_lock import lock_path
from eventide.mechanisms.pan_private import PanPrivateMechanism
from eventide.privacy.noisy_cells import NoisyCells

TABLES = ("store", "head", "epoch", "step", "snapshot", "plan", "kept", "batch", "delivery")
_CODE = type | types.ModuleType | types.CodeType | types.BuiltinFunctionType | logging.Logger | Database | WriterPlace


def seized(publisher: Publisher, *others: Any, passing_over: Callable[[Any], bool] = lambda _: False) -> list[str]:
    """What is found in memory, in the store and in its files, one thing a line; `passing_over` leaves things out."""
    found = [*_memory([publisher, *others], passing_over), *_rows(publisher.store)]
    database = getattr(publisher.store, "_database", None)
    return [*found, *file_bytes(database._path)] if isinstance(database, SqliteDatabase) else found


def cells_of(publisher: Publisher) -> dict[int, Array]:
    """The cells of the look of every open step, by the number of the step."""
    mechanism = publisher.mechanism
    assert isinstance(mechanism, PanPrivateMechanism)
    held = [] if mechanism._open is None else mechanism._open._cells
    return {mechanism.step + place: cells._look[0].copy() for place, cells in enumerate(held)}


def file_bytes(path: Path) -> Iterator[str]:
    """Every byte that a store in a file has on disk, page by page, but for what SQLite drew by chance."""
    content = path.read_bytes()
    size = int.from_bytes(content[16:18], "big")
    for begin in range(0, len(content), size):
        yield _digest(f"page {begin // size + 1}", content[begin : begin + size])
    log = _content(path.with_name(path.name + "-wal"))
    yield _digest("log", log[:16])
    for begin in range(32, len(log), size + 24):
        yield _digest("frame", log[begin : begin + 8], log[begin + 24 : begin + 24 + size])
    index = _content(path.with_name(path.name + "-shm"))
    yield _digest("index", index[:24], index[48:72], index[96:])
    note = json.loads(_content(lock_path(path)) or b"{}")
    yield f"note {[item for item in note.items() if item[0] != 'since']}"


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _digest(what: str, *parts: bytes) -> str:
    """Something in few letters; pages that are empty are all the same."""
    return f"{what} {hashlib.blake2b(b''.join(parts), digest_size=16).hexdigest() if any(map(any, parts)) else 0}"


def _memory(roots: list[Any], passing_over: Callable[[Any], bool]) -> Iterator[str]:
    """Everything that can be reached but for code and for the database, whose rows are looked at instead."""
    seen, waiting = set[int](), list[Any](reversed(roots))
    held = [waiting]  # what was seen stays, so that no number of an object is given to another
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, _CODE) or id(thing) in seen or passing_over(thing):
            continue
        if isinstance(thing, bool | int | float | complex | str | bytes | bytearray | np.generic | None):
            yield repr(thing)
            continue
        seen.add(id(thing))
        held.append(thing)
        if isinstance(thing, NoisyCells):
            yield f"cells {thing.decision_budget.tolist()} {thing.look_budget.tolist()} {thing.intruded}"
        elif isinstance(thing, np.ndarray):
            yield f"{thing.dtype} {thing.shape} {thing.tobytes().hex()}"
        elif isinstance(thing, types.FunctionType):
            waiting += [thing.__closure__, thing.__defaults__, thing.__kwdefaults__]
        elif isinstance(thing, set | frozenset):
            waiting += sorted(thing, key=repr)
        else:
            waiting += reversed(gc.get_referents(thing))


def _rows(store: Store) -> Iterator[str]:
    if isinstance(store, DatabaseStore):
        for table in TABLES:
            for row in store._database.all(f"SELECT * FROM {table} ORDER BY 1"):
                yield f"{table} {row}"
