"""FAST_w: sampling paced by a controller, smoothed by a Kalman filter, block by block.

Promises at most `most_looks` looks in any block of w steps, in each account of the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints
from eventide.errors import InputError
from eventide.filters.base import Filter
from eventide.filters.kalman import Kalman
from eventide.mechanisms.base import CommonParameters, Mechanism
from eventide.mechanisms.parameters import per_bin
from eventide.mechanisms.pid import PID, SamplingInterval
from eventide.privacy.amounts import Amount, exact, number, share
from eventide.privacy.measured import Measured
from eventide.privacy.sealed import SealedStep

LARGEST_EXPONENT = 50.0  # e^50 shortens any interval to one step, and does not overflow


class FAST(Mechanism):
    """Looks more often while releases move much, and less often while they stand still.

    Idea: a controller compares the estimate before a look with the one after it. Small corrections let the next look
    wait longer, large ones bring it forward. A Kalman filter weighs each look against what was known.

    Guarantee: w-event privacy with epsilon, for people who move between bins; with accounting="fixed-bin", only for
    those who stay in one.

    Epsilon: each block of w steps gets epsilon / 2, since a window touches at most two blocks; its looks get equal
    parts. Decisions read releases only and cost nothing.

    Cost: O(d) a step, O(w + memory d) memory.

    Use: few bins that drift smoothly. With many bins under "moving" some bin is always due, and a block's looks are
    gone early in it.

    Departures: with accounting="moving" one clock serves all bins: if any is due, all are measured; the paper paces
    each bin alone, which overspends on people who move. The variance of a look's noise is its true one unless
    `measurement_noise` is given; the published 1e6 fits one epsilon only. Sampling begins anew in each block, the
    filter goes on, since its memory is free. The integral term is the mean of the errors, the paper's form; the public
    benchmark code takes their sum, leaves the last of every w + 1 steps at 0, cuts intervals to whole numbers and
    samples 7.5 % of the steps.

    Reference: Fan, Xiong: An adaptive approach to real-time aggregate monitoring with differential privacy. IEEE TKDE
    26(9), 2014; in blocks of w after Kellaris, Papadopoulos, Xiao, Papadias, PVLDB 7(12), 2014.

    Parameters
    ----------
    accounting
        "moving" protects people who move between bins, "fixed-bin" only those who stay in one.
    sampling_rate
        Looks per block, as a part of w (M / w); there is at least one.
    process_noise
        Variance of the change from step to step, a public guess (Q).
    measurement_noise
        Variance of a look's noise (R; published 1e6); None for the true one.
    gains
        The gains of the controller: proportional, integral and derivative (Cp, Ci, Cd).
    memory
        Errors that the controller's mean is taken over (Ti); until there are as many, every step is due.
    stretch
        The most steps by which an interval grows at once (theta).
    set_point
        The error at which the interval stays (xi).
    least_value
        Errors are relative to the release, or to this where it is smaller (delta).
    epsilon, window, bins, **common
        As in `Mechanism`.

    >>> import eventide as ev
    >>> from eventide.mechanisms.fast import FAST
    >>> fast = FAST(epsilon=2.0, window=20, bins=1, noise=ev.noise.Unit())
    >>> [float(fast.release([count]).values[0].round(2)) for count in (5, 6, 7, 8)]  # 3 looks a block, 1/3 each
    [8.0, 8.87, 9.85, 9.85]
    """

    state = ("_taken", "_control", "_interval")

    def __init__(
        self,
        epsilon: Amount,
        window: int,
        bins: int | Sequence[str],
        *,
        accounting: str = "moving",
        sampling_rate: float = 0.15,
        process_noise: float = 100.0,
        measurement_noise: float | None = None,
        gains: Sequence[float] = (0.9, 0.1, 0.0),
        memory: int = 5,
        stretch: float = 5.0,
        set_point: float = 0.1,
        least_value: float = 1.0,
        **common: Unpack[CommonParameters],
    ) -> None:
        if not 0 < exact(sampling_rate) <= 1:
            raise InputError(f"sampling_rate is {sampling_rate!r}; it is a part of the steps, above 0 and at most 1")
        if not (0 < number(set_point) < math.inf and 0 < number(least_value) < math.inf):
            raise InputError("set_point and least_value must be finite and above 0: errors are divided by them")
        self.accounting = accounting
        self.accounts_per_bin = per_bin(accounting)
        self.sampling_rate = sampling_rate
        self.process_noise = process_noise
        self.measurement_noise = measurement_noise
        self.gains = gains
        self.memory = memory
        self.stretch = stretch
        self.set_point = set_point
        self.least_value = least_value
        super().__init__(epsilon, window, bins, **common)

    def own_filter(self) -> Filter:
        """A Kalman filter for each bin."""
        return Kalman(self.process_noise, self.measurement_noise)

    def begin(self) -> None:
        """Fix the budget of a look; no look taken yet."""
        self.most_looks = max(1, math.floor(exact(self.sampling_rate) * self.window))
        self._look = share(self.nano_epsilon, 1, 2 * self.most_looks).reshape(1, 1)
        self._taken: Ints = np.zeros(self.ledger.accounts, dtype=np.int64)
        self._control = PID(self.meter.shape, self.gains, self.memory)
        self._interval = SamplingInterval(self.meter.shape, self.stretch, shared=not self.accounts_per_bin)

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Is a bin due, and has its block a look left? A new block begins sampling anew."""
        if step.index % self.window == 0:
            self._taken = np.zeros_like(self._taken)
            self._control.restart()
            self._interval.restart()
        looks = self._interval.due(step.index) & (self._taken < self.most_looks)
        self._taken = self._taken + looks
        return looks

    def budget_allocation(self) -> Ints:
        """An equal part of half of epsilon for each look of a block."""
        return self._look

    def filtering(self, measured: Measured | None) -> Array:
        """Whatever the filter makes of the look; its correction sets the next interval."""
        prior, posterior = self._released, super().filtering(measured)
        if measured is not None:
            error = np.abs(posterior - prior) / np.maximum(posterior, self.least_value)
            had_prior = np.isfinite(self._scale)
            control = self._control.update(error, self.step, measured.fresh & had_prior)
            self._interval.adjust(self._growth(control), self.step, measured.fresh)
        return posterior

    def noise_range(self) -> tuple[float, float]:
        """Every look has the same scale."""
        look = self.look_scale(float(self._look[0, 0]))
        return look, look

    def _growth(self, control: Floats) -> Floats:
        """Near 1 where nothing moves, 0 at the set point, far below beyond it; 0 until enough errors are known."""
        excess = np.minimum((control - self.set_point) / self.set_point, LARGEST_EXPONENT)
        return np.where(self._control.full, 1 - np.exp(excess), 0.0)
