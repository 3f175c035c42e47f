"""The two plain ways to publish histograms of sliding windows: noise on every unit, or on every window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Unpack

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints, spread
from eventide.mechanisms.base import CommonParameters, Mechanism
from eventide.mechanisms.sliding_noise import SlidingNoise
from eventide.mechanisms.sliding_sum import SlidingSum
from eventide.privacy.amounts import Amount, share
from eventide.privacy.ledger import positive_integer
from eventide.privacy.measured import Measured
from eventide.privacy.sealed import SealedStep


class WindowMechanism(Mechanism):
    """What mechanisms for histograms of sliding windows share: a `span`, and event-level privacy by default."""

    takes_window_sensitivity = True

    def __init__(
        self,
        epsilon: Amount,
        window: int = 1,
        bins: int | Sequence[str] = (),  # the frame refuses to go on without any
        *,
        span: int = 15,
        **common: Unpack[CommonParameters],
    ) -> None:
        self.span = positive_integer(span, "span")
        super().__init__(epsilon, window, bins, **common)

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Every step."""
        return np.ones((self.replicas, 1), dtype=np.bool_)

    def covered(self) -> tuple[str, ...]:
        """The histograms as well."""
        sentence = f"this covers the counts of single steps and the histograms of the last {self.span} steps together"
        hidden = "each single step" if self.window == 1 else f"any {self.window} consecutive steps"
        more = f"a histogram is longer: whoever has events all over it is hidden in {hidden} of it, not in all of them"
        return (*super().covered(), sentence, *([more] if self.span > self.window else []))


class TimeUnitBaseline(WindowMechanism):
    """Noise on the counts of every unit of time; a window's histogram is the sum of its noisy units.

    Idea: one event lies in one unit, so each unit may have all of epsilon, and the noise of a window grows with the
    square root of its span only.

    Guarantee: event-level privacy with epsilon; with `window` = w, w-event privacy, for people who move between bins.

    Epsilon: all of it to the counts of each unit, epsilon / w where w is above 1.

    Cost: O(d) a step, O(w + d span) memory.

    Use: as the yardstick for RetroactiveGrouping, and where counts change a lot from unit to unit.

    Departures: none; amounts are whole nano-epsilon, rounded down, and noise is integer. The sum of a window is that of
    the measurements, also where a filter changes the units; a filter that truncates does so with the sum.

    Reference: the baseline of Chen, Shen, Jin: Private analysis of infinite data streams via retroactive grouping. ACM
    CIKM 2015.

    Parameters
    ----------
    span
        How many units a window of the histogram has.
    epsilon, window, bins, **common
        As in `Mechanism`.

    >>> import eventide as ev
    >>> from eventide.mechanisms.window_baselines import TimeUnitBaseline
    >>> baseline = TimeUnitBaseline(epsilon=1.0, bins=1, span=2, noise=ev.noise.Unit())
    >>> for count in (10, 20, 30):
    ...     release = baseline.release([count])
    >>> release.values, release.window_values
    (array([31.]), array([52.]))
    """

    state: ClassVar[tuple[str, ...]] = ("_sums", "_noise_of_sums")

    def begin(self) -> None:
        """No unit has been seen."""
        self._sums = SlidingSum(self.span, self.meter.shape)
        self._noise_of_sums = SlidingNoise(self.span, self.meter.shape)

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take over a state; one of before windows had a scale does not know the noise of its units."""
        super().restore({"_noise_of_sums": self._noise_of_sums.unknown()} | snapshot)

    def budget_allocation(self) -> Ints:
        """An equal share for each step of a window."""
        return share(self.shared_nano_epsilon, 1, self.shared_steps).reshape(1, 1)

    def perturbation(self, step: SealedStep, amount: Ints) -> Measured:
        """Every bin."""
        measured = super().perturbation(step, amount)
        self._sums.push(measured.values)
        self._noise_of_sums.push(measured.scale, begins=True)
        return measured

    def window_histogram(self) -> Floats:
        """The sum of the last `span` measurements."""
        return self._sums.total

    def window_noise(self) -> Floats:
        """That of the measurements together."""
        return self._noise_of_sums.scale()

    def window_noise_range(self) -> tuple[float, float]:
        """That of as many steps as a histogram has."""
        smallest, largest = (math.sqrt(self.span) * scale for scale in self.noise_range())
        return smallest, largest

    def noise_range(self) -> tuple[float, float]:
        """Every look has the same scale."""
        look = self.shared_steps * self.sensitivity / self.shared_epsilon
        return look, look


class WindowBaseline(WindowMechanism):
    """Noise on the histogram of every window itself.

    Idea: at every step the true histogram of the last `span` units is published with fresh noise.

    Guarantee: event-level privacy with epsilon; with `window` = w, w-event privacy, for people who move between bins.

    Epsilon: one event lies in `span` windows, so each gets epsilon / span, a w-th of that where w is above 1.

    Cost: O(d span) a step, O(w + d span) memory: a true sum is held for each of the windows a unit lies in.

    Use: to see why not; TimeUnitBaseline has the span-th part of its squared error for the same epsilon.

    Departures: none; amounts are whole nano-epsilon, rounded down, and noise is integer. The released values, which are
    about single units, are the window's histogram divided by its units; a filter that truncates does so with both.

    Reference: a first solution in Chen, Shen, Jin: Private analysis of infinite data streams via retroactive grouping.
    ACM CIKM 2015.

    Parameters
    ----------
    span
        How many units a window of the histogram has.
    epsilon, window, bins, **common
        As in `Mechanism`.

    >>> import eventide as ev
    >>> from eventide.mechanisms.window_baselines import WindowBaseline
    >>> baseline = WindowBaseline(epsilon=1.0, bins=1, span=2, noise=ev.noise.Unit())
    >>> for count in (10, 20, 30):
    ...     release = baseline.release([count])
    >>> release.values, release.window_values
    (array([26.]), array([52.]))
    """

    state = ("_open",)

    def begin(self) -> None:
        """Every window that the first unit will lie in is open; that in place i ends at the steps that leave rest i."""
        amount = self.budget_allocation()
        self._open = {str(place): self.meter.sum_over_steps(amount) for place in range(self.span)}
        self._histogram = Measured(np.zeros(self.meter.shape), np.full((1, 1), np.inf), np.zeros((1, 1), np.bool_))

    def budget_allocation(self) -> Ints:
        """An equal share for each window that a unit lies in."""
        return share(self.shared_nano_epsilon, 1, self.shared_steps * self.span).reshape(1, 1)

    def perturbation(self, step: SealedStep, amount: Ints) -> Measured:
        """The window that ends now; its place is taken by the one that begins with the next step."""
        for sums in self._open.values():
            self.meter.add(step, sums)
        window = self.meter.read(self._open[str(step.index % self.span)])
        self._histogram = window
        units = min(step.index + 1, self.span)
        return Measured(window.values / units, window.scale / units, window.fresh)

    def window_histogram(self) -> Floats:
        """The noisy histogram."""
        return np.array(self._histogram.values, dtype=np.float64)

    def window_noise(self) -> Array:
        """That of the one measurement."""
        return spread(self._histogram.scale, self.meter.shape)

    def window_noise_range(self) -> tuple[float, float]:
        """Every histogram has the same scale."""
        histogram = self.look_scale(int(self.budget_allocation()[0, 0]))
        return histogram, histogram

    def noise_range(self) -> tuple[float, float]:
        """From that of a full window, divided by its units, to that of the first."""
        first = self.look_scale(int(self.budget_allocation()[0, 0]))
        return first / self.span, first

    @property
    def holds_raw(self) -> bool:
        """The true sums of windows that have not ended."""
        return any(sums.holds_raw for sums in self._open.values())
