"""Which feed a path means, for those who have the bins: with a length of steps it holds events, without one counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from eventide.errors import InputError
from eventide.events.clock import Clock
from eventide.events.files.members import Paths
from eventide.live.feeds.base import Feed
from eventide.live.sources.base import EventSource
from eventide.live.stream_spec import EventOptions, StreamSpec


def open_feed(
    source: Paths | EventSource,
    bins: Sequence[str],
    *,
    max_per_step: int = 1,
    follow: bool = False,
    clock: Clock | None = None,
    clients: str | Path | None = None,
    **options: Unpack[EventOptions],
) -> Feed:
    """A feed of one or more files, of standard input ("-"), of an address, or of a source of events.

    Parameters
    ----------
    source
        A path, a folder, a pattern such as logs/*.csv, a list of them, "-", an address, or a source.
    bins
        The names of all bins, also of the one for other events.
    max_per_step
        How many events of one user count in a step.
    follow
        Go on as the file grows.
    clock
        What time it is; the machine's where left out.
    clients
        A file of client settings, for an address; the one that EVENTIDE_CLIENTS names where left out.
    **options
        How events are read and cut into steps, as a `StreamSpec` has it; without `step` the file holds counts, and
        nothing else applies.
    """
    spec = StreamSpec(bins=bins, max_per_step=max_per_step, **options)
    if spec.bins != tuple(bins):
        raise InputError(f"the bin {spec.other!r} for other events is not in the list; add it there")
    return spec.feed(source, follow=follow, clock=clock, clients=clients, zone_is_given="zone" in options)
