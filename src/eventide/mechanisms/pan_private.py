"""Pan-private mechanisms: the events of a step come one at a time and are held in noisy cells only.

Promises that a mechanism with `pan_private` never holds a true count between two events. Why its releases stay private
although somebody saw its memory stands in `eventide.privacy.noisy_cells`.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import ClassVar

import numpy as np

from eventide.arrays import Ints
from eventide.errors import InputError, StateError
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.parameters import check_choice
from eventide.mechanisms.release import Release
from eventide.privacy.measured import Measured
from eventide.privacy.noisy_cells import NoisyCells
from eventide.privacy.sealed import SealedStep

SINGLE, ANNOUNCED = "single", "announced"

_PROMISES = {
    SINGLE: "it holds also if somebody sees this mechanism's memory once, unannounced, between two events",
    ANNOUNCED: "it holds also if somebody sees this mechanism's memory between two events, however often, as long as "
    "each time is announced before the next event",
}
_PRICE = "for that the noise of every look is drawn twice, which doubles its variance"


class PanPrivateMechanism(Mechanism):
    """A mechanism that may be asked to be pan-private: `pan_private` is None, "single" or "announced".

    If it is, `add` counts one event of the current step and `close` releases the step. `release(counts)` counts all of
    `counts` on top and closes: whoever has counts to hand in holds them in memory, so that is for studies and tests.
    A saved state shows what memory shows: whoever reads one has seen the memory.
    """

    state: ClassVar[tuple[str, ...]] = ("_cells",)
    pan_private: str | None
    _cells: NoisyCells | None = None  # with levels it is theirs to have

    def begin(self) -> None:
        """No cells unless asked for."""
        check_choice(self.pan_private, "pan_private", None, SINGLE, ANNOUNCED)
        self._cells = None if self.pan_private is None else NoisyCells(self.meter.shape)

    def perturbation(self, step: SealedStep, amount: Ints) -> Measured:
        """All bins, with `amount`; or the noisy cells, whose budget was fixed before the step."""
        return super().perturbation(step, amount) if self._cells is None else self._cells.read(self.meter, amount > 0)

    def look_scale(self, charge: float) -> float:
        """As ever; of noise drawn twice, that of one draw as variable. Each announced intrusion draws once more."""
        return super().look_scale(charge) * (1 if self._cells is None else math.sqrt(2))

    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, and what it covers besides the releases."""
        inherited = super().assumptions()
        return inherited if self.pan_private is None else (*inherited, _PROMISES[self.pan_private], _PRICE)

    def add(self, bin: str | int) -> None:
        """Count one event of the current step, in the bin of this name or position. A silent step forgets it."""
        cells = self._event_by_event()
        place = self._places.get(bin, -1) if isinstance(bin, str) else bin
        if isinstance(place, bool) or not isinstance(place, int | np.integer) or not 0 <= place < self.size:
            raise InputError(f"the event is in none of the {self.size} bins; give the name of a bin or its position")
        cells.add(int(place))

    def close(self) -> Release:
        """End the current step and publish it: nothing comes on top of the events that were added."""
        self._event_by_event()
        return self.release(np.zeros(self.size, dtype=np.int64))

    def announce_intrusion(self) -> None:
        """Somebody has just seen the memory: hide what comes next from them, and make this step a look."""
        cells = self._event_by_event()
        if self.pan_private != ANNOUNCED:
            raise StateError("this mechanism stands one intrusion that nobody notices; build it with 'announced'")
        cells.refresh(self.meter)

    def _event_by_event(self) -> NoisyCells:
        if self._cells is None or self.replicas > 1:
            raise StateError("events one at a time need pan_private and a single replica; give counts to `release`")
        return self._cells

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.bins)}
