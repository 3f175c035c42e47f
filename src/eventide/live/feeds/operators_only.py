"""What became of the events of a run, apart from everything else: raw numbers, for operators only."""

from __future__ import annotations

from dataclasses import dataclass

from eventide.live.feeds.base import Feed
from eventide.live.feeds.event_feed import EventFeed


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
    """

    accepted: int
    late: int
    again: int
    left_out: int
    refused: dict[str, int]
    left_out_by_cap: int | None = None

    @classmethod
    def of(cls, feed: Feed) -> OperatorsOnly | None:
        """What a feed of events has counted; None for one of counts, and for one that counts nothing itself."""
        if not isinstance(feed, EventFeed) or feed.promise().one_by_one:
            return None
        taken = feed.counters
        by_cap = None if feed.cap is None else feed.left_out_by_cap
        return cls(taken.accepted, taken.late, taken.again, feed.left_out, dict(taken.refused), by_cap)

    def __str__(self) -> str:
        again = f" {self.again:,} of steps released before were read again;" if self.again else ""
        cap = "" if self.left_out_by_cap is None else f", {self.left_out_by_cap:,} of these by the cap"
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in self.refused.items())
        return (
            f"For operators only, since these numbers are not private: {self.accepted:,} events were read; "
            f"{self.left_out:,} of them were left out by the limit per person{cap}; "
            f"{self.late:,} came too late;{again} "
            f"{sum(self.refused.values()):,} were refused{reasons and f' ({reasons})'}."
        )
