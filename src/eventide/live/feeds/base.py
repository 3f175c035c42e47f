"""The seam between raw events and publishing: a feed gives the counts of one step after another.

Everything raw (events, users, open steps) stays behind it. A step comes out when it is over for good: nothing that may
still arrive can change its counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from eventide.arrays import Ints
from eventide.events.bin_names import BinNames
from eventide.events.caps import Cap
from eventide.live.sources.base import Position
from eventide.privacy.guarantees import COUNTS


class ClosedStep(NamedTuple):
    """The counts `(d,)` of a step that is over, and where to read again from once it is committed.

    The position is that of the oldest event of any step still open, so that after a crash nothing of those is missed.
    `kept` is raw and has to be kept with the step's release until another step is released: that step, and the bytes.
    `more` says that the next step is at hand as well, or next in a complete source, so that both may be committed
    together; after a step without it, whoever asks for the next one has committed all.
    """

    index: int  # type: ignore[assignment]
    counts: Ints
    position: Position
    kept: tuple[int, bytes] | None = None
    more: bool = False

    def __repr__(self) -> str:
        return f"<closed step {self.index}>"


class Cells(Protocol):
    """The noisy cells of all open steps, by the numbers of steps in the store."""

    def look_around(self, *, told: bool = True) -> None:
        """Put fresh noise into all cells if somebody has announced an intrusion; asked before each event."""

    def open_until(self, step: int) -> None:
        """Open all steps up to one."""

    def add(self, step: int, bin: int) -> None:
        """Count one event."""


class Resume(NamedTuple):
    """What a feed needs to go on: the first step not published yet, the committed position, and the secret key.

    `kept` are pairs of step and bytes that a store holds: the tallies of open steps for a source that cannot replay,
    and what closed steps gave it to keep.
    `keep` is the store's own: such a source hands over the tallies of what it took before it counts as taken.
    `cells` are there for a feed that holds no events: it puts each into those of its step.
    `check_first_rows` asks a feed of events to refuse rows that mostly cannot be read, before it gives out a step.
    """

    next_step: int
    position: Position
    key: bytes
    kept: list[tuple[int, bytes]]
    keep: Callable[[Iterable[tuple[int, bytes]], str | None], bool] | None = None
    check_first_rows: bool = False
    cells: Cells | None = None

    def __repr__(self) -> str:
        return f"<resume at step {self.next_step}>"


class Promise(NamedTuple):
    """What a feed's counts let the guarantee say.

    `unit` is whose events are protected: "one person", or `EVERY_EVENT` where events name no user. `most` is the most
    that such a unit adds to a step, which the mechanism's sensitivity must equal; None where the counts come ready-made
    and are trusted. `assumptions` are what it rests on, in words.
    `cap` is what such a unit adds to blocks of steps at the most, which the mechanism's window sensitivity must follow.
    `one_by_one` is True for a feed that gives no counts, but puts each event into noisy cells.
    `counted_in` is what 1 in the counts is worth in what is published, `of_one` how far one event moves them;
    `adds_up_in_time` says that the sum over some steps is what there is in all of them; `exchanged` that `most` is what
    such a unit changes, by leaving one bin and coming to another, and not what it adds. `moved` is what `most` is
    about, and `worth` how much 1 of it is worth there.
    """

    unit: str
    most: int | None
    assumptions: tuple[str, ...]
    cap: Cap | None = None
    counted_in: Fraction = Fraction(1)
    of_one: int = 1
    one_by_one: bool = False
    adds_up_in_time: bool = True
    exchanged: bool = False
    moved: str = COUNTS
    worth: Fraction = Fraction(1)

    def window_sensitivity(self, window: int) -> int | None:
        """The window sensitivity that follows from the cap; None where there is none."""
        if self.cap is None or self.most is None:
            return None
        return self.cap.window_sensitivity(window, self.most // self.of_one) * self.of_one


class Feed(Protocol):
    """Counts, step after step, from `resume.next_step` on without a gap."""

    def describe(self) -> dict[str, Any]:
        """What a store must find unchanged: how steps are cut, whose events they are, how they are bounded."""

    def promise(self) -> Promise:
        """What the guarantee may say of these counts."""

    def know(self, names: BinNames) -> None:
        """Count with these names of the bins from now on."""

    def steps(self, resume: Resume) -> Iterator[ClosedStep | None]:
        """Give steps as they close; None now and then while waiting, so that the caller can look around.

        Ends when the source is complete.
        """

    def start_of(self, step: int) -> str | None:
        """The ISO time at which a step begins, or None where there is no clock."""

    def close(self) -> None:
        """Let go of files and connections."""
