"""How far off the releases of a setting will be, told before anything is published.

Where every step is measured with the same noise and released as measured, a formula gives the mean absolute error.
Elsewhere the error depends on the data. Then a copy of the mechanism publishes made-up streams: some stay about the
same, others rise and fall. Nothing of the real stream is used, so the answer is free.

Of several statistics each has a share of epsilon and a mechanism of its own, so each is predicted by itself. The steps
of a statistic of slots are its slots.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.events.levels import BIN
from eventide.events.statistics import EVENTS, OfValues, Statistic, Told
from eventide.events.value_grid import ValueGrid
from eventide.filters.base import Filter, Repeat
from eventide.filters.truncate import Truncate
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.levels import shares
from eventide.mechanisms.release import Release
from eventide.mechanisms.sample import Sample
from eventide.mechanisms.several import Several
from eventide.mechanisms.uniform import Uniform
from eventide.privacy.amounts import NANO
from eventide.privacy.noise import Seeded

COUNTS = (50, 500, 5_000)  # events of a bin and step
SWING = 0.5  # what made-up streams rise above that and fall below it
SHORTEST, LONGEST = 200, 2_000  # steps of a made-up stream
MOST_CELLS = 24_000  # of all made-up streams together
VALUES = 101  # of a range, all as frequent as one another


class ExpectedError(NamedTuple):
    """The mean absolute error of one kind of number at each of `COUNTS`, and how large that number usually is.

    `what` is its name. `steady` is for counts that stay about the same, `changing` for those that rise and fall. An
    error is infinite where nothing can be said.
    """

    what: str
    usual: tuple[float, ...]
    steady: tuple[float, ...]
    changing: tuple[float, ...]


class Prediction(NamedTuple):
    """The errors of all that is released; `simulated` is 0 where a formula gave them, else over how many steps."""

    errors: list[ExpectedError]
    simulated: int
    period: int


def predict(mechanism: Mechanism, statistic: Statistic = EVENTS, period: int | None = None) -> Prediction:
    """The expected errors of a mechanism that publishes a statistic.

    Parameters
    ----------
    mechanism
        As it is to publish; it is left as it is.
    statistic
        What is published of the events; several say so themselves.
    period
        In how many steps made-up streams rise and fall once, such as those of a day; a window where left out.

    >>> import eventide as ev
    >>> predict(ev.Uniform(epsilon=1.0, window=24, bins=3)).errors[0].steady
    (23.993057, 23.993057, 23.993057)
    """
    if isinstance(mechanism, Several):
        found = [predict(part, of, None if of.slots else period) for of, part in mechanism.each_statistic()]
        errors = [error for each in found for error in each.errors]
        return Prediction(errors, max(each.simulated for each in found), found[0].period)
    rhythm = min(max(period or mechanism.window, 7), LONGEST // 2)
    if _is_exact(mechanism, statistic):
        return Prediction([_by_formula(mechanism, statistic)], 0, rhythm)
    return _by_simulation(mechanism, statistic, rhythm)


def _is_exact(mechanism: Mechanism, statistic: Statistic) -> bool:
    every_step = type(mechanism) is Uniform or (type(mechanism) is Sample and mechanism.shared_steps == 1)
    return every_step and mechanism.levels is None and statistic.direct and _as_measured(mechanism.filter)


def _as_measured(chosen: Filter | None) -> bool:
    inner = chosen.inner if isinstance(chosen, Truncate) else chosen
    return inner is None or type(inner) is Repeat


def _by_formula(mechanism: Mechanism, statistic: Statistic) -> ExpectedError:
    """Of discrete Laplace noise with P(k) ~ q^|k|; raised to 0 a count n gains what would have gone below."""
    unit, usual = float(statistic.unit), _usual_numbers(statistic)[0]
    q = math.exp(-1 / mechanism.noise_range()[0])
    truncated = isinstance(mechanism.filter, Truncate)
    numbers = [round(count * usual) for count in COUNTS]
    errors = tuple(
        round(unit * (2 * q - (q ** (number + 1) if truncated else 0)) / (1 - q * q), 6) if q < 1 else math.inf
        for number in numbers
    )
    return ExpectedError(statistic.name, tuple(number * unit for number in numbers), errors, errors)


def _by_simulation(mechanism: Mechanism, statistic: Statistic, period: int) -> Prediction:
    steps = min(max(2 * mechanism.shared_steps, 2 * period, SHORTEST), LONGEST)
    most_bins = max(MOST_CELLS // (2 * len(COUNTS) * steps * statistic.columns), 1)
    copy = _copy(mechanism, most_bins * statistic.columns)
    counts = _made_up(steps, copy.size // statistic.columns, period)
    numbers = _numbers(statistic, counts)
    stream = numbers.reshape(*counts.shape[:2], -1)
    true = dict(_truth(copy, statistic, numbers))
    errors: dict[str, list[Floats]] = {name: [] for name in true}
    for step in range(steps):
        for name, values in _released(copy.release(stream[:, step]), copy, statistic):
            if step >= steps // 2:  # what is usual after the beginning
                errors[name].append(np.abs(values - true[name][:, step]))
    found = [_summed_up(name, true[name][:, steps // 2 :], np.stack(each, axis=1)) for name, each in errors.items()]
    return Prediction(found, steps, period)


def _summed_up(name: str, true: Floats, errors: Floats) -> ExpectedError:
    usual, known = np.abs(true).mean(axis=(1, 2)), np.isfinite(errors)  # a mean of no events is none
    sums, numbers = np.where(known, errors, 0).sum(axis=(1, 2)), known.sum(axis=(1, 2))
    steady, changing = np.divide(sums, numbers, out=np.full(len(sums), np.inf), where=numbers > 0).reshape(2, -1)
    return ExpectedError(name, tuple(usual[: len(COUNTS)].tolist()), tuple(steady.tolist()), tuple(changing.tolist()))


def _copy(mechanism: Mechanism, most_bins: int) -> Mechanism:
    """Another one alike that publishes all made-up streams side by side, with fewer bins where there are very many.

    Of many bins with levels it publishes bins alone, with their share of epsilon.
    """
    given = mechanism.parameters() | {"replicas": 2 * len(COUNTS), "noise": Seeded(0)}
    given.pop("seed", None)
    if mechanism.size > most_bins and getattr(mechanism, "groups", None) in (None, 1, "auto"):
        given["bins"] = most_bins
        if (levels := mechanism.levels) is not None:
            of_bins = shares(levels, mechanism.nano_epsilon, mechanism.level_split)[BIN]
            given |= {"levels": None, "level_split": None, "epsilon": Fraction(of_bins, NANO)}
    return type(mechanism)(**given)


def _made_up(steps: int, bins: int, period: int) -> Ints:
    """Poisson counts around each of `COUNTS`, `(streams, steps, bins)`: first the steady streams, then the others."""
    wave = 1 + SWING * np.sin(2 * np.pi * np.arange(steps) / period)
    means = np.concatenate([np.outer(COUNTS, np.ones(steps)), np.outer(COUNTS, wave)])
    return np.random.default_rng(0).poisson(means[:, :, None], (*means.shape, bins))


def _usual_numbers(statistic: Statistic) -> Floats:
    """What one event adds to each number of its bin, on average, where all values of a range are as frequent."""
    if not isinstance(statistic, OfValues):
        return np.ones(statistic.columns)
    grid = statistic.grid
    ends = (grid.lowest, grid.highest) if isinstance(grid, ValueGrid) else (0, grid.largest)
    values = np.rint(np.linspace(*ends, VALUES)).astype(np.int64)
    added = np.zeros(statistic.columns)
    for column, amount in statistic.spread(values):
        np.add.at(added, column, amount)
    return added / VALUES


def _numbers(statistic: Statistic, counts: Ints) -> Ints:
    """The numbers of a statistic for so many events, `(streams, steps, bins, columns)`."""
    return np.rint(counts[..., None] * _usual_numbers(statistic)).astype(np.int64)


def _truth(copy: Mechanism, statistic: Statistic, numbers: Ints) -> Iterator[tuple[str, Floats]]:
    """What would be released without noise, by name: `(streams, steps, bins)`."""
    for name, told in statistic.tell(Told(numbers.astype(np.float64), np.zeros(numbers.shape))).items():
        yield name, told.values
    if copy.levels is not None:
        for level, labels in copy.levels.labels.items():
            members = np.eye(len(copy.levels.groups[level]))[labels]
            yield level, numbers[..., 0] @ members
    if copy.gives_windows:
        upto = np.cumsum(numbers[..., 0], axis=1, dtype=np.float64)
        span = copy.span  # type: ignore[attr-defined]
        upto[:, span:] -= upto[:, :-span].copy()
        yield f"last {span} steps", upto


def _released(release: Release, copy: Mechanism, statistic: Statistic) -> Iterator[tuple[str, Floats]]:
    """What was released, by the same names: `(streams, bins)`."""
    shape = (len(release.values), -1, statistic.columns)
    for name, told in statistic.tell(Told(release.values.reshape(shape), release.scale.reshape(shape))).items():
        yield name, told.values
    for level, each in (release.levels or {}).items():
        yield level, each.values
    if release.window_values is not None:
        yield f"last {copy.span} steps", release.window_values  # type: ignore[attr-defined]
