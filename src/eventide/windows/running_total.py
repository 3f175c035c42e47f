"""How many events so far? A factorised counter of running totals, for ever, in the memory of a few numbers a bin.

Totals so far are A x, with A the lower triangle of ones. The counter measures C x, slots of 1, f, f^2, ... steps that
follow each other without a gap, and answers B (C x + noise), where B C = A: a total is read like a number in base f,
from as few ended slots as possible. Slots of the last level, the blocks, are added up for ever.

Guarantee: one event lies in one slot of every level and moves each by at most `sensitivity`, and the budgets of the
levels add up to epsilon / window: that is the column norm of C, with each row divided by its noise scale. So each step
is charged that much when it is added, and nothing when a slot is read.
Cost: O(levels) a step; memory O(levels * bins). The sums of open slots are true (`holds_raw`).

Factorisations into Toeplitz matrices (a square root of A, banded or not) are not offered: under pure epsilon none of
them beats noise on every single step (`benchmarks/running_totals.py` has the proof in three lines, and figures).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.errors import InputError, StateError
from eventide.mechanisms.base import LARGEST_SENSITIVITY, whole_counts
from eventide.privacy.amounts import NANO, SMALLEST, Amount
from eventide.privacy.archive import pack, unpack
from eventide.privacy.ledger import WindowLedger, positive_integer
from eventide.privacy.meter import Meter
from eventide.privacy.noise import Source, named, recorded_name, source
from eventide.privacy.slot_sums import Cut
from eventide.windows.schemes.scheme import discrete_variance
from eventide.windows.slot_promise import OfSlots
from eventide.windows.workload import LONGEST

FORMAT, VERSION = "eventide running total", 1
WIDEST = 64  # the most slots of a level that one of the next may hold
PLACES = 2**12  # steps, evenly spread, whose variances stand for all


class Total(NamedTuple):
    """The events of the first `steps` steps: an unbiased estimate for each bin, and the variance of its noise."""

    steps: int
    value: Floats
    variance: float


class Levels(NamedTuple):
    """`depth` levels of slots above the single steps, each slot `fanout` times as long as one of the level below."""

    fanout: int
    depth: int

    @property
    def lengths(self) -> list[int]:
        """How many steps a slot of each level has."""
        return [self.fanout**level for level in range(self.depth + 1)]

    def slots(self, steps: int | Ints) -> Ints:
        """How many slots of each level make up the first `steps` steps: digits in base fanout, then whole blocks."""
        whole: Ints = np.asarray(steps)[..., None] // np.array(self.lengths)
        whole[..., :-1] -= self.fanout * whole[..., 1:]
        return whole

    def variance(self, steps: int | Ints) -> Floats:
        """A bound of a total's variance in units of 2 (sensitivity / epsilon)^2, with epsilon in equal shares."""
        return np.asarray(self.slots(steps).sum(axis=-1) * float(self.depth + 1) ** 2)


def best_levels(horizon: int) -> Levels:
    """The levels with the least mean variance over the first `horizon` steps.

    >>> best_levels(10), best_levels(1000)
    (Levels(fanout=2, depth=0), Levels(fanout=10, depth=2))
    """
    places = np.linspace(1, horizon, min(horizon, PLACES)).astype(np.int64)
    found = [Levels(2, 0)]
    for fanout in range(2, WIDEST + 1):
        found += [Levels(fanout, depth) for depth in range(1, 41) if fanout**depth <= horizon]
    return min(found, key=lambda levels: float(levels.variance(places).mean()))


class RunningTotal(OfSlots):
    """Publishes, step after step, how many events there were so far in each bin.

    Parameters
    ----------
    epsilon
        The budget of any `window` consecutive steps.
    bins
        How many counts a step has.
    horizon
        For how many steps totals shall be most exact. The counter goes on for ever: the variance of later totals grows
        by one block at a time.
    window
        How many consecutive steps are protected together; each gets one part in `window` of epsilon.
    sensitivity
        The most that one person adds to a step over all bins.
    noise, seed
        As everywhere: "secure", or a source of `eventide.noise` for tests.
    replicas
        How many independent copies of the noise run over the same counts.

    >>> from eventide.privacy.noise import Zero
    >>> counter = RunningTotal(epsilon=1.0, bins=2, horizon=100, noise=Zero())
    >>> [counter.push(counts).value.tolist() for counts in ([5, 0], [1, 2], [0, 2])]
    [[5.0, 0.0], [6.0, 2.0], [6.0, 4.0]]
    """

    state = ("source", "ledger", "_sums", "_parts")

    def __init__(
        self,
        epsilon: Amount,
        bins: int = 1,
        *,
        horizon: int = 1000,
        window: int = 1,
        sensitivity: int = 1,
        noise: str | Source = "secure",
        seed: int | None = None,
        replicas: int = 1,
    ) -> None:
        self.sensitivity = positive_integer(sensitivity, "sensitivity", LARGEST_SENSITIVITY)
        self.horizon = positive_integer(horizon, "horizon", LONGEST)
        self.ledger = WindowLedger(epsilon, window, replicas)
        self.source = source(noise, seed)
        self.levels = best_levels(self.horizon)
        self.budget = self.ledger.nano_epsilon // self.ledger.window // (self.levels.depth + 1)  # of a slot
        if self.budget < SMALLEST:
            raise InputError(
                f"epsilon {self.ledger.epsilon:g} leaves less than 0.000001 for each of {self.levels.depth + 1} levels "
                f"and {self.ledger.window:,} steps; give more of it, a shorter window or a nearer horizon"
            )
        self.meter = Meter(self.ledger, self.source, positive_integer(bins, "bins"), self.sensitivity)
        self._sums = self.meter.slot_sums(self.levels.depth + 1)
        self._parts: Array = np.zeros((self.levels.depth + 1, *self.meter.shape))  # noisy sums of slots that ended

    @property
    def steps(self) -> int:
        """How many steps were pushed."""
        return self.ledger.step

    def variance(self, steps: int) -> float:
        """The variance of the noise in the total of the first `steps` steps, known before any is drawn.

        Parameters
        ----------
        steps
            How many steps the total has.
        """
        return float(self.levels.slots(steps).sum() * discrete_variance(np.array(self.budget), self.sensitivity))

    def push(self, counts: Any) -> Total:
        """Take the counts of the next step and give the totals so far.

        Parameters
        ----------
        counts
            Whole numbers from 0 up, one for each bin.
        """
        whole = whole_counts(np.atleast_1d(counts))
        if whole.shape != self.meter.shape[1:]:
            raise InputError(f"the counts do not fit this counter; give {self.meter.shape[1]} numbers, 0 included")
        ended = [(self.steps + 1) % length == 0 for length in self.levels.lengths]
        budget = np.array([self.budget], dtype=np.int64)
        cuts = [Cut(np.arange(1, 1 + now), budget) for now in ended]
        for level, values in enumerate(self.meter.sum_slots(self._sums, whole[None], cuts)):
            if ended[level]:
                self._parts[level] += values[0]
                self._parts[:level] = 0
        value: Floats = self._parts.sum(axis=0)
        return Total(self.steps, value if self.ledger.replicas > 1 else value[0], self.variance(self.steps))

    def save(self) -> bytes:
        """Everything needed to go on from this step, as bytes that `RunningTotal.load` reads."""
        made = {
            "epsilon": self.ledger.nano_epsilon,
            "bins": self.meter.shape[1],
            "horizon": self.horizon,
            "window": self.ledger.window,
            "sensitivity": self.sensitivity,
            "noise": recorded_name(self.source),
            "replicas": self.ledger.replicas,
        }
        return pack({"format": FORMAT, "version": VERSION, "made": made, "state": self.snapshot()})

    @classmethod
    def load(cls, data: bytes) -> RunningTotal:
        """A counter as it was saved.

        Parameters
        ----------
        data
            The bytes that `save` gave.
        """
        document = unpack(data)
        if (document.get("format"), document.get("version")) != (FORMAT, VERSION):
            raise StateError("these bytes hold no running total, or one of another version")
        made = document["made"]
        counter = cls(**made | {"epsilon": Fraction(made["epsilon"], NANO), "noise": named(made["noise"])})
        counter.restore(document["state"])
        return counter
