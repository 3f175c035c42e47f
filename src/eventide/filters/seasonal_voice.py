"""The seasonal voice of the posterior median: what the calendar adds, weighed by how well it foresees looks.

Reads looks and public facts alone. Without periods there is no such voice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.filters.algorithms import Algorithm
from eventide.filters.posterior_season_kernels import (
    ALONE,
    VOICES,
    Calendar,
    Doubts,
    Odds,
    SeasonRows,
    Together,
    read_season,
    take_season,
)
from eventide.filters.seasons import frequencies, waves_at
from eventide.filters.shared_odds import shared_odds
from eventide.filters.side_by_side import in_slices
from eventide.privacy.state import Stateful

PRIOR_BINS = 2.0  # that the prior counts for, of the filters' weights


class SeasonalVoice(Stateful):
    """Rhythms of all bins of all replicas, learned from looks; `say` is how much it has of each release."""

    state = ("_rows", "_belief", "_now", "say")

    def __init__(
        self, periods: Sequence[float], replicas: int, bins: int, least_scale: float, algorithm: Algorithm
    ) -> None:
        self.shape, self.least_scale, self.algorithm = (replicas, bins), least_scale, algorithm
        self._cycles, variances = frequencies(periods)
        self._prior: Floats = np.concatenate([[0.0], variances, variances])
        rows, waves = replicas * bins, len(self._prior)
        self._voices = VOICES if algorithm.follows_sum and bins > 1 else ALONE
        self._rows = SeasonRows(
            season=np.zeros((rows, waves), np.float32),
            unsure=np.zeros((rows, waves, waves), np.float32),
            **{name: np.zeros((rows, self._voices)) for name in ("mean", "variance", "here", "here_variance")},
            **{name: np.full((rows, self._voices), 1 / self._voices) for name in ("own", "weight")},
            foresight=np.zeros(rows),
            looks=np.zeros(rows, np.int64),
        )._asdict()
        self._belief: Floats = np.zeros((replicas, self._voices))
        self._now = 0
        self._doubts = Doubts(algorithm.clear, algorithm.doubted, algorithm.too_wide)
        self._known_odds: Odds | None = None
        self.say: Floats = np.zeros(rows)

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take over a state; older versions did not keep the say, and had no use for it."""
        super().restore({"say": self.say} | snapshot)
        self._known_odds = None

    @property
    def rows(self) -> SeasonRows:
        """What is known of each bin of each replica."""
        return SeasonRows(**self._rows)

    def take(
        self,
        row: Ints,
        look: Floats,
        scale: Floats,
        waited: Ints,
        level: Floats,
        spread: Floats,
        rest: Floats,
        together: Together,
    ) -> Floats:
        """Take looks at some rows in; gives how well they were foreseen with this voice and the rest."""
        rows, calendar, odds, algorithm = self.rows, self._calendar(), self._odds, self.algorithm
        both = rest.copy()

        def take(begin: int, end: int) -> None:
            part = slice(begin, end)
            told = (field[part] for field in (row, look, scale, waited, level, spread, rest))
            take_season(
                *(rows, calendar, together, self._belief, odds, *told, self.say, both[part], self.least_scale),
                *(algorithm.debt, algorithm.first_blur, algorithm.scatter, algorithm.change),
            )

        in_slices(len(row), take)
        self._known_odds = None
        if self.shape[1] > 1:
            believed = PRIOR_BINS / self._voices + rows.weight.reshape(*self.shape, self._voices).sum(axis=1)
            self._belief = np.log(believed / believed.sum(axis=1, keepdims=True) * self._voices)
        return both

    def join(self, since: Ints, together: Together, target: float, quantiles: Floats, begin: int, end: int) -> None:
        """Have a say in the quantiles `(3, rows)` of some rows at this step."""
        read_season(
            *(self.rows, self._calendar(), together, since, self._odds, self.least_scale, self._doubts),
            *(target, quantiles, self.say, begin, end),
        )

    def advance(self) -> None:
        """The step is over."""
        self._now += 1

    @property
    def _odds(self) -> Odds:
        """What all bins say of each: how many have a rhythm, or, in older algorithms, how sure they are together."""
        if self._known_odds is None:
            replicas, bins = self.shape
            foresight = self._rows["foresight"].reshape(self.shape)
            if self.algorithm.shares_odds and bins > 1:
                self._known_odds = Odds(np.full(replicas, np.inf), shared_odds(foresight))
            else:
                self._known_odds = Odds(foresight.sum(axis=1) / np.sqrt(bins), np.zeros(replicas))
        return self._known_odds

    def _calendar(self) -> Calendar:
        return Calendar(waves_at(self._now, self._cycles), self._prior)
