"""Sample: look once per window, repeat in between.

When it looks is known beforehand and depends on no data.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Bools, Ints
from eventide.mechanisms.base import Mechanism
from eventide.privacy.sealed import SealedStep


class Sample(Mechanism):
    """One measurement with all of epsilon every w steps, repeated in between.

    Idea: the first of every w steps gets all of epsilon, the others repeat it; the noise does not depend on w, the
    staleness does.

    Guarantee: w-event privacy with epsilon, for people who move between bins.

    Epsilon: all of it to the counts of every w-th step.

    Cost: O(d) a step, O(w + d) memory.

    Use: where counts are small, sparse, or hardly change within a window.

    Departures: none; amounts are whole nano-epsilon, rounded down, and noise is integer.

    Reference: Kellaris, Papadopoulos, Xiao, Papadias: Differentially private event sequences over infinite streams.
    PVLDB 7(12), 2014.

    Parameters
    ----------
    epsilon, window, bins, **common
        As in `Mechanism`.

    >>> import eventide as ev
    >>> sample = ev.Sample(epsilon=1.0, window=2, bins=1, noise=ev.noise.Zero())
    >>> [float(sample.release([count]).values[0]) for count in (5, 6, 7, 8)]
    [5.0, 5.0, 7.0, 7.0]
    """

    takes_window_sensitivity = True
    takes_levels = True

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """The first step and every w-th after it."""
        return np.full((self.replicas, 1), step.index % self.shared_steps == 0)

    def budget_allocation(self) -> Ints:
        """The whole window's budget."""
        return np.array([[self.shared_nano_epsilon]])

    def noise_range(self) -> tuple[float, float]:
        """Every look has the same scale."""
        look = self.sensitivity / self.shared_epsilon
        return look, look
