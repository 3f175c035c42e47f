"""Uniform: look at every step, with an equal share of the budget.

It depends on no data: the baseline that every other mechanism must beat.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Bools, Ints
from eventide.mechanisms.base import Mechanism
from eventide.privacy.amounts import share
from eventide.privacy.sealed import SealedStep


class Uniform(Mechanism):
    """The same budget at every step.

    Idea: each of the w steps of a window gets the w-th part of epsilon, whatever the data; the error is the same
    everywhere and grows with w.

    Guarantee: w-event privacy with epsilon, for people who move between bins.

    Epsilon: epsilon / w to the counts of each step.

    Cost: O(d) a step, O(w + d) memory.

    Use: where counts are large against w / epsilon, or change fast at every step.

    Departures: none; amounts are whole nano-epsilon, rounded down, and noise is integer.

    Reference: Kellaris, Papadopoulos, Xiao, Papadias: Differentially private event sequences over infinite streams.
    PVLDB 7(12), 2014.

    Parameters
    ----------
    epsilon, window, bins, **common
        As in `Mechanism`.

    >>> import eventide as ev
    >>> uniform = ev.Uniform(epsilon=1.0, window=4, bins=2, noise=ev.noise.Unit())
    >>> uniform.release([10, 20]).values
    array([14., 24.])
    """

    takes_window_sensitivity = True
    takes_levels = True

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Every step is one."""
        return np.ones((self.replicas, 1), dtype=np.bool_)

    def budget_allocation(self) -> Ints:
        """An equal share of the window."""
        return share(self.shared_nano_epsilon, 1, self.shared_steps).reshape(1, 1)

    def noise_range(self) -> tuple[float, float]:
        """Every look has the same scale."""
        look = self.look_scale(self.shared_nano_epsilon // self.shared_steps)
        return look, look
