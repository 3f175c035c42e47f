"""BA, budget absorption: a look takes the budget of the quiet steps before it."""

from __future__ import annotations

import numpy as np

from eventide.arrays import Bools, Ints
from eventide.mechanisms.dissimilarity import DissimilarityMechanism
from eventide.privacy.amounts import share


class BudgetAbsorption(DissimilarityMechanism):
    """Looks where the stream changed; each look takes the budget of the quiet steps before it.

    Idea: every step owns one unit of budget for looks. A step at which nothing changed leaves its unit to the next
    look, which absorbs all units left since the last one; after a look that took n units, n - 1 steps are silent, so
    that no unit is used twice within a window.

    Guarantee: w-event privacy with epsilon, for people who move between bins; with groups and accounting="fixed-bin",
    only for those who stay in one. With pan_private also against those who see the memory between two events: once and
    unannounced ("single"), or whenever it is announced ("announced").

    Epsilon: epsilon / (2w) to the distance of each step that is not silent; a unit of epsilon / (2w) for looks to each
    step. With pan_private="single" a unit is epsilon / (4w) and epsilon / 4 is kept free for the intrusion.

    Cost: O(d) a step, O(w + d) memory.

    Use: where many bins change together, in spells of calm and change; the safest of the published ones to start with.

    Departures: amounts are whole nano-epsilon, rounded down. The distance is the integer L1 sum instead of the mean,
    which is the same test. The first step always looks; its distance (to zeros) is charged like any other. Silent
    steps draw nothing, and what their distances do not use is never given to looks. Behind a filter the distance is
    taken to the last release, rounded. With groups and accounting="moving" one clock serves all groups, since budgets
    of their own overspend on people who move between them; a change in a few bins is then still not averaged away by
    many calm ones, and calm groups are still spared the new noise. Pan-privacy as published gives away the exact number
    of events after an intrusion; `DissimilarityMechanism` has the repair.

    Reference: Kellaris, Papadopoulos, Xiao, Papadias: Differentially private event sequences over infinite streams.
    PVLDB 7(12), 2014.

    Parameters
    ----------
    shift_budget
        Whether a distance gets epsilon / (bins of a group) at a step, where that is less than epsilon / (2 w);
        measurements get what is left.
    groups
        How many groups of bins decide for themselves when to measure; "auto" is one for 500 bins.
    accounting
        "moving" protects people who move between bins, "fixed-bin" only those who stay in one.
    pan_private
        Whether the guarantee also holds against somebody who sees the memory: "single" for once, which nobody need
        notice, "announced" for whenever it is announced. Events then go one by one to `add`; `close` ends a step.
    epsilon, window, bins, **common
        As in `Mechanism`.

    >>> import eventide as ev
    >>> ba = ev.BudgetAbsorption(epsilon=1.0, window=4, bins=1, noise=ev.noise.Zero())
    >>> [float(ba.release([count]).values[0]) for count in (5, 6, 40, 41)]
    [5.0, 5.0, 40.0, 40.0]
    """

    takes_levels = True
    state = ("_silent_until", "_units")
    left_by_one_intrusion = (1, 2)  # a look takes all units of a window at most: the half that is kept free

    def begin(self) -> None:
        """One unit a step, none used yet."""
        super().begin()
        self._unit = share(self._look_pool, 1, self.window)
        self._silent_until: Ints = np.full(self.ledger.accounts, -1, dtype=np.int64)
        self._units = self._silent_until

    def plan(self) -> tuple[Ints, Bools]:
        """All units left since the last look. Silent steps do not ask."""
        self._units = self.of_groups(np.clip(self.step - self._silent_until, 0, self.window))
        return self._units * self._unit, self._units > 0

    def looked(self, accounts: Bools) -> None:
        """After a look that took n units, n - 1 steps are silent."""
        silent_until = self.step + self.of_bins(self._units_of(self._planned)) - 1
        self._silent_until = np.where(accounts, silent_until, self._silent_until)

    def look_behind(self, planned: Ints) -> int:
        """All units left since the last look; none while an open step may look.

        Such a step might leave a unit, too, but if every step got that one, none would ever absorb another.
        """
        if planned.any():
            return 0
        waited = self.step + len(planned) - int(self._silent_until.item())
        return min(max(waited, 0), self.window) * int(self._unit)

    def _units_of(self, planned: Ints) -> Ints:
        """How many units a look takes; one that gets less than its last unit takes all of that."""
        return -(-planned // max(int(self._unit), 1))

    def noise_range(self) -> tuple[float, float]:
        """From a look that absorbed a whole window to one that absorbed nothing."""
        look = self.look_scale(float(self._unit))
        return look / self.window, look
