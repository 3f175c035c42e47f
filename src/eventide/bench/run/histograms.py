"""How far off histograms of the last `span` steps are, whoever publishes them.

| who | where the histogram comes from |
|---|---|
| a mechanism with a span (rg, rg-baseline, rg-window-baseline) | it publishes one at every step |
| any other mechanism | the sum of its last `span` releases, as it gives them without a filter |
| plan | answers to a window query of every bin; between two of them the last one stands |

All are rounded to whole counts from 0 up at the end, as the command line does it, and compared from the first whole
window on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from eventide import windows
from eventide.arrays import Floats, Ints
from eventide.mechanisms.registry import find_mechanism
from eventide.mechanisms.sliding_sum import SlidingSum
from eventide.mechanisms.window_baselines import WindowMechanism
from eventide.privacy.noise import Seeded

PLAN = "plan"  # its parameter `step` says how often the query is asked
LEAST_DIVISOR = 1.0  # of a relative error
LARGEST = 20  # bins
TICKS_AT_ONCE = 64


class HistogramErrors(NamedTuple):
    """Of each repetition, over all whole windows: the mean absolute and the mean relative error of all bins.

    `of_largest` is the mean absolute error of the bins that have most events, which a histogram is looked at for.
    """

    absolute: Floats
    relative: Floats
    of_largest: Floats


class HistogramRun(NamedTuple):
    """Counts `(T, d)` that somebody, by name and parameters, publishes some times."""

    name: str
    parameters: dict[str, Any]
    counts: Ints
    span: int
    epsilon: float
    window: int
    repetitions: int
    seed: int
    sensitivity: int = 1

    def errors(self) -> HistogramErrors:
        """Run it and compare."""
        until = np.cumsum(self.counts, axis=0)
        largest = np.argsort(-until[-1], kind="stable")[:LARGEST]
        sums = np.zeros((len(HistogramErrors._fields), self.repetitions))
        for step, told in enumerate(self.histograms()):
            if step < self.span - 1:
                continue
            truth = until[step] - (until[step - self.span] if step >= self.span else 0)
            error = np.abs(np.maximum(np.rint(told), 0) - truth)
            parts = (error, error / np.maximum(truth, LEAST_DIVISOR), error[:, largest])
            sums += [part.mean(axis=1) for part in parts]
        return HistogramErrors(*sums / (len(self.counts) - self.span + 1))

    def histograms(self) -> Iterator[Floats]:
        """The histogram after each step, `(R, d)`."""
        return self._planned() if self.name == PLAN else self._released()

    def _released(self) -> Iterator[Floats]:
        cls, (_, bins) = find_mechanism(self.name), self.counts.shape
        own: dict[str, Any] = {"span": self.span} if issubclass(cls, WindowMechanism) else {}
        mechanism = cls(
            epsilon=self.epsilon,
            window=self.window,
            bins=bins,
            replicas=self.repetitions,
            sensitivity=self.sensitivity,
            noise=Seeded(self.seed),
            **own,
            **self.parameters,
        )
        shape = (self.repetitions, bins)
        sums = SlidingSum(self.span, shape)
        for counts in self.counts:
            release = mechanism.release(counts)
            if release.window_values is None:
                sums.push(release.values.reshape(shape))
            yield sums.total if release.window_values is None else release.window_values.reshape(shape)

    def _planned(self) -> Iterator[Floats]:
        steps, bins = self.counts.shape
        plan = windows.plan([windows.Query(self.span, self.parameters.get("step", 1))], epsilon=self.epsilon)
        answers = plan.start(
            bins,
            window=self.window,
            sensitivity=self.sensitivity,
            noise=Seeded(self.seed),
            replicas=self.repetitions,
        )
        told = np.zeros((self.repetitions, bins))
        for first in range(0, steps, TICKS_AT_ONCE):
            due = answers.push_many(self.counts[first : first + TICKS_AT_ONCE])
            places = {int(end) - 1: place for place, end in enumerate(due.end)}
            for step in range(first, min(first + TICKS_AT_ONCE, steps)):
                if step in places:
                    told = due.value[places[step]].reshape(self.repetitions, bins)
                yield told
