"""The seasonal voice of the posterior median: what the calendar adds, weighed by how well it foresees looks.

Reads looks and public facts alone. Without periods there is no such voice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.filters.posterior_season_kernels import VOICES, Calendar, SeasonRows, read_season, take_season
from eventide.filters.seasons import frequencies, waves_at
from eventide.filters.side_by_side import in_slices
from eventide.privacy.state import Stateful

DEBT = 2.0  # log odds: the rest foresees better while a rhythm is learned, and more of that is not remembered
PRIOR_LOOKS = 2.0  # bins that the prior of the filters' weights counts for


class SeasonalVoice(Stateful):
    """Rhythms of all bins of all replicas, learned from looks; `say` is how much it has of each release."""

    state = ("_rows", "_belief", "_now")

    def __init__(self, periods: Sequence[float], replicas: int, bins: int, least_scale: float) -> None:
        self.shape, self.least_scale = (replicas, bins), least_scale
        self._cycles, variances = frequencies(periods)
        self._prior: Floats = np.concatenate([[0.0], variances, variances])
        rows, waves = replicas * bins, len(self._prior)
        self._rows = SeasonRows(
            season=np.zeros((rows, waves), np.float32),
            unsure=np.zeros((rows, waves, waves), np.float32),
            **{name: np.zeros((rows, VOICES)) for name in ("mean", "variance", "here", "here_variance")},
            **{name: np.full((rows, VOICES), 1 / VOICES) for name in ("own", "weight")},
            foresight=np.zeros(rows),
            looks=np.zeros(rows, np.int64),
        )._asdict()
        self._belief: Floats = np.zeros((replicas, VOICES))
        self._now = 0
        self.debt = DEBT
        self.say: Floats = np.zeros(rows)

    @property
    def rows(self) -> SeasonRows:
        """What is known of each bin of each replica."""
        return SeasonRows(**self._rows)

    def take(
        self, row: Ints, look: Floats, scale: Floats, waited: Ints, level: Floats, spread: Floats, rest: Floats
    ) -> None:
        """Take looks at some rows in."""
        rows, calendar = self.rows, self._calendar()

        def take(begin: int, end: int) -> None:
            part = slice(begin, end)
            told = (field[part] for field in (row, look, scale, waited, level, spread, rest))
            take_season(rows, calendar, self._belief, *told, self.least_scale, self.debt)

        in_slices(len(row), take)
        if self.shape[1] > 1:
            believed = PRIOR_LOOKS / VOICES + rows.weight.reshape(*self.shape, VOICES).sum(axis=1)
            self._belief = np.log(believed / believed.sum(axis=1, keepdims=True) * VOICES)

    def join(self, since: Ints, target: float, quantiles: Floats, begin: int, end: int) -> None:
        """Have a say in the quantiles `(3, rows)` of some rows at this step."""
        read_season(
            *(self.rows, self._calendar(), since, self._foresight, self.least_scale),
            *(target, quantiles, self.say, begin, end),
        )

    def advance(self) -> None:
        """The step is over."""
        self._now += 1

    @property
    def _foresight(self) -> Floats:
        return np.asarray(self._rows["foresight"].reshape(self.shape).sum(axis=1) / np.sqrt(self.shape[1]))

    def _calendar(self) -> Calendar:
        return Calendar(waves_at(self._now, self._cycles), self._prior)
