"""Which slot each step lies in: the one in which it begins. Slots and steps begin at the same public start.

Slots of whole days follow the clocks of the zone, so that one may have an hour less or more than another.
"""

from __future__ import annotations

import numpy as np

from eventide.errors import InputError
from eventide.events.caps import blocks_met
from eventide.events.durations import UNITS, milliseconds
from eventide.events.timeline import Timeline

YEARS = 30  # for which the changes of a zone's clocks are looked at


class SlotTimes:
    """Slots of several steps from a start.

    >>> days = SlotTimes("1d", "1h", "2024-03-30", "Europe/Berlin")
    >>> days.slot_of(24), days.last(24), days.begins(47), days.met(168)
    (1, 46, True, 8)
    """

    def __init__(self, slot: str, step: str, start: str = "2000-01-01", zone: str = "UTC") -> None:
        refuse_no_slot(slot, step)
        self._lengths = slot, step
        self._slots, self._steps = Timeline(start, slot, zone), Timeline(start, step, zone)

    def slot_of(self, step: int) -> int:
        """The number of the slot in which a step begins."""
        return int(self._slots.index(np.array([self._steps.begin(step)]))[0])

    def begins(self, step: int) -> bool:
        """Whether a step is the first of its slot."""
        return self.slot_of(step - 1) != self.slot_of(step)

    def last(self, step: int) -> int:
        """The last step of the slot in which a step lies."""
        return int(self._steps.index(np.array([self._slots.end(self.slot_of(step)) - 1]))[0])

    def ends(self, step: int) -> bool:
        """Whether a step is the last of its slot."""
        return self.last(step) == step

    def met(self, window: int) -> int:
        """The most slots that so many consecutive steps meet: those from the last step of a slot on."""
        if not follows_clocks(*self._lengths):
            return blocks_met(self._slots.length // self._steps.length, window)
        numbers = np.arange(YEARS * 365 * UNITS["d"] * 1_000 // self._slots.length + 2)
        lasts = self._steps.index(self._slots.begins(numbers + 1) - 1)
        return int((self._slots.index(self._steps.begins(lasts + window - 1)) - numbers).max()) + 1


def follows_clocks(slot: str, step: str) -> bool:
    """Whether slots are days of a calendar, and steps are not: else all slots have as many steps."""
    return milliseconds(slot) % UNITS["d"] == 0 and milliseconds(step) % UNITS["d"] > 0


def refuse_no_slot(slot: str, step: str) -> None:
    """Refuse a slot that is no whole number of steps, or a single one."""
    length, exact = milliseconds(slot), milliseconds(step)
    if length % exact or length == exact:
        raise InputError(f"{slot} is no whole number of steps of {step}, or only one; choose another length")
