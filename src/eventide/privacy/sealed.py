"""A sealed step: the true counts of one step, which only the meter can open.

A mechanism gets it, hands it to the meter, and can do nothing else with it: converting, indexing, printing, copying or
pickling it fails or shows nothing. It dies when its step is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from eventide.arrays import Ints
from eventide.errors import StateError


class SealedStep:
    """The counts of a step, sealed. The frame makes it; a mechanism passes it on to the meter.

    Parameters
    ----------
    index
        Which step, from 0: the only thing that can be read.
    counts
        What is sealed.
    """

    __slots__ = ("__counts", "index")

    def __init__(self, index: int, counts: Ints) -> None:
        self.index = index
        self.__counts: Ints | None = counts

    def __repr__(self) -> str:
        return f"<sealed step {self.index}>"

    if not TYPE_CHECKING:  # who checks types is told by the checker

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"a sealed step has no {name!r} to read; ask the meter for a measurement of it")

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise StateError("a sealed step cannot be read; ask the meter for a measurement of it")

    __array__ = __iter__ = __len__ = __getitem__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse
    __int__ = __float__ = __index__ = __bool__ = _refuse


def unseal(step: SealedStep) -> Ints:
    """The counts `(1 or R, d)`. Only the meter may call this."""
    counts: Ints | None = step._SealedStep__counts  # type: ignore[attr-defined]
    if counts is None:
        raise StateError(f"step {step.index} is over; it can be measured only while it is the current one")
    return counts


def destroy(step: SealedStep) -> None:
    """Forget the counts. Only the meter may call this."""
    step._SealedStep__counts = None  # type: ignore[attr-defined]
