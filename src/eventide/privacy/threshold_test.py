"""The sparse-vector run behind the measurement "test" over distances. The noise of its threshold is never shown."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from eventide.arrays import Array, Ints
from eventide.privacy.state import Stateful


class ThresholdTest(Stateful):
    """One AboveThreshold run for each replica: many distances compared with a threshold, one budget until one is above.

    A run with budget e adds noise of scale 2 sensitivity / e to the threshold, once, and of scale 4 sensitivity / e to
    every distance; it ends at its first positive answer. Private because: if every distance moves by at most
    sensitivity, moving the threshold's noise by sensitivity and the positive answer's by twice that gives the same
    answers, at a loss of e/2 each. So the whole run costs e, however long, in every window that touches it: a span.
    """

    THRESHOLD_FACTOR, QUERY_FACTOR = 2, 4
    state: ClassVar[tuple[str, ...]] = ("_budget", "_threshold_noise")

    def __init__(self, lane: str, replicas: int) -> None:
        self.lane = lane
        self._budget: Ints = np.zeros((replicas, 1), dtype=np.int64)
        self._threshold_noise: Array = np.zeros((replicas, 1), dtype=np.int64)

    @property
    def running(self) -> Array:
        """Which replicas have a run open."""
        return self._budget > 0
