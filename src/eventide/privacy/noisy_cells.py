"""Noisy cells: the open step of a pan-private mechanism, so that nobody who looks into memory sees a true count.

Promises that between two events no count is in memory without noise that is nowhere else. Two vectors of cells stand
for the step: one for the decision whether to look, with budget b, and one for the look, with budget e; both budgets are
fixed before the first event. A cell starts as discrete Laplace noise, is counted up with every event, and gets fresh
noise of the same scale when the step is closed: the decision once, on the distance; the look once in every bin.

Private because: let somebody see all cells once, at any moment of the step, and every release. An event from before
that moment is hidden by the noise the cells started with: what was seen cost it b + e, and whatever follows is made of
what was seen, later events and fresh noise. An event from after it is hidden by the fresh noise of the close: the cells
are known now, but the distance moves by at most sensitivity and so does the look, so it costs b for the decision and e
for the look, if there is one. Steps that nobody looked into cost b, and e if there was a look, by either noise.

So looking into memory adds to the charges of a window only at a step that ended without a look, and there at most e:
the allowance that must be kept free in every window if it happens once and unannounced. If it is announced, fresh noise
is added to every cell before the next event, as it hides the events between two such moments, and the step is charged e
for a look that it then must take: nothing is added.

A vector with budget 0 takes no events at all.
"""

from __future__ import annotations

import os

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.errors import InputError
from eventide.privacy.amounts import NANO, fixed
from eventide.privacy.measured import Measured
from eventide.privacy.meter import Meter
from eventide.privacy.noise import OpenDP, Secure, Source, source
from eventide.privacy.sealed import SealedStep
from eventide.privacy.state import Stateful


class NoisyCells(Stateful):
    """The cells of one step, for `shape` replicas and bins; see the module for why they are private."""

    state = ("decision_budget", "look_budget", "_decision", "_look", "_intrusions")

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.decision_budget: Ints = np.zeros((shape[0], 1), dtype=np.int64)
        self.look_budget = self.decision_budget
        self._decision: Array = np.zeros(shape, dtype=np.int64)
        self._look: Array = np.zeros(shape, dtype=np.int64)
        self._intrusions = 0

    def open(self, meter: Meter, decision_budget: Ints, look_budget: Ints) -> None:
        """Begin a step with fresh noise in every cell, before any of its events; the decision is charged now."""
        self.open_early(meter, decision_budget, look_budget)
        meter.ledger.charge(self.decision_budget)

    def open_early(self, meter: Meter, decision_budget: Ints, look_budget: Ints) -> None:
        """The same for a step that the ledger has not come to: the decision is charged when that one is closed."""
        decision_budget, look_budget = fixed(decision_budget), fixed(look_budget)
        meter._hidden("cells", decision_budget)
        self.decision_budget, self.look_budget = decision_budget, look_budget
        self._decision = meter._draw("cells", 1, decision_budget, self.shape)
        self._look = meter._draw("cells", 1, look_budget, self.shape)
        self._intrusions = 0

    def add(self, bin: int) -> None:
        """Count one event."""
        self._count(1, slice(bin, bin + 1))

    def pour(self, meter: Meter, step: SealedStep) -> None:
        """Count all events of a sealed step at once."""
        self._count(meter._open(step), slice(None))

    def refresh(self, meter: Meter) -> None:
        """Hide what somebody has just seen from whatever comes next: fresh noise in every cell."""
        for cells, budget in ((self._decision, self.decision_budget), (self._look, self.look_budget)):
            noise = meter._draw("cells", 1, budget, self.shape)
            cells += noise
            _overwrite(noise)
        self._intrusions += 1

    def erase(self) -> None:
        """Overwrite every cell, once its step is over: what is freed may be found in memory for long."""
        _overwrite(self._decision)
        _overwrite(self._look)

    @property
    def intruded(self) -> bool:
        """Whether an intrusion into this step was announced."""
        return self._intrusions > 0

    def distance(self, meter: Meter, reference: Array) -> Array:
        """Noisy L1 distance to a released vector, `(R, 1)`; 0 where the decision has no budget.

        Noise in the cells lifts every term, by its mean absolute value where the true term is small: that much is
        taken off.
        """
        total, shape = meter._differences(self._decision, reference).sum(axis=1, keepdims=True), (self.shape[0], 1)
        about = {"amount": self.decision_budget, "reference": reference}
        noisy = meter._answered(
            "distance", shape, about, lambda: total + meter._draw("distance", 1, self.decision_budget, shape)
        )
        lift = self.shape[1] * mean_absolute_noise(meter.sensitivity, self.decision_budget)
        return np.where(self.decision_budget > 0, noisy - lift, 0)

    def read(self, meter: Meter, where: Bools) -> Measured:
        """Charge and publish the look of the replicas in `where`.

        `scale` is that of a single Laplace draw with the variance of all that were added.
        """
        amount = np.where(where, self.look_budget, 0)
        meter.ledger.charge(amount)
        once = meter._measured("counts", lambda: self._look, amount, self.shape)
        return Measured(once.values, once.scale * np.sqrt(2 + self._intrusions), once.fresh)

    def _count(self, counts: int | Ints, bins: slice) -> None:
        self._decision[:, bins] += counts * (self.decision_budget > 0)
        self._look[:, bins] += counts * (self.look_budget > 0)


def _overwrite(cells: Array) -> None:
    if cells.flags.writeable:
        cells.fill(0)


def mean_absolute_noise(sensitivity: int, budget: Ints) -> Array:
    """The mean absolute value of discrete Laplace noise of scale sensitivity / budget; 0 where the budget is 0.

    With q = exp(-1 / scale) it is 2q / (1 - q^2), written so that neither a tiny nor a huge scale overflows.
    """
    inverse = budget / (sensitivity * NANO)
    mean: Array = np.zeros(inverse.shape)
    np.divide(-2 * np.exp(-inverse), np.expm1(-2 * inverse), out=mean, where=inverse > 0)
    return mean


def without_memory(noise: str | Source, seed: int | None) -> Source:
    """The source a user asked for, but secure noise straight from the operating system, drawn when it is used.

    OpenSSL and opendp keep their generator inside the process; whoever sees its state knows the noise to come.
    """
    chosen = source(noise, seed)
    if isinstance(chosen, OpenDP):
        raise InputError("pan_private takes noise='secure': opendp keeps its random generator in memory")
    return Secure(os.urandom) if isinstance(chosen, Secure) else chosen
