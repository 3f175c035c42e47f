"""`eventide.publish`: a frame of events or counts in, private releases out.

The publisher of the command line stands behind it: the same promise, the same refusals, the same stores.
"""

from __future__ import annotations

import inspect
import warnings
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import numpy as np

from eventide.errors import InputError, unknown
from eventide.live.accounts.account import Account
from eventide.live.addresses import is_address
from eventide.live.feeds.base import Feed
from eventide.live.feeds.count_feed import CountFeed
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.operators_only import OperatorsOnly
from eventide.live.publisher.dry_run import Outlook
from eventide.live.publisher.publisher import Publisher
from eventide.live.publisher.releases import KeptReleases, Releases
from eventide.live.publisher.setup import places_of, reading, statistics
from eventide.live.python_words import in_python, told_in_python
from eventide.live.setting_readers import settings_of
from eventide.live.sources.frame_events import FrameEvents
from eventide.live.stores.base import Store
from eventide.live.stores.stored_releases import over_bins
from eventide.live.stream_spec import EventOptions, StreamOptions, StreamSpec
from eventide.streams.count_files import open_counts
from eventide.streams.frames import Frame, open_frame


@overload
def publish(
    frame: Any,
    *,
    store: Store | str | Path | None = None,
    ordered: bool = False,
    new_epoch: bool = False,
    new_columns: bool = False,
    take_over: bool = False,
    allow_refused: bool = False,
    account: Account | str | Path | None = None,
    dry_run: Literal[False] = False,
    **stream: Unpack[StreamOptions],
) -> Releases: ...


@overload
def publish(
    frame: Any,
    *,
    store: Store | str | Path | None = None,
    ordered: bool = False,
    new_epoch: bool = False,
    new_columns: bool = False,
    take_over: bool = False,
    allow_refused: bool = False,
    account: Account | str | Path | None = None,
    dry_run: Literal[True],
    **stream: Unpack[StreamOptions],
) -> Outlook: ...


@told_in_python
def publish(
    frame: Any,
    *,
    store: Store | str | Path | None = None,
    ordered: bool = False,
    new_epoch: bool = False,
    new_columns: bool = False,
    take_over: bool = False,
    allow_refused: bool = False,
    account: Account | str | Path | None = None,
    dry_run: bool = False,
    **stream: Unpack[StreamOptions],
) -> Releases | Outlook:
    """Publish a frame privately: of events if the length of a step is given, else of counts.

    Parameters
    ----------
    frame
        A frame of pandas, polars, Arrow or another library that narwhals knows, a DuckDB relation, a stream of Arrow
        batches, or a dict of columns; or the path of a file, a folder or a pattern, or several of them. Counts are wide
        (a column for each bin, a row for each step) or long (columns t, bin and count, sorted by t; what is 0 may be
        left out).
    store
        Where ledger and releases are kept: the same call goes on from there, also with a frame of later events. Without
        one, the guarantee is for this run only.
    ordered
        The rows of a stream are sorted by time, so that steps are released while it is read, and memory stays bounded;
        rows that are not sorted are an error. Without it all events of a stream are counted first.
    new_epoch
        Accept that the setting has changed since the store was made.
    new_columns
        Accept that events are read from other columns, or with another time format, than those before.
    take_over
        Become the writer though another seems to be at work.
    allow_refused
        Publish although more than half of the first rows are refused, or no row lies between start and until.
    account
        The account that everything published about these people draws from, its path or address; epsilon is the part of
        this store, and population must be the account's.
    dry_run
        Only look: refuse what would be refused, and give an `Outlook`, which printed says the error to expect, with a
        small picture. Nothing is published, charged or made.
    **stream
        The settings of a `StreamSpec`. Needed are epsilon and window; of events also step, bins and, where they are
        named otherwise, the columns time, user and bin. The bins of wide counts are their columns. start and until are
        taken from the data if they are left out, which the guarantee says; a stream of batches needs its start. Of each
        person max_per_step events count in a step, 1 unless you say more; where people are counted, they count in so
        many bins. What that leaves out `Releases.operators_only` says, and a warning if it is more than a tenth.

    >>> import eventide as ev
    >>> visits = {"at": ["2026-01-01T09:10", "2026-01-01T09:40"], "who": [1, 2], "page": ["start", "help"]}
    >>> columns = {"time": "at", "user": "who", "bin": "page"}
    >>> pages = ["start", "help"]
    >>> releases = ev.publish(visits, epsilon=1, window="1d", step="1h", bins=pages, mechanism="uniform", **columns)
    >>> releases.to_arrow().column_names
    ['step', 'start', 'bin', 'value', 'scale', 'fresh']
    """
    settings = settings_of(StreamSpec)
    if strange := stream.keys() - settings.keys():
        if "out" in strange:
            raise TypeError("there is no setting 'out'; write a file of what releases.to_pandas() or to_arrow() gives")
        own = [name for name in inspect.signature(publish).parameters if name not in ("frame", "stream")]
        said = unknown("setting", min(strange), [*own, *settings])
        raise TypeError(said if said.endswith("?") else f"{said}; what only the mechanism takes stands in parameters=")
    spec = StreamSpec(**stream)
    if not spec.step and (only_for_events := stream.keys() & EventOptions.__annotations__.keys()):
        raise InputError(f"{min(only_for_events)} is for events, and these need step; give one, such as 10min")
    spec.need("epsilon", "window")
    if spec.queries and not (spec.queries_epsilon and store):
        raise InputError("answers to window queries need queries_epsilon, their share, and a store, which keeps them")
    spec, feed = _opened(frame, spec, store, ordered=ordered, zone_is_given="zone" in stream)
    mechanism = spec.build_mechanism()
    told: dict[str, Any] = {"questions": spec.questions(), "population": spec.population}
    told |= {"new_epoch": new_epoch, "new_columns": new_columns, "account": account}
    if dry_run:
        with closing(feed):
            return Publisher.check(feed, mechanism, store, **told)
    placed = places_of(mechanism, store)
    kept = KeptReleases(placed.bins, None if placed.levels is None else placed.levels.groups)
    with Publisher(
        feed,
        mechanism,
        store,
        [kept],
        take_over=take_over,
        allow_refused=allow_refused,
        keep=spec.keep,
        **told,
    ) as publisher:
        publisher.run()
        names = placed.bins if publisher.names is None else publisher.names.names
    counted = OperatorsOnly.of(feed)
    for sentence in () if counted is None else counted.warnings():
        warnings.warn(in_python(sentence), stacklevel=3)
    bins = tuple(name for name in names if publisher.names is None or name in publisher.names.known())
    return Releases(
        bins,
        [over_bins(line, names, bins, absent=np.nan) for line in kept.lines],
        publisher.guarantee,
        publisher.ledger,
        zone=spec.zone,
        end=feed.start_of(publisher.next_step),
        operators_only=counted,
        levels=placed.levels,
        statistics=statistics(mechanism, feed),
    )


def _opened(
    frame: Any, spec: StreamSpec, store: Store | str | Path | None, *, ordered: bool, zone_is_given: bool
) -> tuple[StreamSpec, Feed]:
    """The feed of a frame or of files, and the description with its bins."""
    if not _are_files(frame):
        opened = open_frame(frame)
        if not spec.step:
            return _count_feed(spec, opened)
        if not zone_is_given and (own := opened.zone_of(spec.time)) not in (None, "UTC", "Etc/UTC", "Z", "+00:00"):
            sentence = f"{spec.time} is in {own}, and steps are cut in UTC; give zone={own!r}, or zone='UTC'"
            warnings.warn(sentence, stacklevel=4)
        return spec, _event_feed(spec, FrameEvents(opened, ordered=ordered), store, zone_is_given=zone_is_given)
    places = [frame] if isinstance(frame, str | Path) else frame
    if any(place == "-" or is_address(place) for place in places):
        raise InputError("ev.publish takes what is complete; publish a live source with ev.Publisher")
    if spec.step:
        return spec, spec.feed(frame, zone_is_given=zone_is_given)
    if len(places) > 1:
        raise InputError("counts stand in one file; give its path, or step if these are files of events")
    return _count_feed(spec, places[0])


def _are_files(frame: Any) -> bool:
    paths = [frame] if isinstance(frame, str | Path) else frame
    return isinstance(paths, list | tuple) and bool(paths) and all(isinstance(path, str | Path) for path in paths)


def _event_feed(
    spec: StreamSpec, events: FrameEvents, store: Store | str | Path | None, *, zone_is_given: bool
) -> Feed:
    """A feed of events; where nobody says when they begin, a store goes on with the steps that it has."""
    with reading(None if spec.start else store) as stored:
        epochs = stored.epochs()
    begun = epochs[-1].setting.steps.get("start", "") if epochs else ""
    feed = replace(spec, start=spec.start or begun).feed(events, zone_is_given=zone_is_given)
    assert isinstance(feed, EventFeed)
    events.span = feed.span
    if begun:
        feed.timeline.from_data = True
    return feed


def _count_feed(spec: StreamSpec, source: Frame | str | Path) -> tuple[StreamSpec, Feed]:
    """A feed of counts, all of them checked before the first is released, if they can be read twice."""
    if isinstance(source, Frame) and spec.counted_bins() is None and source.rows_have_names():
        raise InputError(
            "the rows of these counts have names (their index), but a row is a step, and a column is a bin; give "
            "frame.T (of a Series series.to_frame().T), or unstack() one level of the index. If the rows are steps, "
            "list the columns with --bins"
        )
    counts = open_counts(source, spec.counted_bins())
    if not isinstance(source, Frame) or source.again:
        for _ in counts.steps():
            pass
    return replace(spec, bins=counts.bins), CountFeed(counts)
