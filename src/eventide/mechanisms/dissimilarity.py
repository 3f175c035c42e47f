"""The decision that BD and BA share: is repeating worse than looking?

It rests on a distance that the meter measured and charged, never on a raw count.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import ClassVar, Unpack

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.errors import InputError
from eventide.mechanisms.base import CommonParameters
from eventide.mechanisms.column_groups import ColumnGroups, group_count
from eventide.mechanisms.pan_private import SINGLE, PanPrivateMechanism
from eventide.mechanisms.parameters import check_choice, per_bin
from eventide.privacy.amounts import NANO, Amount, share
from eventide.privacy.noisy_cells import NoisyCells, without_memory
from eventide.privacy.sealed import SealedStep


class DissimilarityMechanism(PanPrivateMechanism):
    """Looks when the last release is further from the truth than the noise of a look would be.

    Half of epsilon pays for the distances, an equal part at every step, the other half for looks. With `shift_budget`
    and groups of at least twice as many bins as steps in a window the distances get only epsilon / bins of a group a
    step: their noise, spread over so many bins, is then still small, and looks gain what they leave.

    Groups. With `groups` the bins are divided, and each group compares its own distance, which one person moves by at
    most sensitivity as well, with the noise of a look over its bins. With `accounting="fixed-bin"`, as published, every
    bin has its own account, also when it is regrouped, and a group can use what all of its bins have left. With
    "moving" there is one account, since a step costs what its dearest bin costs: a look at one group uses up the same
    budget for all, and all have one clock. What groups still bring then: a change in a few bins is not averaged away by
    many calm ones, and only groups that changed take new noise. The others could be measured for nothing, but by their
    own test repeating is better.

    Pan-privacy. As published, cells start with noise and get none later, so that whoever sees them during a step
    subtracts them from the release and has the exact number of later events; and the distance cannot be kept event by
    event without the true counts. Here noise is drawn again when a step is closed, and the distance comes from cells of
    its own. Each step is charged epsilon / (2w) for its distance when it begins, and its look if it takes one, with a
    budget fixed before the first event. An intrusion at a step without a look adds that look's budget, once. So with
    `pan_private="single"` the largest budget of a look stays free in every window, as a span of the ledger that never
    ends, and no window is over epsilon: BD has epsilon / 2 for distances, less than epsilon / 3 for looks (half of what
    is left each time) and epsilon / 6 for the intrusion; BA epsilon / 2, epsilon / 4 and epsilon / 4. As published, BD
    takes thirds of what is left of epsilon / 2: that leaves nothing free, and an intrusion adds up to epsilon / 6. With
    "announced" the step must take its look, and nothing is added.
    """

    state: ClassVar[tuple[str, ...]] = ("_groups",)
    left_by_one_intrusion: ClassVar[tuple[int, int]]  # the part of the budget for looks that looks may still use

    def __init__(
        self,
        epsilon: Amount,
        window: int,
        bins: int | Sequence[str],
        *,
        shift_budget: bool = False,
        groups: int | str | None = None,
        accounting: str = "moving",
        pan_private: str | None = None,
        **common: Unpack[CommonParameters],
    ) -> None:
        if pan_private is not None:
            if groups is not None:
                raise InputError("pan_private and groups do not go together; leave one of them out")
            common["noise"] = without_memory(common.get("noise", "secure"), common.pop("seed", None))
        check_choice(shift_budget, "shift_budget", True, False)
        self.shift_budget, self.pan_private = shift_budget, pan_private
        self.groups, self.accounting = groups, accounting
        super().__init__(epsilon, window, bins, **common)

    @property
    def accounts_per_bin(self) -> bool:  # type: ignore[override]
        """Whether every bin has an account of its own; with one group all would be alike."""
        return per_bin(self.accounting) and group_count(self.groups, self.size) > 1

    def begin(self) -> None:
        """Form the groups and fix the parts of epsilon."""
        super().begin()
        groups = group_count(self.groups, self.size)
        self._groups = ColumnGroups(groups, self.meter.shape) if groups > 1 else None
        sizes = np.array([self.size]) if self._groups is None else self._groups.sizes
        of_a_nano, size = self.sensitivity * NANO, int(sizes.min())
        fits = int(sizes.max()) * of_a_nano < 2**63
        self._noise_of_a_nano = sizes.astype(np.int64 if fits else object) * of_a_nano
        shifted = self.shift_budget and size >= 2 * self.window
        self._distance_share = share(self.nano_epsilon, 1, size if shifted else 2 * self.window).reshape(1, 1)
        self._look_pool = share(self.nano_epsilon, *((size - self.window, size) if shifted else (1, 2)))
        if self.pan_private == SINGLE:
            looks = share(self._look_pool, *self.left_by_one_intrusion)
            self._kept_free = self._look_pool - looks
            self.ledger.open_span(self._kept_free, "intrusion")
            self._look_pool = looks

    def prepare(self) -> None:
        """Regroup by what was released; open the noisy cells of the next step with the budgets it will have."""
        if self._groups is not None and self.step > 0:
            self._groups.observe(self._released, self.step)
        super().prepare()
        if self._cells is not None and self._open is None:
            planned, asked = self.plan()
            self._cells.open(self.meter, np.where(asked, self._distance_share, 0), planned)

    @abc.abstractmethod
    def plan(self) -> tuple[Ints, Bools]:
        """What a look at this step would get, and who asks for a distance: columns, or for each group."""

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Is the noisy distance to the last release larger than the noise of a look?

        At the first step the outcome is ignored and everything is looked at. A plan of 0 never looks. A step that was
        lost to an intrusion is charged for its look and takes none.
        """
        self._planned, distance = self._asked(step) if self._cells is None else self._held(step, self._cells)
        wanted = self._planned > 0
        if step.index > 0 and not (self._cells and self._cells.intruded) and not self._is_lost(step):
            wanted = wanted & (distance > self._noise_of(self._planned))
        looks: Bools = self.of_bins(wanted)
        self.looked(looks if self.accounts_per_bin else np.any(looks, axis=1, keepdims=True))
        if self._is_lost(step):
            self.ledger.charge(self._planned)
            return np.zeros_like(looks)
        return looks

    def decision_budget(self) -> Ints:
        """The same at every step."""
        return self._distance_share

    def plan_behind(self, planned: Ints) -> int:
        """What follows from the looks before; and one intrusion never sees more than what is kept free for it."""
        amount = self.look_behind(planned)
        if self.pan_private == SINGLE:
            decision = int(self._distance_share.item())
            seen = int(planned.sum()) + decision * int(np.count_nonzero(planned))
            amount = min(amount, int(self._kept_free) - seen - decision)
        return max(amount, 0)

    @abc.abstractmethod
    def look_behind(self, planned: Ints) -> int:
        """What a look gets behind the current step and others that take their looks as planned."""

    def budget_allocation(self) -> Ints:
        """As planned."""
        return self.of_bins(self._planned)

    def looked(self, accounts: Bools) -> None:
        """Remember which accounts a look was charged to."""

    def of_groups(self, accounts: Ints) -> Ints:
        """What each group can count on: the least that any of its bins has in its account."""
        return self._groups.least(accounts) if self._groups and self.accounts_per_bin else accounts

    def of_bins(self, values: Array) -> Array:
        """The value of each bin's group; a column stays one."""
        return self._groups.partition.spread(values) if self._groups and values.shape[1] > 1 else values

    def _asked(self, step: SealedStep) -> tuple[Ints, Array]:
        """The plan, and the distances that the meter gives."""
        planned, asked = self.plan()
        partition = None if self._groups is None else self._groups.partition
        amount = np.where(asked, self._distance_share, 0)
        return planned, self.meter.distance(step, self._released, amount, partition)

    def _held(self, step: SealedStep, cells: NoisyCells) -> tuple[Ints, Array]:
        """The plan the noisy cells were opened with, and their distance once the last events are in."""
        if self._open is not None:
            self.open_until(self.step)
            cells = self._cells = self._open.close()
        cells.pour(self.meter, step)
        return cells.look_budget, cells.distance(self.meter, self._released)

    def _is_lost(self, step: SealedStep) -> bool:
        return self._open is not None and step.index < self._open.lost_until

    def _noise_of(self, planned: Ints) -> Ints:
        """The L1 error that noise of budget `planned` brings over the bins of each group, rounded down.

        It is that of the smallest budget, a nano, divided by the budget.
        """
        return np.asarray(np.minimum(self._noise_of_a_nano // np.maximum(planned, 1), 2**62), dtype=np.int64)
