"""How noisy the sum of the last few units is, where several of them may share one draw of noise.

Holds noise scales only, which are public.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints
from eventide.privacy.state import Stateful


class SlidingNoise(Stateful):
    """The noise of the sum of the last `span` units of `shape`, of which the latest may still be revised.

    Units that were published together, and those that repeat what was, carry the same draw: its share in the sum grows
    with their number. Draws of different publications are independent: their variances add up.

    Memory and time: O(d span) a step.

    >>> noise = SlidingNoise(span=3, shape=(1, 1))
    >>> for unit in range(3):
    ...     noise.push(np.array([[2.0]]), begins=unit != 1)  # the second repeats the first
    >>> round(float(noise.scale()[0, 0] ** 2))  # (2 + 2)^2 + 2^2
    20
    """

    state = ("_scales", "_begins", "_next")

    def __init__(self, span: int, shape: tuple[int, int]) -> None:
        self.span = span
        self._scales: Floats = np.zeros((span, *shape))
        self._begins: Bools = np.ones((span, *shape), dtype=np.bool_)  # whether a unit is the first of a publication
        self._next = 0

    def unknown(self) -> dict[str, Any]:
        """The state where nothing is known of the noise of any unit."""
        return self.snapshot() | {"_scales": np.full_like(self._scales, np.inf)}

    def push(self, scale: Array, *, begins: bool) -> None:
        """Append a unit with noise of `scale`: that of the unit before, unless a publication begins with it."""
        self._scales[self._next] = scale
        self._begins[self._next] = begins
        self._next = (self._next + 1) % self.span

    def revise(self, scale: Array, latest: Ints) -> None:
        """The `latest` units, cell by cell, are one publication, and each of them has noise of `scale`."""
        for back in range(1, min(int(latest.max()), self.span) + 1):
            place, within = self._next - back, latest >= back
            self._scales[place] = np.where(within, scale, self._scales[place])
            self._begins[place] = np.where(within, latest == back, self._begins[place])

    def begins_with_publication(self) -> Bools:
        """Whether the oldest unit is the first of those that were published together; also where there is none yet."""
        begins: Bools = self._begins[self._next].copy()
        return begins

    def scale(self) -> Floats:
        """The scale of Laplace noise with the variance of the sum's noise; infinite where that is not known."""
        squares = np.zeros(self._scales.shape[1:])
        together = np.zeros_like(squares)
        for place in (*range(self._next, self.span), *range(self._next)):
            begins = self._begins[place]
            squares += np.where(begins, together**2, 0)
            together = np.where(begins, 0, together) + self._scales[place]
        return np.sqrt(squares + together**2)
