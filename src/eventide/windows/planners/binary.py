"""The planner `binary`: a binary tree of slots over segments as long as the longest window.

Leaves have ten ticks, are split where a window begins or ends (the kindest reading), and nodes are cut at the end of
their segment; every one of the k = ceil(log2(T / 10)) + 1 levels gets an equal budget. Segments do not follow the
cycle, so such a plan ends with the last window of its workload instead of repeating.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Ints
from eventide.errors import InputError
from eventide.windows.schemes.cover import Cover
from eventide.windows.schemes.scheme import stacked
from eventide.windows.workload import MOST_WINDOWS, Workload

LEAF = 10


def design(workload: Workload, budget: int, leaf: int = LEAF) -> Cover:
    """The plan of all levels of the tree, within `budget` nano-epsilon."""
    segment = int(workload.window.max())
    length = -(-int(workload.end.max()) // segment) * segment
    if length // leaf > MOST_WINDOWS:
        raise InputError(f"planner 'binary' would need more than {MOST_WINDOWS:,} leaves of {leaf} ticks; use 'best'")
    levels = max(0, (-(-segment // leaf) - 1).bit_length()) + 1
    cuts = np.unique(np.concatenate([workload.begin, workload.end]))
    layers = [_boundaries(leaf << level, segment, length) for level in range(levels)]
    layers[0] = np.union1d(layers[0], cuts)
    return Cover(stacked(layers, budget), length, periodic=False)


def _boundaries(size: int, segment: int, length: int) -> Ints:
    inside = np.arange(0, segment, size)
    return np.append((np.arange(0, length, segment)[:, None] + inside).ravel(), length)
