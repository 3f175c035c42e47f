"""What a cap on people's events is worth: how much the counts change when one person's rows inside a window do.

The cap. Time is cut into blocks of L steps, for each person shifted in a way of its own. Of a person at most kappa
events count in a block, the first ones, and at most m in a step; inside a step one order decides which.

The bound. Change one person's rows at some steps of a window W of w consecutive steps: rows are added at some and
removed at others. Then the counts change by at most 2 kappa n in L1, over all steps and bins together, where
n = ceil((w - 1) / L) + 1; by at most m at a step; and nowhere outside W and the rest of the block in which W ends.

Proof. W meets at most n blocks of the person. Before W nothing differs, so a block that W begins in enters it with the
same room on both sides; and every later block begins with all of its room.

* Take a block of which W covers o steps. In it at most kappa events count on one side, and at most kappa, perhaps
  others, on the other: a change of at most 2 kappa. At a step one side counts the first so many in the order, and the
  other either none or the first so many as well, at most m each: a change of at most m, and of at most m o in all.
* Behind W rows are alike and only the room can differ, and only until the block ends. Whoever has more room left counts
  as much at every such step or more, and in all at most as much more as was used less inside W: by a and b used inside
  W the change is at most a + b inside and |a - b| behind it, which is 2 max(a, b) or less, so at most 2 kappa together.
  Behind W it is also at most kappa, at most m for each step that is left, and at most m o, since |a - b| is.

So the first blocks add min(2 kappa, m o) each, and the last, with r steps behind W, min(2 kappa, m o + min(kappa, m o,
m r)). The bound is the largest such sum over all ways in which W can lie.

A smaller change, kappa (n + 1), is right only against a person who did nothing at all in W: leaving out an early event
lets a later one count, so with a part of the rows changed both sides can count kappa that the other does not.
"""

from __future__ import annotations

from typing import NamedTuple

from eventide.errors import InputError
from eventide.events.durations import milliseconds
from eventide.privacy.ledger import positive_integer


class Cap(NamedTuple):
    """Of each person so many events count in a block of so many steps."""

    events: int
    block: int

    def window_sensitivity(self, window: int, max_per_step: int) -> int:
        """What it is worth for windows of so many steps."""
        return window_sensitivity(self.events, self.block, window, max_per_step)

    def __str__(self) -> str:
        return f"{self.events} in {self.block} steps"


def parse_cap(text: str, step: str) -> Cap:
    """A cap as people write it: events / duration, or events / steps.

    >>> parse_cap("2/7d", "1h")
    Cap(events=2, block=168)
    """
    events, slash, block = text.partition("/")
    if not (events.isdecimal() and slash and int(events)):
        raise InputError(f"{text!r} is no cap; write how many events count in how long, such as 2/7d")
    if block.isdecimal():
        return Cap(int(events), positive_integer(int(block), "the block of a cap"))
    steps, rest = divmod(milliseconds(block), milliseconds(step))
    if rest or not steps:
        raise InputError(f"the {block} of the cap {text} are no whole number of steps of {step}; choose another length")
    return Cap(int(events), steps)


def blocks_met(block: int, window: int) -> int:
    """The most blocks of `block` steps that `window` consecutive steps can meet.

    >>> blocks_met(block=168, window=168)
    2
    """
    return -(-(window - 1) // block) + 1


def window_sensitivity(cap: int, block: int, window: int, max_per_step: int = 1) -> int:
    """The most that the counts change, over all steps and bins together, when one person's rows in a window do.

    Parameters
    ----------
    cap
        How many events of a person count in a block.
    block
        How many steps a block has.
    window
        How many consecutive steps the promise covers.
    max_per_step
        How many events of a person count in a step.

    >>> window_sensitivity(cap=2, block=168, window=168), window_sensitivity(cap=3, block=24, window=168)
    (8, 48)
    """
    positive_integer(cap, "cap"), positive_integer(block, "block"), positive_integer(window, "window")
    if positive_integer(max_per_step, "max_per_step") > cap:
        raise InputError(f"at most {max_per_step} events of a person count in a step, more than the {cap} of a block")
    return max(_changed(cap, block, window, max_per_step, before) for before in range(block))


def _changed(cap: int, block: int, window: int, most: int, before: int) -> int:
    """The same where a window begins behind `before` steps of a block."""
    end = (before + window - 1) % block + 1
    last = min(end, window)
    first = min(block - before, window - last)  # none where the window lies in one block
    whole = (window - last - first) // block
    inside, behind = most * last, most * (block - end)
    earlier = min(2 * cap, most * first) + whole * min(2 * cap, most * block)
    return earlier + min(2 * cap, inside + min(cap, inside, behind))
