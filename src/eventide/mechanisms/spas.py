"""SPAS, sparse-vector publication with a predicted number of looks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.mechanisms.base import CommonParameters
from eventide.mechanisms.sparse_vector_rounds import SparseVectorMechanism
from eventide.privacy.amounts import NANO, Amount
from eventide.privacy.ledger import positive_integer
from eventide.privacy.measured import Measured


class SPAS(SparseVectorMechanism):
    """Looks as often in a window as past releases suggest, earlier where the stream moves away from the last one.

    Idea: the more successive releases differ, the more looks a window should have, at the price of more noise in each;
    the released values alone tell how many. A sparse-vector run then decides when: the look comes when the distance to
    the last release exceeds the noise of a look, and at the latest when its share of the window has passed.

    Guarantee: w-event privacy with epsilon, for people who move between bins.

    Epsilon: with c looks in a window, epsilon1 / c to each run and epsilon2 / c to the look that ends it, where
    epsilon1 = test_share * epsilon and epsilon2 is the rest; both together to a look that is due before a run opens.

    Cost: O(d) a step, O(w + d) memory.

    Use: where nobody knows how fast the stream moves; it finds its place between Sample (c = 1) and Uniform (c = w).

    Departures: the paper draws the noise of the threshold once, and compares with the true counts of the step before,
    so that one step enters two tests; here every run draws its own noise, is charged as a span, and compares with the
    last release. A round keeps the budgets it opened with, even if c changes. A look is forced w / c steps after the
    last one; the published rule forces looks one after another at the end of a window, which on the benchmark's streams
    is worse than forcing none. So a run opens where the window can pay for a look before it is due, and test budget
    goes to a look only where no run was opened. The public code spends all of epsilon in the first window while tests
    of the second begin, and more than that if w < 20; ours asks the ledger. The memory of past changes fades over two
    windows instead of ending there, and c is never above w.

    Reference: Li, Li, Cheng, Gong, Ren, Qin, Wang: SPAS: continuous release of data streams under w-event differential
    privacy. SIGMOD 2025.

    Parameters
    ----------
    test_share
        The part of epsilon for tests.
    first_interval
        Steps between the looks of the first window, when nothing is known yet.
    as_published
        Keep the single threshold noise, which is refuted (on a long stream it hides nothing), and the distance to the
        step before.
    epsilon, window, bins, **common
        As in `Mechanism`.

    >>> import eventide as ev
    >>> from eventide.mechanisms.spas import SPAS
    >>> spas = SPAS(epsilon=1.0, window=4, bins=1, first_interval=2, noise=ev.noise.Zero())
    >>> [float(spas.release([count]).values[0]) for count in (5, 6, 40, 41)]
    [5.0, 5.0, 40.0, 40.0]
    """

    state = ("_last_look", "_changes")
    published_query_factor = 4
    published_compares_steps = True

    def __init__(
        self,
        epsilon: Amount,
        window: int,
        bins: int | Sequence[str],
        *,
        test_share: float = 0.25,
        first_interval: int = 20,
        as_published: bool = False,
        **common: Unpack[CommonParameters],
    ) -> None:
        self.first_interval = positive_integer(first_interval, "first_interval")
        super().__init__(epsilon, window, bins, test_share=test_share, as_published=as_published, **common)

    def begin(self) -> None:
        """No round is open, and the first step is due; no change has been seen."""
        super().begin()
        self._last_look: Ints = np.full((self.replicas, 1), -self.shared_steps)
        self._changes: Array = np.zeros((3, self.replicas, 1))  # fading sums of 1, |change| and change^2 over looks

    def rounds_per_window(self) -> Ints:
        """c = epsilon2 sqrt(3 V) / (6 sensitivity), V being the variance of the size of past changes.

        In the first window, one in every first_interval steps.
        """
        if self.step < self.shared_steps:
            return np.full((1, 1), -(-self.shared_steps // self.first_interval))
        looks = np.maximum(self._changes[0], np.finfo(float).tiny)
        variance = np.maximum(self._changes[2] / looks - (self._changes[1] / looks) ** 2, 0)
        best = self._look_pool / NANO * np.sqrt(3 * variance) / (6 * self.sensitivity)
        return np.asarray(np.clip(best, 1, self.shared_steps), dtype=np.int64)

    def due(self, index: int, rounds: Ints) -> Ints:
        """The round's share of the window after the last look."""
        return self._last_look - (-self.shared_steps // rounds)

    def may_open(self, index: int, latest: Ints) -> Bools:
        """The looks of the first window are evenly spaced, without tests, so that changes of all sizes are seen."""
        return np.asarray((index >= self.shared_steps) | (latest <= index))

    def filtering(self, measured: Measured | None) -> Array:
        """What the filter makes of the look; what changed is remembered."""
        released = super().filtering(measured)
        self._changes = self._changes * math.exp(-1 / (2 * self.shared_steps))
        if measured is not None:
            self._remember(np.abs(released - self._released), measured.fresh)
        return released

    def noise_range(self) -> tuple[float, float]:
        """From one look in a window to one at every step."""
        return self._noise_between(1, self.shared_steps)

    def _remember(self, change: Array, fresh: Bools) -> None:
        """Add the change to the sums where this was a look and not the first."""
        seen = np.stack(
            [np.ones(fresh.shape), change.mean(axis=1, keepdims=True), (change**2).mean(axis=1, keepdims=True)]
        )
        self._changes = self._changes + np.where(fresh & np.isfinite(self._scale), seen, 0)
        self._last_look = np.where(fresh, self.step, self._last_look)
