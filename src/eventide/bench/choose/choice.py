"""What a small study recommends, with the figures behind it, and how it is said in words.

All errors are mean absolute errors of one bin at one step, in the counts' own unit. The level is the mean count, which
is the error of a release that is all zeros: an error near it is worth nothing. Figures come from true counts and are
NOT PRIVATE.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eventide.arrays import Floats
from eventide.bench.choose.history import History
from eventide.bench.study.study import labelled
from eventide.display.drawings import percent, shown

USELESS = 0.5  # of the level: an error above it is not clearly better than zeros
CLEARLY = 0.9  # of an error: one below it is worth a weaker promise
NOTHING = 0.005  # of the events: what is left out and not worth a sentence
NEARLY_EVERY_STEP = 0.9  # of a window's steps measured anew
UNPAID = (
    "A choice made on private history tells something about it, and no budget covers that. Use public, old or made-up "
    "data, or describe the stream instead."
)


def beyond_the_limit(most: int, part: float) -> str:
    """What the limit of a person in a step leaves out, which no error shows.

    >>> beyond_the_limit(1, 0.25)
    'At most 1 event of a person in a step counts, which leaves out 25 % of the events: released counts are too small \
by so much on average, and the errors do not include that. A larger --max-per-step leaves out less, with more noise.'
    """
    events = "1 event" if most == 1 else f"{most} events"
    return (
        f"At most {events} of a person in a step {'counts' if most == 1 else 'count'}, which leaves out "
        f"{percent(part)} of the events: released counts are too small by so much on average, and the errors do not "
        "include that. A larger --max-per-step leaves out less, with more noise."
    )


@dataclass(frozen=True)
class Trial:
    """A candidate under one setting: its mean error, within which nine of ten runs lie, and fresh looks per window.

    levels: the mean errors of the groups of each level, where levels are asked for; the total is the last.
    """

    mechanism: str
    parameters: dict[str, Any]
    epsilon: float
    window: int
    error: float
    low: float
    high: float
    looks: float
    levels: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name and parameters."""
        return labelled(self.mechanism, self.parameters)


@dataclass(frozen=True)
class Remedy:
    """A change of the plan, the best trial with it, and the level of the counts that it leaves."""

    change: str
    trial: Trial
    level: float

    @property
    def share(self) -> float:
        """The error as a part of the level."""
        return self.trial.error / self.level

    def __str__(self) -> str:
        verdict = "" if self.share <= USELESS else ", which is not enough"
        return f"{self.change}: {self.trial.label} is off by {shown(self.trial.error)} ({percent(self.share)}){verdict}"


@dataclass(frozen=True)
class Choice:
    """The recommendation for a stream like this history, under epsilon and a window.

    candidates: every trial, best first; with levels that is the one whose errors, each relative to the least of its
    level, are the least on average. over_window, over_epsilon: trials at other settings. movement: by how much
    counts differ from their bin's median on average. season: its length in steps, 0 where there is none. hide: the
    longest sequence of steps that must not show, if it was given. remedies: what would help, if no candidate is useful.
    released: one run of the recommended candidate, beside `history.counts`.
    """

    history: History
    epsilon: float
    window: int
    sensitivity: int
    hide: int | None
    repetitions: int
    seed: int
    level: float
    movement: float
    season: int
    candidates: tuple[Trial, ...]
    over_window: tuple[Trial, ...]
    over_epsilon: tuple[Trial, ...]
    remedies: tuple[Remedy, ...]
    released: Floats = field(repr=False)

    @property
    def recommended(self) -> Trial:
        """The candidate with the least error, with levels on average over all of them."""
        return self.candidates[0]

    @property
    def useful(self) -> bool:
        """Whether the recommended candidate is clearly better than a release that is all zeros."""
        return self.recommended.error <= USELESS * self.level

    @property
    def rivals(self) -> list[Trial]:
        """Candidates that some runs could not tell from the recommended one."""
        return [trial for trial in self.candidates[1:] if trial.low <= self.recommended.high]

    def said(self, error: float) -> str:
        """An error in words."""
        return f"{shown(error)} ({percent(error / self.level)} of its usual level)"

    @property
    def verdict(self) -> str:
        """What to take and what to expect of it, in a sentence or two."""
        best = self.recommended
        if not self.useful:
            return (
                f"Nothing here is worth publishing: with {best.label}, the best candidate, a released count is off by "
                f"{self.said(best.error)}; a release that is all zeros is off by {shown(self.level)}."
            )
        return (
            f"Take {best.label}: expect the released count of a bin to be off by about {shown(best.error)} "
            f"({percent(best.error / self.level)} of its usual level, {shown(self.level)})."
        )

    @property
    def reading(self) -> list[str]:
        """What the figures mean for what can be seen in the releases."""
        best = self.recommended
        lines = []
        if self.history.left_out > NOTHING:
            lines.append(beyond_the_limit(self.sensitivity, self.history.left_out))
        if best.levels:
            told = ", ".join(f"{level} {shown(error)}" for level, error in best.levels.items())
            lines.append(
                f"Errors of the levels above: {told}. The best has the least error on average over all levels."
            )
        if self.useful and best.error > self.movement:
            lines.append(
                f"The counts are {shown(self.movement)} away from their usual level on average, and releases are "
                "off by more: they will show how large counts are, but little of their ups and downs."
            )
        if self.useful and best.looks < NEARLY_EVERY_STEP * self.window:
            times = "once" if shown(best.looks) == "1" else f"{shown(best.looks)} times"
            line = f"It measures anew {times} in {self.window} steps and repeats itself in between."
            for every_step in (trial for trial in self.candidates if trial.label == "uniform"):
                line += f" If every change must show at once, take uniform: off by {self.said(every_step.error)}."
            lines.append(line)
        if self.rivals:
            lines.append(f"About as good on this stream: {', '.join(trial.label for trial in self.rivals)}.")
        if len(self.history.counts) < 2 * self.window:
            lines.append("The stream is shorter than two windows, so these figures are rough.")
        return lines

    @property
    def window_advice(self) -> list[str]:
        """What a meaningful window is, and what it costs."""
        lines = [
            "w is the longest sequence of steps in which one person's events must not show (a trip, a stay, an "
            "illness), and no longer than that, since the error grows with it."
        ]
        if self.hide is not None and self.hide < self.window:
            lines.append(f"To hide {self.hide} steps, w = {self.hide} is enough{self._at(self.hide)}.")
        elif self.hide is not None and self.hide > self.window:
            lines.append(f"To hide {self.hide} steps, w must be {self.hide}{self._at(self.hide)}.")
        elif self.hide is not None:
            lines.append(f"w = {self.window} hides what you asked for, and no more.")
        if self.season:
            line = f"The stream repeats itself every {self.season} steps: a natural upper bound for w."
            longer = self.window > self.season + 1  # a season that begins in the middle of a step touches one more
            if longer and self._error_at(self.season) < CLEARLY * self.recommended.error:
                line += f" Yours is longer; think about w = {self.season}{self._at(self.season)}."
            lines.append(line)
        return lines

    @property
    def remedy_advice(self) -> list[str]:
        """What would help where nothing is useful, with figures."""
        if not self.remedies:
            return []
        return [
            "What would help (parts are of the level that the counts then have; longer steps only if a person still "
            "adds no more to one of them):",
            *map(str, self.remedies),
        ]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        notes = [f"{note[0].upper()}{note[1:]}." for note in self.history.notes]
        warning = [] if self.history.made_up else [UNPAID]
        return "\n".join(
            [self.verdict, *self.reading, *self.remedy_advice, "", *self.window_advice, "", *notes, *warning]
        ).rstrip()

    def _at(self, window: int) -> str:
        """The error to expect at another window, where it was tried, in words."""
        error = self._error_at(window)
        return f": off by {self.said(error)}" if math.isfinite(error) else ""

    def _error_at(self, window: int) -> float:
        """The error to expect at another window; infinite where none was tried."""
        tried = [trial for trial in self.over_window if trial.window == window]
        return least(tried).error if tried else math.inf


def best_first(trials: Sequence[Trial]) -> list[Trial]:
    """By their errors; with levels each counts relative to the least of its level, and all levels alike."""

    def errors(trial: Trial) -> Floats:
        return np.array([trial.error, *trial.levels.values()])

    least = np.maximum(np.min([errors(trial) for trial in trials], axis=0), np.finfo(float).tiny)
    return sorted(trials, key=lambda trial: float((errors(trial) / least).mean()))


def least(trials: Sequence[Trial]) -> Trial:
    """The trial with the least error."""
    return min(trials, key=lambda trial: trial.error)
