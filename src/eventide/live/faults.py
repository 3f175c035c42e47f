"""A hook for tests: die, as by kill -9, at a named point on the way of a step.

The environment variable EVENTIDE_FAULT names the point, and after a colon the how-manieth passing is the last one
(`EVENTIDE_FAULT=after-commit:3`). Without it a point costs one comparison.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

POINTS = (
    "before-draw",  # a step has closed, nothing is charged
    "after-charge",  # an account is charged, nothing is drawn
    "after-draw",  # charged and drawn, nothing is durable
    "before-snapshot",
    "after-snapshot",
    "before-commit",
    "inside-group",  # of several steps that are committed together some are written, the transaction is open
    "inside-transaction",  # all rows are written, the transaction is open
    "after-commit",
    "after-settle",  # an account knows that the store has the step, nobody has seen it
    "before-emit",
    "half-line",  # half of a sink's line is written, or all rows of a table and not their commit
    "after-emit",
    "before-deliver",  # a sink has it, the store does not know
    "inside-keep",  # open events of a source that cannot replay, before their transaction ends
    "after-keep",
    "inside-epoch",  # a new epoch is written, its transaction is open
    "after-epoch",
    "inside-naming",  # a bin is named, the transaction is open
    "after-naming",
    "before-forgetting",  # a step is emitted, old releases are still kept
    "inside-forgetting",  # they are erased, the transaction is open
    "after-forgetting",
    "migrating-step",  # a row of an older store is sealed anew
    "inside-migration",  # a store is of this version, the transaction is open
    "after-migration",  # it is, and its log still shows what was erased
    "spark-batch-begins",  # Spark hands a batch over
    "spark-batch-tallied",  # the batch is counted into open steps, nothing is published of it
)

_point, _, _count = os.environ.get("EVENTIDE_FAULT", "none").partition(":")
_passings_left = int(_count or 1)


def passing(point: str) -> None:
    """Die here, if a test wants it."""
    if point == _point:
        _die_at_the_last()


def pieces(point: str, data: bytes) -> Iterator[bytes]:
    """Data as it is written: whole, or in two halves with the point between them."""
    if point != _point:
        yield data
        return
    yield data[: len(data) // 2]
    _die_at_the_last()
    yield data[len(data) // 2 :]


def _die_at_the_last() -> None:
    global _passings_left
    _passings_left -= 1
    if _passings_left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
