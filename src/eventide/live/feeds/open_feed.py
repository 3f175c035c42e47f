"""Which feed a path means: with a length of steps it holds events, without one counts.

What was opened is let go of again if the feed cannot be made.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eventide.errors import InputError
from eventide.events.clock import Clock, SystemClock
from eventide.events.reader import Columns, EventReader
from eventide.events.timeline import Timeline
from eventide.live.feeds.base import Feed
from eventide.live.feeds.count_feed import CountFeed
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.base import EventSource
from eventide.live.sources.complete_files import CompleteFiles
from eventide.live.sources.open_source import open_source
from eventide.streams.count_files import open_counts


def open_feed(
    source: str | Path | EventSource,
    bins: Sequence[str],
    *,
    step: str | None = None,
    start: str | None = None,
    until: str | None = None,
    zone: str | None = None,
    time: str = "timestamp",
    time_format: str | None = None,
    user: str | None = None,
    bin: str = "bin",
    other: str | None = None,
    max_per_step: int = 1,
    late: str | None = None,
    follow: bool = False,
    clock: Clock | None = None,
) -> Feed:
    """A feed of the file `source`, of standard input ("-"), of an address, or of a source of events.

    step: how long a step is; without it the file holds counts, and nothing else applies. start, until: when the
    first step begins and the last one ends; from the data of a complete file where left out, a live source begins
    today and has no end. zone: where days begin and plain times are read, UTC where left out. time_format: s, ms,
    us or ns since 1970, or a pattern of strptime, for times that are written otherwise than ISO 8601. time, user,
    bin: the columns of an event; without a user column each event is its own user. other: the bin for events of
    bins that are not in the list. max_per_step: how many events of one user count in a step. late: how long after
    its end a step waits. follow: go on as the file grows. clock: what time it is; the machine's where left out.
    """
    if step is None:
        if isinstance(source, EventSource):
            raise InputError("a source of events needs the length of a step; give one, such as 10min")
        return CountFeed(open_counts(source, bins))
    reader = EventReader(bins, Columns(time, user, bin), other=other, zone=zone, time_format=time_format)
    if reader.bins != tuple(bins):
        raise InputError(f"the bin {other!r} for other events is not in the list; add it there")
    clock = clock or SystemClock()
    events = source if isinstance(source, EventSource) else open_source(source, clock, follow=follow)
    try:
        timeline = _timeline(events, reader, start, step, zone or "UTC", clock)
        return EventFeed(events, timeline, reader, clock, max_per_step=max_per_step, late=late, until=until)
    except BaseException:
        events.close()
        raise


def _timeline(
    source: EventSource, reader: EventReader, start: str | None, step: str, zone: str, clock: Clock
) -> Timeline:
    if start is not None:
        return Timeline(start, step, zone)
    if isinstance(source, CompleteFiles):
        return Timeline.around(source.first_time(reader), step, zone)
    today = Timeline.around(clock.now(), "1d", zone)  # the clock is public
    return Timeline(today.iso(0), step, zone)
