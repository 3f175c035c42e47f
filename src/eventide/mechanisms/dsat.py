"""DSAT, distance-based sampling with an adaptive threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.errors import InputError
from eventide.mechanisms.base import CommonParameters
from eventide.mechanisms.sparse_vector_rounds import SparseVectorMechanism
from eventide.privacy.amounts import Amount, number
from eventide.privacy.ledger import positive_integer
from eventide.privacy.sealed import SealedStep

NEVER = 2**62  # a step that does not come
LOWEST, HIGHEST = 0.01, 1e18  # of the threshold: lower is no different from none, and would take long to rise again


class DSAT(SparseVectorMechanism):
    """Looks when the stream has moved by a threshold, which is steered so that a window sees a set number of looks.

    Idea: a sparse-vector run compares the distance to the last release with a threshold, step after step, for one
    price; the first step above it gets a look. A controller raises the threshold with every look and lowers it while
    there is none, so that looks come at the rate that epsilon can pay for, whatever the size of the counts.

    Guarantee: w-event privacy with epsilon, for people who move between bins.

    Epsilon: with C looks in a window, epsilon1 / C to each run and epsilon2 / C to the look that ends it, where
    epsilon1 = test_share * epsilon and epsilon2 is the rest; both together to the first look, which needs no run.

    Cost: O(d) a step, O(w + d) memory.

    Use: where all bins change together, by much more than the noise of a look, at times nobody knows beforehand.

    Departures: the paper draws the noise of the threshold once, which is not private on an endless stream; here every
    run draws its own and is charged as a span. A run opens only when the window can pay for its look as well, so any
    window meets at most C runs. The units of the paper are unclear: its thresholds from 0 to 2 fit histograms scaled to
    one, which are constant for a single bin, and its split of epsilon needs the number of rows and mostly ends at its
    cap, where looks get C / w of epsilon. Ours tests the integer L1 distance of counts, needs no number of rows, and
    gives tests a tenth of epsilon: from 2 % to 20 % little changes on the benchmark's streams and on real ones. After
    the first window the paper's controller compares the looks of a window with the most there can be, so it only ever
    lowers the threshold; the public Java code divides whole numbers there and has it at 0 at once. Ours moves the
    logarithm of the threshold. No steps are skipped at the start, and there is no last step to spend a rest on.

    Reference: Li, Xiong, Jiang, Liu: Differentially private histogram publication for dynamic datasets: an adaptive
    sampling approach. CIKM 2015.

    Parameters
    ----------
    looks
        The most looks in a window (C); 15 % of it by default.
    test_share
        The part of epsilon for tests (k).
    threshold
        Where the controller starts, in multiples of the error that the noise of a look brings over all bins (T).
    gain
        A look multiplies the threshold by exp(gain), and w / C steps without one divide it by as much (theta).
    as_published
        Keep the single threshold noise of the paper, which is refuted: on a long stream it hides nothing.
    epsilon, window, bins, **common
        As in `Mechanism`.

    >>> import eventide as ev
    >>> from eventide.mechanisms.dsat import DSAT
    >>> dsat = DSAT(epsilon=1.0, window=4, bins=1, looks=2, noise=ev.noise.Zero())
    >>> [float(dsat.release([count]).values[0]) for count in (5, 6, 40, 41, 90)]
    [5.0, 5.0, 40.0, 40.0, 90.0]
    """

    state = ("_tolerance",)
    published_query_factor = 2

    def __init__(
        self,
        epsilon: Amount,
        window: int,
        bins: int | Sequence[str],
        *,
        looks: int | None = None,
        test_share: float = 0.1,
        threshold: float = 1.0,
        gain: float = 1.0,
        as_published: bool = False,
        **common: Unpack[CommonParameters],
    ) -> None:
        self.looks = None if looks is None else positive_integer(looks, "looks")
        if not (LOWEST <= number(threshold) <= HIGHEST and 0 <= number(gain) <= 10):
            raise InputError(f"threshold must be at least {LOWEST} and gain between 0 and 10")
        self.threshold = threshold
        self.gain = gain
        super().__init__(epsilon, window, bins, test_share=test_share, as_published=as_published, **common)

    def begin(self) -> None:
        """No round is open; the threshold stands where it starts."""
        super().begin()
        self._rounds = min(self.looks or -(-15 * self.shared_steps // 100), self.shared_steps)
        self._tolerance: Array = np.full((self.replicas, 1), float(self.threshold))

    def rounds_per_window(self) -> Ints:
        """Always the same."""
        return np.full((1, 1), self._rounds)

    def due(self, index: int, rounds: Ints) -> Ints:
        """The first step looks; after it only the test decides."""
        return np.full((1, 1), NEVER if index else 0)

    def tolerance(self) -> Array:
        """The threshold of the controller."""
        return self._tolerance

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Has the stream moved by the threshold? The answer moves the threshold."""
        looks = super().is_sampling_point(step)
        if step.index:
            self._steer(looks)
        return looks

    def noise_range(self) -> tuple[float, float]:
        """From the first look, which needs no run, to all others."""
        return self._noise_between(self._rounds, self._rounds)

    def _steer(self, looks: Bools) -> None:
        """Raise the threshold after a look and lower it after none; where no run was open nothing was learned."""
        asked = looks | (self._look > 0)
        rate = self._rounds / self.shared_steps
        moved = self._tolerance * np.where(looks, math.exp(self.gain * (1 - rate)), math.exp(-self.gain * rate))
        self._tolerance = np.where(asked, np.clip(moved, LOWEST, HIGHEST), self._tolerance)
