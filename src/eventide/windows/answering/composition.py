"""What the answer to one window is made of: its slots, and the weight of each.

Found by answering itself, so it is what answers are really made of.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.errors import InputError
from eventide.windows.answering.estimates import Chained, Estimates, Fused
from eventide.windows.answering.timetable import Timetable
from eventide.windows.schemes.base import Scheme
from eventide.windows.schemes.cover import Layers
from eventide.windows.schemes.nested import Nested


class Composition(NamedTuple):
    """The answer is the sum over slots [begin, end) of `weight` times what was released of them."""

    level: Ints
    begin: Ints
    end: Ints
    weight: Floats


def composition(scheme: Scheme, begin: int, end: int, step: int) -> Composition:
    """The slots behind the on-time answer to the window [begin, end) of a query with the given step.

    Each slot that may have a part is released as 1 in a cell of its own and as 0 in all others: the estimates in the
    cells are then the weights.
    """
    timetable = Timetable(scheme, scheme.length)
    nodes = timetable.node(np.array([begin, end]))
    if (nodes < 0).any() or not 0 <= begin < end:
        raise InputError("a window begins or ends where no slot of the plan does; choose one of a planned query")
    closings = timetable.close(0, end)
    level = np.repeat(np.arange(len(closings)), [len(closing.ends) for closing in closings])
    first = np.concatenate([closing.begins for closing in closings])
    begins, ends = timetable.tick(first), np.concatenate([closing.ends for closing in closings])
    near = begins >= begins[(begins <= begin) & (begin < ends)].min(initial=begin)
    level, first, begins, ends = level[near], first[near], begins[near], ends[near]
    given = timetable, 1, len(first), end, 0
    estimates: Estimates = Fused(*given, False) if isinstance(scheme, Nested) else Chained(*given)
    cells = np.eye(len(first))
    for lane in range(len(closings)):
        estimates.release(lane, first[level == lane], cells[level == lane])
    estimates.close(int(nodes[1]))
    only = scheme.steps.index(scheme.serves[step]) if isinstance(scheme, Layers) else -1
    weights = estimates.answer(nodes[:1], nodes[1:], np.array([only]))[0][0]
    used = np.abs(weights) > 1e-12
    return Composition(level[used], begins[used], ends[used], weights[used])
