"""How long Tide waits between looks: as long as the predicted error is smallest.

Reads nothing but releases and public facts, so choosing is free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints
from eventide.filters.algorithms import ALGORITHMS, Algorithm
from eventide.filters.posterior_grid import JUMP
from eventide.filters.posterior_median import PosteriorMedian
from eventide.mechanisms.tide_kernels import Intervals, predicted_errors, seasonal_errors
from eventide.privacy.state import Stateful

MEMORY = 40.0  # steps over which predicted errors are averaged: a lull must not lead to a long wait
GROWTH = 4  # the most that a wait of several bins grows from one look to the next; it shrinks at once
FORESIGHT = 2  # in the first window a wait is at most this part of the steps so far: a calm night is no calm day
PATIENCE = 10  # the same for a stream that has shown nothing yet, so that its first burst is not missed
PHASES, ENOUGH, LOOKS = 13, 12, 60  # parts of a period, how many of them looks should meet, and how many looks
TRIED = 8  # waits, until one does
SEEN, AWAKE = 0.5, 0.05  # a count that is released as one; the part of bins with such counts in a stream that is awake
SLEEPING = 4  # with a calendar a stream that is not waits one part in so many of the window at the most
NEVER = -(10**9)  # the step of the last look before the first
CLEAR_LEVEL = 7.5  # in noise scales: a stream that begins above it has shown where it is


class Waits(Stateful):
    """The steps from each look to the next, `length`, a column `(R, 1)`: 1, 2, 4 and so on, up to the window.

    In the first window of a stream that begins clearly above the noise they are short; shorter still in that of any
    other stream if `watchful`, and else as long as may be. `looks` counts the looks so far, up to two. `clear` says
    where the last one was clearly above noise, `began_unseen` where the first one showed so little that there is a
    second one besides.
    """

    state = ("length", "clear", "looks", "_last", "_errors", "_clear", "began_unseen")

    def __init__(
        self, replicas: int, window: int, least_scale: float, watchful: bool = True, periods: tuple[float, ...] = ()
    ) -> None:
        self.window, self.least_scale, self.watchful, self.periods = window, least_scale, watchful, periods
        self.steps: Ints = np.array([*(2**power for power in range((window - 1).bit_length())), window])
        waited: Floats = self.steps.astype(np.float64)
        rate = JUMP[:, None]
        missed = 1 - (1 - (1 - rate) ** waited) / (rate * waited)
        self._choices = Intervals(waited, 2 * (least_scale * window / waited) ** 2, missed)
        self.length: Ints = np.ones((replicas, 1), dtype=np.int64)
        self._errors: Floats = np.zeros((replicas, len(self.steps)))
        self.looks: Ints = np.zeros((replicas, 1), dtype=np.int64)
        self._last: Ints = np.full((replicas, 1), NEVER)
        self._clear: Bools = np.zeros((replicas, 1), dtype=np.bool_)
        self.clear: Bools = np.zeros((replicas, 1), dtype=np.bool_)
        self.began_unseen: Bools = np.zeros((replicas, 1), dtype=np.bool_)
        self._careful_until: float = window
        self.follow(ALGORITHMS[1], several=True)

    def follow(self, algorithm: Algorithm, *, several: bool) -> None:
        """With a calendar the seasonal voice has its say, and `several` bins wait less while they show their day."""
        self._believed, self._growth = algorithm.believed, GROWTH if several else algorithm.alone_growth
        self._seen_level = CLEAR_LEVEL * (1 if several else algorithm.alone_share)
        self._begins_again = False
        if algorithm.again_below is not None and not several:
            self._seen_level, self._begins_again = algorithm.again_below * self.window, True
        careful = several and moves_within(self.window, self.periods, algorithm)
        self._careful = algorithm.foresight if careful else FORESIGHT
        self._at_least = max(self.window // algorithm.early, 1) if careful and algorithm.early else 1
        if self.periods and algorithm.day_is_enough:
            self._careful_until = min(self.window, *self.periods)

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take over a state; older versions had no `looks`, and still older ones no `clear` and no `began_unseen`."""
        looks = np.where(snapshot["_last"] == NEVER, 0, np.where(snapshot["_last"] == 0, 1, 2))
        later = {"clear": snapshot["_clear"], "began_unseen": ~snapshot["_clear"], "looks": looks}
        super().restore(later | snapshot)

    def wait(self) -> Ints:
        """The steps from a look to the next: `length`, or a little less where that would meet few phases of a day."""
        if not self.periods:
            return self.length
        lengths = self.length[:, 0].tolist()
        return np.array([[meeting_phases(length, self.periods, length == self.window)] for length in lengths])

    def choose(self, step: int, looks: Bools, due: Bools, values: Array, posterior: PosteriorMedian) -> None:
        """Set the wait of the replicas that looked at `step`, if it was `due` to end or is too long by now.

        `looks` and `due` are columns `(R, 1)`; `values` is what was released.
        """
        errors = self._predicted(self._choices, self.least_scale, looks[:, 0], values, posterior)
        begins, again = looks & (self.looks == 0), looks & (self.looks == 1) & self.began_unseen & self._begins_again
        kept = np.where(again, 0.0, np.exp(-(step - self._last) / MEMORY))
        self._errors = np.where(looks, kept * self._errors + (1 - kept) * errors, self._errors)
        level = values.mean(axis=1, keepdims=True)
        clear = level > CLEAR_LEVEL * self.least_scale
        self.clear = np.where(looks, clear, self.clear)
        self._clear = np.where(begins | again, clear, self._clear)
        self.began_unseen = np.where(begins, level <= self._seen_level * self.least_scale, self.began_unseen)
        self.looks, self._last = np.minimum(self.looks + looks, 2), np.where(looks, step, self._last)
        longest = np.where(due, self._growth, 1) * self.length
        if step < self.window:
            part = np.where(self._clear, self._careful if step < self._careful_until else FORESIGHT, PATIENCE)
            short = np.minimum(longest, np.maximum(step // part, np.where(self._clear, self._at_least, 1)))
            longest = np.where(self._clear | self.watchful, short, longest)
        if self.periods:  # a stream that sleeps: blurrier looks still release 0, and show sooner that it wakes
            sleeps = (values >= SEEN).mean(axis=1, keepdims=True) < AWAKE
            longest = np.where(sleeps, np.minimum(longest, max(self.window // SLEEPING, 1)), longest)
        best = self.steps[self._errors.argmin(axis=1)][:, None]
        self.length = np.where(looks, np.minimum(best, longest), self.length)

    def _predicted(
        self, choices: Intervals, least_scale: float, looks: Bools, values: Array, posterior: PosteriorMedian
    ) -> Floats:
        """The error at each interval, `(R, intervals)`, added over bins."""
        voice, rest = posterior.voice, np.ones_like(posterior.rows.grid_share)
        seasonal: Floats | float = 0.0
        if voice is not None:
            heard = voice.say / self._believed
            rest -= heard
            together, whole = np.zeros((len(looks), len(choices.steps))), posterior.sum_of_bins
            if whole is not None:
                wider = choices._replace(noise=whole.bins * choices.noise)
                blurred = math.sqrt(whole.bins) * least_scale
                together = self._predicted(wider, blurred, looks, whole.now, whole.filter) / whole.now
            seasonal = seasonal_errors(choices, voice.rows, together, heard, least_scale, looks)
        alone: Floats = predicted_errors(choices, posterior.rows, values.ravel(), rest, least_scale, looks)
        return seasonal + alone


def moves_within(window: int, periods: Sequence[float], algorithm: Algorithm) -> bool:
    """Whether bins with a calendar will move before the first window is over."""
    return bool(periods) and window >= algorithm.short_window * min(periods)


@cache
def meeting_phases(length: int, periods: tuple[float, ...], longer: bool = False) -> int:
    """The wait nearest to `length` with which looks meet enough phases of all periods: a little shorter, or `longer`.

    Looks every 8 hours would only ever show three hours of the day. A wait of a whole window must not become shorter:
    the look behind it would find its budget spent.

    >>> meeting_phases(8, (24.0, 168.0)), meeting_phases(8, (37.0,)), meeting_phases(24, (24.0,), longer=True)
    (7, 8, 25)
    """
    other = min(length // 3, TRIED)
    tried = range(length, length + other + 1) if longer else range(length, max(length - other, 1) - 1, -1)
    return max(tried, key=lambda wait: min(_phases(wait, period) for period in periods))


def _phases(wait: int, period: float) -> int:
    """How many parts of a period are met by looks so many steps apart, up to enough."""
    return min(len({int(PHASES * (look * wait / period % 1.0)) for look in range(LOOKS)}), ENOUGH)
