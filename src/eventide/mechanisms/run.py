"""A whole matrix of counts through a mechanism, and what came out of it.

A run keeps releases and charges, never the counts: everything in it may leave the house.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from eventide.arrays import Bools, Floats
from eventide.errors import InputError
from eventide.mechanisms.base import Mechanism, whole_counts
from eventide.releases.level_values import Groups, LevelValues, Rows, flat, stacked, statistics_of
from eventide.releases.long_table import LongFrames, long_table

if TYPE_CHECKING:
    import pyarrow as pa

_ARRAYS = (
    "values",
    "fresh",
    "spent",
    "low",
    "high",
    "scale",
    "window_values",
    "window_scale",
    "window_low",
    "window_high",
)
_SOMETIMES = ("low", "high", "window_values", "window_scale", "window_low", "window_high")
NO_MATRIX = "a run takes a matrix of steps and bins (or of replicas, steps and bins)"


@dataclass(frozen=True, repr=False)
class Run(LongFrames):
    """The releases of T steps; with `replicas=R` all arrays have a leading axis R.

    Parameters
    ----------
    values
        The released values, `(T, d)`.
    fresh
        Whether anything was measured at a step, `(T,)`.
    spent
        Epsilon charged at each step, `(T,)`.
    bins
        The names of the bins.
    begin
        The step of the first release.
    low, high
        The ends of an interval around the values, `(T, d)`, where the filter knows one.
    scale
        The noise scale of the measurement behind each value, `(T, d)`; infinite before the first.
    levels
        Where the mechanism has levels, what was released of each by its name, in arrays `(T, groups)`.
    groups
        The names of the groups of each level.
    window_values, window_scale, window_low, window_high
        The histograms of the sliding window, their noise scales and the ends of their intervals, `(T, d)`, where the
        mechanism gives them.
    """

    values: Floats
    fresh: Bools
    spent: Floats
    bins: tuple[str, ...]
    begin: int = 0
    low: Floats | None = None
    high: Floats | None = None
    scale: Floats | None = None
    levels: dict[str, LevelValues] | None = None
    groups: Groups | None = None
    window_values: Floats | None = None
    window_scale: Floats | None = None
    window_low: Floats | None = None
    window_high: Floats | None = None

    @property
    def steps(self) -> int:
        """How many steps were released."""
        return int(self.values.shape[-2])

    @property
    def replicas(self) -> int:
        """How many copies ran side by side."""
        return 1 if self.values.ndim == 2 else len(self.values)

    def replica(self, number: int) -> Run:
        """The run of one replica, without the leading axis."""
        if not 0 <= number < self.replicas:
            raise InputError(f"there is no replica {number}; this run has {self.replicas}, counted from 0")
        if self.values.ndim == 2:
            return self
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        levels = self.levels and {name: each.replica(number) for name, each in self.levels.items()}
        plain = {name: array[number] for name, array in arrays.items() if array is not None}
        return replace(self, levels=levels, **plain)

    def to_arrow(self) -> pa.Table:
        """The releases as an Arrow table, a row for each step and bin or group; choose one replica with `replica`."""
        if self.values.ndim > 2:
            raise InputError(f"this run has {self.replicas} replicas; choose one, such as run.replica(0)")
        scale = np.full_like(self.values, np.nan) if self.scale is None else self.scale
        rows = Rows.of(self.bins, self.groups, statistics_of(windows=self.window_values is not None))
        all_rows: Any = flat(replace(self, scale=scale), rows)
        return long_table(
            rows,
            self.begin + np.arange(self.steps),
            all_rows.values,
            self.fresh,
            all_rows.scale,
            low=all_rows.low,
            high=all_rows.high,
        )

    def plot(self, bins: Sequence[str | int] | None = None, truth: Any = None, replica: int = 0) -> Any:
        """The released series as a matplotlib figure, with intervals where known, looks and what was spent.

        Parameters
        ----------
        bins
            Names of those to draw; by default the few with the largest releases.
        truth
            The true counts `(T, d)`, to be drawn beside. Who gives them says that they are public.
        replica
            Which one to draw, counted from 0.
        """
        from eventide.mechanisms.pictures import draw_run

        return draw_run(self, bins, truth, replica)

    def __repr__(self) -> str:
        replicas = f", replicas={self.replicas}" if self.replicas > 1 else ""
        return f"Run(steps={self.steps}, bins={len(self.bins)}, looks={np.count_nonzero(self.fresh)}{replicas})"

    def _repr_html_(self) -> str:
        from eventide.mechanisms.pictures import run_card

        return run_card(self)


def run(mechanism: Mechanism, matrix: Any) -> Run:
    """Release every row of a matrix of counts.

    The mechanism goes on from the step it is at, so a long stream can be run piece by piece. All counts are checked
    before the first release: if any is bad, nothing is charged.

    Parameters
    ----------
    mechanism
        What releases the steps.
    matrix
        Counts `(T, d)` for all replicas alike, or `(R, T, d)` for each its own. A frame (pandas, polars, Arrow,
        DuckDB), a dict of columns, a Series named after the only bin, or a list of frames (one for each replica):
        columns are matched with the bins by name, and names that are missing or unknown are an error.

    >>> import eventide as ev
    >>> ev.run(ev.Uniform(epsilon=1, window=3, bins=1, noise=ev.noise.Zero()), [[4], [5]]).values.tolist()
    [[4.0], [5.0]]
    >>> mechanism = ev.Uniform(epsilon=1, window=3, bins=["north", "south"], noise=ev.noise.Zero())
    >>> ev.run(mechanism, {"south": [7, 8], "north": [4, 5]}).values.tolist()
    [[4.0, 7.0], [5.0, 8.0]]
    """
    if isinstance(mechanism, type):
        name = mechanism.__name__
        raise InputError(
            f"{name} is a class; run a mechanism that is made of it, such as {name}(epsilon, window, bins)"
        )
    counts = whole_counts(mechanism.in_order(matrix))
    each_its_own = counts.ndim == 3 and mechanism.replicas > 1
    if not (each_its_own or counts.ndim == 2):
        raise InputError(NO_MATRIX)
    if counts.shape[-1] != mechanism.size or (each_its_own and len(counts) != mechanism.replicas):
        raise InputError(f"a matrix of shape {counts.shape} does not fit {mechanism!r}")
    begin, steps = mechanism.step, counts.shape[-2]
    shape = (mechanism.replicas, steps)
    kept: dict[str, Any] = {
        "values": np.empty((*shape, mechanism.size)),
        "fresh": np.empty(shape, dtype=np.bool_),
        "spent": np.empty(shape),
        "scale": np.empty((*shape, mechanism.size)),
    }
    levels: dict[str, list[LevelValues]] = {name: [] for name in (mechanism.levels.names if mechanism.levels else ())}
    for t in range(steps):
        release = mechanism.release(counts[:, t] if each_its_own else counts[t])
        for name, told in levels.items():
            told.append((release.levels or {})[name])
        for name in _SOMETIMES:
            if getattr(release, name) is not None and name not in kept:
                kept[name] = np.full((*shape, mechanism.size), np.nan)
        for name, array in kept.items():
            array[:, t] = getattr(release, name)
    whole = Run(**kept, bins=mechanism.bins, begin=begin)
    one = whole if mechanism.replicas > 1 else whole.replica(0)
    if not (levels and steps and mechanism.levels):
        return one
    found = {name: stacked(told) for name, told in levels.items()}
    return replace(one, levels=found, groups=mechanism.levels.groups)
