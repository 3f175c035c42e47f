"""A plan as text for people: levels, budgets, predicted errors, other planners.

Every number follows from the plan; nothing is measured for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from eventide.arrays import Array
from eventide.privacy.amounts import NANO

if TYPE_CHECKING:
    from eventide.windows.plans import Plan


def explain(plan: Plan) -> str:
    """Levels, budgets, the predicted standard error of every query, and how other planners would do."""
    return "\n\n".join("\n".join(block) for block in (_head(plan), _levels(plan), _queries(plan), _comparison(plan)))


def _head(plan: Plan) -> list[str]:
    scheme, dropped = plan.scheme, plan.workload.dropped
    lasts = f"repeats every {scheme.length:,} ticks" if scheme.periodic else f"ends after {scheme.length:,} ticks"
    lines = [
        f"plan by {plan.planner!r}: {len(plan.queries):,} queries, epsilon {plan.epsilon:g} for every tick; it {lasts}",
        f"workload error {plan.workload_error:,.2f}, the sum over queries of the mean variance of an answer",
    ]
    if dropped:
        lines.append(f"not planned, because no window ends by the horizon: {', '.join(map(str, dropped))}")
    return lines


def _levels(plan: Plan) -> list[str]:
    slots = plan.slots
    rows = [("level", "slots", "ticks of a slot", "epsilon of a slot")]
    for level in np.unique(slots.level)[::-1].tolist():
        of_level = slots[np.flatnonzero(slots.level == level)]
        ticks, budget = of_level.end - of_level.begin, of_level.budget / NANO
        rows.append((str(level), f"{len(of_level):,}", value_range(ticks, ",.0f"), value_range(budget, ".4g")))
    return _table(rows)


def _queries(plan: Plan) -> list[str]:
    rows = [("query", "times", "standard error")]
    kind = plan.workload.kind
    for distinct, count in enumerate(plan.workload.count.tolist()):
        members = np.flatnonzero(kind == distinct)
        names = dict.fromkeys(str(plan.queries[i]) for i in members)
        rows.append((", ".join(names), str(count), f"{np.sqrt(plan.query_errors[members[0]]):,.2f}"))
    return _table(rows)


def _comparison(plan: Plan) -> list[str]:
    rows = [("planner", "workload error", "ratio")]
    for planner, error in plan.compare().items():
        rows.append((planner, f"{error:,.2f}", f"{error / plan.workload_error:.3g}"))
    return _table(rows)


def value_range(values: Array, form: str) -> str:
    """The least and the largest value in words; one of them where they look the same."""
    low, high = f"{values.min():{form}}", f"{values.max():{form}}"
    return low if low == high else f"{low} to {high}"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
