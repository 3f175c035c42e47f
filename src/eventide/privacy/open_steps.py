"""Several open steps of a pan-private mechanism, each in noisy cells of its own.

Steps overlap where late events are waited for: the next one begins before the last one is closed. `NoisyCells` says why
one step is private; here is why several are. A step gets the budget of its look before its first event, and so before
it is known whether the open steps before it will take theirs. It is planned as if all of them did. So the looks of any
window stay within what they have together, whichever are taken; and so would they if every open step took its look.

Announced intrusions: every open step then must take its look, and there is room for that. If the process was killed as
well, the cells that were seen are gone: such a step is lost. It is charged for what was seen, its decision and its
look, takes no events and repeats the last release.

One intrusion that nobody announces: it sees the cells of all open steps, which costs the decision and the look of each.
If the process goes on, the decisions are charged anyway. If it is killed afterwards and the events are read again, they
go into new cells, and what was seen comes on top, decisions included. So the open steps together never have more, with
their decisions, than what is kept free for the intrusion in every window.

What is saved are the planned budgets, which follow from releases and the clock; never a cell. When a step is opened is
for the clock to say as well: cells that came with the first event would tell that there was one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eventide.arrays import Ints
from eventide.privacy.meter import Meter
from eventide.privacy.noisy_cells import NoisyCells
from eventide.privacy.state import Stateful


class OpenSteps(Stateful):
    """The open steps, from the current one of the ledger on; `decision_budget` is what each asks for its decision."""

    state = ("planned",)

    def __init__(self, meter: Meter, decision_budget: Ints) -> None:
        self._meter, self._decision_budget = meter, decision_budget
        self.planned: Ints = np.zeros(0, dtype=np.int64)  # what a look at each of them gets
        self._cells: list[NoisyCells] = []
        self.lost_until = 0  # events of earlier steps are not taken

    def open_until(self, step: int, plan_behind: Callable[[Ints], int]) -> None:
        """Open the steps up to one, in order; `plan_behind` gives the budget of a look behind planned ones."""
        while self._meter.ledger.step + len(self.planned) <= step:
            self.planned = np.append(self.planned, np.int64(plan_behind(self.planned)))
        for planned in self.planned[len(self._cells) :]:
            cells = NoisyCells(self._meter.shape)
            if planned:  # a step that cannot look needs no decision, and takes no events
                cells.open_early(self._meter, self._decision_budget, planned.reshape(1, 1))
            self._cells.append(cells)

    def add(self, step: int, bin: int) -> None:
        """Count one event of an open step; one of a step that is not open is forgotten."""
        place = step - self._meter.ledger.step
        if 0 <= place < len(self._cells) and step >= self.lost_until:
            self._cells[place].add(bin)

    def refresh(self) -> None:
        """Fresh noise in every cell, since somebody has seen them."""
        for cells in self._cells:
            cells.refresh(self._meter)

    def forget(self) -> None:
        """Overwrite all cells; new ones are drawn when the steps are opened again."""
        for cells in self._cells:
            cells.erase()
        self._cells = []

    def close(self) -> NoisyCells:
        """The cells of the current step, whose decision is charged now."""
        cells = self._cells.pop(0)
        self.planned = self.planned[1:]
        self._meter.ledger.charge(cells.decision_budget)
        return cells
