"""What a mechanism gives out at each step: private numbers, and nothing that was not released."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from eventide.arrays import Array, Floats
from eventide.releases.level_values import LevelValues

_WHOLE = ("step", "levels", "statistic", "statistics")  # fields without an axis for replicas
_WORTH = ("values", "scale", "low", "high", "window_values", "window_scale", "window_low", "window_high")
_OF_COUNTS = ("values", "low", "high", "window_values", "window_low", "window_high")


@dataclass(frozen=True, slots=True, repr=False)
class Release:
    """One step's release: everything in it may leave the house.

    With `replicas=R` every field but `step` has a leading axis R.

    Parameters
    ----------
    step
        Its index, from 0.
    values
        The estimate of this step's counts, `(d,)`.
    fresh
        Whether anything was measured at this step.
    fresh_bins
        Which bins were measured, `(d,)`.
    scale
        Noise scale of the measurement behind each value, `(d,)`; infinite before the first. With levels it is that of
        the bins' own measurement, and values that were made to add up are usually nearer to the truth.
    spent
        Epsilon charged at this step. With a window sensitivity C every step has a budget of its own, and what one
        person loses is the largest charge of a step times C / sensitivity, not the sum.
    low, high
        The ends of an interval around the values, `(d,)`, where the filter knows one.
    window_values
        Histogram of the sliding window, `(d,)`, where the mechanism gives one.
    window_scale
        The scale of Laplace noise as large as that of the histogram, `(d,)`: its standard deviation is sqrt(2) of it.
    window_low, window_high
        The ends of an interval that holds the true histogram in nine of ten cases, `(d,)`; NaN where the histogram has
        errors besides its noise.
    levels
        Where the mechanism has levels: what is released of each, by its name, the total included. The values of a group
        are the sums of those of its bins, exactly.
    statistic, statistics
        Where several statistics are released: the name of the one that the values are of, and what is released of each
        other one, by its name. A value that is NaN says that there are no data: nothing that has a mean or a median.
    """

    step: int
    values: Floats
    fresh: Any  # bool, or an array of them with replicas
    fresh_bins: Array
    scale: Floats
    spent: Any  # float, or an array of them with replicas
    low: Floats | None = None
    high: Floats | None = None
    window_values: Floats | None = None
    window_scale: Floats | None = None
    window_low: Floats | None = None
    window_high: Floats | None = None
    levels: dict[str, LevelValues] | None = None
    statistic: str | None = None
    statistics: dict[str, LevelValues] | None = None

    def counted_in(self, unit: Fraction) -> Release:
        """The same where 1 in the counts is worth so much."""
        if unit == 1:
            return self
        named = {name: getattr(self, name) for name in _WORTH}
        worth = {name: each * unit.numerator / unit.denominator for name, each in named.items() if each is not None}
        return replace(self, **worth)

    def without(self, idle: Array) -> Release:
        """The same where some bins are known to hold nobody: 0 is all that there is to say of them."""
        named = {name: getattr(self, name) for name in _OF_COUNTS}
        empty: dict[str, Any] = {name: np.where(idle, 0.0, each) for name, each in named.items() if each is not None}
        return replace(self, **empty)

    def first(self) -> Release:
        """The release of the first replica, without the leading axis."""
        plain = {name: value[0] for name in _OF_REPLICAS if (value := getattr(self, name)) is not None}
        plain |= {"fresh": bool(plain["fresh"]), "spent": float(plain["spent"])}
        levels, statistics = (
            None if told is None else {name: each.first() for name, each in told.items()}
            for told in (self.levels, self.statistics)
        )
        return Release(self.step, **plain, levels=levels, statistic=self.statistic, statistics=statistics)

    def __repr__(self) -> str:
        shown = {name: _brief(getattr(self, name)) for name in ("fresh", "spent", "values")}
        return f"Release(step={self.step}, {', '.join(f'{name}={text}' for name, text in shown.items())})"

    def _repr_html_(self) -> str:
        from eventide.mechanisms.pictures import release_card

        return release_card(self)


_OF_REPLICAS = tuple(field.name for field in fields(Release) if field.name not in _WHOLE)


def _brief(value: Any) -> str:
    """A number or an array on one line, the middle of a long one left out."""
    return np.array2string(np.asarray(value), threshold=8, precision=4, separator=", ").replace("\n", "")
