"""The planner `sample-dp`: the best few steps of a nested list, found by dynamic programming (Cao et al., EDBT 2013).

The sorted steps, each dividing the next, are cut into k runs; the first step of a run has a layer and serves the run.
With equal budgets a run costs 2 k^2 times its queries' ticks per slot, so one table of (steps taken, runs) without the
factor k^2 is enough. Time O(L^3) for L steps. Imports eventide.errors, the layers and the workload.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from eventide.errors import InputError
from eventide.windows.cover import Layers
from eventide.windows.workload import Workload


def is_nested(steps: list[int]) -> bool:
    """Whether each of the ascending steps divides the next."""
    return all(long % short == 0 for short, long in pairwise(steps))


def chosen_steps(steps: list[int], slots: list[int]) -> list[int]:
    """The steps to release, when the queries of steps[i] together need slots[i] slots of their own step.

    >>> chosen_steps([5, 10, 350], [3, 2, 1])
    [5, 350]
    """
    total = len(steps)
    ticks = [0]
    for step, needed in zip(steps, slots, strict=True):
        ticks.append(ticks[-1] + step * needed)
    # least[j]: the cheapest cut of the first j steps into the present number of runs, and where these begin
    least: dict[int, tuple[Fraction, list[int]]] = {0: (Fraction(0), [])}
    plans = []
    for runs in range(1, total + 1):
        least = {
            j: min((cost + Fraction(ticks[j] - ticks[i], steps[i]), [*begins, i]) for i, (cost, begins) in least.items() if i < j)
            for j in range(runs, total + 1)
        }
        plans.append((runs**2 * least[total][0], least[total][1]))
    return [steps[i] for i in min(plans)[1]]


def design(workload: Workload, budget: int) -> Layers:
    """The plan of the chosen steps, within `budget` nano-epsilon."""
    steps, _, slots = workload.steps
    if not is_nested(steps):
        raise InputError("planner 'sample-dp' needs steps that divide each other; use 'best' or 'emd'")
    chosen = chosen_steps(steps, slots)
    serves = {step: max(c for c in chosen if c <= step) for step in steps}
    return Layers(chosen, serves, workload.length, workload.periodic, budget)
