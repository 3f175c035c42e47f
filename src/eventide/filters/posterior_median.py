"""The posterior median: the best guess, in absolute error, of every count at every step, from all looks so far.

Promises finite values that are not negative, an interval of stated coverage, constant memory, and the same answer for a
replica as for a run alone. It reads looks, their noise scales and public facts, so it is free and works behind any
mechanism. `docs/tide.md` has the mathematics. Imports numpy, `errors` and `privacy`.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.errors import InputError
from eventide.filters.base import Filter
from eventide.filters.posterior_grid import LOG_PRIOR, MODELS, REACH, drift_over, grid_up_to
from eventide.filters.posterior_kernels import Cells, Rows, Usual, read_rows, take_looks
from eventide.filters.posterior_scalar_kernels import PACES
from eventide.filters.posterior_usual import first_usual_values
from eventide.privacy.measured import Measured

PRIOR_LOOKS = 2.0  # what the prior counts for in a bin's usual values, in looks
POOL = 1.0
SHARED_LOOKS = 30.0  # what the usual values of all bins count for


class PosteriorMedian(Filter):
    state = ("_rows", "_shared", "_begun", "_tilt")

    def __init__(self, coverage: float = 0.9) -> None:
        if not 0 < coverage < 1:
            raise InputError(f"coverage is {coverage!r}; it lies between 0 and 1, as 0.9")
        self.coverage = coverage

    def begin(
        self, replicas: int, size: int, *, epsilon: float = 1.0, window: int = 1, sensitivity: int = 1, **known: Any
    ) -> None:
        self.shape = (replicas, size)
        self.least_scale = sensitivity / epsilon
        self.grid = grid_up_to(REACH * self.least_scale * window, single_bin=size == 1)
        self._cells = Cells(self.grid.first, self.grid.width, self.grid.centre)
        rows, cells = replicas * size, len(self.grid)
        self._rows = {
            "posterior": np.zeros((rows, cells, MODELS), np.float32),
            "weight": np.zeros((rows, MODELS), np.float32),
            "log_weight": np.tile(LOG_PRIOR, (rows, 1)),
            "lesson": np.zeros((rows, cells), np.float32),
            "learned": np.zeros(rows),
            "usual_mean": np.zeros(rows),
            "usual_spread": np.zeros(rows),
            "mean": np.zeros((rows, PACES)),
            "variance": np.zeros((rows, PACES)),
            "bank_weight": np.zeros((rows, PACES)),
            "pace": np.zeros((rows, PACES)),
            "positive": np.zeros(rows),
            "looks": np.zeros(rows, np.int64),
            "since": np.zeros(rows, np.int64),
            "scale": np.full(rows, np.inf),
        }
        self._shared: Floats = np.tile(self.grid.prior, (replicas, 1))
        self._tilt: Floats = np.zeros((replicas, MODELS))
        self._begun = np.zeros(replicas, np.bool_)
        self._tables: dict[int, tuple[Array, Array]] = {}
        self.resolved: Floats = np.ones(rows)

    @property
    def rows(self) -> Rows:
        return Rows(**self._rows)

    def step(self, measured: Measured | None) -> Array:
        self._rows["since"] += 1
        if measured is not None:
            self._take(measured)
        tails = (1 - self.coverage) / 2
        quantile = NormalDist().inv_cdf(1 - tails)
        out = np.zeros((3, self.shape[0] * self.shape[1]))
        read_rows(self._cells, self.rows, self._usual(), self.shape[1], tails, quantile, out, self.resolved)
        self.low, values, self.high = out.reshape(3, *self.shape)
        return values

    def _usual(self) -> Usual:
        if self.shape[1] == 1:
            return Usual(np.tile(PRIOR_LOOKS * self.grid.prior, (self.shape[0], 1)).astype(np.float32), PRIOR_LOOKS, self._tilt)
        common = PRIOR_LOOKS * self.grid.prior + SHARED_LOOKS * self._shared
        return Usual(common.astype(np.float32), PRIOR_LOOKS + SHARED_LOOKS, self._tilt)

    def _take(self, measured: Measured) -> None:
        fresh, scale = (np.broadcast_to(field, self.shape) for field in (measured.fresh, measured.scale))
        values = np.broadcast_to(measured.values, self.shape).astype(np.float64)
        if self.shape[1] > 1:
            for replica in np.flatnonzero(fresh.any(axis=1) & ~self._begun):
                here = fresh[replica]
                self._shared[replica] = first_usual_values(
                    self.grid, values[replica, here], scale[replica, here], PRIOR_LOOKS
                )
                self._begun[replica] = True
        looking = np.flatnonzero(fresh)
        passing, staying, table = self._drift(self._rows["since"][looking])
        take_looks(
            self._cells,
            self.rows,
            self._usual(),
            self.shape[1],
            self.least_scale,
            looking,
            values.ravel()[looking],
            scale.ravel()[looking],
            table,
            passing,
            staying,
        )
        if self.shape[1] > 1:
            self._share(fresh.any(axis=1))

    def _drift(self, steps: Ints) -> tuple[Array, Array, Ints]:
        distinct, table = np.unique(steps, return_inverse=True)
        found = []
        for count in distinct.tolist():
            if count not in self._tables:
                self._tables[count] = drift_over(self.grid, count, self.least_scale)
            found.append(self._tables[count])
        return np.stack([pair[0] for pair in found]), np.stack([pair[1] for pair in found]), table

    def _share(self, replicas: Array) -> None:
        lesson = self._rows["lesson"].reshape(*self.shape, -1)
        learned = self._rows["learned"].reshape(self.shape)
        prior = np.exp(LOG_PRIOR) / np.exp(LOG_PRIOR).sum()
        weight = self._rows["weight"].reshape(*self.shape, -1)
        for replica in np.flatnonzero(replicas):
            pooled = (PRIOR_LOOKS * prior + weight[replica].sum(axis=0)) / (PRIOR_LOOKS + self.shape[1])
            self._tilt[replica] = POOL * np.log(pooled / prior)
            seen = learned[replica] > 0
            part = 1 / learned[replica, seen]
            self._shared[replica] = (part.astype(np.float32) @ lesson[replica, seen]) / seen.sum()
