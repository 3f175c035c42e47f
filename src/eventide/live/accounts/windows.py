"""What any window of an account holds: the promise about time, and why it is kept.

The promise. Take any D of event time, and change one person's rows in the steps that meet it, in all publications of
the account: some rows are added, others removed. By everything that is ever published that person loses at most
epsilon. A step that D covers in part counts as a whole: its row is added or removed as a whole. If only some of a
person's events of such a step change, its row becomes another row, which is one row removed and another one added: then
the steps at both ends of D may cost twice, so the loss is at most 2 epsilon. No clock on a wall is asked: all times are
those of events.

What a publication weighs. It promises that any w of its steps hold at most its part. D meets at most
n = ceil(D / s) + 1 steps of length s, so a change inside D is ceil(n / w) changes, each within w steps, and the person
loses at most ceil(n / w) parts. That is the weight. A window of n steps makes it one part.

Where a publication is met. A measurement of step t shows rows of step t alone; under a cap with blocks of L steps it
also shows, through what counted before, rows of the L - 1 steps before it (`events/caps.py`). So a charge is the
half-open interval of event time whose rows it can show: [begin of step t - L + 1, end of step t). A window that meets
no charge of a publication loses nothing by it, and one that meets some loses the weight at most, however many they are.
So charges of one tenure (a publication under unchanged terms) count once in a window, and those of different tenures
add up.

How long something that has ended is in the way. A window that begins behind its last step does not meet it, capped or
not. A capped publication that begins is met by windows that end L - 1 steps before its first measurement: so the block
that matters is that of the publication that begins, and it waits w + L - 2 steps where one w is D.

So the promise is kept if at every moment a the weights of all tenures that [a, a + D) meets sum to at most epsilon. A
tenure that goes on holds its weight from its first moment on without end, used or not: nobody who joined is ever in the
way of another, in whichever order charges arrive. One that has ended holds it where it was charged. `load` is that sum
for every window there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from eventide.events.durations import in_words
from eventide.privacy.amounts import NANO


class Terms(NamedTuple):
    """What a publication promises by itself: any `window` steps hold at most `part`."""

    part: int  # nano
    window: int  # steps
    length: int  # of a step, in microseconds
    block: int = 1  # of its cap, in steps; 1 without one
    shift: int = 0  # microseconds that a calendar may gain on exact time, where steps are days of a zone

    def sentence(self) -> str:
        """In words.

        >>> Terms(10**9, window=24, length=3_600_000_000).sentence()
        'part 1 in 24 steps of 1 hour'
        """
        every = f" of {in_words(self.length // 1_000)}" if self.length % 1_000 == 0 else ""
        return f"part {self.part / NANO:g} in {self.window} steps{every}"

    def steps_met(self, window: int) -> int:
        """How many steps a window of so many microseconds meets at the most.

        >>> Terms(10**9, window=24, length=3_600_000_000).steps_met(86_400_000_000)
        25
        """
        return -(-(window + self.shift) // self.length) + 1

    def times(self, window: int) -> int:
        """How many windows of its own are needed to cover a window of the account."""
        return -(-self.steps_met(window) // self.window)

    def weight(self, window: int) -> int:
        """What a window of the account may hold of it, in nano-epsilon."""
        return self.times(window) * self.part


class Holding(NamedTuple):
    """Windows that meet [begin, end) hold a weight; None where it goes on."""

    begin: int
    end: int | None
    weight: int


class Load(NamedTuple):
    """Windows that begin at this moment or later, until the next one, hold so much."""

    begin: int
    weight: int


def load(holdings: Iterable[Holding], window: int) -> list[Load]:
    """What every window of so many microseconds holds, by the moment at which it begins.

    >>> load([Holding(100, 110, 3), Holding(112, None, 4)], window=10)
    [Load(begin=91, weight=3), Load(begin=103, weight=7), Load(begin=110, weight=4)]
    """
    changes: Counter[int] = Counter()
    for holding in holdings:
        changes[holding.begin - window + 1] += holding.weight
        if holding.end is not None:
            changes[holding.end] -= holding.weight
    loads, weight = [], 0
    for begin in sorted(changes):
        weight += changes[begin]
        loads.append(Load(begin, weight))
    return loads


def fullest(holdings: Iterable[Holding], window: int) -> int:
    """What the fullest of all windows holds."""
    return max((weight for _, weight in load(holdings, window)), default=0)


def free_from(holdings: Iterable[Holding], window: int, room: int, wanted: int) -> int | None:
    """The first moment, `wanted` or later, such that no window that meets it or what follows holds more than `room`.

    None where there will never be one.

    >>> free_from([Holding(100, 110, 3)], window=10, room=2, wanted=105)
    119
    """
    loads = load(holdings, window)
    over = [place for place, (_, weight) in enumerate(loads) if weight > room]
    if not over:
        return wanted
    if over[-1] == len(loads) - 1:
        return None
    return max(wanted, loads[over[-1] + 1].begin + window - 1)
