"""How long Tide waits between looks: the interval whose predicted error is the smallest. Reads looks only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints
from eventide.filters.posterior_median import PosteriorMedian
from eventide.mechanisms.tide_kernels import TABLE_BEGIN, TABLE_SIZE, TABLE_STEP, predicted_losses
from eventide.privacy.state import Stateful

KNOB = [0.0, 0.5]
MEMORY = 40.0  # steps over which predicted errors are averaged, so that a lull does not lead to a long wait
GROWTH = 4
WATCHFUL_LOOKS = 1
EXPLORATION = 10
CLEAR_LEVEL = 7.5


class Interval(Stateful):
    state = ("_loss", "length", "_looks", "_clear")

    def __init__(self, replicas: int, window: int, least_scale: float) -> None:
        self.window = window
        self.least_scale = least_scale
        self.candidates: Ints = np.array([*(2**power for power in range((window - 1).bit_length())), window])
        self._noise = 2 * (least_scale * window / self.candidates) ** 2
        self._table = _table(self.candidates, least_scale * window)
        self._loss: Floats = np.zeros((replicas, len(self.candidates)))
        self._looks: Ints = np.zeros(replicas, np.int64)
        self._clear: Bools = np.zeros(replicas, np.bool_)
        self.length: Ints = np.ones((replicas, 1), np.int64)

    def choose(self, step: int, looks: Bools, values: Array, posterior: PosteriorMedian) -> None:
        """After looks of some replicas at `step`."""
        loss = np.empty_like(self._loss)
        median = np.ascontiguousarray(values).ravel()
        predicted_losses(np.array(KNOB), self.candidates * 1.0, self._noise, self._table, posterior.rows, posterior.resolved, median, self.least_scale, looks, loss)
        first = self._looks == 0
        self._clear = np.where(first & looks, values.mean(axis=1) > CLEAR_LEVEL * self.least_scale, self._clear)
        kept = np.where(first[:, None], 0, np.exp(-self.length / MEMORY))
        self._loss = np.where(looks[:, None], kept * self._loss + (1 - kept) * loss, self._loss)
        self._looks = self._looks + looks
        longest = np.where(self._looks <= WATCHFUL_LOOKS, 1, GROWTH * self.length[:, 0])
        if step < self.window:
            longest = np.where(self._clear, longest, np.minimum(longest, max(1, step // EXPLORATION)))
        best = np.minimum(self.candidates[self._loss.argmin(axis=1)], longest)
        self.length = np.where(looks, best, self.length[:, 0])[:, None]


def _table(candidates: Ints, scale: float) -> Floats:
    """The logarithm of the error of each interval (column) for each variance of a random walk (row)."""
    variance = 2.0 ** (TABLE_BEGIN + TABLE_STEP * np.arange(TABLE_SIZE))[:, None]
    noise = 2 * (scale / candidates) ** 2
    grown = variance * candidates
    before = (grown + np.sqrt(grown**2 + 4 * grown * noise)) / 2
    after = before * noise / (before + noise)
    ends = [np.sqrt(after + variance * steps) for steps in (0 * candidates, (candidates - 1) / 2, candidates - 1)]
    return np.log((ends[0] + 4 * ends[1] + ends[2]) / 6)
