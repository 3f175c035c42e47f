"""Several statistics of the same events at once: the numbers of one behind those of another.

Each has its own tally, and under a cap or in slots of several steps its own memory of people, so each is bounded as if
it were alone.
What a step is charged for them adds up (`eventide.privacy.part_meter`).
"""

from __future__ import annotations

import io
import itertools
import struct
from collections.abc import Iterable, Sequence

import numpy as np

from eventide.arrays import Array, Ints
from eventide.errors import StateError
from eventide.events.cap_memory import MARK, CapMemory
from eventide.events.caps import Cap
from eventide.events.slot_tally import SlotMemory
from eventide.events.statistics import Grid, Statistic, Told
from eventide.events.tally import EventTally, Tally, UserTally, foreign
from eventide.events.timeline import Timeline
from eventide.events.value_edges import ValueEdges
from eventide.events.value_grid import ValueGrid

_LENGTH = struct.Struct("<q")


class SeveralStatistics(Statistic):
    """Statistics that are published together. Sensitivities differ, so its own is in events that count.

    Private because: each is moved by one person by at most its own sensitivity, alone or under a cap, and the charges
    of all of them, each in parts of its own noise, are added.
    """

    direct = False
    moved = "the events that count"

    def __init__(self, parts: Sequence[Statistic]) -> None:
        self.parts = parts = tuple(part.beside_steps() for part in parts)
        self.name, self.title = ", ".join(part.name for part in parts), ", ".join(part.title for part in parts)
        self.columns = sum(part.columns for part in parts)
        self.needs_users = any(part.needs_users for part in parts)  # type: ignore[misc]
        self.takes = frozenset({"cap"}).intersection(*(part.takes for part in parts))  # type: ignore[misc]
        grids: dict[Grid, None] = dict.fromkeys(
            part.grid for part in parts if isinstance(part.grid, ValueGrid | ValueEdges)
        )
        self._grids = list(grids)
        self.grid = None if not grids else tuple(grids)

    @property
    def names(self) -> tuple[str, ...]:
        """Those of all parts."""
        return tuple(name for part in self.parts for name in part.names)

    @property
    def slots(self) -> tuple[str, ...]:
        """Those of all parts."""
        return tuple(slot for part in self.parts for slot in part.slots)

    def for_bins(self, size: int) -> SeveralStatistics:
        """The same where there are so many bins."""
        return SeveralStatistics([part.for_bins(size) for part in self.parts])

    def whole_slots(self, end: int, timeline: Timeline) -> int:
        """The end of the slot that is open longest."""
        return max(part.whole_slots(end, timeline) for part in self.parts)

    def described(self) -> dict[str, list[str]]:
        """What each part describes, by its kind."""
        told: dict[str, list[str]] = {}
        for part in self.parts:
            for kind, text in ({"statistic": part.name} | part.described()).items():
                if text not in (known := told.setdefault(kind, [])):
                    known.append(text)
        return told

    def adds_up(self, most: int) -> bool:
        """Only where all do."""
        return all(part.adds_up(most) for part in self.parts)

    def assumptions(self, most: int) -> tuple[str, ...]:
        """What the guarantee has to say of each."""
        return tuple(sentence for part in self.parts for sentence in (part.bound(most), *part.assumptions(most)))

    def tell(self, found: Told) -> dict[str, Told]:
        """Refused: each part has a mechanism of its own, and is told by itself."""
        raise StateError("several statistics are told one by one")

    def tally(self, size: int, most: int, key: bytes, *, users: bool) -> Tally:
        """One for each part."""
        parts = [part.tally(size, most, key, users=users) for part in self.parts]
        places = [None if part.grid is None else self._grids.index(part.grid) for part in self.parts]  # type: ignore[arg-type]
        return SeveralTallies(parts, places, self.slices(size))

    def memory(
        self, cap: Cap | None, key: bytes, timeline: Timeline | None = None, most: int = 1
    ) -> SeveralMemories | None:
        """One for each part that has any."""
        parts = [part.memory(cap, key, timeline, most) for part in self.parts]
        return None if all(part is None for part in parts) else SeveralMemories(parts)

    def slices(self, size: int) -> list[slice]:
        """Where the numbers of each part stand among those of so many bins."""
        ends = np.cumsum([0, *(part.columns * size for part in self.parts)]).tolist()
        return [slice(begin, end) for begin, end in itertools.pairwise(ends)]


class SeveralMemories:
    """What each statistic remembers of people for itself; None where it remembers nobody."""

    def __init__(self, parts: Sequence[CapMemory | SlotMemory | None]) -> None:
        self.parts = parts
        self._there = [part for part in parts if part is not None]

    def take_together(self, step: int, parts: Iterable[bytes]) -> bytes:
        """Use the room at a step that memories of different users took, by their bytes; all of it as bytes."""
        taken = [self._apart(part) for part in parts]
        used = [own.take_together(step, [each[place] for each in taken]) for place, own in enumerate(self._capped)]
        return _joined(used)

    def take_again(self, data: bytes) -> None:
        """Remember what a step before this life gave."""
        for part, own in zip(self._there, self._apart(data), strict=True):
            part.take_again(own)

    def divided(self, step: int, parts: int) -> list[bytes]:
        """As one memory does."""
        every = [own.divided(step, parts) for own in self._capped]
        return [_joined(of_part) for of_part in zip(*every, strict=True)]

    def to_keep(self, step: int, used: bytes) -> tuple[int, bytes] | None:
        """As the one does that remembers longest."""
        kept = [found for part in self._there if (found := part.to_keep(step, used)) is not None]
        return max(kept, default=None)

    @property
    def _capped(self) -> list[CapMemory]:
        """All of them, where users are counted apart from each other: an engine that does so refuses slots."""
        capped = [part for part in self._there if isinstance(part, CapMemory)]
        assert len(capped) == len(self._there)
        return capped

    def _apart(self, data: bytes) -> list[bytes]:
        return _unpacked(data.removeprefix(MARK), len(self._there))


class SeveralTallies(UserTally):
    """A tally for each statistic.

    `places` says which of the columns of values is whose, `slices` where the numbers of each stand among all.
    """

    def __init__(self, parts: Sequence[Tally], places: Sequence[int | None], slices: Sequence[slice]) -> None:
        self._tallies, self._places, self._slices = parts, places, slices

    def add(self, users: Array | None, bins: Array, values: Array | None = None) -> None:
        """Count events."""
        for tally, place in zip(self._tallies, self._places, strict=True):
            if place is None:
                tally.add(users, bins)
            else:
                assert values is not None
                tally.add(users, bins, values[:, place])  # type: ignore[call-arg]

    def join(self, data: bytes) -> None:
        """Count what other tallies have counted, as their bytes."""
        for tally, own in zip(self._tallies, _unpacked(data, len(self._tallies)), strict=True):
            tally.join(own)

    def counts(self, step: int) -> Ints:
        """The numbers of all, one statistic behind another."""
        return np.concatenate([tally.counts(step) for tally in self._tallies])

    def capped_counts(self, step: int, memory: SeveralMemories) -> tuple[Ints, bytes]:  # type: ignore[override]
        """The same with what is remembered of people, and what the step adds to that."""
        counts, used = [], []
        for tally, own in zip(self._tallies, memory.parts, strict=True):
            if own is None:
                counts.append(tally.counts(step))
                continue
            assert isinstance(tally, UserTally)
            own_counts, own_used = tally.capped_counts(step, own)  # type: ignore[arg-type]
            counts.append(own_counts)
            used.append(own_used)
        return np.concatenate(counts), _joined(used)

    def countable(self) -> int:
        """Of the first statistic. Raw: for operators only."""
        first = self._tallies[0]
        return 0 if isinstance(first, EventTally) else first.countable()

    def counted(self, counts: Ints) -> int:
        """Of the first statistic. Raw: for operators only."""
        first = self._tallies[0]
        return 0 if isinstance(first, EventTally) else first.counted(self._of_first(counts))

    def left_out(self, counts: Ints) -> int:
        """Of the first statistic. Raw: for operators only."""
        return self._tallies[0].left_out(self._of_first(counts))

    def left_out_of_each(self, counts: Ints) -> list[tuple[int, int]]:
        """Of each statistic: how many events the bound left out, of how many. Raw: for operators only."""
        own = [(tally, counts[place]) for tally, place in zip(self._tallies, self._slices, strict=True)]
        return [(tally.left_out(each), tally.offered()) for tally, each in own]

    def to_bytes(self) -> bytes:
        """All tallies as bytes."""
        return _packed([tally.to_bytes() for tally in self._tallies])

    def _of_first(self, counts: Ints) -> Ints:
        return counts[self._slices[0]]


def _joined(used: Sequence[bytes]) -> bytes:
    """What each statistic used of a cap, as bytes that are known for it."""
    return MARK + _packed(used)


def _packed(parts: Sequence[bytes]) -> bytes:
    return b"".join([_LENGTH.pack(len(part)) + part for part in parts])


def _unpacked(data: bytes, number: int) -> list[bytes]:
    file, parts = io.BytesIO(data), []
    for _ in range(number):
        head = file.read(_LENGTH.size)
        parts.append(file.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b"")
    if file.read(1) or not all(parts):
        raise foreign()
    return parts
