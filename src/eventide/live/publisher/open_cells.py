"""Where a feed's events go that may be held nowhere: the cells of a pan-private mechanism, and announced intrusions.

Nothing of an open step is in the store. What is committed is the state between two steps: the ledger, the releases with
the noisy answers behind them, and the budgets planned for open steps, which all follow from releases and the clock. So
a store may be read as often as anybody likes: it is worth no more than the releases, and the decisions that are charged
with them.
Lines of the log are written after a commit and tell the step, what it was charged and whether it was measured.

An intrusion is announced by a row of the store. The row is looked for before each event, and before a step is opened or
closed; of a server before an event only once it has told us of one: it counts its statements, so that a look at each
event would have it count events. It is noted with the steps
whose cells got fresh noise. If a publisher starts and finds that steps which are not released were open when an
intrusion was announced, the cells that were seen are gone, and these steps are lost (`eventide.privacy.open_steps`).
Steps that have begun by then and were not opened yet, as when an old stream is read again, are not.
"""

from __future__ import annotations

from collections.abc import Callable

from eventide.live.stores.base import Store
from eventide.mechanisms.pan_private import ANNOUNCED, PanPrivateMechanism


class OpenCells:
    """The open steps of a mechanism whose own step 0 is step `origin` of the store.

    `last_open` gives the last step that can have been open at a moment, where the first of them was not released yet.
    """

    def __init__(
        self,
        mechanism: PanPrivateMechanism,
        store: Store,
        origin: int,
        next_step: int,
        last_open: Callable[[int, int], int],
    ) -> None:
        self._mechanism, self._store, self._origin = mechanism, store, origin
        self._watches = mechanism.pan_private == ANNOUNCED and store.durable
        self._last_open = next_step - 1
        self._known = 0
        if self._watches:
            self._lose(next_step, last_open)

    def look_around(self, *, told: bool = True) -> None:
        """Put fresh noise into all cells if somebody has announced an intrusion, of which we were `told` or not."""
        looks = self._watches and (self._store.is_told_of_intrusion() or not told)
        if looks and (announced := self._store.last_intrusion()) > self._known:
            self._mechanism.announce_intrusion()
            self._note(announced, self._first_open, self._last_open)

    def open_until(self, step: int) -> None:
        """Open all steps up to one, of those that are measured."""
        if step > self._last_open:
            self.look_around(told=False)
            self._last_open = step
            if step >= self._origin:
                self._mechanism.open_until(step - self._origin)

    def add(self, step: int, bin: int) -> None:
        """Count one event; steps that are not measured take none."""
        if step >= self._origin:
            self._mechanism.add(bin, step - self._origin)

    @property
    def _first_open(self) -> int:
        return self._origin + self._mechanism.step

    def _lose(self, next_step: int, last_open: Callable[[int, int], int]) -> None:
        """Give up the steps of which somebody may have seen cells that are gone."""
        intrusions = self._store.intrusions()
        lost = max((each.last if each.noted else last_open(next_step, each.at) for each in intrusions), default=-1)
        if lost >= max(next_step, self._origin):
            self._mechanism.lose_until(lost + 1 - self._origin)
        for each in intrusions:
            if not each.noted:
                self._note(each.number, next_step, max(lost, next_step - 1))
        self._known = max((each.number for each in intrusions), default=0)

    def _note(self, number: int, first: int, last: int) -> None:
        self._store.note_intrusion(number, first, last)
        self._known = number
