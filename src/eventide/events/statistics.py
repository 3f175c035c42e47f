"""What is published of the events of a step: how many there are, or of how many different people.

A statistic turns the events of one step into a whole number for each bin, and says how far one person can move all
these numbers together: its sensitivity. Every noise scale follows from that, so a mechanism needs to know nothing else
of it. Which of a person's events count depends on that person's events alone, and on no order in which they came.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from eventide.errors import InputError
from eventide.events.tally import EventTally, Tally, UserTally

NOT_YET = ("people/", "sum:", "mean:", "quantiles:")


class Statistic(ABC):
    """One number for each bin of a step; `name` is what people write.

    `needs_users`: events without users do not have it.
    """

    name: ClassVar[str]
    needs_users: ClassVar[bool] = False

    @abstractmethod
    def tally(self, size: int, most: int, key: bytes, *, users: bool) -> Tally:
        """What takes the events of an open step, of each user `most` of which count."""

    def sensitivity(self, most: int) -> int:
        """The most that all numbers of a step change together when one person's row is added or removed."""
        return most

    def adds_up(self, most: int) -> bool:
        """Whether the number of several bins together is the sum of theirs."""
        return True

    def assumptions(self, most: int) -> tuple[str, ...]:
        """What the guarantee has to say of it."""
        return ()

    def first_ones(self, number: int) -> str:
        """What of a person counts under a cap, with its verb."""
        return "the first event counts" if number == 1 else f"the first {number} events count"


class EventCount(Statistic):
    """How many events there are, of each person at most so many as count in a step."""

    name = "events"

    def tally(self, size: int, most: int, key: bytes, *, users: bool) -> Tally:
        """With users a table of their events, without them counts."""
        return UserTally(size, most, key) if users else EventTally(size)


class PeopleCount(Statistic):
    """How many different people there are: each once in a bin however often, in at most so many bins as count.

    Private because: of a person's bins in a step at most `most` count, each by 1, so a row that is added or removed
    moves all bins together by at most `most`. Which bins count is decided by a keyed hash of the person, the step and
    the bin, so less room under a cap leaves the first of the same ones, as with events.
    """

    name = "people"
    needs_users = True

    def tally(self, size: int, most: int, key: bytes, *, users: bool) -> Tally:
        """A table of users and bins in which a second event of the same user and bin changes nothing."""
        return UserTally(size, most, key, once=True)

    def adds_up(self, most: int) -> bool:
        """Only where a person is in one bin of a step, and so in one group of bins."""
        return most == 1

    def assumptions(self, most: int) -> tuple[str, ...]:
        """In how many bins somebody counts."""
        bins = "in one bin only" if most == 1 else f"in at most {most} bins"
        return (f"what is counted are different people: each once in a bin of a step, and {bins}",)

    def first_ones(self, number: int) -> str:
        """A person's further events in the same bin and step use no room."""
        return "the first bin of a step counts" if number == 1 else f"the first {number} bins of steps count"


EVENTS = EventCount()
STATISTICS: dict[str, Statistic] = {each.name: each for each in (EVENTS, PeopleCount())}


def parse_statistic(text: str) -> Statistic:
    """The statistic of this name.

    >>> parse_statistic("people").sensitivity(2)
    2
    """
    if text in STATISTICS:
        return STATISTICS[text]
    if text.startswith(NOT_YET):
        raise InputError(f"{text!r} cannot be published yet; choose {' or '.join(STATISTICS)}")
    raise InputError(f"{text!r} is no statistic; choose {' or '.join(STATISTICS)}")
