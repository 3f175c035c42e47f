"""The algorithms of Tide with a calendar: all that they differ in, in one table.

The number of the algorithm is part of a store's setting, so that a store goes on with the one that it was begun with.
Without a calendar Tide is as in the first. A posterior median behind another mechanism has no number in its setting,
and stays with the second.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Algorithm(NamedTuple):
    """How the looks at several bins begin, who is believed, and how intervals are calibrated."""

    first_share: int  # the first look at several bins gets one part in so many of epsilon
    foresight: int  # in the first window several bins wait for at most this part of the steps so far,
    day_is_enough: bool  # or only until the shortest period has passed, when they have shown their day
    believed: int  # one part in so many of what the seasonal voice says of errors counts when a wait is chosen
    debt: float  # log odds: of looks that the rest foresaw better than the seasonal voice, no more is remembered
    shares_odds: bool  # how many bins have a rhythm is learned from all of them, and counts for each
    narrowest: float  # intervals that hold too much become no narrower than so many times what the models say
    first_blur: float  # the seasonal voice takes the first look for so many times as blurred: it shows one phase alone
    scatter: float  # of single counts around level and season, relative to the level, while the season is learned


ALGORITHMS = {
    1: Algorithm(2, 2, False, 2, math.inf, False, 1.0, 1.0, 0.2),
    2: Algorithm(3, 4, False, 1, 2.0, False, 1.0, 1.0, 0.2),
    3: Algorithm(3, 4, True, 1, 2.0, True, 0.5, 1.0, 0.2),
    4: Algorithm(3, 4, True, 1, 2.0, True, 1.0, 4.0, 0.1),
}
NEWEST = max(ALGORITHMS)
