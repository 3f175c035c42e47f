"""Sliding-window count queries: plan which slots of time to release, know the errors before anything is spent, answer.

Names are resolved on first use, so importing this package loads no numpy.

>>> import eventide.windows as windows
>>> plan = windows.plan([windows.Query(15, 5), windows.Query(20, 10), windows.Query(350, 350)], epsilon=1.0)
>>> round(plan.workload_error, 1)
47.2
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eventide.privacy.amounts import Amount
    from eventide.windows.answering.answers import Answers
    from eventide.windows.answering.schedule import Answer, Due
    from eventide.windows.plans import Plan
    from eventide.windows.running_total import RunningTotal, Total
    from eventide.windows.saving import load
    from eventide.windows.workload import Query

_HOMES = {
    "Answer": "eventide.windows.answering.schedule",
    "Answers": "eventide.windows.answering.answers",
    "Due": "eventide.windows.answering.schedule",
    "Plan": "eventide.windows.plans",
    "Query": "eventide.windows.workload",
    "RunningTotal": "eventide.windows.running_total",
    "Total": "eventide.windows.running_total",
    "load": "eventide.windows.saving",
}

__all__ = ["Answer", "Answers", "Due", "Plan", "Query", "RunningTotal", "Total", "load", "plan"]


def plan(queries: Sequence[Query], epsilon: Amount = 1.0, planner: str = "best", horizon: int | None = None) -> Plan:
    """Plan how to answer `queries`, all asked from tick 0 on, with event-level privacy `epsilon`.

    Parameters
    ----------
    queries
        What is to be answered.
    epsilon
        The budget of one tick.
    planner
        base, binary, sample-dp (steps that divide each other), emd or best.
    horizon
        Without one the plan repeats with the cycle of the steps. With one it covers [0, min(horizon, cycle)) and drops
        windows that end later.
    """
    from eventide.windows.plans import Plan
    from eventide.windows.workload import Workload

    return Plan(Workload.of(queries, horizon), epsilon, planner)


if not TYPE_CHECKING:  # a type checker reads the imports above, and finds names that do not exist

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'eventide.windows' has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
