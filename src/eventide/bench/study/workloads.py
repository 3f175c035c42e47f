"""Workloads of window queries for studies: random ones as published, with longer windows or steps if asked for.

The same seed gives the same queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eventide import windows
from eventide.windows.plans import Plan
from eventide.windows.random_workloads import general, special
from eventide.windows.workload import Query

WORKLOADS = {"special": special, "general": general}


@dataclass(frozen=True)
class StudiedWorkload:
    """A hundred random queries, drawn by one of WORKLOADS, with their windows or steps made some times longer.

    A longer step has a longer window with it: each keeps the number of its steps.
    """

    name: str
    seed: int = 0
    window_factor: int = 1
    step_factor: int = 1

    @property
    def queries(self) -> list[Query]:
        """The queries."""
        longer = self.step_factor * self.window_factor
        return [
            Query(query.window * longer, query.step * self.step_factor) for query in WORKLOADS[self.name](self.seed)
        ]

    def plan(self, planner: str, epsilon: float, ticks: int) -> Plan:
        """Plan for ever if the steps divide each other, else to the end of a stream that has so many ticks."""
        return windows.plan(self.queries, epsilon, planner, None if self.name == "special" else ticks)

    @property
    def described(self) -> dict[str, Any]:
        """Name, seed and factors, by their names in a study file."""
        return {
            "workload": self.name,
            "workload_seed": self.seed,
            "window_factor": self.window_factor,
            "step_factor": self.step_factor,
        }
