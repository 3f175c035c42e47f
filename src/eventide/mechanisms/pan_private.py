"""Pan-private mechanisms: the events of a step come one at a time and are held in noisy cells only.

Promises that a mechanism with `pan_private` never holds a true count between two events. Why its releases stay private
although somebody saw its memory stands in `eventide.privacy.noisy_cells`.
"""

from __future__ import annotations

import abc
import math
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from eventide.arrays import Ints
from eventide.errors import InputError, StateError
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.parameters import check_choice
from eventide.mechanisms.release import Release
from eventide.privacy.measured import Measured
from eventide.privacy.meter import Meter
from eventide.privacy.noisy_cells import NoisyCells
from eventide.privacy.open_steps import OpenSteps
from eventide.privacy.sealed import SealedStep

SINGLE, ANNOUNCED = "single", "announced"


def _also_if_seen(what: str) -> dict[str, tuple[str, ...]]:
    return {
        SINGLE: (f"this also holds if somebody sees {what} once, between two events, even if nobody notices",),
        ANNOUNCED: (
            f"this also holds if somebody sees {what} between two events, however often",
            "each time must then be announced before the next event and before the step ends",
        ),
    }


_PROMISES = _also_if_seen("this mechanism's memory")
_PUBLISHED = _also_if_seen("all that eventide has (memory, store and logs)")
_PRICE = "for this the noise of every measurement is drawn twice, which doubles its variance"


def what_may_be_seen(mechanism: Mechanism) -> tuple[str, ...]:
    """What the guarantee of a publisher covers besides the releases."""
    mode = getattr(mechanism, "pan_private", None)
    return () if mode is None else (*_PUBLISHED[mode], _PRICE)


class PanPrivateMechanism(Mechanism):
    """A mechanism that may be asked to be pan-private: `pan_private` is None, "single" or "announced".

    If it is, `add` counts one event of the current step and `close` releases the step. `release(counts)` counts all of
    `counts` on top and closes: whoever has counts to hand in holds them in memory, so that is for studies and tests.
    A saved state shows what memory shows: whoever reads one has seen the memory.

    A publisher asks it to `hold_several_steps`: then it has cells only while steps are open, `open_until` opens them as
    the clock says, `add` takes the step of an event, and a saved state holds no cell.
    """

    state: ClassVar[tuple[str, ...]] = ("_cells",)
    pan_private: str | None
    _cells: NoisyCells | None = None  # with levels it is theirs to have
    _open: OpenSteps | None = None  # where several steps may be open

    def begin(self) -> None:
        """No cells unless asked for."""
        check_choice(self.pan_private, "pan_private", None, SINGLE, ANNOUNCED)
        self._cells = None if self.pan_private is None else NoisyCells(self.meter.shape)

    @abc.abstractmethod
    def decision_budget(self) -> Ints:
        """What the decision of a step is charged."""

    @abc.abstractmethod
    def plan_behind(self, planned: Ints) -> int:
        """What a look would get behind the current step and others, if all take the looks that are planned for them."""

    def why_not_several_steps(self) -> str | None:
        """Why events cannot come for several steps at once; None where they can."""
        if self.levels is not None:
            return "pan_private is for bins alone; leave levels out"
        if self._cells is None or self.replicas > 1 or self.step:
            return "several open steps need pan_private, one replica, and a mechanism that has released nothing"
        if self.pan_private == SINGLE and self.ledger.open_spans("intrusion") < 2 * self.decision_budget():
            return (  # the decision of a step would take most of it, and looks next to nothing
                "the window is too short to keep budget free for an intrusion; choose 6 steps or more, or announced"
            )
        return None

    def hold_several_steps(self) -> None:
        """Let events come for several steps at once, as those of a publisher do; asked before the first step."""
        if reason := self.why_not_several_steps():
            raise StateError(reason)
        self.ledger = self._new_ledger()
        self.meter = Meter(self.ledger, self.source, self.size, self.sensitivity)
        self.begin()
        self._open = OpenSteps(self.meter, self.decision_budget())

    def open_until(self, step: int) -> None:
        """Open all steps up to one, of those that are not over."""
        self._open_steps().open_until(step, self.plan_behind)

    def prepare(self) -> None:
        """Between two steps no cell of the last one is left."""
        if self._open is not None and self._cells is not None:
            self._cells.erase()

    def forget_cells(self) -> None:
        """Give up the cells of open steps, whose events are read again or lost; their budgets stay."""
        self._open_steps().forget()

    def lose_until(self, step: int) -> None:
        """Take no events of the steps before one: somebody has seen cells of theirs that are gone."""
        self._open_steps().lost_until = step

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take over a state that `snapshot` gave."""
        if "_open" in snapshot and self._open is None:
            self.hold_several_steps()
        super().restore(snapshot)

    def _state_names(self) -> list[str]:
        names = super()._state_names()
        return names if self._open is None else [name for name in names if name != "_cells"] + ["_open"]

    def _open_steps(self) -> OpenSteps:
        if self._open is None:
            raise StateError("this mechanism has one open step; ask it to hold several first")
        return self._open

    def perturbation(self, step: SealedStep, amount: Ints) -> Measured:
        """All bins, with `amount`; or the noisy cells, whose budget was fixed before the step."""
        return super().perturbation(step, amount) if self._cells is None else self._cells.read(self.meter, amount > 0)

    def look_scale(self, charge: float) -> float:
        """As ever; of noise drawn twice, that of one draw as variable. Each announced intrusion draws once more."""
        return super().look_scale(charge) * (1 if self._cells is None else math.sqrt(2))

    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, and what it covers besides the releases."""
        inherited = super().assumptions()
        return inherited if self.pan_private is None else (*inherited, *_PROMISES[self.pan_private], _PRICE)

    def add(self, bin: str | int, step: int | None = None) -> None:
        """Count one event, in the bin of this name or position. A silent step forgets it.

        `step` is for a mechanism that holds several; without it the event is of the current one.
        """
        self._event_by_event()
        place = self._places.get(bin, -1) if isinstance(bin, str) else bin
        if isinstance(place, bool) or not isinstance(place, int | np.integer) or not 0 <= place < self.size:
            raise InputError(f"the event is in none of the {self.size} bins; give the name of a bin or its position")
        if self._open is not None:
            self._open.add(self.step if step is None else step, int(place))
        elif self._cells is not None:
            self._cells.add(int(place))

    def close(self) -> Release:
        """End the current step and publish it: nothing comes on top of the events that were added."""
        self._event_by_event()
        return self.release(np.zeros(self.size, dtype=np.int64))

    def announce_intrusion(self) -> None:
        """Somebody has just seen the memory: hide what comes next from them, and make this step a look."""
        cells = self._event_by_event()
        if self.pan_private != ANNOUNCED:
            raise StateError(
                "this mechanism is protected against one intrusion only; make it with pan_private='announced'"
            )
        if self._open is not None:
            self._open.refresh()
        else:
            cells.refresh(self.meter)

    def _event_by_event(self) -> NoisyCells:
        if self._cells is None or self.replicas > 1:
            raise StateError("events one at a time need pan_private and a single replica; give counts to `release`")
        return self._cells

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.bins)}
