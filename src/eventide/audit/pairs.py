"""Neighbouring streams: two streams that one person may turn into one another.

They differ inside `window` consecutive steps only, at each of them by one person's row added or removed, in any bin;
under a window sensitivity by no more than that in all. A pair says where it differs, which is what an attacker is
granted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eventide.arrays import Array, Ints

ALL_SIGNS_UP_TO = 4
PLACES = ("in one bin", "hopping")
SHORT_TAIL, LONG_TAIL = 2, 20  # steps behind the change


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

    @property
    def end(self) -> int:
        """The first step from which on they are alike."""
        return int(self.changed[0].max()) + 1


def neighbouring_pairs(
    window: int, bins: int, sensitivity: int, jumps: tuple[int, ...], window_sensitivity: int | None = None
) -> Iterator[Pair]:
    """Pairs worth trying against any mechanism.

    Backgrounds: empty; changes at the very first steps; after a long quiet time; and where the stream jumps by one of
    `jumps` (public noise levels of the mechanism) just when changes begin, so that decisions hang in the balance.
    Changes: every pattern of additions and removals for windows up to 4 steps, a few telling ones above; all in one
    bin, or hopping to the next bin at each step.

    Two more kinds of background, with fewer changes, are for what goes on to depend on the true count of a step that is
    over: the stream goes up and down while it changes; or there is a long tail, in which the stream stays as it was or
    has fallen back from a peak.

    Parameters
    ----------
    window
        In how many steps the streams may differ.
    bins
        How many there are.
    sensitivity
        By how much they differ at a step.
    jumps
        Public noise levels of the mechanism, at which a decision hangs in the balance.
    window_sensitivity
        The most by which they differ over all steps together: as many steps change as it allows, one after another, or
        spread over the window.
    """
    every, some = _changes(window, sensitivity, window_sensitivity)
    for background, stream, begin in _plain_backgrounds(window, bins, sensitivity, jumps):
        patterns = every if stream[begin].min() else some[:1]  # nobody to remove from nothing
        for place in PLACES if bins > 1 else PLACES[:1]:
            yield from (changed(background, stream, begin, changes, place) for changes in patterns)
    for background, stream, begin in _special_backgrounds(window, bins, sensitivity, jumps):
        yield from (changed(background, stream, begin, changes) for changes in some)


def changed(background: str, stream: Ints, begin: int, changes: Sequence[int], place: str = PLACES[0]) -> Pair:
    """The stream, and the same with so much added (or removed, if negative) at each step from `begin` on."""
    steps = np.arange(begin, begin + len(changes))
    where = (steps - begin) % stream.shape[1] if place == "hopping" else 0
    neighbour = stream.copy()
    neighbour[steps, where] += np.array(changes)
    pattern = "".join("+" if change > 0 else "-" if change < 0 else "." for change in changes)
    return Pair(f"{background}, {pattern} {place}", stream, neighbour)


Backgrounds = Iterator[tuple[str, Ints, int]]  # a name, the stream, and the step from which on it changes


def _plain_backgrounds(window: int, bins: int, sensitivity: int, jumps: tuple[int, ...]) -> Backgrounds:
    level = 4 * sensitivity
    yield "from nothing", np.zeros((window + SHORT_TAIL, bins), dtype=np.int64), 0
    yield "at the start", np.full((window + SHORT_TAIL, bins), level), 0
    quiet = np.full((3 * window + SHORT_TAIL, bins), level)
    yield "after a quiet time", quiet, 2 * window
    for jump in jumps:
        stepped = quiet.copy()
        stepped[2 * window :] += jump
        yield f"at a jump of {jump}", stepped, 2 * window


def _special_backgrounds(window: int, bins: int, sensitivity: int, jumps: tuple[int, ...]) -> Backgrounds:
    quiet = np.full((2 * window + LONG_TAIL, bins), 4 * sensitivity)
    yield "before a long quiet time", quiet, window
    for jump in jumps:
        peaked = quiet.copy()
        peaked[window : 2 * window] += jump
        yield f"at a peak of {jump} before a long quiet time", peaked, window
        if window > 1:
            uneven = quiet[: 2 * window + SHORT_TAIL].copy()
            uneven[window : 2 * window : 2] += jump
            yield f"going up and down by {jump}", uneven, window


Changes = list[tuple[int, ...]]  # what is added at each step, several ways


def _changes(window: int, sensitivity: int, window_sensitivity: int | None) -> tuple[Changes, Changes]:
    """All ways to change a window that are tried, and the few that are tried everywhere."""
    steps, rest = divmod(window * sensitivity if window_sensitivity is None else window_sensitivity, sensitivity)
    sizes = [sensitivity] * steps + [rest] * (rest > 0)
    every, some = (
        [tuple(sign * size for sign, size in zip(signs, sizes, strict=True)) for signs in patterns(len(sizes))]
        for patterns in (_sign_patterns, added_or_in_turn)
    )
    return every + _spread(every, window), some + _spread(some, window)


def _spread(patterns: Changes, window: int) -> Changes:
    """The same changes at steps as far apart as fit into a window."""
    found = []
    for changes in patterns:
        spread = np.zeros(window, dtype=np.int64)
        spread[np.linspace(0, window - 1, len(changes)).astype(np.int64)] = changes
        found.append(tuple(spread.tolist()))
    return [changes for changes in found if changes not in patterns]


def _sign_patterns(window: int) -> list[tuple[int, ...]]:
    """Up to the sign of the whole, which only swaps the two streams."""
    if window <= ALL_SIGNS_UP_TO:
        return [signs for signs in itertools.product((1, -1), repeat=window) if signs[0] == 1]
    half = (1,) * (window // 2) + (-1,) * (window - window // 2)
    return [*added_or_in_turn(window), half, (1,) + (0,) * (window - 1)]


def added_or_in_turn(window: int) -> list[tuple[int, ...]]:
    """Somebody is added at every step; or added and removed in turn, which is the same for one step."""
    return list(dict.fromkeys([(1,) * window, tuple((-1) ** step for step in range(window))]))
