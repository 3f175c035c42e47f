"""RescueDP: bins of alike small counts share one look, paced by a controller.

Promises that grouping, pacing and budgets depend on releases and on the ledger only.
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
from eventide.mechanisms.pid import PID, SamplingInterval, pushed
from eventide.mechanisms.rescuedp_kernels import scan
from eventide.privacy.amounts import NANO, Amount, number, share
from eventide.privacy.ledger import positive_integer
from eventide.privacy.measured import Measured
from eventide.privacy.partition import Partition
from eventide.privacy.sealed import SealedStep


class RescueDP(Mechanism):
    """Measures bins whose small counts move alike as one sum, and looks again when releases move much.

    Idea: noise on the sum of a group, shared out, is small for each member. Which bins are alike is read off past
    releases. Each look takes a part of the budget left in the window, the larger the longer the bin has waited; a
    controller sets the wait, and a Kalman filter weighs each look against what was known.

    Guarantee: w-event privacy with epsilon, for people who move between bins; with accounting="fixed-bin", only for
    those who stay in one.

    Epsilon: all of it to looks; each takes p of what its window has left, p = min(phi ln(I + 1), p_max) for a wait of
    I, and at most epsilon / 5.

    Cost: O(d log d) a look, up to O(d^2) where many small bins move against each other; O(w + history d) memory.

    Use: many bins with counts below the noise, such as a map of rarely visited places.

    Departures: with accounting="moving" one clock and one budget serve all bins: if any is due, all are measured, with
    the budget of the one that waited least; the paper keeps a ledger for each bin, which overspends on people who
    move. Budgets below the w-th part of a first look wait, where published forms draw noise without bound; with
    "fixed-bin" they are cut to six leading bits, for speed. The filter's Q is a public parameter and its R the
    variance of the noise just added; public codes take Q from the true stream. Two bins that never moved count as
    correlated, one that moved and one that did not as uncorrelated; Pearson's formula is 0 / 0 there. The public
    benchmark code filters grouped bins against 0 instead of their mean, another groups by true counts.

    Reference: Wang, Zhang, Lu, Wang, Qin, Ren: Real-time and spatio-temporal crowd-sourced social network data
    publishing with differential privacy. IEEE TDSC 15(4), 2018.

    Parameters
    ----------
    accounting
        "moving" protects people who move between bins, "fixed-bin" only those who stay in one.
    process_noise
        Variance of the change from step to step, a public guess (Q).
    largest_sum
        Bins predicted above it stand alone, and groups that reach it are full (tau1).
    least_correlation
        A bin joins a group only if its correlation with the group's smallest bin is above this (tau2).
    largest_gap
        A bin joins a group only if its difference to the group's smallest bin is below this (tau3).
    history
        How many past releases predictions and correlations are computed from (kappa).
    eagerness
        How the part of the budget grows with the wait (phi).
    largest_part
        The largest part of the budget that a wait can bring (p_max).
    gains
        The gains of the controller: proportional, integral and derivative (Kp, Ki, Kd).
    memory
        Errors that the controller's mean is taken over (pi).
    stretch
        The most steps by which a wait grows at once (theta).
    epsilon, window, bins, **common
        As in `Mechanism`.

    >>> import eventide as ev
    >>> from eventide.mechanisms.rescuedp import RescueDP
    >>> rescue = RescueDP(epsilon=100, window=8, bins=2, noise=ev.noise.Zero())
    >>> for counts in ([1, 3], [2, 4], [3, 5]):
    ...     alone = rescue.release(counts)
    >>> rescue.release([2, 8]).values.round(2).tolist()  # both went up together: measured as one sum of 10
    [5.0, 5.0]
    """

    state = ("_history", "_control", "_interval", "_moved", "_moves")

    def __init__(
        self,
        epsilon: Amount,
        window: int,
        bins: int | Sequence[str],
        *,
        accounting: str = "moving",
        process_noise: float = 100.0,
        largest_sum: float = 30.0,
        least_correlation: float = 0.5,
        largest_gap: float = 25.0,
        history: int = 3,
        eagerness: float = 0.2,
        largest_part: float = 0.6,
        gains: Sequence[float] = (0.9, 0.1, 0.0),
        memory: int = 3,
        stretch: float = 10.0,
        **common: Unpack[CommonParameters],
    ) -> None:
        if not (number(eagerness) > 0 and 0 < number(largest_part) <= 1):
            raise InputError("eagerness must be above 0, and largest_part a part of what is left: above 0, at most 1")
        if any(math.isnan(number(limit)) for limit in (largest_sum, least_correlation, largest_gap)):
            raise InputError(
                "largest_sum, least_correlation and largest_gap must be numbers that bins are compared with"
            )
        self.accounting = accounting
        self.accounts_per_bin = per_bin(accounting)
        self.process_noise = process_noise
        self.largest_sum = largest_sum
        self.least_correlation = least_correlation
        self.largest_gap = largest_gap
        self.history = positive_integer(history, "history")
        self.eagerness = eagerness
        self.largest_part = largest_part
        self.gains = gains
        self.memory = memory
        self.stretch = stretch
        super().__init__(epsilon, window, bins, **common)

    def own_filter(self) -> Filter:
        """A Kalman filter for each bin."""
        return Kalman(self.process_noise)

    def begin(self) -> None:
        """Nothing released, every bin due."""
        self._most = share(self.nano_epsilon, 1, 5)
        self._history: Floats = np.full((self.history, *self.meter.shape), np.nan)  # releases at looks, newest first
        self._control = PID(self.meter.shape, self.gains, self.memory)
        self._interval = SamplingInterval(self.meter.shape, self.stretch, shared=not self.accounts_per_bin)
        self._moved: Bools = np.zeros(self.meter.shape, dtype=np.bool_)  # bins whose wait the next step sets...
        self._moves: Floats = np.zeros(self.meter.shape)  # ...from what the controller said
        first_look = int(self._planned(np.ones((1, 1))).min())
        self.least_look = max(1, first_look // self.window)

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Is a bin due, and would its look get enough?"""
        self._set_waits(step.index - 1)
        self._amount = self._planned(self._interval.length)
        return self._interval.due(step.index) & (self._amount >= self.least_look)

    def budget_allocation(self) -> Ints:
        """A part of what the window has left."""
        return self._amount

    def perturbation(self, step: SealedStep, amount: Ints) -> Measured:
        """One noisy sum for each group; its members get the mean, and the scale of a mean."""
        looks = np.broadcast_to(amount > 0, self.meter.shape)
        prediction = self._history.mean(axis=0)  # a bin without enough past releases has none and stands alone
        small = looks & (prediction <= self.largest_sum)
        if small.sum(axis=1).max() < 2:
            return super().perturbation(step, amount)
        groups = self._groups(looks, small, prediction)
        sizes = groups.sums(np.ones((1, self.size), dtype=np.int64))
        sums = self.meter.counts(step, _least(amount, groups, sizes), groups)
        means, scales = (groups.spread(part / np.maximum(sizes, 1)) for part in (sums.values, sums.scale))
        return Measured(means, np.where(looks, scales, np.inf), looks)

    def filtering(self, measured: Measured | None) -> Array:
        """Whatever the filter makes of the looks; how far it moved is kept for the next wait and the next groups."""
        before, values = self._released, super().filtering(measured)
        if measured is not None:
            self._moved = measured.fresh & np.isfinite(self._scale)
            self._moves = self._control.update(np.abs(values - before), self.step, self._moved)
            self._history = pushed(self._history, values, measured.fresh)
        return values

    def noise_range(self) -> tuple[float, float]:
        """From the largest look at one group of all bins to the least look at a single bin."""
        look = self.sensitivity * NANO
        return look / float(self._most) / self.size, look / self.least_look

    def _planned(self, wait: Floats) -> Ints:
        """What a look after that wait may take of the window."""
        part = np.minimum(self.eagerness * np.log1p(wait), self.largest_part)
        planned = np.minimum((part * self.ledger.left_nano()).astype(np.int64), self._most)
        return _leading_bits(planned) if self.accounts_per_bin else planned

    def _set_waits(self, last: int) -> None:
        """Set the waits of the bins that moved at step `last`, against the noise of the largest look possible now."""
        if self._moved.any():
            scale = self.sensitivity * NANO
            ratio = self._moves * (np.minimum(self.ledger.left_nano(), self._most) / scale)
            self._interval.adjust(1 - ratio**2, last, self._moved)
            self._moved = np.zeros_like(self._moved)

    def _groups(self, looks: Bools, small: Bools, prediction: Floats) -> Partition:
        """Divide the bins that are looked at."""
        order = np.argsort(prediction, axis=1, kind="stable")
        bounds = float(self.largest_sum), float(self.least_correlation), float(self.largest_gap)
        looks = np.array(looks)  # of its own, so that the scan is compiled for one kind of array
        return Partition(*scan(looks, small, order, prediction, directions(self._history), *bounds))


def directions(history: Floats) -> Floats:
    """Vectors `(R, d, history + 1)` whose inner products are the correlations of the columns of `history`.

    The last coordinate makes two bins that never moved correlate with each other, and with nobody else.
    """
    height = history.max(axis=0) - history.min(axis=0)
    still = height == 0
    centred = (history - history.mean(axis=0)) / np.where(still, 1.0, height)
    centred[:, still] = 0.0
    vectors = np.concatenate([centred, still[None]])
    return np.ascontiguousarray(np.moveaxis(vectors / np.sqrt((vectors**2).sum(axis=0)), 0, 2))


def _leading_bits(amounts: Ints) -> Ints:
    """Cut to the six leading bits: where each bin has a budget of its own, exact noise is drawn budget by budget."""
    cut = np.maximum(np.frexp(amounts)[1] - 6, 0)
    return np.asarray(amounts >> cut << cut)


def _least(amount: Ints, groups: Partition, sizes: Ints) -> Ints:
    """The budget of each group: the least that any of its members would get; 0 for groups without members."""
    if amount.shape[1] == 1:
        return amount
    least = np.where(sizes > 0, amount.max(), 0)
    replicas, bins = np.nonzero(groups.labels >= 0)
    np.minimum.at(least, (replicas, groups.labels[replicas, bins]), amount[replicas, bins])
    return least
