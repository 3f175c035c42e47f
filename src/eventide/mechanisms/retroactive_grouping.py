"""Retroactive grouping: units that hardly differ are published together.

Open groups are sealed sums, which only the meter reads, once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.errors import InputError
from eventide.mechanisms.base import CommonParameters
from eventide.mechanisms.window_baselines import TimeUnitBaseline
from eventide.privacy.amounts import Amount, exact
from eventide.privacy.group_test import LARGEST_GROUP
from eventide.privacy.ledger import positive_integer
from eventide.privacy.measured import Measured
from eventide.privacy.sealed import SealedStep

# The percentage of events to sample that makes the error of a count of N least, N (1 - b) / b + 2 / (b e')^2: it is the
# same for every N and budget, since amplification gives e' less than the division by b takes away.
BEST_RATE = 100
CERTAINTY = 3  # standard deviations of noise that a change must pass; a false alarm costs a group


class RetroactiveGrouping(TimeUnitBaseline):
    """Watches every bin with a little of the budget and, while it hardly moves, publishes several units as one.

    Idea: a unit of which nothing new is seen repeats the last published value, and its count waits in a sealed group.
    When the group is full, its mean is published: the same noise on the sum of k units is a k-th of it on each. Groups
    have 1, 2, 4, ... units, up to max_group, and begin again with one where a count moves away.

    Guarantee: event-level privacy with epsilon; with `window` = w, w-event privacy, for people who move between bins.

    Epsilon: of a unit's budget, epsilon / w, a tenth goes to monitoring and the rest to the one group that it enters.
    Both are charged when the unit arrives.

    Cost: O(d (max_group + span)) a step, O(w + d span) memory; the open groups are held as true sums.

    Use: histograms of sliding windows, of counts that are small next to the noise or change slowly. A larger max_group
    pays where they stand still; where they move by several times the noise at every unit, TimeUnitBaseline is better.

    Departures: the published test takes a difference of more than the variance of a plain release, 2 / epsilon2^2, for
    a change, but with a tenth of the budget the noise of the monitoring alone exceeds that in six of seven units, and
    hardly anything is grouped. Here a change must pass three standard deviations of the monitoring as well. What that
    overlooks the published values show: groups grow only while successive ones agree. The published groups double for
    ever; here they end at max_group, since the part of a window that still waits goes stale. The published window is
    the sum of the units as they were released; here all units of a group count with its mean as soon as it is known,
    and a group that a change cuts short is published too instead of thrown away: both are free, since every unit enters
    exactly one publication. A filter that truncates does so with units and windows. The published monitoring looks for
    the best sampling rate, count by count; with noise divided by the rate, as it must be, that is always 100 %.

    Reference: Chen, Shen, Jin: Private analysis of infinite data streams via retroactive grouping. ACM CIKM 2015.

    Parameters
    ----------
    span
        How many units a window of the histogram has.
    monitor_share
        The part of epsilon for monitoring.
    max_group
        The most units that are published as one, from 1 to 512.
    epsilon, window, bins, **common
        As in `Mechanism`.

    >>> import eventide as ev
    >>> from eventide.mechanisms.retroactive_grouping import RetroactiveGrouping
    >>> grouping = RetroactiveGrouping(epsilon=1.0, bins=1, span=2, noise=ev.noise.Zero())
    >>> for count in (10, 20, 22, 90):
    ...     release = grouping.release([count])
    ...     print(release.values, release.window_values)
    [10.] [10.]
    [10.] [20.]
    [21.] [42.]
    [90.] [111.]
    """

    state = ("_groups", "_full_size", "_last", "_last_scale")

    def __init__(
        self,
        epsilon: Amount,
        window: int = 1,
        bins: int | Sequence[str] = (),
        *,
        span: int = 15,
        monitor_share: float = 0.1,
        max_group: int = 4,
        **common: Unpack[CommonParameters],
    ) -> None:
        if not 0 < exact(monitor_share) < 1:
            raise InputError(f"monitor_share is {monitor_share!r}; it is a part of epsilon, between 0 and 1")
        self.monitor_share = monitor_share
        self.max_group = positive_integer(max_group, "max_group")
        if self.max_group > LARGEST_GROUP:
            raise InputError(f"max_group is {max_group!r}; it can be {LARGEST_GROUP} at most")
        super().__init__(epsilon, window, bins, span=span, **common)

    def begin(self) -> None:
        """Split the budget of a unit; the first unit of every bin will be a group of its own."""
        super().begin()
        part = exact(self.monitor_share)
        self._monitor = math.floor(self.shared_nano_epsilon * part / self.shared_steps)
        self._publication = math.floor(self.shared_nano_epsilon * (1 - part) / self.shared_steps)
        self._groups = self.meter.sum_over_steps(self.budget_allocation())
        self._full_size: Ints = np.ones(self.meter.shape, dtype=np.int64)
        self._last: Array = np.zeros(self.meter.shape)
        self._last_scale = np.full(self.meter.shape, np.inf)

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Where the count has moved away from its last value, or the group that the unit joins is full."""
        moved = self._has_moved(step)
        self._publish(moved)
        self.meter.add(step, self._groups)
        self._sums.push(self._last)
        self._noise_of_sums.push(self._last_scale, begins=False)
        return moved | (self._groups.steps >= self._full_size)

    def budget_allocation(self) -> Ints:
        """What monitoring leaves; every unit was charged it already."""
        return np.array([[self._publication]])

    def perturbation(self, step: SealedStep, amount: Ints) -> Measured:
        """The means of the groups that are due."""
        return self._publish(amount > 0)

    def _has_moved(self, step: SealedStep) -> Bools:
        """In which bins the unit, as far as a sample tells, lies further from the last value than a plain release."""
        sample = self.meter.thinned(step, np.array([[BEST_RATE]]), np.array([[self._monitor]]))
        error = 2 * self.look_scale(self._publication) ** 2 + CERTAINTY**2 * 2 * sample.scale**2
        moved: Bools = (sample.values - self._last) ** 2 >= error
        return moved

    def _publish(self, where: Bools) -> Measured:
        """The means of the open groups in `where`, which end; in the window, all their units now count with them."""
        units = np.maximum(self._groups.steps, 1)
        sums = self.meter.read(self._groups, where)
        means = Measured(sums.values / units, sums.scale / units, sums.fresh)
        self._sums.revise(means.values, units * means.fresh)
        self._noise_of_sums.revise(means.scale, units * means.fresh)
        self._choose_sizes(means, units)
        np.copyto(self._last, means.values, where=means.fresh)
        np.copyto(self._last_scale, means.scale, where=means.fresh)
        return means

    def _choose_sizes(self, means: Measured, units: Ints) -> None:
        """The next group is twice as long where this value agrees with the last, a single unit where it does not."""
        error = CERTAINTY**2 * 2 * (means.scale**2 + self._last_scale**2)
        agree = (means.values - self._last) ** 2 <= error
        np.copyto(self._full_size, np.where(agree, np.minimum(2 * units, self.max_group), 1), where=means.fresh)

    def window_is_whole(self) -> Bools:
        """Where the window is made of whole groups: of others, it has the share of their mean."""
        whole: Bools = (self._groups.steps == 0) & self._noise_of_sums.begins_with_publication()
        return whole

    def window_noise_range(self) -> tuple[float, float]:
        """From largest groups alone to units alone."""
        alone = self.look_scale(self._publication)
        whole, rest = divmod(self.span, self.max_group)
        return alone * math.hypot(math.sqrt(whole), rest / self.max_group), alone * math.sqrt(self.span)

    def noise_range(self) -> tuple[float, float]:
        """From the largest group to a unit alone."""
        alone = self.look_scale(self._publication)
        return alone / self.max_group, alone

    @property
    def holds_raw(self) -> bool:
        """The true sums of open groups."""
        return self._groups.holds_raw
