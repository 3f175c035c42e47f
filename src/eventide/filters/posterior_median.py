"""The posterior median: the guess with the least absolute error, of every count at every step, from all looks so far.

Promises finite values that are not negative, an interval around them, constant memory, and for a replica the same as
for a run alone. It reads looks, their noise scales and public facts, so it is free, and works behind any mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, Unpack

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints, spread
from eventide.errors import InputError
from eventide.filters.algorithms import ALGORITHMS, Algorithm
from eventide.filters.base import Filter, PublicFacts
from eventide.filters.calibration import Calibration
from eventide.filters.posterior_grid import EXTRA_ZEROS, LOG_PRIOR, MODELS, RATES, REACH, grid_up_to
from eventide.filters.posterior_kernels import (
    Looks,
    PosteriorRows,
    Room,
    SharedKnowledge,
    mean_lesson,
    read_rows,
    take_looks,
)
from eventide.filters.posterior_look_kernels import drift_over, mix_again
from eventide.filters.posterior_scalar_kernels import PACES, PRIOR
from eventide.filters.posterior_season_kernels import Together
from eventide.filters.posterior_usual_kernels import first_usual_values
from eventide.filters.rate_voice import RateVoice
from eventide.filters.seasonal_voice import SeasonalVoice
from eventide.filters.seasons import checked_periods
from eventide.filters.side_by_side import in_slices
from eventide.filters.sum_of_bins import SumOfBins
from eventide.privacy.amounts import number
from eventide.privacy.measured import Measured

PRIOR_LOOKS = 2.0  # what the prior counts for among bins: that some bin is far up is as likely for many as for one
SHARED_LOOKS = 30.0  # what the usual values of all bins together count for
FIRST_ROOM, ROOM = 24, 8  # cells: what all bins have room for, and by how many that grows
FAR_ROWS = 32  # one row in so many at the most has room of its own, before all get more
COMPARED = 64  # bins of which looks are compared with what was foreseen
ENOUGH_LOOKS = 20  # after so many, intervals that hold too much may become narrower than the models say
MODEL_PRIOR = np.exp(LOG_PRIOR) / np.exp(LOG_PRIOR).sum()
NO_LOOK: Floats = np.full((1, 1), np.inf)  # the noise scale where there is none
NOTHING_TOGETHER = Together(*np.ones((6, 1)))
EXACT_DRIFTS = 8  # steps up to which each has a drift table of its own; beyond, four for each doubling do


class PosteriorMedian(Filter):
    """Releases the median of what each count can be, given every look at its bin and a little of all other bins.

    Each bin may drift or jump, at one of several paces that its looks decide between; where it jumps to is learned from
    where it has been. Noise is taken for what it is, discrete Laplace of a known scale. Levels at which a look is
    sharper than the grid of counts are left to a bank of Gaussian filters. `docs/tide.md` explains each part.

    Cost: four microseconds for each look at a bin, one for each other step, shared by all cores; 2 to 7 kB a bin. With
    seasons up to twice as much.

    Parameters
    ----------
    coverage
        Of the interval from `low` to `high`, as far as the models are right.
    seasons
        Periods in steps, such as `(24, 168)` for the day and the week of hours; None or "none" for no calendar.

    >>> import eventide as ev
    >>> uniform = ev.Uniform(epsilon=1, window=50, bins=1, seed=1, filter="posterior-median")
    >>> errors = abs(ev.run(uniform, [[3]] * 200).values - 3)
    >>> float(errors.mean()) < 5  # a single look is off by 50
    True
    """

    state = ("_rows", "_shared", "_belief", "_bank_belief", "_begun", "_voice", "_rates", "_sum", "_calibration")

    low: Floats
    high: Floats

    def __init__(self, coverage: float = 0.9, seasons: Sequence[float] | str | None = None) -> None:
        if not 0 < number(coverage) < 1:
            raise InputError(f"coverage is {coverage!r}; it is a part of all cases, above 0 and below 1, such as 0.9")
        self.coverage, self.seasons = coverage, checked_periods(seasons) or None

    def begin(self, replicas: int, size: int, **known: Unpack[PublicFacts]) -> None:
        """Know nothing. The known epsilon, window and sensitivity say how fine and how long the grid must be."""
        self.shape = (replicas, size)
        self._known = known
        self.least_scale: float = known.get("sensitivity", 1) / known.get("epsilon", 1.0)
        self.most_scale: float = self.least_scale * known.get("window", 1)
        self._set_grid(ALGORITHMS[2])
        rows, cells = replicas * size, len(self.grid.first)
        room = min(FIRST_ROOM, cells)
        self._rows = PosteriorRows(
            posterior=np.zeros((rows, room, MODELS), np.float32),
            log_weight=np.zeros((rows, MODELS)),
            weight=np.zeros((rows, MODELS), np.float32),
            lesson=np.zeros((rows, room), np.float32),
            learned=np.zeros(rows),
            usual_mean=np.zeros(rows),
            usual_spread=np.zeros(rows),
            mean=np.zeros((rows, PACES)),
            variance=np.zeros((rows, PACES)),
            bank_own=np.zeros((rows, PACES)),
            bank_weight=np.zeros((rows, PACES)),
            pace=np.zeros((rows, PACES)),
            usual_level=np.zeros(rows),
            cells=np.zeros(rows, np.int64),
            looks=np.zeros(rows, np.int64),
            since=np.zeros(rows, np.int64),
            grid_share=np.ones(rows),
            foreseen=np.zeros(rows),
            untaught=np.zeros(rows),
            far=np.full(rows, -1),
            far_posterior=np.zeros((0, cells, MODELS), np.float32),
            far_lesson=np.zeros((0, cells), np.float32),
            mixed=np.zeros((rows, room, RATES), np.float32),
            far_mixed=np.zeros((0, cells, RATES), np.float32),
        )._asdict()
        self._mixed = {name: self._rows.pop(name) for name in ("mixed", "far_mixed")}  # these follow from the others
        self._calibration = Calibration(replicas, self.coverage)
        self._belief: Floats = np.zeros((replicas, MODELS))
        self._bank_belief: Floats = np.zeros((replicas, PACES))
        self._begun: Bools = np.zeros(replicas, np.bool_)
        self._drift_before: tuple[int, Array, Array] = (0, *self._drift_tables([]))
        self.follow(ALGORITHMS[2])

    def follow(self, algorithm: Algorithm) -> None:
        """Be as an algorithm of Tide says: the second, unless Tide asks for another one before the first step."""
        self._set_grid(algorithm)
        self._known_up_to = algorithm.known_part * float(self.grid.first[-1])
        self._shared: Floats = np.tile(self.grid.prior, (self.shape[0], 1))
        self._common = self._in_common()
        self._calibration.narrowest = algorithm.narrowest if self.seasons else 1.0
        self._voice: SeasonalVoice | None = None
        self._rates: RateVoice | None = None
        self._sum: SumOfBins | None = None
        if self.seasons:
            self._voice = SeasonalVoice(self.seasons, *self.shape, self.least_scale, algorithm)
            if algorithm.counts_rates:
                self._rates = RateVoice(self.seasons, *self.shape, algorithm)
            if algorithm.follows_sum and self.shape[1] > 1:
                self._sum = self._started_sum(algorithm)

    def _started_sum(self, algorithm: Algorithm) -> SumOfBins:
        replicas, bins = self.shape
        known = self._known | {"epsilon": self._known.get("epsilon", 1.0) / math.sqrt(bins)}
        whole = PosteriorMedian(self.coverage, self.seasons).started(replicas, 1, **known)
        whole.follow(algorithm)
        return SumOfBins(whole, bins)

    def _set_grid(self, algorithm: Algorithm) -> None:
        bins = self.shape[1]
        zeros = min(algorithm.zeros, max(EXTRA_ZEROS, 1 - algorithm.filled / bins))
        self.grid = grid_up_to(REACH * self.most_scale, bins, zeros)

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take over a state."""
        rows = self._rows | snapshot["_rows"]  # states of older versions lack what was added since
        later = {"_voice": None, "_rates": None, "_sum": None, "_calibration": self._calibration.snapshot()}
        super().restore(later | snapshot | {"_rows": rows})
        weight, far = self._rows["weight"], self._rows["far"]
        of_far = weight[np.flatnonzero(far >= 0)[np.argsort(far[far >= 0])]]
        self._mixed["mixed"] = _mixed(self._rows["posterior"], weight)
        self._mixed["far_mixed"] = _mixed(self._rows["far_posterior"], of_far)
        self._common = self._in_common()

    @property
    def rows(self) -> PosteriorRows:
        """What is known of each bin of each replica."""
        return PosteriorRows(**self._rows, **self._mixed)

    @property
    def _together(self) -> Together:
        return NOTHING_TOGETHER if self._sum is None else self._sum.together

    @property
    def sum_of_bins(self) -> SumOfBins | None:
        """What all bins do together, if there are several and a calendar, and the algorithm follows it."""
        return self._sum

    @property
    def voice(self) -> SeasonalVoice | None:
        """What the calendar adds, if there is one."""
        return self._voice

    def step(self, measured: Measured | None) -> Array:
        """The medians; 0 for a bin that was never looked at."""
        self._rows["since"] += 1
        if self._sum is not None:
            self._sum.foresee()
        if measured is not None and measured.fresh.any():
            fields = measured.values, measured.scale, measured.fresh
            every = Measured(*(spread(field, self.shape) for field in fields))
            self._calibrate(every)
            if self._sum is not None:
                self._sum.take(every.values, every.scale, every.fresh)
            self._take(every)
        values: Array
        low, values, high = self._read(self.shape[1])
        for part in (self._voice, self._rates, self._sum):
            if part is not None:
                part.advance()
        seen = NO_LOOK if measured is None else measured.scale
        self.low, self.high = self._calibration.stretched(low, values, high, seen)
        return values

    def foreseen(self) -> Array:
        """Low end, median and high end of each bin at the next step, `(3, R, d)`, as far as is known before it."""
        self._rows["since"] += 1
        quantiles = self._read(self.shape[1])
        self._rows["since"] -= 1
        return quantiles

    @property
    def width(self) -> float:
        """From the low to the high end, in deviations."""
        return 2 * NormalDist().inv_cdf((1 + self.coverage) / 2)

    def _read(self, bins: int) -> Array:
        """Low end, median and high end of the first so many bins, `(3, R, bins)`."""
        rows, tail, together = self.rows, (1 - self.coverage) / 2, self._together
        quantiles, target = np.zeros((3, len(rows.looks))), NormalDist().inv_cdf(1 - tail)

        def read(begin: int, end: int) -> None:
            read_rows(self.grid, rows, self._common, self._known_up_to, tail, target, quantiles, begin, end)
            if self._voice is not None:
                self._voice.join(rows.since, together, target, quantiles, begin, end)
            if self._rates is not None:
                self._rates.join(tail, quantiles, begin, end)

        if bins == self.shape[1]:
            in_slices(len(rows.looks), read)
        else:
            for first in range(0, len(rows.looks), self.shape[1]):
                read(first, first + bins)
        return quantiles.reshape(3, *self.shape)[:, :, :bins]

    def _calibrate(self, measured: Measured) -> None:
        """Compare looks with what was foreseen for them, but for the first at each bin; some bins speak for all."""
        bins = min(self.shape[1], COMPARED)
        look, scale, fresh = (field[:, :bins] for field in (measured.values, measured.scale, measured.fresh))
        low, middle, high = self._read(bins)
        foreseen = self._calibration.stretched(low, middle, high, NO_LOOK)
        seen = fresh & (self._rows["looks"].reshape(self.shape)[:, :bins] > 0)
        often = self._rows["looks"].reshape(self.shape).max(axis=1, keepdims=True) >= ENOUGH_LOOKS
        self._calibration.learn(*foreseen, look, scale, seen, often)

    def _take(self, measured: Measured) -> None:
        values, scale, fresh = measured.values, measured.scale, measured.fresh
        several = self.shape[1] > 1
        if several:
            self._begin_sharing(values, scale, fresh)
        row = np.flatnonzero(fresh)
        passing, staying, table = self._drift(self._rows["since"][row])
        look, noise = values.ravel()[row].astype(np.float64), scale.ravel()[row]

        waiting, cells = np.ones(len(row), np.bool_), np.zeros(len(row), np.int64)

        def take_waiting() -> None:
            rows, far = self.rows, self._rows["far"][row]
            together, elsewhere = np.flatnonzero(waiting & (far < 0)), np.flatnonzero(waiting & (far >= 0))
            rooms = (
                (together, row, Room(rows.posterior, rows.lesson, rows.mixed)),
                (elsewhere, far, Room(rows.far_posterior, rows.far_lesson, rows.far_mixed)),
            )
            for chosen, place, room in rooms:
                looks = Looks(row, place, look, noise, table, waiting, cells)

                def take(begin: int, end: int, looks: Looks = looks, chosen: Ints = chosen, room: Room = room) -> None:
                    take_looks(
                        *(self.grid, rows, room, self._common, looks, chosen[begin:end], passing, staying),
                        *(self.least_scale, self.most_scale),
                    )

                if len(chosen):
                    in_slices(len(chosen), take)

        waited = self._rows["since"][row]
        take_waiting()
        if waiting.any():
            self._give_room(row[waiting], cells[waiting])
            take_waiting()
        if self._voice is not None:
            rows = self.rows
            told = (rows.usual_mean[row], rows.usual_spread[row], rows.foreseen[row])
            foreseen = np.zeros(self.shape)
            foreseen[fresh] = self._voice.take(row, look, noise, waited, *told, self._together)
            if self._rates is not None:
                self._rates.take(values, scale, fresh, foreseen)
        if several:
            self._share(np.flatnonzero(fresh.any(axis=1)))

    def _give_room(self, row: Ints, cells: Ints) -> None:
        """Have room for so many cells in some rows: in all rows, if more than a few need it, or elsewhere."""
        held, far = self._rows["posterior"].shape[1], self._rows["far"]
        by_cell = ((self._rows, "posterior"), (self._rows, "lesson"), (self._mixed, "mixed"))
        few = len(far) // FAR_ROWS - int((far >= 0).sum())
        room = held
        if len(row) > few:
            room = int(np.sort(cells)[len(cells) - 1 - max(few, 0)])
            room = min(-(-room // ROOM) * ROOM, len(self.grid.first))
            for fields, name in by_cell:
                before = fields[name]
                fields[name] = np.zeros((len(before), room, *before.shape[2:]), before.dtype)
                fields[name][:, :held] = before
        row = row[cells > room]
        far[row] = np.arange(len(row)) + len(self._rows["far_lesson"])
        for fields, name in by_cell:
            more = np.zeros((len(row), *fields["far_" + name].shape[1:]), np.float32)
            more[:, :room] = fields[name][row]
            fields["far_" + name] = np.concatenate([fields["far_" + name], more])

    def _drift(self, steps: Ints) -> tuple[Array, Array, Ints]:
        """The drift tables for the steps since the last look, and which row takes which.

        Mostly all rows take the same one, and mostly that of the look before.
        """
        if (count := steps[0]) == steps.min() == steps.max():
            if count != self._drift_before[0]:
                self._drift_before = (count, *self._drift_tables(_rounded(steps[:1]).tolist()))
            return *self._drift_before[1:], np.zeros(len(steps), np.int64)
        distinct, table = np.unique(_rounded(steps), return_inverse=True)
        return *self._drift_tables(distinct.tolist()), table

    def _drift_tables(self, steps: Sequence[int]) -> tuple[Array, Array]:
        passing, staying = np.empty((2, len(steps), len(self.grid.first), MODELS), np.float32)
        for index, count in enumerate(steps):
            drift_over(self.grid, count, self.least_scale, passing[index], staying[index])
        return passing, staying

    def _begin_sharing(self, values: Array, scale: Array, fresh: Bools) -> None:
        """At the first look of a replica: how are counts spread over bins?"""
        if self._begun.all():
            return
        for replica in np.flatnonzero(fresh.any(axis=1) & ~self._begun):
            seen = fresh[replica]
            looks = np.stack([values[replica, seen], scale[replica, seen]], axis=1)
            distinct, bins = np.unique(looks, axis=0, return_counts=True)
            self._shared[replica] = first_usual_values(self.grid, PRIOR_LOOKS, distinct, bins)
            self._begun[replica] = True
        self._common = self._in_common()

    def _share(self, replicas: Ints) -> None:
        """What the bins of each replica learned becomes what all of them are given."""
        rows, bins = self.rows, self.shape[1]
        weight, bank = (each.reshape(*self.shape, -1) for each in (rows.weight, rows.bank_weight))
        for replica in replicas.tolist():
            mean_lesson(rows, replica * bins, (replica + 1) * bins, self._shared[replica])
            self._belief[replica] = _belief(weight[replica], MODEL_PRIOR)
            self._bank_belief[replica] = _belief(bank[replica], PRIOR)
        self._common = self._in_common()

    def _in_common(self) -> SharedKnowledge:
        prior, (replicas, bins) = PRIOR_LOOKS * self.grid.prior, self.shape
        usual, given = (prior / bins)[None], PRIOR_LOOKS / bins
        if bins > 1:
            usual, given = usual + SHARED_LOOKS * self._shared, given + SHARED_LOOKS
        usual = spread(usual, (replicas, len(prior))).astype(np.float32, order="C")
        banked = np.exp(self._bank_belief)
        return SharedKnowledge(usual, given, self._belief, banked, prior.astype(np.float32), PRIOR_LOOKS)


def _mixed(posterior: Array, weight: Array) -> Array:
    """The mixtures of the models of each jump rate, `(rows, cells, rates)`."""
    mixed = np.zeros((*posterior.shape[:2], RATES), np.float32)
    mix_again(posterior, weight, mixed)
    return mixed


def _rounded(steps: Ints) -> Ints:
    """Steps as drift tables tell them apart."""
    rounded = np.rint(2 ** (np.rint(4 * np.log2(steps)) / 4)).astype(np.int64)
    return np.where(steps <= EXACT_DRIFTS, steps, rounded)


def _belief(weight: Array, prior: Floats) -> Floats:
    """By how much all bins change the log weight of each model; one that was never looked at has no weights."""
    models = PRIOR_LOOKS * prior + weight.sum(axis=0)
    return np.asarray(np.log(models / models.sum() / prior))
