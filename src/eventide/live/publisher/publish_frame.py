"""`eventide.publish`: a frame of events or counts in, private releases out.

The publisher of the command line stands behind it: the same promise, the same refusals, the same stores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from eventide.errors import InputError
from eventide.events.bins import parse_bins
from eventide.events.durations import steps_of_window
from eventide.live.feeds.base import Feed
from eventide.live.feeds.count_feed import CountFeed
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.open_feed import open_feed
from eventide.live.publisher.publisher import Publisher
from eventide.live.publisher.releases import KeptReleases, Releases
from eventide.live.publisher.setup import reading
from eventide.live.sources.frame_events import FrameEvents
from eventide.live.stores.base import Store
from eventide.mechanisms.registry import mechanism as mechanism_by_name
from eventide.privacy.amounts import Amount
from eventide.streams.count_files import open_counts
from eventide.streams.frames import Frame, open_frame


def publish(
    frame: Any,
    *,
    epsilon: Amount,
    window: int | str,
    step: str | None = None,
    time: str = "timestamp",
    user: str | None = None,
    bin: str = "bin",
    bins: Sequence[str] | int | str | None = None,
    other: str | None = None,
    start: str | None = None,
    until: str | None = None,
    zone: str = "UTC",
    max_per_step: int = 1,
    sensitivity: int = 1,
    mechanism: str = "tide",
    parameters: Mapping[str, Any] | None = None,
    filter: str = "truncate",
    people: str = "everybody",
    ordered: bool = False,
    store: Store | str | Path | None = None,
    new_epoch: bool = False,
    take_over: bool = False,
    allow_refused: bool = False,
) -> Releases:
    """Publish a frame privately: of events with `step`, else of counts.

    Parameters
    ----------
    frame
        A frame of pandas, polars, Arrow or another library that narwhals knows, a DuckDB relation, a stream of Arrow
        batches, or a dict of columns. Counts are wide (a column for each bin, a row for each step) or long (columns t,
        bin and count, sorted by t; what is 0 may be left out).
    epsilon
        Privacy budget of every window of steps.
    window
        How many consecutive steps are protected together, or a duration such as 24h.
    step
        How long a step of events is, such as 10min, 1h or 1d.
    time, user, bin
        The columns of an event's time, user and bin. Without a user every event is its own.
    bins
        All bins: their names, a number, or a file with one name a line. May be left out for wide counts only.
    other
        Count events of unknown bins here; refused without it.
    start, until
        When the first step of events begins and the last one ends; left out, from the data, which the guarantee says.
        A stream of batches needs its start.
    zone
        Time zone of days and of times that name none.
    max_per_step
        How many events of one user count in a step.
    sensitivity
        Of counts: the most one person adds to a step over all bins together.
    mechanism, parameters
        When to measure, and with how much budget: a name, and parameters by name.
    filter
        What is made of the noisy counts: truncate (whole numbers from 0 up), another filter, or none.
    people
        Whose events these are.
    ordered
        The rows of a stream are sorted by time, so steps can be released while it is read, and memory stays bounded.
        Without it all of its events are counted first. Rows that are not sorted are then an error.
    store
        Where ledger and releases are kept: the same call goes on from there, also with a frame of later events. Without
        one, the guarantee is for this run only.
    new_epoch
        Accept that the setting has changed since the store was made.
    take_over
        Become the writer though another seems to be at work.
    allow_refused
        Publish although more than half of the first rows are refused.

    >>> import eventide as ev
    >>> visits = {"time": ["2026-01-01T09:10", "2026-01-01T09:40"], "who": [1, 2], "page": ["start", "help"]}
    >>> releases = ev.publish(
    ...     visits, epsilon=1, window="1d", step="1h", time="time", user="who", bin="page", bins=["start", "help"],
    ...     mechanism="uniform",
    ... )
    >>> releases.to_arrow().column_names
    ['step', 'start', 'bin', 'value', 'scale', 'fresh']
    """
    opened, listed = open_frame(frame), _listed(bins, other)
    if step is None:
        feed: Feed = _count_feed(opened, listed)
        names, most = cast(CountFeed, feed).file.bins, sensitivity
    elif listed is None:
        raise InputError("bins is missing; bins are never taken from events, so list all of them")
    else:
        names, most, earlier = listed, max_per_step, None if start else _start_in(store)
        feed = open_feed(
            FrameEvents(opened, ordered=ordered),
            names,
            step=step,
            start=start or earlier,
            until=until,
            zone=zone,
            time=time,
            user=user,
            bin=bin,
            other=other,
            max_per_step=max_per_step,
        )
        if isinstance(feed, EventFeed) and earlier:
            feed.timeline.from_data = True  # nobody has said it now
    made = mechanism_by_name(
        mechanism,
        epsilon=epsilon,
        window=window if isinstance(window, int) else steps_of_window(window, step or ""),
        bins=names,
        sensitivity=most,
        filter=None if filter == "none" else filter,
        **parameters or {},
    )
    kept = KeptReleases(made.bins)
    with Publisher(
        feed,
        made,
        store,
        [kept],
        people=people,
        new_epoch=new_epoch,
        take_over=take_over,
        allow_refused=allow_refused,
    ) as publisher:
        publisher.run()
    return Releases(
        made.bins,
        kept.lines,
        publisher.guarantee,
        publisher.ledger,
        zone=zone,
        end=feed.start_of(publisher.next_step),
        operators_only=feed.counters if isinstance(feed, EventFeed) else None,
    )


def _listed(bins: Sequence[str] | int | str | None, other: str | None) -> tuple[str, ...] | None:
    if bins is None:
        return None
    names = parse_bins(str(bins)) if isinstance(bins, int | str) else tuple(map(str, bins))
    return names if other is None or other in names else (*names, other)


def _start_in(store: Store | str | Path | None) -> str | None:
    """Where the first step began when the store was made, so that a later frame goes on with the same steps."""
    with reading(store) as stored:
        epochs = stored.epochs()
    return epochs[-1].setting.steps.get("start") if epochs else None


def _count_feed(frame: Frame, bins: Sequence[str] | None) -> CountFeed:
    """A feed of counts, all of them checked before the first is released, if they can be read twice."""
    counts = open_counts(frame, bins)
    if frame.again:
        for _ in counts.steps():
            pass
    return CountFeed(counts)
