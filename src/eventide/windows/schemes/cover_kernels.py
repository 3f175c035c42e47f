"""The cheapest chain of slots from every begin to its ends, compiled.

It sees budgets and times, never a count.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.compiling import kernel


@kernel()
def cheapest_chains(  # type: ignore[no-untyped-def]
    first: Ints, slot_end: Ints, resistance: Floats, begin: Ints, end: Ints, weight: Floats
):
    """For windows in order of begin: the least sum of resistances, and the weight that passes each slot.

    Everything is in positions of nodes; the slots that begin at node u are first[u] to first[u + 1]. One forward
    sweep per distinct begin serves all of its windows; one backward sweep sends their weights home along the chains.
    """
    nodes = len(first) - 1
    distance, came_by, mass = np.empty(nodes), np.empty(nodes, np.int64), np.zeros(nodes)
    start_of = np.empty(nodes, np.int64)
    cost, load = np.empty(len(begin)), np.zeros(len(slot_end))
    i = 0
    while i < len(begin):
        source, j, furthest = begin[i], i, begin[i]
        while j < len(begin) and begin[j] == source:
            furthest = max(furthest, end[j])
            j += 1
        distance[source : furthest + 1] = np.inf
        distance[source] = 0.0
        for u in range(source, furthest):
            if distance[u] < np.inf:
                for slot in range(first[u], first[u + 1]):
                    v = slot_end[slot]
                    if v <= furthest and distance[u] + resistance[slot] < distance[v]:
                        distance[v], came_by[v], start_of[v] = distance[u] + resistance[slot], slot, u
        for window in range(i, j):
            cost[window] = distance[end[window]]
            if cost[window] < np.inf:
                mass[end[window]] += weight[window]
        for v in range(furthest, source, -1):
            if mass[v] > 0.0:
                load[came_by[v]] += mass[v]
                mass[start_of[v]] += mass[v]
                mass[v] = 0.0
        mass[source] = 0.0
        i = j
    return cost, load
