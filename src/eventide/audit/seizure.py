"""Somebody takes the machine away between two events: all that a publisher holds then, as one view.

The view is what two worlds compare at every event: every array, number and text that can be reached from the publisher
and from whatever reads its events, frames of generators included; and every row of its store, raw ones too. Noisy cells
are left out of it, since the budget of what they show is charged; `cells_of` gives them, to see that an event changed
those of its own step by one and nothing else.
"""

from __future__ import annotations

import gc
import logging
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from eventide.arrays import Array
from eventide.live.publisher.publisher import Publisher
from eventide.live.stores.base import Store
from eventide.live.stores.database import Database, WriterPlace
from eventide.live.stores.database_store import DatabaseStore
from eventide.mechanisms.pan_private import PanPrivateMechanism
from eventide.privacy.noisy_cells import NoisyCells

TABLES = ("store", "head", "epoch", "step", "snapshot", "plan", "kept", "batch", "delivery")
_CODE = type | types.ModuleType | types.CodeType | types.BuiltinFunctionType | logging.Logger | Database | WriterPlace


def seized(publisher: Publisher, *others: Any) -> list[str]:
    """What is found in memory and in the store, one thing a line."""
    return [*_memory(publisher, *others), *_rows(publisher.store)]


def cells_of(publisher: Publisher) -> dict[int, Array]:
    """The cells of the look of every open step, by the number of the step."""
    mechanism = publisher.mechanism
    assert isinstance(mechanism, PanPrivateMechanism)
    held = [] if mechanism._open is None else mechanism._open._cells
    return {mechanism.step + place: cells._look[0].copy() for place, cells in enumerate(held)}


def _memory(*roots: Any) -> Iterator[str]:
    """Everything that can be reached but for code and for the database, whose rows are looked at instead."""
    seen, waiting = set[int](), list[Any](reversed(roots))
    held = [waiting]  # what was seen stays, so that no number of an object is given to another
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, _CODE) or id(thing) in seen:
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
