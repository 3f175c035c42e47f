"""What became of the events of a run, apart from everything else: raw numbers, for operators only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from eventide.events.reader import AFTER_END, BEFORE_START, UNKNOWN_BIN
from eventide.live.feeds.base import Feed
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.first_rows import ADVICE

HEAD = "For operators only, since it depends on the events:"
MUCH = 0.1  # of the events: what is worth a warning
MANY = 0.01  # of the rows: where a bin was forgotten, all of it is missing
OUTSIDE = (BEFORE_START, AFTER_END)  # with which nothing is wrong
AS_UTC = (
    "Times without a zone were read as UTC. If they are of another zone, give it, such as --zone Europe/Berlin (in "
    "Python zone=), with a new store; --zone UTC says that UTC is meant"
)
STRANGE_TIMES = (
    "All times lie before 1980 or after 2100. If that is not meant (day numbers of a spreadsheet are read as seconds "
    "since 1970), write them as 2026-01-31T23:59 or say how they are written (--time-format, in Python time_format=), "
    "with a new store; the format s says that seconds since 1970 are meant"
)


@dataclass(frozen=True, repr=False)
class OperatorsOnly:
    """How many events there were: for whoever runs this, and nobody else. `str()` of it is a sentence.

    Parameters
    ----------
    accepted
        How many were read and belong to the steps of this run.
    late
        How many came too late.
    again
        How many belong to steps that were released before this run.
    left_out
        Of those read, how many are beyond what of one person counts.
    refused
        How many were refused, by reason.
    left_out_by_cap
        Of those left out, how many would have counted without the cap; None where there is no cap.
    left_out_of_each
        Of several statistics, which part of each was left out, from 0 to 1: `left_out` is about the first alone. Where
        people are counted, it is a part of the bins that people were in. Empty where Spark counts.
    read_as_utc
        Whether there were times without a zone, which were read as UTC because nobody gave a zone.
    cut_to_range
        Which part of the values of each column, from 0 to 1, lay outside its range and was cut to it. Empty where Spark
        counts.
    strange_times
        Whether all times lie in years of which few people have events, and nobody said how times are written.
    all_in_other
        Whether no event named a listed bin, so that all were counted in the bin for other events.
    """

    accepted: int
    late: int
    again: int
    left_out: int
    refused: dict[str, int]
    left_out_by_cap: int | None = None
    left_out_of_each: dict[str, float] = field(default_factory=dict)
    read_as_utc: bool = False
    strange_times: bool = False
    cut_to_range: dict[str, float] = field(default_factory=dict)
    all_in_other: bool = False

    @classmethod
    def of(cls, feed: Feed) -> OperatorsOnly | None:
        """What a feed of events has counted; None for one of counts, and for one that counts nothing itself."""
        if not isinstance(feed, EventFeed) or feed.promise().one_by_one:
            return None
        taken = feed.counters
        by_cap = None if feed.cap is None else feed.left_out_by_cap
        told = (taken.accepted, taken.late, taken.again, feed.left_out, dict(taken.refused), by_cap)
        return cls(
            *told, feed.left_out_of_each, feed.read_as_utc, feed.times_are_strange, feed.cut_to_range, feed.all_in_other
        )

    def warnings(self) -> Iterator[str]:
        """What surely surprises: rows that were refused and events that do not count, where they are many.

        The sentences hold no numbers, and whether they are there is raw: for operators only as well. They name options
        of the command line.
        """
        refused = {reason: number for reason, number in self.refused.items() if reason in ADVICE}
        rows = self.accepted + sum(refused.values())
        if sum(refused.values()) > MUCH * rows:
            often = max(refused, key=lambda reason: refused[reason])
            yield f"{HEAD} more than a tenth of the rows were refused, most often: {often}. {ADVICE[often]}."
        elif refused.get(UNKNOWN_BIN, 0) > MANY * rows:
            yield (
                f"{HEAD} more than a hundredth of the rows were refused: {UNKNOWN_BIN}. If a bin was forgotten, all of "
                f"it is missing. {ADVICE[UNKNOWN_BIN]}."
            )
        if self.all_in_other:
            yield (
                f"{HEAD} no row named a bin of the list, so all were counted in the bin of --other. Name another "
                "column with --bin, or correct the list of bins."
            )
        of_one = {"events": self.left_out / self.accepted} if self.accepted else {}
        if much := [name for name, part in (self.left_out_of_each or of_one).items() if part > MUCH]:
            limit = "--cap" if 2 * (self.left_out_by_cap or 0) > self.left_out else "--max-per-step"
            yield (
                f"{HEAD} the limit per person left out more than a tenth of {', '.join(much)}, so values are too "
                f"small. A larger {limit} lets more of each person count, with more noise."
            )
        if much := [column for column, part in self.cut_to_range.items() if part > MUCH]:
            yield (
                f"{HEAD} more than a tenth of the values of {', '.join(much)} lie outside the range, and count as its "
                "ends. A wider range (--between; for quantiles --edges) lets them count as they are, with more noise."
            )
        if self.read_as_utc:
            yield f"{HEAD} {AS_UTC}."
        if self.strange_times:
            yield f"{HEAD} {STRANGE_TIMES}."

    def lines(self) -> list[str]:
        """The numbers, and each warning in a line of its own."""
        return [self._numbers(), *self.warnings()]

    def __str__(self) -> str:
        added = [AS_UTC] * self.read_as_utc + [STRANGE_TIMES] * self.strange_times
        return " ".join([self._numbers(), *(f"{sentence}." for sentence in added)])

    def __repr__(self) -> str:
        return "OperatorsOnly(raw numbers: print() shows them)"

    def _numbers(self) -> str:
        parts = ", ".join(f"{part:.1%} of {name}" for name, part in self.left_out_of_each.items())
        each = f" ({parts})" if parts else ""
        cap = "" if self.left_out_by_cap is None else f", {self.left_out_by_cap:,} of these by the cap"
        refused = {reason: number for reason, number in self.refused.items() if reason not in OUTSIDE}
        outside = {reason: number for reason, number in self.refused.items() if reason in OUTSIDE}
        told = [
            f"{_numbered(self.accepted, 'event was', 'events were')} read",
            f"{_numbered(self.left_out, 'of them was', 'of them were')} left out by the limit per person{cap}{each}",
            f"{self.late:,} came too late",
            *([f"{self.again:,} are of steps that were released before, and do not count"] if self.again else []),
            f"besides these, {_numbered(sum(refused.values()), 'was', 'were')} refused{_reasons(refused)}",
        ]
        if outside:
            told[-1] += f", and {_numbered(sum(outside.values()), 'lies', 'lie')} outside the steps of this run"
            told[-1] += _reasons(outside)
        told += [f"{part:.1%} of {name} were cut to the range" for name, part in self.cut_to_range.items()]
        return f"For operators only, since these numbers are not private: {'; '.join(told)}."


def _numbered(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"


def _reasons(refused: dict[str, int]) -> str:
    told = ", ".join(f"{number:,}: {reason}" for reason, number in refused.items())
    return f" ({told})" if told else ""
