"""The meter of one statistic of several: it measures its own numbers for a mechanism that shares a ledger with others.

Somebody's row of a step is in all statistics of it, so what these are charged at a step adds up. Whatever is asked of
one is charged twice over: to its own ledger, which keeps it within its share, and to the ledger above it, which all
have in common and which the promise is about. Noise, answers and their record are those of the meter above; the scale
follows from the statistic's own sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from eventide.arrays import Array, Ints
from eventide.errors import StateError
from eventide.privacy.ledger import WindowLedger
from eventide.privacy.meter import Meter
from eventide.privacy.sealed import SealedStep


class PartMeter(Meter):
    """Measures the numbers at `places` of a vector that `above` seals; counts and distances, nothing that stays open.

    Private because: one person moves the numbers of this statistic together by at most its sensitivity, so an answer
    with noise of scale sensitivity / charge costs the largest charge of any of its bins. That largest charge is what
    the common ledger is charged, for all bins alike: of several statistics different events of a person may count, so
    somebody may be in one bin of the one and in another bin of the other, and charges of the same bin need not meet.
    """

    __slots__ = ("_above", "_places")

    def __init__(self, above: Meter, ledger: WindowLedger, places: slice, sensitivity: int) -> None:
        super().__init__(ledger, above.source, len(range(*places.indices(above.shape[1]))), sensitivity)
        self._above, self._places = above, places

    def seal_part(self, step: SealedStep) -> SealedStep:
        """Seal the numbers of this statistic, of a step that is sealed above."""
        if self._current is not None:
            raise StateError("the current step was sealed already")
        self._current = SealedStep(self.ledger.step, self._above._open(step)[:, self._places])
        return self._current

    def _charge(self, amount: Ints) -> None:
        super()._charge(amount)
        self._above._charge(amount.max(axis=1, keepdims=True))

    def _answered(
        self, kind: str, shape: tuple[int, ...], about: dict[str, Array], measure: Callable[[], Array]
    ) -> Array:
        part = np.array([self._places.start or 0])
        return self._above._answered(kind, shape, {"part": part, **about}, measure)

    def _draw(
        self, kind: str, factor: int, charges: Ints, shape: tuple[int, int], sensitivity: int | None = None
    ) -> Array:
        return self._above._draw(kind, factor, charges, shape, self.sensitivity if sensitivity is None else sensitivity)

    def _cannot(self, *_: Any, **__: Any) -> NoReturn:
        raise StateError("one statistic of several measures counts and distances only; choose another mechanism")

    thinned = sum_over_steps = slot_sums = threshold_test = group_test = _cannot
    add = read = sum_slots = end_slots = open_test = above = close_test = grouped = _cannot


class SlotMeter(PartMeter):
    """Measures a statistic of slots of several steps, each slot once; its own ledger has a step for each slot.

    Private because: rows change in steps, and the numbers of a slot change only if rows in one of its steps do, by at
    most the sensitivity. The common ledger holds what a slot may be charged as a span over all of its steps
    (`eventide.mechanisms.several`), so it is in every window that meets the slot; the own ledger keeps what is measured
    of a slot within that, so nothing more is charged here.
    """

    __slots__ = ()

    def _charge(self, amount: Ints) -> None:
        super(PartMeter, self)._charge(amount)
