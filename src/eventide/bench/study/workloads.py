"""Random workloads of window queries, on which planners are compared, with longer windows or steps if asked for.

They are those of Cao et al. (EDBT 2013). The same seed draws the same queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from eventide import windows
from eventide.windows.plans import Plan
from eventide.windows.workload import Query


def special(seed: int, queries: int = 100) -> list[Query]:
    """Steps that divide each other: 20, 40, ..., 10240; planned without a horizon."""
    return _drawn(Random(seed), [20 * 2**i for i in range(10)], queries)


def general(seed: int, queries: int = 100, steps: int = 10, longest: int = 100) -> list[Query]:
    """Any steps from 10 to `longest`; planned up to a horizon, 5,000 as published."""
    chance = Random(1000 + seed)
    return _drawn(chance, chance.sample(range(10, longest + 1), steps), queries)


def _drawn(chance: Random, steps: list[int], queries: int) -> list[Query]:
    """Each query has one of the steps and a window of one to ten of it."""
    drawn = []
    for _ in range(queries):
        step = chance.choice(steps)
        drawn.append(Query(step * chance.randint(1, 10), step))
    return drawn


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
