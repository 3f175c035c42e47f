"""Work on many rows, side by side on all cores where it pays; the work must release the interpreter's lock.

Slices share nothing but what they read, so that the result does not depend on how many there are. Threads end with the
work: none is left to be lost in a fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

ENOUGH = 512  # rows; less is not worth a thread


def in_slices(rows: int, work: Callable[[int, int], None]) -> None:
    """Call `work(begin, end)` for slices that make up all rows."""
    most = rows // ENOUGH
    count = min(most, os.cpu_count() or 1) if most > 1 else 1  # to ask for the cores takes longer than a few rows
    if count == 1:
        work(0, rows)
        return
    edges = [rows * index // count for index in range(count + 1)]
    with ThreadPoolExecutor(count) as threads:
        list(threads.map(work, edges, edges[1:]))  # raises what a slice raised
