"""The planner `sample-dp`: the best few steps of a nested list, found by dynamic programming (Cao et al., EDBT 2013).

The sorted steps, each dividing the next, are cut into k runs; the first step of a run has a layer and serves the run.
With equal budgets a run costs 2 k^2 times its queries' ticks per slot, so one table of (steps taken, runs) without the
factor k^2 is enough. Time O(L^3) for L steps.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise

from eventide.errors import InputError
from eventide.windows.schemes.cover import Layers
from eventide.windows.workload import Workload


def is_nested(steps: list[int]) -> bool:
    """Whether each of the ascending steps divides the next."""
    return all(long % short == 0 for short, long in pairwise(steps))


def chosen_steps(steps: list[int], slots: list[int]) -> list[int]:
    """The steps to release, when the queries of steps[i] together need slots[i] slots of their own step.

    >>> chosen_steps([5, 10, 350], [3, 2, 1])
    [5, 350]
    """
    ticks = list(accumulate((step * needed for step, needed in zip(steps, slots, strict=True)), initial=0))

    def longer(cut: tuple[Fraction, list[int]], start: int, stop: int) -> tuple[Fraction, list[int]]:
        return cut[0] + Fraction(ticks[stop] - ticks[start], steps[start]), [*cut[1], start]

    plans = []
    cheapest: dict[int, tuple[Fraction, list[int]]] = {0: (Fraction(0), [])}  # by the number of steps cut into runs
    for runs in range(1, len(steps) + 1):
        cheapest = {
            stop: min(longer(cut, start, stop) for start, cut in cheapest.items() if start < stop)
            for stop in range(runs, len(steps) + 1)
        }
        cost, starts = cheapest[len(steps)]
        plans.append((runs**2 * cost, starts))
    return [steps[i] for i in min(plans)[1]]


def design(workload: Workload, budget: int) -> Layers:
    """The plan of the chosen steps, within `budget` nano-epsilon."""
    steps, slots = workload.steps.sizes, workload.steps.slots
    if not is_nested(steps):
        raise InputError("planner 'sample-dp' needs steps that divide each other; use 'best' or 'emd'")
    chosen = chosen_steps(steps, slots)
    serves = {step: max(c for c in chosen if c <= step) for step in steps}
    return Layers.of(workload, chosen, serves, budget)
