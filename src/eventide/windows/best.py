"""The planner `best`: a nested plan found by exact dynamic programming, and never worse than the published planners.

A level is put on top of a plan by the exact program of level_kernels, level after level while the error falls by more
than a thousandth. Going up greedily would give the first level too much when a second one will carry the long windows,
so the first is built several times with their weight damped. Where a step spans more slots than the program may merge,
its slots without budget serve as scaffold. The winner's budgets are then refined slot by slot, and the least error of
it, the nested form of `sample-dp` and `emd` with equal and with refined budgets is returned: at equal budgets a nested
plan never errs more than chains of its slots, and `emd` never more than `base`.

Time O(slots * REACH * fractions + windows * levels), some twenty times. Imports numpy, the workload, nested plans and
the planners it competes with.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.privacy.amounts import NANO
from eventide.windows import emd, sample_dp
from eventide.windows.cover import Cover
from eventide.windows.level_kernels import Parts, best_level
from eventide.windows.nested import Level, Nested
from eventide.windows.nested_kernels import decompose
from eventide.windows.slots import Slots
from eventide.windows.workload import Workload

FRACTIONS = np.arange(10, 87, 4) / 100
DAMPINGS = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
SCAFFOLD_DAMPINGS = (1.0, 0.12)
SCAFFOLDS = 6
REACH = 48
ENOUGH = 0.999  # a further level or round must bring the error below this part of it


def design(workload: Workload, budget: int) -> Nested | Cover:
    """The plan with the least error that is known, within `budget` nano-epsilon."""
    nested = [refined(workload, grown(workload))]
    steps, _, slots = workload.steps
    if sample_dp.is_nested(steps):
        nested.append(refined(workload, on_steps(workload, sample_dp.chosen_steps(steps, slots))))
    cover = emd.design(workload, budget)
    plans = [*(plan.with_budget(budget) for plan in nested), cover, rebalanced(workload, cover, budget)]
    return min(plans, key=lambda plan: error(workload, plan))


def error(workload: Workload, plan: Nested | Cover) -> float:
    """The sum of the queries' mean variances under `plan`."""
    begin, end, weight = workload.pieces
    nodes = workload.nodes
    return float(weight @ plan.variance(nodes[begin], nodes[end], begin))


def grown(workload: Workload) -> Nested:
    """The best plan that the dynamic program builds from the atoms and from scaffolds."""
    atoms = on_steps(workload, [])
    scaffolds = [
        plan for step in workload.steps[0]
        if np.diff((plan := on_steps(workload, [step])).levels[-1].bounds).max() > REACH
    ]
    spread = np.linspace(0, len(scaffolds) - 1, min(SCAFFOLDS, len(scaffolds))).astype(int)
    starts = [(atoms, damping) for damping in DAMPINGS]
    starts += [(scaffolds[i], damping) for i in spread for damping in SCAFFOLD_DAMPINGS]
    return min((_grow(workload, *start) for start in starts))[1]
