"""The voice of small counts in the posterior median: each bin has a rate of its own, and the rhythm of all of them.

Where counts are few, no bin shows its rhythm through the noise, and their sum does. Reads looks and public facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints
from eventide.filters.algorithms import Algorithm
from eventide.filters.posterior_rate_kernels import (
    BEFOREHAND,
    COUNTS,
    LARGE,
    RateRows,
    add_up,
    chances_of_counts,
    read_rates,
    see_through_noise,
    share_rates,
    take_rates,
)
from eventide.filters.posterior_season_kernels import learn_season, season_now
from eventide.filters.seasons import frequencies, waves_at
from eventide.filters.shared_odds import shared_odds
from eventide.filters.side_by_side import in_slices
from eventide.privacy.state import Stateful

LARGEST_FACTOR = 8.0  # times its rate, that a bin is expected to have at the most
TOO_LARGE = 6 * LARGE  # a count of which small counts say nothing


class RateVoice(Stateful):
    """Rates of all bins of all replicas, and the rhythm of their sums, learned from looks."""

    state = ("_rows", "_usual", "_season", "_unsure", "_waited", "_now")

    def __init__(self, periods: Sequence[float], replicas: int, bins: int, algorithm: Algorithm) -> None:
        self.shape, self.algorithm = (replicas, bins), algorithm
        self._cycles, variances = frequencies(periods)
        self._prior: Floats = np.concatenate([[0.0], variances, variances])
        rows = replicas * bins
        self._rows = RateRows(
            told=np.full((rows, *BEFOREHAND.shape), 1 / BEFOREHAND.size, np.float32),
            known=np.tile(BEFOREHAND.astype(np.float32), (rows, 1, 1)),
            foresight=np.zeros(rows),
            looks=np.zeros(rows, np.int64),
        )._asdict()
        self._usual: Floats = np.tile(BEFOREHAND, (replicas, 1, 1))
        self._season: Floats = np.zeros((replicas, len(self._prior)))
        self._unsure: Floats = np.tile(np.diag(self._prior), (replicas, 1, 1))
        self._waited: Ints = np.ones(replicas, np.int64)
        self._now = 0

    @property
    def rows(self) -> RateRows:
        """What is known of each bin of each replica."""
        return RateRows(**self._rows)

    def take(self, look: Array, scale: Array, fresh: Bools, rest: Floats) -> None:
        """Take in looks `(R, bins)`; `rest` is how well the others foresaw each, as log chances of the same shape.

        Replicas of which some bins were not looked at, or less sharply, are left out: a sum needs all of them.
        """
        even, waves = fresh.all(axis=1) & (scale.max(axis=1) == scale.min(axis=1)), self._waves()
        for replica in np.flatnonzero(even).tolist():
            self._take(replica, look[replica].astype(np.float64), float(scale[replica, 0]), rest[replica], waves)
            self._waited[replica] = 0

    def _take(self, replica: int, look: Floats, scale: float, rest: Floats, waves: Floats) -> None:
        bins = self.shape[1]
        first, season, unsure = replica * bins, self._season[replica], self._unsure[replica]
        whole, noise, waited = float(look.sum()), scale * math.sqrt(bins), int(self._waited[replica])
        if self._rows["looks"][first] == 0:
            season[0], unsure[0, 0] = max(whole, 0.0), 2 * (self.algorithm.first_blur * noise) ** 2
        else:
            rules = self.algorithm.scatter, self.algorithm.change
            learn_season(whole, noise, waited, *rules, waves, season, unsure, self._prior)
        chance, seen = np.empty((2, COUNTS, *BEFOREHAND.shape))
        chances_of_counts(self._factor(replica, waves), chance)
        see_through_noise(chance, scale, seen)
        least = -self.algorithm.debt - max(self._odds(replica), 0.0)
        rows = self.rows

        def take(begin: int, end: int) -> None:
            take_rates(rows, first + begin, look[begin:end], scale, waited, rest[begin:end], seen, least)

        in_slices(bins, take)
        share_rates(rows, first, first + bins, self._usual[replica])

    def join(self, tail: float, quantiles: Floats, begin: int, end: int) -> None:
        """Have a say in the quantiles `(3, rows)` of some rows at this step."""
        bins, waves = self.shape[1], self._waves()
        for replica in range(begin // bins, -(-end // bins)):
            first, last = max(begin, replica * bins), min(end, (replica + 1) * bins)
            if self._rows["looks"][first] > 1 and quantiles[1, first:last].min() < TOO_LARGE:
                most = np.empty((COUNTS, *BEFOREHAND.shape))
                chances_of_counts(self._factor(replica, waves), most)
                add_up(most)
                read_rates(self.rows, most, self._odds(replica), tail, quantiles, first, last)

    def advance(self) -> None:
        """The step is over."""
        self._now += 1
        self._waited += 1

    def _odds(self, replica: int) -> float:
        """What all bins say of each, as log odds that small counts are right."""
        bins = self.shape[1]
        foresight = self._rows["foresight"][replica * bins : (replica + 1) * bins]
        return float(shared_odds(foresight[None])[0]) if bins > 1 else 0.0

    def _factor(self, replica: int, waves: Floats) -> float:
        factor, _ = season_now(waves, self._season[replica], self._unsure[replica])
        return float(min(factor, LARGEST_FACTOR))

    def _waves(self) -> Floats:
        return waves_at(self._now, self._cycles)
