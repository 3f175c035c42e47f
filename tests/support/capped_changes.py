"""How the counts of one person can change under a cap: everything that the person can do, tried one by one."""

from __future__ import annotations

import functools
import itertools

import numpy as np


@functools.cache
def changes(cap, window):
    """How counts can change, step by step, when one person's rows in a window do: everything tried, however blocks lie.

    Without a cap each step of the window changes by one, and nothing behind it does.
    """
    if cap is None:
        return np.ones((1, window), int)
    found, rows = set(), [(1, 0), (0, 1), (1, 1), (0, 0)]
    for phase, used in itertools.product(range(cap.block), range(cap.events + 1)):
        if used > phase:  # one event a step
            continue
        behind = (cap.block - (phase + window)) % cap.block
        for inside in itertools.product(rows, repeat=window):
            for later in itertools.product([(1, 1), (0, 0)], repeat=behind):
                worlds = [counted(cap, phase, used, world) for world in zip(*inside, *later, strict=True)]
                changed = [abs(one - other) for one, other in zip(*worlds, strict=True)]
                found.add((*changed, *[0] * (window + cap.block - 1 - len(changed))))
    return np.array(sorted(found))


def counted(cap, phase, used, rows):
    """Which of a person's rows count, of whom so many have counted before them in a block `phase` steps old."""
    shown = []
    for step, row in enumerate(rows, start=phase):
        used = 0 if step % cap.block == 0 and step > phase else used
        shown.append(row if used < cap.events else 0)
        used += shown[-1]
    return shown
