"""Runs a planner on a stream: plans the workload, answers it with many independent noises, measures the answers.

| metric | of one repetition |
|---|---|
| workload_error | the sum over queries of the mean variance of their answers, with 2 / epsilon^2 for a slot: computed |
| mae, mse, mre | the error of an answer, averaged over the answers to a query and then over queries |
| planning_seconds, answering_seconds | processor time of planning, and of answering the whole stream |

Memory is bounded however long the stream is.
"""

from __future__ import annotations

import time
from functools import cache
from typing import NamedTuple

import numpy as np

from eventide import windows
from eventide.arrays import Floats, Ints
from eventide.bench.study.metrics import ANSWER_ERRORS, MetricOptions, sanity_bounds
from eventide.bench.study.workloads import StudiedWorkload
from eventide.privacy.noise import Seeded, Zero
from eventide.windows.answering.schedule import Due
from eventide.windows.plans import Plan

CELLS_AT_ONCE = 2**21  # ticks times repetitions times bins that are pushed together


class PlanRun(NamedTuple):
    """A planner with a workload on a stream of counts `(T, d)`, under a setting, repeated; one seed for all."""

    planner: str
    workload: StudiedWorkload
    counts: Ints
    epsilon: float
    window: int
    repetitions: int
    seed: int

    def figures(self, metrics: tuple[str, ...], options: MetricOptions) -> dict[str, Floats]:
        """A figure for each repetition, of each metric."""
        _compile(self.planner)
        begin = time.process_time()
        plan = self.workload.plan(self.planner, self.epsilon, len(self.counts))
        planning = time.process_time() - begin
        errors, answering = self._answered(plan, options)
        found: dict[str, Floats | float] = dict(zip(ANSWER_ERRORS, errors, strict=True))
        found |= {
            "workload_error": plan.cost * self.window**2,
            "planning_seconds": planning,
            "answering_seconds": answering / self.repetitions,
        }
        return {name: np.broadcast_to(found[name], self.repetitions) for name in metrics}

    def _answered(self, plan: Plan, options: MetricOptions) -> tuple[Floats, float]:
        """Each of ANSWER_ERRORS for each repetition, and the processor time of all answers."""
        counts = self.counts if plan.scheme.periodic else self.counts[: plan.scheme.length]  # it ends there
        ticks, bins = counts.shape
        answers = plan.start(bins, window=self.window, noise=Seeded(self.seed), replicas=self.repetitions)
        sums = np.zeros((len(plan.queries), len(ANSWER_ERRORS), self.repetitions))
        answered = np.zeros(len(plan.queries))
        until = np.concatenate([np.zeros((1, bins), dtype=np.int64), np.cumsum(counts, axis=0)])
        bound = sanity_bounds(self.counts, options)
        length = max(1, CELLS_AT_ONCE // (self.repetitions * bins))
        seconds = 0.0
        for first in range(0, ticks, length):
            begin = time.process_time()
            due = answers.push_many(counts[first : first + length])
            seconds += time.process_time() - begin
            answered += np.bincount(due.query, minlength=len(answered))
            _add(sums, due.query, self._errors(due, until, bound))
        asked = answered > 0
        if not asked.any():
            return np.full((len(ANSWER_ERRORS), self.repetitions), np.nan), seconds
        return (sums[asked] / answered[asked, None, None]).mean(axis=0), seconds

    def _errors(self, due: Due, until: Ints, bound: Floats) -> Floats:
        """ANSWER_ERRORS of each answer and repetition, averaged over bins: `(answers, errors, repetitions)`."""
        truth = (until[due.end] - until[due.begin])[:, None]
        error = np.abs(due.value.reshape(len(due), self.repetitions, until.shape[1]) - truth)
        return np.stack([each.mean(axis=2) for each in (error, error**2, error / np.maximum(truth, bound))], axis=1)


def _add(sums: Floats, group: Ints, values: Floats) -> None:
    """Add each of the values to the sum of its group."""
    order = np.argsort(group, kind="stable")
    groups, first = np.unique(group[order], return_index=True)
    if len(groups):
        sums[groups] += np.add.reduceat(values[order], first, axis=0)


@cache
def _compile(planner: str) -> None:
    """Plan and answer once, so that no cell's time holds what it costs to compile."""
    windows.plan([windows.Query(8, 2), windows.Query(8, 4)], planner=planner).start(noise=Zero()).push_many([0] * 16)
