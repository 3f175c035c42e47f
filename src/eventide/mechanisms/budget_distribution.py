"""BD, budget distribution: a look takes half of what the window has left."""

from __future__ import annotations

import numpy as np

from eventide.arrays import Bools, Ints
from eventide.mechanisms.dissimilarity import DissimilarityMechanism


class BudgetDistribution(DissimilarityMechanism):
    """Looks where the stream changed; each look takes half of what is left.

    Idea: a private distance tells whether the last release still describes the stream. If not, a look gets half of the
    budget that the window has left for looks, so the first changes are measured with little noise and later ones with
    more, until old looks fall out of the window and their budget comes back.

    Guarantee: w-event privacy with epsilon, for people who move between bins; with groups and accounting="fixed-bin",
    only for those who stay in one. With pan_private also against those who see the memory between two events: once and
    unannounced ("single"), or whenever it is announced ("announced").

    Epsilon: epsilon / (2w) to the distance of each step; epsilon / 2 to looks, each half of what is left of it. With
    pan_private="single", epsilon / 3 to looks and epsilon / 6 kept free for the intrusion.

    Cost: O(d) a step, O(w + d) memory.

    Use: where many bins change together and rarely, a few times in a window.

    Departures: amounts are whole nano-epsilon, rounded down, and a look that would get none repeats. The distance is
    the integer L1 sum instead of the mean, which is the same test. The first step always looks; its distance (to zeros)
    is charged like any other. Behind a filter the distance is taken to the last release, rounded. With groups and
    accounting="moving" one clock serves all groups, since budgets of their own overspend on people who move between
    them; a change in a few bins is then still not averaged away by many calm ones, and calm groups are still spared the
    new noise. Pan-privacy as published comes to 7/6 of epsilon and gives away the exact number of events after an
    intrusion; `DissimilarityMechanism` has both repairs.

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
    >>> bd = ev.BudgetDistribution(epsilon=1.0, window=4, bins=1, noise=ev.noise.Zero())
    >>> [float(bd.release([count]).values[0]) for count in (5, 6, 40, 41)]
    [5.0, 5.0, 40.0, 40.0]
    """

    left_by_one_intrusion = (2, 3)  # a look gets half of it at most: the third that is kept free

    def plan(self) -> tuple[Ints, Bools]:
        """Half of what the window has left for looks; everybody asks."""
        planned = self.of_groups(self._left_for_looks()) // 2
        return planned, np.ones(planned.shape, dtype=np.bool_)

    def noise_range(self) -> tuple[float, float]:
        """From the first look of a window on without bound: each look halves what is left."""
        return self.look_scale(float(self._look_pool) / 2), np.inf

    def look_behind(self, planned: Ints) -> int:
        """Half of what looks taken and looks planned leave in the window that ends there."""
        begin = self.step + len(planned) - self.window + 1
        first, charged, _ = self.ledger.window_charges()
        taken = np.maximum(charged[max(begin - first, 0) : -1] - self._distance_share, 0)
        return max(int(self._look_pool) - int(taken.sum()) - int(planned[max(begin - self.step, 0) :].sum()), 0) // 2

    def _left_for_looks(self) -> Ints:
        """The pool less the looks inside the window: all that was charged there, but for one distance a step."""
        past = min(self.ledger.step, self.window - 1)
        spent = self.nano_epsilon - self.ledger.left_nano() - self.ledger.open_spans("intrusion")
        looks = spent - past * self._distance_share
        return np.maximum(self._look_pool - looks, 0)
