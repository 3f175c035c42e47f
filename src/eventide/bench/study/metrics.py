"""What is measured of a run: errors, what an application keeps, what was spent.

A `MetricTally` takes the releases of S streams with P repetitions each, block of steps by block, and gives one figure
for each repetition. It keeps sums, and at most one number a step and repetition (the total over all bins); never the
releases.

| metric | of one repetition |
|---|---|
| mae, mse | mean absolute, mean squared error over all steps and bins |
| tse | total squared error: the sum over all steps and bins |
| mre | mean of the absolute error divided by the true count, or by the sanity bound where that is larger |
| total_mae | mean absolute error of the total over all bins, which mechanisms with levels measure by itself |
| mae:LEVEL | mean absolute error of the groups of a level of the stream; a group is the sum of its bins |
| season_kept | 1 if the season length of the released total is that of the true total within a tenth, else 0 |
| amplitude_kept | the released total's largest less smallest value, divided by the true total's |
| level_error | by how much the smallest value of the total is off |
| crossing_precision | of the moments at which the released total rises above the threshold, the part that is real |
| crossing_recall | of the moments at which the true total does, the part that the released one shows |
| publications | steps with a fresh measurement, per window |
| unused_budget | the part of epsilon that windows leave unspent, on average over all whole windows |
| coverage | the part of true values between the ends of their interval, where a mechanism gives one |
| data_missed | of means and quantiles: the part of steps and bins with events of which "no data" is released |
| data_invented | of means and quantiles: the part of steps and bins without events of which a value is released |
| release_seconds | processor time of one release; repetitions run side by side, and each has its part |

A figure that does not exist (a season of a stream without one, the precision of no alarms) is NaN. Means and quantiles
have errors in the unit of their column, over the steps and bins that have events; where "no data" is released of one
that has, the middle of the range is taken. They do not add up and have no natural zero, so their totals and relative
errors do not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints
from eventide.events.levels import Levels

WEAKEST_SEASON = 0.2  # of the variance: an autocorrelation below it is no season
FEWEST_SEASONS = 3  # in a series
UNLIKELY = 3.3  # standard deviations of the autocorrelation of pure noise at one lag: few such series go beyond at any
SERIES_AT_ONCE = 32  # whose seasons are looked for: so few that what is computed of them stays in the processor's cache
ROUNDING = 1e-20  # of a series' power: what floats leave of a series that is all trend


@dataclass(frozen=True)
class MetricOptions:
    """sanity_bound: the least divisor of mre, as a part of the column's total (1 for a column that is all 0).

    crossing_quantile: which quantile of the true total is the threshold. crossing_tolerance: how many steps a crossing
    may come too early or too late.
    """

    sanity_bound: float = 0.001
    crossing_quantile: float = 0.9
    crossing_tolerance: int = 3


@dataclass(frozen=True)
class StepBlock:
    """Some consecutive steps of a run: truth `(B, S, 1, d)`, released `(B, S, P, d)`; the rest `(B, S, P)`.

    interval: the ends of the mechanism's own intervals `(B, 2, S, P, d)`, if it gives any. seconds: what all these
    releases took. without_data: of means and quantiles, which may be NaN, what is taken where no data are released.
    """

    begin: int
    truth: Array
    released: Floats
    fresh: Bools
    unused: Floats
    interval: Floats | None = None
    seconds: float = 0.0
    without_data: float | None = None

    @cached_property
    def error(self) -> Floats:
        """The absolute error of each cell; none where there is nothing to tell."""
        if self.without_data is None:
            return np.abs(self.released - self.truth)
        said = np.where(np.isnan(self.released), self.without_data, self.released)
        return np.where(np.isnan(self.truth), 0.0, np.abs(said - self.truth))


class MetricTally:
    """Figures of `metrics` for S streams `truth` `(S, T, d)` with `repetitions` each, under epsilon and a window.

    adds_up: the values of all bins together are their sum, which those of means and quantiles are not.
    """

    def __init__(
        self,
        metrics: tuple[str, ...],
        truth: Array,
        repetitions: int,
        epsilon: float,
        window: int,
        options: MetricOptions,
        levels: Levels | None = None,
        *,
        adds_up: bool = True,
    ) -> None:
        streams, self.steps, self.bins = truth.shape
        self.adds_up = adds_up
        self.known = np.isfinite(truth).sum(axis=(1, 2))[:, None]  # cells in which there is something to tell
        self.epsilon, self.window, self.options = epsilon, min(window, self.steps), options
        self.bound = sanity_bounds(truth, options)[:, None]
        self._sums = {name: np.zeros((streams, repetitions)) for name in metrics if name in SUMMED}
        self._of_levels = {name: _Groups.of(name, levels) for name in metrics if is_of_level(name)}
        self._sums |= {name: np.zeros((streams, repetitions)) for name in self._of_levels}
        self._kept = [name for name in metrics if name in OF_TOTALS and adds_up]
        self._order = metrics
        self._none = np.full((streams, repetitions), np.nan)
        self._totals = truth.sum(axis=2)
        self._released = np.empty((streams, repetitions, self.steps if self._kept else 0))

    def add(self, block: StepBlock) -> None:
        """Take the next steps."""
        for name, sums in self._sums.items():
            sums += SUMMED[name](self, block) if name in SUMMED else self._error_of_level(name, block)
        if self._kept:
            steps = slice(block.begin, block.begin + len(block.truth))
            self._released[:, :, steps] = np.moveaxis(block.released.sum(axis=3), 0, 2)

    def _error_of_level(self, name: str, block: StepBlock) -> Floats:
        """What a block adds to the mean absolute error of a level; NaN where the stream has no such level."""
        groups = self._of_levels[name]
        if groups is None:
            return np.full(block.fresh.shape[1:], np.nan)
        error = np.abs(groups.sums(block.released - block.truth))
        return np.asarray(error.sum(axis=(0, 3)) / (self.steps * error.shape[3]))

    def figures(self) -> dict[str, Floats]:
        """One figure for each stream and repetition, `(S, P)`, of each metric in the order asked for."""
        pairs = list(zip(self._totals, self._released, strict=True))
        kept = {name: np.stack([OF_TOTALS[name](*pair, self.options) for pair in pairs]) for name in self._kept}
        found = self._sums | kept
        return {name: found.get(name, self._none) for name in self._order}


class _Groups(NamedTuple):
    """The groups of a level: the order in which bins of one stand together, and where each begins."""

    order: Ints
    starts: Ints

    @classmethod
    def of(cls, metric: str, levels: Levels | None) -> _Groups | None:
        """Those of the level that a metric names, None where the stream has none of that name."""
        labels = None if levels is None else levels.labels.get(metric.partition(":")[2])
        if labels is None:
            return None
        order = np.argsort(labels, kind="stable")
        return cls(order, np.unique(labels[order], return_index=True)[1])

    def sums(self, cells: Floats) -> Floats:
        """Of cells `(..., d)`, those of each group."""
        return np.asarray(np.add.reduceat(cells[..., self.order], self.starts, axis=-1))


def is_of_level(metric: str) -> bool:
    """Whether a metric is the error of a level, such as mae:district."""
    return metric.startswith("mae:")


def is_error(metric: str) -> bool:
    """Whether a mechanism is compared with the best by it."""
    return metric in ERRORS or is_of_level(metric)


def absolute(tally: MetricTally, block: StepBlock) -> Floats:
    """What a block adds to the mean absolute error."""
    return _mean(tally, block.error)


def squared(tally: MetricTally, block: StepBlock) -> Floats:
    """What a block adds to the mean squared error."""
    return _mean(tally, block.error**2)


def total_squared(tally: MetricTally, block: StepBlock) -> Floats:
    """What a block adds to the total squared error."""
    return np.asarray((block.error**2).sum(axis=(0, 3)))


def relative(tally: MetricTally, block: StepBlock) -> Floats:
    """What a block adds to the mean relative error."""
    if not tally.adds_up:
        return np.full(block.fresh.shape[1:], np.nan)
    return _mean(tally, block.error / np.maximum(np.abs(block.truth), tally.bound))


def publications(tally: MetricTally, block: StepBlock) -> Floats:
    """What a block adds to the measurements per window."""
    return np.asarray(block.fresh.sum(axis=0) * (tally.window / tally.steps))


def unused_budget(tally: MetricTally, block: StepBlock) -> Floats:
    """What the windows that end in a block add to the mean; windows are whole from step w - 1 on."""
    whole = block.begin + np.arange(len(block.truth)) >= tally.window - 1
    windows = tally.steps - tally.window + 1
    return np.asarray(block.unused[whole].sum(axis=0) / (windows * tally.epsilon))


def coverage(tally: MetricTally, block: StepBlock) -> Floats:
    """What a block adds to the part of true values that intervals hold."""
    if block.interval is None:
        return np.full(block.fresh.shape[1:], np.nan)
    low, high = block.interval[:, 0], block.interval[:, 1]
    return _mean(tally, (low <= block.truth) & (block.truth <= high))


def data_missed(tally: MetricTally, block: StepBlock) -> Floats:
    """What a block adds to the part of cells with data of which none are released."""
    if tally.adds_up:
        return np.full(block.fresh.shape[1:], np.nan)
    return _mean(tally, np.isnan(block.released) & ~np.isnan(block.truth))


def data_invented(tally: MetricTally, block: StepBlock) -> Floats:
    """What a block adds to the part of cells without data of which a value is released."""
    invented = (np.isnan(block.truth) & ~np.isnan(block.released)).sum(axis=(0, 3))
    return _ratio(invented, np.broadcast_to(tally.steps * tally.bins - tally.known, invented.shape))


def release_seconds(tally: MetricTally, block: StepBlock) -> Floats:
    """What a block adds to the mean time of a release."""
    _, streams, repetitions, _ = block.released.shape
    return np.full((streams, repetitions), block.seconds / (streams * repetitions * tally.steps))


def total_mae(truth: Array, released: Floats, options: MetricOptions) -> Floats:
    """By how much the total is off, on average over the steps."""
    return np.asarray(np.abs(released - truth).mean(axis=1))


def season_kept(truth: Ints, released: Floats, options: MetricOptions) -> Floats:
    """Is the season's length kept within a tenth?"""
    season = season_length(truth)
    near = np.abs(season_length(released) - season) <= 0.1 * season
    return np.where(season > 0, near, np.nan)


def amplitude_kept(truth: Ints, released: Floats, options: MetricOptions) -> Floats:
    """How much of the amplitude is left; above 1 if noise adds to it."""
    return _ratio(np.ptp(released, axis=1), np.asarray(np.ptp(truth)))


def level_error(truth: Ints, released: Floats, options: MetricOptions) -> Floats:
    """How far off is the smallest value?"""
    return np.asarray(np.abs(released.min(axis=1) - truth.min()))


def crossing_precision(truth: Ints, released: Floats, options: MetricOptions) -> Floats:
    """How many of the released stream's alarms are real?"""
    real, alarms = _rises(truth, released, options)
    return _ratio((alarms & _nearby(real, options)).sum(axis=1), alarms.sum(axis=1))


def crossing_recall(truth: Ints, released: Floats, options: MetricOptions) -> Floats:
    """How many of the true stream's alarms are raised?"""
    real, alarms = _rises(truth, released, options)
    return _ratio((real & _nearby(alarms, options)).sum(axis=1), np.asarray(real.sum()))


SUMMED: dict[str, Callable[[MetricTally, StepBlock], Floats]] = {
    "mae": absolute,
    "mse": squared,
    "tse": total_squared,
    "mre": relative,
    "publications": publications,
    "unused_budget": unused_budget,
    "coverage": coverage,
    "data_missed": data_missed,
    "data_invented": data_invented,
    "release_seconds": release_seconds,
}
OF_TOTALS: dict[str, Callable[[Array, Floats, MetricOptions], Floats]] = {
    "total_mae": total_mae,
    "season_kept": season_kept,
    "amplitude_kept": amplitude_kept,
    "level_error": level_error,
    "crossing_precision": crossing_precision,
    "crossing_recall": crossing_recall,
}
METRICS = (*SUMMED, *OF_TOTALS)
ANSWER_ERRORS = ("mae", "mse", "mre")
PLAN_METRICS = ("workload_error", *ANSWER_ERRORS, "planning_seconds", "answering_seconds")
ERRORS = (
    "mae",
    "mse",
    "tse",
    "mre",
    "total_mae",
    "workload_error",
)  # those for which a mechanism is compared with the best


def sanity_bounds(counts: Ints, options: MetricOptions) -> Floats:
    """The least divisor of each column of streams `(..., T, d)` for relative errors, `(..., d)`."""
    totals = counts.sum(axis=-2)
    return np.where(totals > 0, options.sanity_bound * totals, 1.0)


def season_length(series: Array) -> Ints:
    """The lag at which a series is most like itself again, along the last axis; 0 where there is no season.

    A trend, bent or straight, is taken off first: a series that grows is like itself at every short lag. A season is
    seen three times at least, or it might be a trend as well. Lags count from the first at which the autocorrelation
    is negative, so that mere inertia is no season. Multiples of a season are nearly as good as the season, so the
    first hump that comes near the highest one counts. The shorter a series, the more pure noise is like itself at some
    lag: a season must stand out of that, so in a short stream it must be clear.
    """
    if series.ndim > 1 and len(series) > SERIES_AT_ONCE:
        cuts = range(SERIES_AT_ONCE, len(series), SERIES_AT_ONCE)
        return np.concatenate([season_length(part) for part in np.split(series, cuts)])
    steps = series.shape[-1]
    lags = steps // FEWEST_SEASONS + 1
    padded = _fast_length(steps + lags - 1)  # so that the end does not meet the start
    spectrum = np.fft.rfft(_without_trend(series), padded)
    power = spectrum.real**2 + spectrum.imag**2
    correlation = np.fft.irfft(power, padded)[..., :lags]
    turned = np.where(np.logical_or.accumulate(correlation < 0, axis=-1), correlation, 0)
    highest = turned.max(axis=-1, keepdims=True)
    high = turned > 0.9 * highest
    begun = np.logical_or.accumulate(high, axis=-1)
    first_hump = begun & ~np.logical_or.accumulate(begun & ~high, axis=-1)
    season = np.where(first_hump, turned, 0).argmax(axis=-1)
    least = np.maximum(WEAKEST_SEASON, UNLIKELY * (steps - season) ** 0.5 / steps)  # of so many products
    weakest = np.maximum(least * correlation[..., 0], ROUNDING * (series * series).sum(axis=-1))
    return np.where(highest[..., 0] > weakest, season, 0)


@lru_cache
def _fast_length(least: int) -> int:
    """The smallest number from `least` on without prime factors but 2, 3 and 5: Fourier transforms of it are fast.

    >>> _fast_length(1333)
    1350
    """
    powers = range(least.bit_length())
    odd: list[int] = [3**three * 5**five for three in powers for five in powers]
    return min(each << max(0, -(-least // each) - 1).bit_length() for each in odd)


def _without_trend(series: Array) -> Floats:
    """What is left of a series when the parabola that comes nearest to it is taken off."""
    basis = _parabolas(series.shape[-1])
    return np.asarray(series - (series @ basis) @ basis.T)


@lru_cache
def _parabolas(steps: int) -> Floats:
    """Orthonormal columns that every parabola over so many steps is a sum of."""
    time = np.linspace(-1, 1, steps)
    basis, _ = np.linalg.qr(np.stack([time**power for power in range(3)], axis=-1))
    return basis


def _mean(tally: MetricTally, cells: Array) -> Floats:
    return np.asarray(cells.sum(axis=(0, 3)) / tally.known)


def _rises(truth: Ints, released: Floats, options: MetricOptions) -> tuple[Bools, Bools]:
    """Where the true and the released totals come to lie above the threshold."""
    threshold = np.quantile(truth, options.crossing_quantile)
    above, released_above = truth > threshold, released > threshold
    return above[1:] & ~above[:-1], released_above[:, 1:] & ~released_above[:, :-1]


def _nearby(moments: Bools, options: MetricOptions) -> Bools:
    """Whether any moment lies within the tolerance."""
    reach = options.crossing_tolerance
    padding = np.zeros((*moments.shape[:-1], reach), dtype=np.bool_)
    padded = np.concatenate([padding, moments, padding], axis=-1)
    near = np.zeros_like(moments)
    for shift in range(2 * reach + 1):
        near |= padded[..., shift : shift + moments.shape[-1]]
    return near


def _ratio(part: Array, whole: Array) -> Floats:
    """The part of the whole, NaN of nothing."""
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0))
