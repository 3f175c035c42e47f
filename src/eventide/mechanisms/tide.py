"""Tide: look rarely and sharply, and release the posterior median at every step.

When it looks depends on earlier looks, which are private, and on public facts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.filters.algorithms import ALGORITHMS, checked_algorithm
from eventide.filters.base import Filter
from eventide.filters.posterior_median import PosteriorMedian
from eventide.filters.seasons import checked_periods
from eventide.mechanisms.base import CommonParameters, Mechanism
from eventide.mechanisms.tide_waits import Waits, moves_within
from eventide.privacy.amounts import Amount, share
from eventide.privacy.measured import Measured
from eventide.privacy.sealed import SealedStep

SEVERAL_SHARE = 2  # the first look at bins that will hardly move within a window gets one part in so many of epsilon
WATCH_SHARE = 10  # one part in so many of a step's budget goes to watching while it waits
MOST_WATCHED = 64  # bins; in wider streams one bin's burst is small next to the noise of all


class Tide(Mechanism):
    """The looks say how fast a stream moves: look that often, and release the likeliest middle at every step.

    Idea: filtering and deciding are free once a look is private, so all of epsilon goes to looks. What every count is
    likely to be, given all looks, their known noise and where the stream has been before, is computed at each step,
    and its median is released. From the same knowledge follows how large the error would be with a look every 1, 2, 4,
    ... w steps, and the best of these is the wait until the next look: a slow stream is looked at rarely and sharply.

    Guarantee: w-event privacy with epsilon, for people who move between bins.

    Epsilon: all of it to counts. The first look at a single bin gets epsilon / 16, and the second epsilon / 4 unless
    the level is far above the noise of a look at every step. The first look at several bins gets epsilon / 2. With
    seasons and a window of half of the shortest or more it gets epsilon / 4, and the second epsilon / 5 where the first
    showed nothing. If epsilon / w is more, the first look gets that. A look before a wait of x steps gets
    x epsilon / w, less in the first window, or whatever the ledger has left. In streams of up to 64 bins a tenth of
    what a wait saves is spent on the way, on looks that only notice a burst, and a fortieth where counts are clearly
    above the noise.

    Cost: four microseconds for each look at a bin and one for each other step; 2 to 7 kB a bin, O(w) besides.
    With seasons two to four times as much.

    Use: where nothing is known of how the stream moves; also on sparse streams, and where an interval is wanted.

    Departures: it is ours. Streams that stand perfectly still are better served by Sample in the first window, and
    on the sparsest streams nothing is much better than releasing zeros; docs/tide.md has the figures.

    Reference: eventide, docs/tide.md. The challenge it answers, that no mechanism beats both Uniform and Sample:
    Schaeler, Huetter, Schaeler: Benchmarking the utility of w-event differential privacy mechanisms. 2022.

    `low` and `high` of a release are a posterior interval of 90 %, calibrated on looks: 75 to 100 % of the true counts
    lay inside, by stream and setting (docs/tide.md). Another `filter` takes the releases over;
    the waits are chosen as before.

    Parameters
    ----------
    epsilon, window, bins, **common
        As in `Mechanism`.
    seasons
        Periods in steps, such as `(24, 168)` for the day and the week of hours: each bin's rhythm is learned from
        its measurements, and used where it predicts them better. None or "none" for no calendar.
    algorithm
        6, or 1 to 5 as it was before. A store goes on with the one that it was begun with.

    >>> import eventide as ev
    >>> tide = ev.Tide(epsilon=1.0, window=20, bins=2, seed=1)
    >>> run = ev.run(tide, [[0, 300]] * 100)
    >>> bool((abs(run.values[20:].mean(axis=0) - [0, 300]) < 5).all())
    True
    """

    takes_window_sensitivity = True
    decides_by_floats = True
    takes_levels = True
    state = ("_interval", "_next", "_aside")

    def __init__(
        self,
        epsilon: Amount,
        window: int,
        bins: int | Sequence[str],
        *,
        seasons: Sequence[float] | str | None = None,
        algorithm: int | None = None,
        **common: Unpack[CommonParameters],
    ) -> None:
        self.seasons = checked_periods(seasons) or None
        self.algorithm = checked_algorithm(algorithm)
        super().__init__(epsilon, window, bins, **common)

    @property
    def kept_by_stores(self) -> tuple[str, ...]:
        """The algorithm."""
        return ("algorithm",)

    def own_filter(self) -> Filter:
        """The posterior median."""
        return PosteriorMedian(seasons=self.seasons)

    def begin(self) -> None:
        """The first look is due at once."""
        self._watches = self.size <= MOST_WATCHED
        algorithm, several = ALGORITHMS[self.algorithm], self.size > 1
        looks_again = bool(self.seasons) or algorithm.again_below is not None
        self._first, self._second = algorithm.alone_share, algorithm.alone_second if looks_again else None
        if several:
            will_move = moves_within(self.shared_steps, self.seasons or (), algorithm)
            self._first = algorithm.first_share if will_move else SEVERAL_SHARE
            self._second = algorithm.second_share if will_move else None
        self._watch_clear = algorithm.watch_clear
        sharpest = self.sensitivity / self.shared_epsilon
        periods = self.seasons or ()
        self._interval = Waits(self.replicas, self.shared_steps, sharpest, self._watches, periods)
        self._interval.follow(algorithm, several=several)
        self._next: Ints = np.zeros((self.replicas, 1), dtype=np.int64)
        inner = getattr(self._filter, "inner", self._filter)
        self._aside: PosteriorMedian | None = None
        if isinstance(inner, PosteriorMedian):
            self._posterior = inner
        else:  # another filter speaks; waits still follow from the posterior
            aside = PosteriorMedian(seasons=self.seasons)
            self._aside = self._posterior = aside.started(*self.meter.shape, **self.known())
        self._posterior.follow(algorithm)

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Where the wait is over, and in narrow streams also on the way."""
        return (self._next <= step.index) | self._watches

    def budget_allocation(self) -> Ints:
        """The budget of the steps until the next look but for watching, as far as the ledger has it; 0 is no look."""
        a_step = whole = share(self.shared_nano_epsilon, 1, self.shared_steps)
        first, second = np.maximum(share(self.shared_nano_epsilon, 1, self._first), whole), np.zeros((1, 1), np.int64)
        looks = self._interval.looks
        if self.step < self.shared_steps:
            a_step = whole - share(whole, 1, self._first)
            if self._second:
                unseen = self._interval.began_unseen
                a_step = a_step - unseen * share(whole, 1, self._second)
                second = unseen * share(self.shared_nano_epsilon, 1, self._second) * (looks == 1)
        watching = np.where(self._interval.clear, a_step // self._watch_clear, a_step // WATCH_SHARE) * self._watches
        wait = self._interval.wait()
        planned = np.where(self._next <= self.step, wait * a_step - (wait - 1) * watching, watching)
        wanted = np.where(looks == 0, first, np.maximum(planned, second))
        return np.asarray(np.minimum(wanted, self.ledger.left_nano()))

    def noise_range(self) -> tuple[float, float]:
        """From all of epsilon to watching in the first window; a look that the ledger cuts is blurrier still."""
        sharpest, blurriest = super().noise_range()
        if self.shared_steps > 1:
            spent_first = 1 / self._first + (1 / self._second if self._second else 0)
            blurriest *= (self._watch_clear if self._watches else 1) / (1 - spent_first)
        return sharpest, blurriest

    def filtering(self, measured: Measured | None) -> Array:
        """What the filter says. The next look is after as many steps as were paid for, or less if this one says so."""
        due = self._next <= self.step
        if self._aside is None:
            values = estimate = super().filtering(measured)
        else:
            values, estimate = super().filtering(_only(due, measured)), self._aside.step(measured)
        if measured is not None:
            paid, looks = self._interval.wait(), measured.fresh
            self._interval.choose(self.step, looks, due, estimate, self._posterior)
            again = self.step + np.minimum(paid, self._interval.wait())
            self._next = np.where(looks, np.where(due, again, np.minimum(again, self._next)), self._next)
        return values


def _only(due: Bools, measured: Measured | None) -> Measured | None:
    """Without the looks that only watch: blurred as they are, a filter that does not know it would repeat them."""
    if measured is None or not (measured.fresh & due).any():
        return None
    return Measured(np.where(due, measured.values, 0), np.where(due, measured.scale, np.inf), measured.fresh & due)
