"""How long Tide waits between looks: as long as the predicted error is smallest.

Reads nothing but releases and public facts, so choosing is free.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints
from eventide.filters.posterior_grid import JUMP
from eventide.filters.posterior_median import PosteriorMedian
from eventide.mechanisms.tide_kernels import Intervals, predicted_errors
from eventide.privacy.state import Stateful

MEMORY = 40.0  # steps over which predicted errors are averaged: a lull must not lead to a long wait
GROWTH = 4  # the most that a wait grows from one look to the next; it shrinks at once
FORESIGHT = 2  # in the first window a wait is at most this part of the steps so far: a calm night is no calm day
PATIENCE = 10  # the same for a stream that has shown nothing yet, so that its first burst is not missed
NEVER = -(10**9)  # the step of the last look before the first
CLEAR_LEVEL = 7.5  # in noise scales: a stream that begins above it has shown where it is


class Waits(Stateful):
    """The steps from each look to the next, `length`, a column `(R, 1)`: 1, 2, 4 and so on, up to the window.

    In the first window of a stream that begins clearly above the noise they are short; shorter still in that of any
    other stream if `watchful`, and else as long as may be.
    """

    state = ("length", "_last", "_errors", "_clear")

    def __init__(self, replicas: int, window: int, least_scale: float, watchful: bool = True) -> None:
        self.window, self.least_scale, self.watchful = window, least_scale, watchful
        self.steps: Ints = np.array([*(2**power for power in range((window - 1).bit_length())), window])
        waited: Floats = self.steps.astype(np.float64)
        rate = JUMP[:, None]
        missed = 1 - (1 - (1 - rate) ** waited) / (rate * waited)
        self._choices = Intervals(waited, 2 * (least_scale * window / waited) ** 2, missed)
        self.length: Ints = np.ones((replicas, 1), dtype=np.int64)
        self._errors: Floats = np.zeros((replicas, len(self.steps)))
        self._last: Ints = np.full((replicas, 1), NEVER)
        self._clear: Bools = np.zeros((replicas, 1), dtype=np.bool_)

    def choose(self, step: int, looks: Bools, due: Bools, values: Array, posterior: PosteriorMedian) -> None:
        """Set the wait of the replicas that looked at `step`, if it was `due` to end or is too long by now.

        `looks` and `due` are columns `(R, 1)`; `values` is what was released.
        """
        errors = predicted_errors(
            self._choices, posterior.rows, values.ravel(), posterior.grid_share, self.least_scale, looks[:, 0]
        )
        kept = np.exp(-(step - self._last) / MEMORY)
        self._errors = np.where(looks, kept * self._errors + (1 - kept) * errors, self._errors)
        level = values.mean(axis=1, keepdims=True)
        self._clear = np.where(looks & (self._last == NEVER), level > CLEAR_LEVEL * self.least_scale, self._clear)
        self._last = np.where(looks, step, self._last)
        longest = np.where(due, GROWTH, 1) * self.length
        if step < self.window:
            part = np.where(self._clear, FORESIGHT, PATIENCE)
            short = np.minimum(longest, np.maximum(step // part, 1))
            longest = np.where(self._clear | self.watchful, short, longest)
        best = self.steps[self._errors.argmin(axis=1)][:, None]
        self.length = np.where(looks, np.minimum(best, longest), self.length)
