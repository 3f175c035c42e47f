"""Neighbouring streams: two streams that one person may turn into one another.

They differ inside `window` consecutive steps only, at each of them by one person's row added or removed, in any bin.
A pair says where it differs, which is what an attacker is granted. Imports numpy and `arrays`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eventide.arrays import Array, Ints

ALL_SIGNS_UP_TO = 4


@dataclass(frozen=True)
class Pair:
    """Two neighbouring streams `(T, d)`, and what is special about them."""

    name: str
    stream: Ints
    neighbour: Ints

    @property
    def changed(self) -> tuple[Array, ...]:
        """Steps and bins of the cells that differ."""
        return np.nonzero(self.stream != self.neighbour)

    @property
    def begin(self) -> int:
        """The first step at which they differ."""
        return int(self.changed[0].min())


def neighbouring_pairs(window: int, bins: int, sensitivity: int, jumps: tuple[int, ...]) -> Iterator[Pair]:
    """Pairs worth trying against any mechanism.

    Backgrounds: empty; changes at the very first steps; after a long quiet time; and where the stream jumps by one of
    `jumps` (public noise levels of the mechanism) just when changes begin, so that decisions hang in the balance.
    Changes: every pattern of additions and removals for windows up to 4 steps, a few telling ones above; all in one
    bin, or hopping to the next bin at each step.
    """
    for background, stream, begin in _backgrounds(window, bins, sensitivity, jumps):
        patterns = _sign_patterns(window) if stream[begin].min() else [(1,) * window]  # nobody to remove from nothing
        for signs in patterns:
            for place in ("in one bin", "hopping") if bins > 1 else ("in one bin",):
                neighbour = stream.copy()
                steps = np.arange(begin, begin + window)
                where = (steps - begin) % bins if place == "hopping" else 0
                neighbour[steps, where] += sensitivity * np.array(signs)
                pattern = "".join("+" if sign > 0 else "-" if sign < 0 else "." for sign in signs)
                yield Pair(f"{background}, {pattern} {place}", stream, neighbour)


def _backgrounds(window: int, bins: int, sensitivity: int, jumps: tuple[int, ...]) -> Iterator[tuple[str, Ints, int]]:
    level = 4 * sensitivity
    tail = 2
    yield "from nothing", np.zeros((window + tail, bins), dtype=np.int64), 0
    yield "at the start", np.full((window + tail, bins), level), 0
    quiet = np.full((3 * window + tail, bins), level)
    yield "after a quiet time", quiet, 2 * window
    for jump in jumps:
        stepped = quiet.copy()
        stepped[2 * window :] += jump
        yield f"at a jump of {jump}", stepped, 2 * window


def _sign_patterns(window: int) -> list[tuple[int, ...]]:
    """Up to the sign of the whole, which only swaps the two streams."""
    if window <= ALL_SIGNS_UP_TO:
        return [signs for signs in itertools.product((1, -1), repeat=window) if signs[0] == 1]
    up, alternating = (1,) * window, tuple((-1) ** step for step in range(window))
    half = (1,) * (window // 2) + (-1,) * (window - window // 2)
    return [up, alternating, half, (1,) + (0,) * (window - 1)]
