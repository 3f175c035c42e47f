"""The meter of one level: it measures sums of groups of bins for a mechanism that shares a ledger with other levels.

Somebody in a bin is in one group of each level, so what the levels are charged at a step adds up. Whatever a level asks
is charged twice over: to its own ledger, which keeps it within its share, and to the ledger above it, which all levels
have in common and which the promise is about. Noise, answers and their record are those of the meter above.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from eventide.arrays import Array, Ints
from eventide.errors import StateError
from eventide.privacy.ledger import WindowLedger
from eventide.privacy.measured import Measured
from eventide.privacy.meter import Meter, sums_of
from eventide.privacy.partition import Partition
from eventide.privacy.sealed import SealedStep


class LevelMeter(Meter):
    """Measures the sums of `groups`, whose bins `above` measures; counts and distances, nothing that stays open.

    Private because: a sum over a group moves by at most what its bins move by together, so over the groups of a level
    one person moves all sums together by at most sensitivity, as with bins; and each bin is charged what its group is.
    """

    __slots__ = ("_above", "_groups", "measured")

    def __init__(self, above: Meter, ledger: WindowLedger, groups: Partition) -> None:
        super().__init__(ledger, above.source, groups.groups, above.sensitivity)
        self._above, self._groups = above, groups
        self.measured: Measured | None = None  # the counts of this step, where they were asked for

    def seal_sums(self, step: SealedStep) -> SealedStep:
        """Seal the sums of a step that is sealed above."""
        if self._current is not None:
            raise StateError("the current step was sealed already")
        self.measured = None
        self._current = SealedStep(self.ledger.step, sums_of(self._groups, self._above._open(step)))
        return self._current

    def counts(self, step: SealedStep, amount: Ints, groups: Partition | None = None) -> Measured:
        """As any meter; what came out is kept for other levels."""
        found = super().counts(step, amount, groups)
        self.measured = found if groups is None else None
        return found

    def _charge(self, amount: Ints) -> None:
        super()._charge(amount)
        self._above._charge(amount if amount.shape[1] == 1 else self._groups.spread(amount))

    def _answered(
        self, kind: str, shape: tuple[int, ...], about: dict[str, Array], measure: Callable[[], Array]
    ) -> Array:
        return self._above._answered(kind, shape, {"level": self._groups.labels, **about}, measure)

    def _draw(
        self, kind: str, factor: int, charges: Ints, shape: tuple[int, int], sensitivity: int | None = None
    ) -> Array:
        return self._above._draw(kind, factor, charges, shape, sensitivity)

    def _cannot(self, *_: Any, **__: Any) -> NoReturn:
        raise StateError("a level measures counts and distances only; this mechanism cannot have levels")

    thinned = sum_over_steps = slot_sums = threshold_test = group_test = _cannot
