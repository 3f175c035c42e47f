"""Different people of a slot that is longer than a step, such as a day where steps are hours.

Published alone (`SlotPeople`), the steps of the releases are the slots, and a window is counted in slots: as many as
its steps can meet. Beside statistics of every step (`SlotsBesideSteps`), a slot has its numbers at its last step.
Either way a slot is charged for all of its steps, from the first one on. What somebody did is still added or removed
step by step, at some steps of a slot and not at others.

Proof. In a slot each person is in at most b bins, each by 1. With other rows in some steps of it they may be in at most
b others: the numbers of the slot, d bins, change by at most min(2 b, d). Which bins count is decided by that person's
rows in this slot alone, so nothing changes in a slot that no changed step lies in. Any w consecutive steps meet at most
n slots; so the sensitivity min(2 b, d) and windows of n slots keep the promise for windows of w steps, and all numbers
together change by at most n min(2 b, d). With one bin that is n: hours, w = 168 and days give 8. Beside statistics of
every step, a slot that may be charged E is a span of E from its first to its last step: whoever changes rows in a
window loses at most E by each slot that the window meets, which are those whose spans touch it.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from eventide.arrays import Array, Ints
from eventide.events.caps import Cap, blocks_met
from eventide.events.durations import UNITS, as_unit, in_words, milliseconds
from eventide.events.slot_tally import SlotMemory, StepOfSlot, UserFirsts
from eventide.events.slot_times import YEARS, SlotTimes, follows_clocks, refuse_no_slot
from eventide.events.statistics import PeopleCount, in_bins
from eventide.events.tally import Tally
from eventide.events.timeline import MILLISECOND, Timeline
from eventide.privacy.guarantees import bound_of_step


class SlotPeople(PeopleCount):
    """How many different people there are in a slot: each once in a bin, in at most so many bins as count.

    Parameters
    ----------
    slot, step
        How long they are.
    bins
        How many there are; 0 where that is not known.
    """

    takes = frozenset({"levels"})
    exchanged = True

    def __init__(self, slot: str, step: str, bins: int = 0) -> None:
        self.slot, self.step, self._bins = slot, step, bins
        self.name = f"people/{slot}"
        self._slot, self._step = in_words(milliseconds(slot)), as_unit(milliseconds(step))

    def described(self) -> dict[str, str]:
        """With the length of a step, which the promise is about."""
        return {"statistic": f"{self.name}/{self.step}"}

    def for_bins(self, size: int) -> Self:
        """The same where there are so many bins."""
        return type(self)(self.slot, self.step, size)

    def beside_steps(self) -> SlotsBesideSteps:
        """The same where other statistics are published of every step."""
        return SlotsBesideSteps(self.slot, self.step, self._bins)

    def tally(self, size: int, most: int, key: bytes, *, users: bool) -> Tally:
        """A table of users and bins, with the first step of each."""
        return UserFirsts(size, most, key)

    def sensitivity(self, most: int) -> int:
        """Rows may be added at one step of a slot and removed at another: some bins are left, others come."""
        return min(2 * most, self._bins) if self._bins else 2 * most

    def added_by_event(self) -> int:
        """A person."""
        return 1

    def values_of(self, time: Ints, value: Array | None, timeline: Timeline) -> Array | None:
        """The step of each event."""
        return Timeline(timeline.iso(0), self.step, timeline.zone.name).index(time)

    def assumptions(self, most: int) -> tuple[str, ...]:
        """What a step is here, and in how many bins somebody counts."""
        return (
            f"a step of these releases is {self._slot}",
            f"what somebody did may be added or removed in any {self._step} of it",
            f"each person counts once in a bin of {self._slot}, and {_first_bins(most)}",
        )


class SlotsBesideSteps(SlotPeople):
    """The same beside statistics of every step: a slot has its numbers at its last step, and none at the others."""

    takes = frozenset()

    @property
    def slots(self) -> tuple[str, ...]:
        """How long its slots are."""
        return (self.slot,)

    def times(self, timeline: Timeline | None = None) -> SlotTimes:
        """Which slot each step lies in; without a time line, slots of equal length."""
        start = () if timeline is None else (timeline.iso(0), timeline.zone.name)
        return SlotTimes(self.slot, self.step, *start)

    def tally(self, size: int, most: int, key: bytes, *, users: bool) -> Tally:
        """The people of one step, whom the memory of the slot takes when the step closes."""
        return StepOfSlot(size, most, key, once=True)

    def memory(self, cap: Cap | None, key: bytes, timeline: Timeline | None = None, most: int = 1) -> SlotMemory:
        """What remembers the people of the open slot."""
        return SlotMemory(self.times(timeline), self._bins, most, key)

    def values_of(self, time: Ints, value: Array | None, timeline: Timeline) -> Array | None:
        """Nothing but what others need: a tally has the events of one step."""
        return value

    def whole_slots(self, end: int, timeline: Timeline) -> int:
        """The end of the slot that is open before step `end`."""
        return self.times(timeline).last(end - 1) + 1 if end > 0 else end

    def bound(self, most: int) -> str:
        """Of a slot, not of a step."""
        moved = f"the numbers of {self.name}"
        return bound_of_step(self.sensitivity(most), moved, exchanged=True, of=self._slot)

    def assumptions(self, most: int) -> tuple[str, ...]:
        """In how many bins somebody counts, and when."""
        return (
            f"for {self.name} each person counts once in a bin of {self._slot}, and {_first_bins(most)}",
            f"the numbers of {self.name} come with the last step of {self._slot}, and are charged from its first "
            "step on",
        )


def slots_met(window: int, step: str, slot: str, start: str = "", zone: str = "UTC") -> int:
    """The most slots that so many consecutive steps can meet; slots and steps begin at the start.

    Slots of whole days follow the clocks of the zone, so one may be an hour shorter.

    >>> slots_met(168, "1h", "1d"), slots_met(25, "1h", "1d"), slots_met(25, "1h", "1d", zone="Europe/Berlin")
    (8, 2, 3)
    """
    length, exact = milliseconds(slot), milliseconds(step)
    refuse_no_slot(slot, step)
    if not follows_clocks(slot, step):
        return blocks_met(length // exact, window)
    slots = Timeline(start or "2000-01-01", slot, zone)
    numbers = np.arange(YEARS * 365 * UNITS["d"] // length + 2)
    begins = slots.begins(numbers)
    last_steps = (begins[1:] - 1 - begins[0]) // (exact * MILLISECOND)
    last_moments = begins[0] + (last_steps + window) * exact * MILLISECOND - 1
    return int((slots.index(last_moments) - numbers[:-1]).max()) + 1


def _first_bins(most: int) -> str:
    """In how many bins a person counts, and in which."""
    return f"{in_bins(most)}: the first{'' if most == 1 else f' {most}'}"
