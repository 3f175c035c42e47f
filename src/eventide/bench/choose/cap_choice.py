"""What caps on people's events are worth on a history, which one is best, and how it is said in words.

All errors are mean absolute errors of one bin at one step, against the counts before the cap, so that what a cap leaves
out is an error too. Figures come from true events and are NOT PRIVATE.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eventide.bench.choose.choice import NOTHING, UNPAID, USELESS, beyond_the_limit
from eventide.bench.choose.people import People
from eventide.display.drawings import percent, shown
from eventide.events.caps import Cap
from eventide.events.durations import in_words, milliseconds, written


@dataclass(frozen=True)
class CapTrial:
    """A mechanism behind a cap, or without one.

    noise: how far releases are off from what was counted. left_out: how far what was counted is off from the counts
    before the cap. error: how far releases are off from these, within low to high in nine of ten runs. missing: the
    part of the events that did not count.
    """

    cap: Cap | None
    mechanism: str
    noise: float
    left_out: float
    error: float
    low: float
    high: float
    missing: float


@dataclass(frozen=True)
class CapChoice:
    """Which cap for people like these, under epsilon and a window.

    trials: every mechanism without a cap and behind each, in the order tried. useless: caps that were not tried, since
    nobody is bounded more tightly by them than by `max_per_step` alone. beyond: the part of the events that
    `max_per_step` leaves out before any cap; no error has it.
    """

    people: People
    epsilon: float
    window: int
    max_per_step: int
    repetitions: int
    seed: int
    level: float
    trials: tuple[CapTrial, ...]
    useless: tuple[Cap, ...] = field(default=())
    beyond: float = 0.0

    @property
    def best(self) -> CapTrial:
        """The trial with the least error, with a cap or without."""
        return min(self.trials, key=lambda trial: trial.error)

    @property
    def without(self) -> CapTrial:
        """The best trial without a cap."""
        return min((trial for trial in self.trials if trial.cap is None), key=lambda trial: trial.error)

    @property
    def useful(self) -> bool:
        """Whether the best trial is clearly better than a release that is all zeros."""
        return self.best.error <= USELESS * self.level

    @property
    def verdict(self) -> str:
        """What to take and what to expect of it."""
        best, without = self.best, self.without
        if best.cap is None:
            sentence = f"No cap that was tried helps: without one {best.mechanism} is off by {self._said(best.error)}."
        else:
            sentence = (
                f"Take the cap {self.written(best.cap)} with {best.mechanism}: expect the released count of a bin to "
                f"be off by about {self._said(best.error)}. The best without a cap is {without.mechanism}, off by "
                f"{shown(without.error)}."
            )
        if not self.useful:
            sentence += f" That is not worth publishing: a release that is all zeros is off by {shown(self.level)}."
        return sentence

    @property
    def reading(self) -> list[str]:
        """What the figures mean, and which caps cannot help."""
        best, lines = self.best, []
        events = "the events"
        if self.beyond > NOTHING:
            lines.append(beyond_the_limit(self.max_per_step, self.beyond))
            events = "those that this limit leaves"
        if best.cap is not None:
            lines.append(
                f"Of each person at most {_events(best.cap)} in {in_words(self._lasting(best.cap))} would count, which "
                f"leaves out {percent(best.missing)} of {events}. Noise alone is off by {shown(best.noise)}, what is "
                f"left out by {shown(best.left_out)}."
            )
        if self.useless:
            most = self.max_per_step * self.window
            lines.append(
                f"Useless, and not tried: {', '.join(map(self.written, self.useless))}. With such a cap one person "
                f"changes the counts by {most} or more when the events of {self.window} steps change, and without it "
                f"by at most {most}."
            )
        return lines

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        notes = [f"{note[0].upper()}{note[1:]}." for note in self.people.notes]
        return "\n".join([self.verdict, *self.reading, *notes, *([] if self.people.made_up else [UNPAID])])

    def written(self, cap: Cap) -> str:
        """A cap as `publish --cap` takes it."""
        return f"{cap.events}/{written(self._lasting(cap))}"

    def _lasting(self, cap: Cap) -> int:
        return cap.block * milliseconds(self.people.length)

    def _said(self, error: float) -> str:
        return f"{shown(error)} ({percent(error / self.level)} of its usual level, {shown(self.level)})"


def _events(cap: Cap) -> str:
    return "1 event" if cap.events == 1 else f"{cap.events} events"
