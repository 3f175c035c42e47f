"""Tide with parts taken out, one at a time: what does each bring?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np

from eventide.arrays import Floats
from eventide.filters import posterior_kernels, posterior_median
from eventide.filters.algorithms import ALGORITHMS, NEWEST
from eventide.filters.posterior_grid import DRIFT, JUMP
from eventide.filters.posterior_kernels import SharedKnowledge
from eventide.mechanisms import tide, tide_waits

Variant = Callable[[], AbstractContextManager[None]]


@contextmanager
def changed(owner: Any, name: str, value: Any) -> Iterator[None]:
    """`owner.name` is `value` for a while."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def constants(owner: Any, name: str, value: Any) -> Variant:
    return lambda: changed(owner, name, value)


def only_models(chosen: Floats) -> Variant:
    """All models but the chosen ones are ruled out."""
    original = posterior_median.PosteriorMedian._in_common

    def in_common(self: posterior_median.PosteriorMedian) -> SharedKnowledge:
        common = original(self)
        return common._replace(belief=np.where(chosen, common.belief, -1e9))

    return constants(posterior_median.PosteriorMedian, "_in_common", in_common)


def reading(**fields: float) -> Variant:
    """Rows are read with some fields overwritten."""
    original = posterior_kernels.read_rows

    def read(grid: Any, rows: Any, *others: Any) -> None:
        original(grid, rows._replace(**{n: np.full_like(getattr(rows, n), v) for n, v in fields.items()}), *others)

    return constants(posterior_median, "read_rows", read)


def forgetting() -> AbstractContextManager[None]:
    """A bin's own past counts for nothing among its usual values."""
    original = posterior_kernels.take_looks

    def take(grid: Any, rows: Any, *others: Any) -> None:
        original(grid, rows, *others)
        rows.lesson[:] *= 1e-6
        rows.far_lesson[:] *= 1e-6
        rows.learned[:] *= 1e-6

    return changed(posterior_median, "take_looks", take)


@contextmanager
def table(**fields: Any) -> Iterator[None]:
    """The newest algorithm has other entries in the table."""
    before = ALGORITHMS[NEWEST]
    ALGORITHMS[NEWEST] = before._replace(**fields)
    try:
        yield
    finally:
        ALGORITHMS[NEWEST] = before


@contextmanager
def every_step() -> Iterator[None]:
    """A look at every step."""
    with changed(tide_waits, "GROWTH", 1), table(alone_growth=1):
        yield


VARIANTS: dict[str, Variant] = {
    "no usual values of its own": forgetting,
    "nothing shared between bins": constants(posterior_median, "SHARED_LOOKS", 1e-6),
    "one jump rate (0.15)": only_models(JUMP == 0.15),
    "one drift (0.04)": only_models(DRIFT == 0.04),
    "grid alone": reading(variance=1e30),
    "scalar bank alone": reading(variance=1e-20, pace=0.0),
    "a look at every step": every_step,
    "errors not averaged over time": constants(tide_waits, "MEMORY", 1e-3),
    "no patience in the first window": constants(tide_waits, "PATIENCE", tide_waits.FORESIGHT),
    "first waits of all steps so far": constants(tide_waits, "FORESIGHT", 1),
    "first look at a single bin gets half": partial(table, alone_share=2),
    "waits of a single bin grow fourfold": partial(table, alone_growth=4),
    "clear streams are watched with a tenth": partial(table, watch_clear=10),
    "a 0 has an extra chance of a half": partial(table, zeros=0.5),
    "nothing watched between looks": constants(tide, "MOST_WATCHED", 0),
}
