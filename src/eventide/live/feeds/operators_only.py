"""What became of the events of a run, apart from everything else: raw numbers, for operators only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from eventide.live.feeds.base import Feed
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.first_rows import ADVICE

HEAD = "For operators only, since it depends on the events:"
MUCH = 0.1  # of the events: what is worth a warning
AS_UTC = (
    "Times without a zone were read as UTC. If they are of another zone, give it, such as --zone Europe/Berlin (in "
    "Python zone=), with a new store; --zone UTC says that UTC is meant"
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
    """

    accepted: int
    late: int
    again: int
    left_out: int
    refused: dict[str, int]
    left_out_by_cap: int | None = None
    left_out_of_each: dict[str, float] = field(default_factory=dict)
    read_as_utc: bool = False

    @classmethod
    def of(cls, feed: Feed) -> OperatorsOnly | None:
        """What a feed of events has counted; None for one of counts, and for one that counts nothing itself."""
        if not isinstance(feed, EventFeed) or feed.promise().one_by_one:
            return None
        taken = feed.counters
        by_cap = None if feed.cap is None else feed.left_out_by_cap
        told = (taken.accepted, taken.late, taken.again, feed.left_out, dict(taken.refused), by_cap)
        return cls(*told, feed.left_out_of_each, feed.read_as_utc)

    def warnings(self) -> Iterator[str]:
        """What surely surprises: rows that were refused and events that do not count, where they are many.

        The sentences hold no numbers, and whether they are there is raw: for operators only as well.
        """
        yield from self.many()
        if self.read_as_utc:
            yield f"{HEAD} {AS_UTC}."

    def many(self) -> Iterator[str]:
        """The warnings about numbers that `str()` has as well."""
        refused = {reason: number for reason, number in self.refused.items() if reason in ADVICE}
        if (number := sum(refused.values())) > MUCH * (self.accepted + number):
            often = max(refused, key=lambda reason: refused[reason])
            yield f"{HEAD} more than a tenth of the rows were refused, most often: {often}. {ADVICE[often]}."
        of_one = {"events": self.left_out / self.accepted} if self.accepted else {}
        if much := [name for name, part in (self.left_out_of_each or of_one).items() if part > MUCH]:
            yield (
                f"{HEAD} the limit per person left out more than a tenth of {', '.join(much)}, so values are too "
                "small. A larger max_per_step lets more of each person count, with more noise; so does a larger cap."
            )

    def __str__(self) -> str:
        again = f" {self.again:,} of steps released before were read again;" if self.again else ""
        each = ", ".join(f"{part:.1%} of {name}" for name, part in self.left_out_of_each.items())
        cap = "" if self.left_out_by_cap is None else f", {self.left_out_by_cap:,} of these by the cap"
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in self.refused.items())
        return (
            f"For operators only, since these numbers are not private: {self.accepted:,} "
            f"{'event was' if self.accepted == 1 else 'events were'} read; "
            f"{self.left_out:,} of them were left out by the limit per person{cap}{each and f' ({each})'}; "
            f"{self.late:,} came too late;{again} "
            f"{sum(self.refused.values()):,} were refused{reasons and f' ({reasons})'}."
            f"{f' {AS_UTC}.' if self.read_as_utc else ''}"
        )
