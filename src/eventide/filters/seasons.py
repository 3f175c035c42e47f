"""The calendar as waves: which frequencies the given periods have, and where each wave stands at a step.

Everything here follows from public facts alone: the periods, and the number of a step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eventide.arrays import Floats
from eventide.errors import InputError
from eventide.privacy.amounts import number

OVERTONES = 6  # of the shortest period
SLOWER_OVERTONES = 3  # of the others
MODULATED, SIDEBANDS = 3, 2  # overtones of the shortest period whose height changes with the others, and how fast
STRENGTH = 0.5  # of a wave of its level, beforehand; overtones are weaker
DAY = 24 * 60 * 60 * 1000  # milliseconds
FEWEST_STEPS = 4  # of a period that is worth a season
MOST_STEPS = 100_000  # of a period
MOST_PERIODS = 4
MOST_BINS = 10_000  # of a stream that has seasons without anybody asking for them: each takes up to 8 kB a bin


class Automatic(tuple[float, ...]):
    """Periods that follow from the length of a step: nobody chose them, so a store that has others keeps those."""

    __slots__ = ()


def automatic_periods(step_ms: int, bins: int) -> Automatic:
    """The day and the week in steps of so many milliseconds, but for those of fewer than four steps.

    >>> automatic_periods(60 * 60 * 1000, bins=3), automatic_periods(24 * 60 * 60 * 1000, bins=3)
    ((24.0, 168.0), (7.0,))
    """
    periods = (DAY / step_ms, 7 * DAY / step_ms) if bins <= MOST_BINS else ()
    return Automatic(length for length in periods if FEWEST_STEPS <= length <= MOST_STEPS)


def checked_periods(seasons: Sequence[float] | str | None) -> tuple[float, ...]:
    """The periods, shortest first; none for None and "none"."""
    if seasons is None or (isinstance(seasons, str) and seasons == "none"):
        return ()
    if isinstance(seasons, Automatic):
        return seasons
    if isinstance(seasons, str) and seasons == "auto":
        raise InputError(
            "seasons is 'auto', which needs the length of a step; give periods in steps, such as (24, 168), or publish "
            "with a step, such as 1h"
        )
    given = tuple(map(number, seasons)) if isinstance(seasons, list | tuple) else ()
    if not 0 < len(given) <= MOST_PERIODS or not all(2 <= period <= MOST_STEPS for period in given):
        raise InputError(
            f"seasons is {seasons!r}; give up to {MOST_PERIODS} periods in steps, each from 2 to {MOST_STEPS:,}, "
            'such as (24, 168), or "none"'
        )
    return tuple(sorted({float(period) for period in given}))


def frequencies(periods: Sequence[float]) -> tuple[Floats, Floats]:
    """The frequencies of all waves, in cycles a step, and the variance of each beforehand."""
    found: dict[float, float] = {}
    for index, period in enumerate(periods):
        for overtone in range(1, (OVERTONES if index == 0 else SLOWER_OVERTONES) + 1):
            found.setdefault(overtone / period, STRENGTH / overtone)
        for overtone in range(1, MODULATED + 1) if index else ():
            for side in range(1, SIDEBANDS + 1):
                for sign in (-1, 1):
                    found.setdefault(overtone / periods[0] + sign * side / period, STRENGTH / (2 * overtone * side))
    kept = {round(cycles, 9): (cycles, strength) for cycles, strength in found.items() if 0 < cycles <= 0.5}
    cycles, strengths = np.array(list(kept.values()), dtype=np.float64).reshape(-1, 2).T
    return cycles, strengths**2


def waves_at(step: int, cycles: Floats) -> Floats:
    """1, and the sine and cosine of each wave at a step."""
    angle = 2 * np.pi * ((step * cycles) % 1.0)
    return np.concatenate([[1.0], np.sin(angle), np.cos(angle)])
