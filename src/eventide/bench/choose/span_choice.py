"""What histograms of the last steps are worth, published in one way or another, and how it is said in words.

All errors are mean absolute errors of one bin of the histogram at one step. The level is the mean of the true
histograms, which is the error of nothing but zeros. Most histograms are looked at for their largest bins, so these
have an error and a level of their own. Figures come from true counts and are NOT PRIVATE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eventide.bench.choose.choice import UNPAID, USELESS
from eventide.bench.choose.history import History
from eventide.bench.run.histograms import LARGEST, PLAN
from eventide.bench.study.study import labelled
from eventide.display.drawings import percent, shown


@dataclass(frozen=True)
class SpanTrial:
    """One way to publish histograms: its mean error, within which nine of ten runs lie, and that of the largest bins.

    how: "published", "planned" or "summed": whether the mechanism gives histograms itself, a plan of window queries
    does, or releases are added up.
    """

    mechanism: str
    parameters: dict[str, Any]
    how: str
    error: float
    low: float
    high: float
    relative: float
    of_largest: float

    @property
    def label(self) -> str:
        """What is published."""
        name = labelled(self.mechanism, self.parameters)
        return f"sum of {name}" if self.how == "summed" else name


@dataclass(frozen=True)
class SpanChoice:
    """How to publish the histogram of the last `span` steps of a stream like this history; the best trial first."""

    history: History
    span: int
    epsilon: float
    window: int
    sensitivity: int
    repetitions: int
    seed: int
    level: float
    level_of_largest: float
    trials: tuple[SpanTrial, ...]

    @property
    def best(self) -> SpanTrial:
        """The trial with the least error of all bins; where that is worth nothing, of the largest bins."""
        return self.trials[0] if self._fits_all else self.best_of_largest

    @property
    def best_of_largest(self) -> SpanTrial:
        """The trial with the least error of the largest bins."""
        return min(self.trials, key=lambda trial: trial.of_largest)

    @property
    def useful(self) -> bool:
        """Whether the best trial is clearly better than zeros, of all bins or of the largest."""
        return self._fits_all or self.best_of_largest.of_largest <= USELESS * self.level_of_largest

    @property
    def _fits_all(self) -> bool:
        return self.trials[0].error <= USELESS * self.level

    @property
    def verdict(self) -> str:
        """What to take and what to expect of it."""
        best = self.best
        if not self.useful:
            return (
                f"Nothing here is worth publishing: with {self.trials[0].label}, the best, a bin of the histogram is "
                f"off by {shown(self.trials[0].error)}; a histogram that is all zeros is off by {shown(self.level)}."
            )
        if not self._fits_all:
            return (
                f"Only large bins can be seen. Take {best.label} for the last {self.span} steps: expect the {LARGEST} "
                f"largest bins to be off by about {self._of_largest(best)}."
            )
        return (
            f"Take {best.label} for the last {self.span} steps: expect a bin of the histogram to be off by about "
            f"{shown(best.error)} ({percent(best.error / self.level)} of its usual level, {shown(self.level)})."
        )

    @property
    def reading(self) -> list[str]:
        """What the figures mean, and what else is nearly as good."""
        best, large = self.best, self.best_of_largest
        lines = [f"{HOW[best.how]}."]
        if large != best:
            lines.append(
                f"Of the {LARGEST} largest bins {large.label} is best: off by about {self._of_largest(large)}."
            )
        if best.mechanism == PLAN and best.parameters.get("step", 1) > 1:
            every = best.parameters["step"]
            lines.append(f"It comes every {every} steps, and its error counts what changes until the next one.")
        if rivals := [trial.label for trial in self.trials if trial != best and trial.low <= best.high]:
            lines.append(f"About as good on this stream: {', '.join(rivals)}.")
        if len(self.history.counts) < 2 * max(self.window, self.span):
            lines.append("The stream is shorter than two windows, so these figures are rough.")
        return lines

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        notes = [f"{note[0].upper()}{note[1:]}." for note in self.history.notes]
        return "\n".join([self.verdict, *self.reading, *notes, *([] if self.history.made_up else [UNPAID])])

    def _of_largest(self, trial: SpanTrial) -> str:
        part = percent(trial.of_largest / self.level_of_largest)
        return f"{shown(trial.of_largest)} ({part} of their usual level, {shown(self.level_of_largest)})"


HOW = {
    "published": "It publishes the histogram at every step, beside the counts of the step",
    "planned": "A plan of window queries over the bins answers it, and publishes no counts of single steps",
    "summed": "Add up its last releases, published with --filter none, and round at the end: a sum of rounded releases "
    "is too large",
}
