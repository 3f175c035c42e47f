"""The planner `best`: a nested plan found by exact dynamic programming, and never worse than the published planners.

A level is put on top of a plan by the exact program of level_kernels, level after level while the error falls by more
than a thousandth. Going up greedily would give the first level too much when a second one will carry the long windows,
so the first is built several times with their weight damped. Where a step spans more slots than the program may merge,
its slots serve as a scaffold without budget. The winner's budgets are then refined slot by slot. Returned is the best
of that plan, the steps of `sample-dp` as a nested plan, and `emd` with equal budgets and with better ones: at equal
budgets a nested plan never errs more than chains of its slots, and `emd` never more than `base`.

Time O(slots * REACH * fractions + windows * levels), some thirty times.
"""

from __future__ import annotations

import numpy as np

from eventide.privacy.amounts import NANO
from eventide.windows.planners import emd, sample_dp
from eventide.windows.planners.level_kernels import Parts, best_level
from eventide.windows.schemes.cover import Cover
from eventide.windows.schemes.nested import Level, Nested, TopLevelView
from eventide.windows.schemes.scheme import workload_error
from eventide.windows.workload import Workload

FRACTIONS = np.arange(10, 87, 4) / 100
DAMPINGS = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
SCAFFOLD_DAMPINGS = (1.0, 0.12)
SCAFFOLDS = 6
REACH = 48
ROUNDS = 10


def design(workload: Workload, budget: int) -> Nested | Cover:
    """The plan with the least error of all candidates, within `budget` nano-epsilon."""
    plans = [grown(workload)]
    steps, slots = workload.steps.sizes, workload.steps.slots
    if sample_dp.is_nested(steps):
        chosen = sample_dp.chosen_steps(steps, slots)[1:]
        plans.append(nested_steps(workload, {step: 1 / (level + 2) for level, step in enumerate(chosen)}))
    cover = emd.design(workload, budget)
    begin, end, weight = workload.pieces
    candidates: list[Nested | Cover] = [refined(workload, plan).with_budget(budget) for plan in plans]
    candidates += [cover, cover.rebalanced(workload.nodes[begin], workload.nodes[end], weight, budget)]
    # up to rounding the first of equals: a nested plan answers a window in O(levels), however long its chain
    return min(candidates, key=lambda plan: float(f"{workload_error(workload, plan):.12g}"))


def nested_steps(workload: Workload, fractions: dict[int, float]) -> Nested:
    """The atoms, and above them a level for each step, of which each slot takes the given fraction of what is left."""
    last = len(workload.nodes) - 1
    levels = [Level(np.arange(last + 1), np.ones(last))]
    for step, fraction in fractions.items():
        bounds = np.union1d(np.flatnonzero((workload.start + workload.nodes) % step == 0), [0, last])
        levels.append(Level(bounds, np.full(len(bounds) - 1, fraction)))
    return Nested(workload.nodes, levels, NANO, workload.periodic)


def grown(workload: Workload) -> Nested:
    """The best plan that the dynamic program builds on the atoms alone and on scaffolds."""
    scaffolds = [nested_steps(workload, {step: 0.0}) for step in workload.steps.sizes]
    scaffolds = [plan for plan in scaffolds if np.diff(plan.levels[1].bounds).max() > REACH]
    spread = np.linspace(0, len(scaffolds) - 1, min(SCAFFOLDS, len(scaffolds))).astype(int)
    starts = [(nested_steps(workload, {}), damping) for damping in DAMPINGS]
    starts += [(scaffolds[i], damping) for i in spread for damping in SCAFFOLD_DAMPINGS]
    plans = [_grow(workload, plan, damping) for plan, damping in starts]
    return min(plans, key=lambda found: found[0])[1]


def _grow(workload: Workload, plan: Nested, damping: float) -> tuple[float, Nested]:
    """One level built with damping, then more while they pay; the plan's error comes first."""
    begin, end, weight = workload.pieces
    _, plan = with_level(workload, plan, plan.view(begin, end), damping)
    view = plan.view(begin, end)
    error = float((weight * view.variance).sum())
    while True:
        lower, higher = with_level(workload, plan, view)
        if lower > 0.999 * error:
            return error, plan
        plan, error, view = higher, lower, higher.view(begin, end)


def with_level(workload: Workload, plan: Nested, view: TopLevelView, damping: float = 1.0) -> tuple[float, Nested]:
    """The error and the plan with the best level on top, given how the present top level sees the windows.

    With damping the error is not the plan's: passing windows count only that much.
    """
    begin, _, weight = workload.pieces
    bounds = plan.levels[-1].bounds
    parts = Parts(
        group=np.append(0, np.searchsorted(begin, bounds, side="right")),
        place=np.searchsorted(bounds, np.arange(len(plan.nodes))),
        last=view.last,
        weight=weight,
        variance=view.variance,
        to_begin=view.to_begin,
        to_high=view.to_high,
        rest=view.rest,
    )
    single = len(plan.levels) > 1  # on an atom the level below could as well have kept the budget
    error, until, fraction = best_level(plan.tables.chain[-1, bounds], parts, FRACTIONS, damping, REACH, single)
    cuts = [0]
    while cuts[-1] < len(until):
        cuts.append(int(until[cuts[-1]]))
    levels = [*plan.levels, Level(bounds[cuts], fraction[cuts[:-1]])]
    return error, Nested(plan.nodes, levels, NANO, plan.periodic)


def refined(workload: Workload, plan: Nested) -> Nested:
    """The plan without idle levels and with better budgets."""
    plan = plan.simplified()
    for _ in range(ROUNDS):
        plan = plan.with_best_fractions(*workload.pieces)
    return plan
