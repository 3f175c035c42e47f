"""The algorithms of Tide: all that they differ in, in one table.

The number of the algorithm is part of a store's setting, so that a store goes on with the one that it was begun with.
The first four are the same without a calendar. A posterior median behind another mechanism has no number in its
setting, and stays with the second.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from eventide.errors import InputError


class Algorithm(NamedTuple):
    """How the looks at several bins begin, who is believed, and how intervals are calibrated.

    What is said of several bins up to `scatter` is of those with a calendar.
    """

    first_share: int  # the first look at several bins gets one part in so many of epsilon
    foresight: int  # in the first window several bins wait for at most this part of the steps so far,
    day_is_enough: bool  # or only until the shortest period has passed, when they have shown their day
    believed: int  # one part in so many of what the seasonal voice says of errors counts when a wait is chosen
    debt: float  # log odds: of looks that the rest foresaw better than the seasonal voice, no more is remembered
    shares_odds: bool  # how many bins have a rhythm is learned from all of them, and counts for each
    narrowest: float  # intervals that hold too much become no narrower than so many times what the models say
    first_blur: float  # the seasonal voice takes the first look for so many times as blurred: it shows one phase alone
    scatter: float  # of single counts around level and season, relative to the level, while the season is learned
    second_share: int | None = None  # of epsilon, for a second look at several bins that the first showed nothing of
    early: int | None = None  # several bins may wait for one part in so many of the window from the first look on
    short_window: float = 0.0  # in a window of less than so many of the shortest period bins hardly move: no calendar
    alone_share: int = 3  # the first look at a single bin gets one part in so many of epsilon
    alone_second: int | None = None  # the same for a second look, where there is a calendar and the first showed little
    again_below: float | None = None  # or, if given, where it showed less than so many times a step's own noise scale
    alone_growth: int = 4  # the most that the wait of a single bin grows from one look to the next
    watch_clear: int = 10  # one part in so many of a step's budget watches a stream that is clearly above the noise
    zeros: float = 0.5  # chance of a 0 beforehand, where there are several bins
    filled: float = 0.0  # bins that are thought not to be empty beforehand; with few bins that makes `zeros` less
    change: float = 1e-4  # of a harmonic's variance beforehand, added a step
    clear: float = 3.0  # deviations that a level has to be above 0, for the seasonal voice to speak
    doubted: float = 1.0  # log odds that the seasonal voice must be better by
    too_wide: float = 1.5  # times the interval of the rest: a voice that knows less has less say
    counts_rates: bool = False  # small counts have a voice of their own
    known_part: float = math.inf  # of the grid, where it has half of its say: above, all counts are in its last cell
    follows_sum: bool = False  # a bin may be a share of the sum of all bins, which is filtered by itself


_FOURTH = Algorithm(3, 4, True, 1, 2.0, True, 1.0, 4.0, 0.1)
_FIFTH = _FOURTH._replace(
    first_share=5,
    second_share=5,
    early=16,
    short_window=0.5,
    alone_share=4,
    alone_second=4,
    alone_growth=2,
    watch_clear=40,
    zeros=0.97,
    change=1e-5,
    clear=2.0,
    doubted=0.25,
    too_wide=2.5,
    counts_rates=True,
    known_part=0.5,
    follows_sum=True,
)
ALGORITHMS = {
    1: Algorithm(2, 2, False, 2, math.inf, False, 1.0, 1.0, 0.2),
    2: Algorithm(3, 4, False, 1, 2.0, False, 1.0, 1.0, 0.2),
    3: Algorithm(3, 4, True, 1, 2.0, True, 0.5, 1.0, 0.2),
    4: _FOURTH,
    5: _FIFTH,
    6: _FIFTH._replace(first_share=4, alone_share=16, again_below=30.0, filled=6.0),
}
NEWEST = max(ALGORITHMS)


def checked_algorithm(algorithm: int | None) -> int:
    """The number of an algorithm that there is; the newest, where none is given."""
    if algorithm is not None and (type(algorithm) is not int or algorithm not in ALGORITHMS):
        raise InputError(f"algorithm is {algorithm!r}; give {NEWEST}, or 1 to {NEWEST - 1} for those of before")
    return algorithm or NEWEST
