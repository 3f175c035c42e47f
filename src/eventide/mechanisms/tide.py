"""Tide: look rarely and sharply, and release the posterior median at every step. Imports the frame and `privacy`."""

from __future__ import annotations

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.filters.base import Filter
from eventide.filters.posterior_median import PosteriorMedian
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.tide_interval import Interval
from eventide.privacy.amounts import share
from eventide.privacy.measured import Measured
from eventide.privacy.sealed import SealedStep

FIRST_SHARE = 5  # the first look gets one part in so many of epsilon, the rest of the first window the others


class Tide(Mechanism):
    """The looks say how fast a stream moves: look that often, and release the likeliest middle at every step.

    Idea: filtering and deciding are free once a look is private, so all of epsilon goes to looks. What every count is
    likely to be, given all looks, their known noise and where the stream has been before, is computed at each step,
    and its median is released. From the same knowledge follows how large the error would be with a look every 1, 2, 4,
    ... w steps, and the best of these is the wait until the next look: a slow stream is looked at rarely and sharply.

    Guarantee: w-event privacy with epsilon, for people who move between bins.

    Epsilon: all of it to counts. The first look gets a fifth, or epsilon / w if that is more; a look before a wait of x
    steps gets x epsilon / w, four fifths of that in the first window, or whatever the ledger has left.

    Cost: some microseconds for each look at a bin and about one for each other step; 6 kB a bin, O(w) besides.

    Use: where nothing is known of how the stream moves; also on sparse streams, and where an interval is wanted.

    Departures: it is ours. Streams that stand perfectly still are better served by Sample in the first window, and
    on the sparsest streams nothing is much better than releasing zeros; docs/tide.md has the figures.

    Reference: eventide, docs/tide.md. The challenge it answers, that no mechanism beats both Uniform and Sample:
    Schaeler, Huetter, Schaeler: Benchmarking the utility of w-event differential privacy mechanisms. 2022.

    `low` and `high` of a release are a posterior interval of 90 %, as true as the models behind it: 66 to 100 % of the
    true counts lay inside, by stream and setting (docs/tide.md). Another `filter` takes the releases over;
    the waits are chosen as before.

    >>> import eventide as ev
    >>> tide = ev.Tide(epsilon=1.0, window=20, bins=2, seed=1)
    >>> run = ev.run(tide, [[0, 300]] * 100)
    >>> bool((abs(run.values[20:].mean(axis=0) - [0, 300]) < 5).all())
    True
    """

    state = ("_interval", "_next", "_aside")

    def own_filter(self) -> Filter:
        """The posterior median."""
        return PosteriorMedian()

    def begin(self) -> None:
        """The first look is due at once."""
        self._interval = Interval(self.replicas, self.window, self.sensitivity / self.epsilon)
        self._next: Ints = np.zeros((self.replicas, 1), dtype=np.int64)
        inner = getattr(self._filter, "inner", self._filter)
        self._heard = inner if isinstance(inner, PosteriorMedian) else None
        self._aside: PosteriorMedian | None = None
        if self._heard is None:  # another filter speaks; waits still follow from the posterior
            self._aside = PosteriorMedian().started(
                self.replicas, self.size, sensitivity=self.sensitivity, epsilon=self.epsilon, window=self.window
            )

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Where the wait is over."""
        return self._next <= step.index

    def budget_allocation(self) -> Ints:
        """The budget of the steps until the next look, as far as the ledger has it; 0 is no look."""
        if self.step == 0:
            return np.maximum(share(self.total, 1, FIRST_SHARE), share(self.total, 1, self.window)).reshape(1, 1)
        planned = share(self.total, 1, self.window) * self._interval.length
        if self.step < self.window:
            planned = planned - share(planned, 1, FIRST_SHARE)
        return np.asarray(np.minimum(planned, self.ledger.left_nano()))

    def noise_range(self) -> tuple[float, float]:
        """From all of epsilon to a step's part in the first window; a look that the ledger cuts is blurrier still."""
        sharpest, blurriest = super().noise_range()
        return sharpest, blurriest * FIRST_SHARE / (FIRST_SHARE - 1) if self.window > 1 else blurriest

    def filtering(self, measured: Measured | None) -> Array:
        """What the filter says. After a look the wait is what was paid for, or less if the look says so."""
        values = super().filtering(measured)
        posterior = self._aside or self._heard
        assert posterior is not None, "one of the two was set at the beginning"
        estimate = values if self._aside is None else self._aside.step(measured)
        if measured is not None:
            paid, looks = self._interval.length, measured.fresh
            self._interval.choose(self.step, looks, estimate, posterior)
            self._next = np.where(looks, self.step + np.minimum(paid, self._interval.length), self._next)
        return values
