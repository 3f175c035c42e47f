"""Names that bins get, or lose, while their stream goes on.

A stream with spare bins has places for bins that are not known yet. A place gets a name once, from a public step on,
and keeps it for ever; one that is closed takes no more events. A place without a name, before its name starts or behind
its close holds nobody: its count is 0 whatever comes, and its release is 0 as well. Names come from whoever runs the
stream, never from events. All other bins go on as they are: a step is charged as if the place had had its name always.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from eventide.arrays import Bools, Ints
from eventide.errors import InputError, unknown
from eventide.events.bins import is_spare

NEVER = np.iinfo(np.int64).max
NO_SPARE = (
    "no spare bin is left{}: begin a new epoch with more of them, by a larger spare_bins (--spare-bins) together with "
    "--new-epoch"
)


class NamedBin(NamedTuple):
    """The name of a place, the first step at which it counts, and the step from which on it does not any more."""

    place: int
    name: str
    first: int
    end: int | None = None


class BinNames:
    """The places of a stream, by the names that its store began with, and what was said of some of them since.

    >>> names = BinNames(["north", "(spare 1)"]).given("south", 7).closed("north", 9)
    >>> names.names, names.idle(6).tolist(), names.idle(9).tolist(), names.told(7)
    (('north', 'south'), [False, True], [True, False], {'(spare 1)': 'south'})
    """

    def __init__(self, places: Sequence[str], said: Sequence[Sequence[Any]] = ()) -> None:
        self.places = tuple(places)
        self.said = tuple(NamedBin(*each) for each in said)
        named = {each.place: each.name for each in self.said}
        self.names = tuple(named.get(place, name) for place, name in enumerate(self.places))
        self._spare = np.array([is_spare(name) for name in self.places])
        self._first: Ints = np.where(self._spare, NEVER, 0)
        self._end: Ints = np.full(len(self.places), NEVER)
        for place, _, first, end in self.said:
            self._first[place], self._end[place] = first, NEVER if end is None else end

    def idle(self, steps: int | Ints, places: Ints | slice = slice(None)) -> Bools:
        """Which places hold nobody at a step; or for steps and places side by side."""
        return np.asarray((steps < self._first[places]) | (steps >= self._end[places]))

    def told(self, step: int) -> dict[str, str]:
        """The names that spare bins have at a step."""
        given = [each for each in self.said if self._spare[each.place] and each.first <= step]
        return {self.places[each.place]: each.name for each in given}

    def known(self) -> dict[str, int]:
        """The place of each name that somebody may use."""
        return {name: place for place, name in enumerate(self.names) if not is_spare(name)}

    def free(self) -> list[int]:
        """The places that have no name."""
        return [place for place, name in enumerate(self.names) if is_spare(name)]

    def ended(self, step: int) -> list[int]:
        """The places that are closed at a step."""
        return sorted(each.place for each in self.said if each.end is not None and each.end <= step)

    def given(self, name: str, first: int, place: int | None = None) -> Self:
        """The same with a name for a place, the first free one where none is said."""
        name = name.strip()
        if not name or is_spare(name) or any(mark in name for mark in "\r\n"):
            raise InputError(f"a bin cannot be named {name!r}; choose another name")
        if name in self.names:
            raise InputError(f"there is a bin {name!r} already, or there was; a name is given once")
        if not (free := self.free()):
            raise InputError(NO_SPARE.format(f" for {name!r}"))
        if (place := free[0] if place is None else place) not in free:
            raise InputError(f"{self.names[place]!r} is no spare bin that waits for a name; choose another")
        return type(self)(self.places, [*self.said, NamedBin(place, name, first)])

    def closed(self, name: str, end: int) -> Self:
        """The same without a bin from a step on; what it had stays."""
        if (place := self.known().get(name)) is None:
            raise InputError(unknown("bin", name, self.known()))
        before = {each.place: each for each in self.said}
        stands = before.get(place, NamedBin(place, name, 0))
        if stands.end is not None:
            raise InputError(f"the bin {name!r} is closed from step {stands.end} on; that stays")
        if end <= stands.first:
            raise InputError(f"the bin {name!r} starts at step {stands.first}; close it later")
        return type(self)(self.places, list((before | {place: stands._replace(end=end)}).values()))

    def placed(self, counts: Any) -> Any:
        """Counts by name as one for each place, 0 for what is not there; others stay as they are."""
        if not isinstance(counts, Mapping):
            return counts
        known, found = self.known(), np.zeros(len(self.places), dtype=np.int64)
        if strange := [name for name in counts if name not in known]:
            raise InputError(f"{strange[0]!r} is none of the bins; give a spare bin this name first")
        for name, count in counts.items():
            found[known[name]] = count
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BinNames) and (self.places, self.said) == (other.places, other.said)

    def __hash__(self) -> int:
        return hash((self.places, self.said))
