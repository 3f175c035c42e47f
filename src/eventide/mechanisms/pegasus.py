"""PeGaSus: perturb every step, group steps that hardly differ, smooth each group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import numpy as np

from eventide.arrays import Bools, Ints
from eventide.errors import InputError
from eventide.filters.base import Filter
from eventide.filters.group_median import SMOOTHERS, Grouped
from eventide.mechanisms.base import CommonParameters, Mechanism
from eventide.mechanisms.parameters import check_choice
from eventide.privacy.amounts import NANO, Amount, exact, number
from eventide.privacy.group_test import LARGEST_GROUP, GroupTest
from eventide.privacy.ledger import positive_integer
from eventide.privacy.measured import Measured
from eventide.privacy.sealed import SealedStep

LARGEST_THRESHOLD = 2**60


class GroupingParameters(CommonParameters, total=False):
    """The keywords of PeGaSus, for mechanisms that group as it does."""

    group_share: float
    theta: float
    smoother: str
    max_group: int


class PeGaSus(Mechanism):
    """Looks at every step and smooths over spells in which the true counts hardly moved.

    Idea: every bin is measured at every step. Apart from that a private test finds, bin by bin, groups of consecutive
    steps whose true counts lie close together; what is released is the median of the group's measurements so far.

    Guarantee: w-event privacy with epsilon, for people who move between bins.

    Epsilon: every step gets epsilon / w, of which 80 % measure the counts and 20 % pay for the test.

    Cost: O(d max_group) a step in two fast passes, O(w + d max_group) memory at most; both follow the longest group
    that is open.

    Use: counts that hardly change for some time and then jump, or that are small next to the noise. Nothing is saved
    up for later, so on streams that move slowly within a window Sample and Hybrid are far better.

    Departures: the paper is about single events; here it runs at epsilon / w a step, which protects any w. The
    deviation of a group is taken around its median instead of its mean: it stays a whole number and one event moves
    it half as far, so the test needs half the noise. Groups close at `max_group` steps, which bounds time and memory.
    Public benchmark code opens a new group at every step, and so never smooths, and compares absolute values, which is
    not the sparse-vector test that the proof is about.

    Reference: Chen, Machanavajjhala, Hay, Miklau: PeGaSus: data-adaptive differentially private stream processing. ACM
    CCS 2017.

    Parameters
    ----------
    group_share
        The part of epsilon that the test gets.
    theta
        A group closes where its deviation passes theta times the sensitivity over the test's budget, give or take
        noise.
    smoother
        "median", "average" or "james-stein".
    max_group
        The most steps that a group holds, from 2 to 512. With 512 instead of 64 the error on counts that hardly move
        falls by a twentieth, and a step takes up to eight times as long.
    epsilon, window, bins, **common
        As in `Mechanism`.

    >>> import eventide as ev
    >>> from eventide.mechanisms.pegasus import PeGaSus
    >>> pegasus = PeGaSus(epsilon=1.0, window=1, bins=1, noise=ev.noise.Zero())
    >>> [float(pegasus.release([count]).values[0]) for count in (10, 20, 12, 90, 91, 95)]
    [10.0, 15.0, 12.0, 90.0, 91.0, 93.0]
    """

    takes_window_sensitivity = True
    state = ("_groups",)

    def __init__(
        self,
        epsilon: Amount,
        window: int,
        bins: int | Sequence[str],
        *,
        group_share: float = 0.2,
        theta: float = 5.0,
        smoother: str = "median",
        max_group: int = 64,
        **common: Unpack[CommonParameters],
    ) -> None:
        if not 0 < exact(group_share) < 1:
            raise InputError(f"group_share is {group_share!r}; it is a part of epsilon, between 0 and 1")
        if not 0 <= number(theta) < math.inf:
            raise InputError(f"theta is {theta!r}; it must be a number of at least 0")
        check_choice(smoother, "smoother", *SMOOTHERS)
        self.max_group = positive_integer(max_group, "max_group")
        if not 2 <= self.max_group <= LARGEST_GROUP:
            raise InputError(f"max_group is {max_group!r}; it must be a whole number from 2 to {LARGEST_GROUP}")
        self.group_share = group_share
        self.theta = theta
        self.smoother = smoother
        super().__init__(epsilon, window, bins, **common)

    def own_filter(self) -> Filter:
        """What makes one number of a group."""
        return SMOOTHERS[self.smoother]()

    def begin(self) -> None:
        """Split the budget of a step; no group is open."""
        part = exact(self.group_share)
        self._look = math.floor(self.shared_nano_epsilon * (1 - part) / self.shared_steps)
        self._test = math.floor(self.shared_nano_epsilon * part / self.shared_steps)
        self._groups = self.grouper()

    def grouper(self) -> GroupTest:
        """The test that groups the steps."""
        return self.meter.group_test(np.array([[self._test]]), self.max_group)

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Every step."""
        return np.ones((self.replicas, 1), dtype=np.bool_)

    def budget_allocation(self) -> Ints:
        """An equal share for each step of a window."""
        return np.array([[self._look]])

    def perturbation(self, step: SealedStep, amount: Ints) -> Grouped:
        """The counts, and whether this step joins the open groups."""
        measured = self.noisy_counts(step, amount)
        joins, _ = self.meter.grouped(self._groups, step, self.threshold(measured))
        return Grouped(measured.values, measured.scale, measured.fresh, joins)

    def noisy_counts(self, step: SealedStep, amount: Ints) -> Measured:
        """Every bin."""
        return self.meter.counts(step, amount)

    def threshold(self, measured: Measured) -> Ints:
        """The deviation at which a group closes; the same at every step."""
        level = self.theta * self.sensitivity * NANO / max(self._test, 1)  # without a budget no group opens
        return np.array([[math.ceil(min(level, LARGEST_THRESHOLD))]])

    def noise_range(self) -> tuple[float, float]:
        """Every look has the same scale."""
        look = self.look_scale(self._look)
        return look, look

    @property
    def holds_raw(self) -> bool:
        """The true counts of open groups."""
        return self._groups.holds_raw
