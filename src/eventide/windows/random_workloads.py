"""The random workloads of Cao et al. (EDBT 2013), as seeded generators: what planners are compared on.

The same seed draws the same queries.
"""

from __future__ import annotations

from random import Random

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
