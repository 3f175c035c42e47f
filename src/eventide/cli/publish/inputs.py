"""The part of `eventide publish` that turns options into a mechanism and a feed.

Options that do not fit together are refused here, before anything is published. Spark takes its settings, such as the
cluster's address, from where it always does (spark-defaults.conf or PYSPARK_SUBMIT_ARGS); without any it uses the cores
of this machine.
"""

from __future__ import annotations

import os
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from eventide.cli.publish import Options
from eventide.errors import InputError
from eventide.events.bins import parse_bins
from eventide.events.durations import steps_of_window
from eventide.events.reader import Columns
from eventide.filters import by_name
from eventide.live.feeds.base import Feed
from eventide.live.feeds.count_feed import CountFeed
from eventide.live.feeds.open_feed import open_feed
from eventide.live.publisher.setup import reading
from eventide.live.publisher.window_queries import Questions
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.registry import mechanism
from eventide.privacy.amounts import NANO, nano
from eventide.streams.count_files import CountFile, open_counts
from eventide.windows.query_files import read_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONLY_FOR_EVENTS = {
    "step": "--step says how long a step is for --queries and for events",
    "start": "--start says when the first step of events begins",
    "until": "--until says when the last step of events ends",
    "engine": "--engine says what counts events",
}


def build(options: Options) -> tuple[Mechanism, Feed, CountFile | None]:
    """The mechanism and the feed; and the file, if it holds counts."""
    if options.events:
        bins = _bins_of_events(options)
        feed = _event_feed(options, bins)
        return build_mechanism(options, bins, options.max_per_step), feed, None
    counts = open_count_file(options)
    feed = CountFeed(counts)
    return build_mechanism(options, counts.bins, options.sensitivity_of_counts), feed, counts


def open_count_file(options: Options) -> CountFile:
    """The file of counts, with options that are for events refused."""
    for name, meaning in ONLY_FOR_EVENTS.items():
        if getattr(options, name) and not (name == "step" and options.queries):
            raise InputError(
                f"{meaning}; counts have no clock, so leave it out, or name the columns of events with --time and --bin"
            )
    return open_counts(options.source, parse_bins(options.bins) if options.bins else None)


def build_mechanism(options: Options, bins: tuple[str, ...], sensitivity: int) -> Mechanism:
    """The mechanism with its filter."""
    chosen = None if options.filter_name == "none" else by_name(options.filter_name)
    return mechanism(
        options.mechanism,
        epsilon=Fraction(nano(options.epsilon) - _share(options), NANO),
        window=window_steps(options),
        bins=bins,
        sensitivity=sensitivity,
        filter=chosen,
    )


def build_questions(options: Options) -> Questions | None:
    """The window queries that are answered beside the releases, if there are any."""
    if options.queries is None or options.queries_epsilon is None:
        return None
    if options.store is None:
        raise InputError("--store is missing; answers to window queries beside the releases are kept in a store")
    queries = tuple(read_queries(options.queries, options.step))
    share = Fraction(_share(options), NANO)
    return Questions(queries, share, options.queries_of, truncate=options.filter_name == "truncate")


def _share(options: Options) -> int:
    """What the window queries get of epsilon, in nano-epsilon."""
    if options.queries_epsilon is None:
        return 0
    if options.queries is None:
        raise InputError("--queries-epsilon is a share of epsilon for window queries; name their file with --queries")
    share = nano(options.queries_epsilon)
    if share >= nano(options.epsilon):
        raise InputError(
            f"--queries-epsilon {options.queries_epsilon:g} leaves nothing of epsilon {options.epsilon:g} for "
            "releases; give less, or leave it out to publish answers only"
        )
    return share


def window_steps(options: Options) -> int:
    """The window in steps; a duration is rounded up to whole steps."""
    if options.window is None:
        raise InputError("--window is missing; say how many consecutive steps are protected together")
    return _steps(options, "--window", options.window)


def longest_window_steps(options: Options) -> int | None:
    """The longest window since a backup, in steps, if somebody said it."""
    if options.longest_window is None:
        return None
    if not options.after_restore:
        raise InputError("--longest-window is about a store that was restored; give --after-restore as well")
    return _steps(options, "--longest-window", options.longest_window)


def _steps(options: Options, option: str, window: str) -> int:
    if window.isdecimal():
        return int(window)
    if options.step is None or not options.events:
        raise InputError(f"{option} {window} must be a whole number of steps; a duration needs events and --step")
    return steps_of_window(window, options.step)


def _bins_of_events(options: Options) -> tuple[str, ...]:
    if options.bins is None:
        raise InputError("--bins is missing; bins are never taken from events, so list all of them in a file")
    if options.sensitivity is not None:
        raise InputError("--sensitivity is for counts; of events --max-per-step says how many count for one user")
    bins = parse_bins(options.bins)
    return bins if options.other is None or options.other in bins else (*bins, options.other)


def _event_feed(options: Options, bins: tuple[str, ...]) -> Feed:
    if options.step is None:
        raise InputError("--step is missing; say how long a step of these events is, such as 10min")
    if options.engine == "spark":
        return _spark_feed(options, bins)
    return open_feed(
        options.source,
        bins,
        step=options.step,
        start=options.start or _start_in_store(options),
        until=options.until,
        zone=options.zone,
        time=options.time or "timestamp",
        user=options.user,
        bin=options.bin or "bin",
        other=options.other,
        max_per_step=options.max_per_step,
        late=options.late,
        follow=options.follow,
    )


def _spark_feed(options: Options, bins: tuple[str, ...]) -> Feed:
    """A feed of a file of events that Spark counts."""
    if options.live:
        raise InputError("--engine spark publishes complete files; for a stream call eventide.engines.spark.publish")
    if options.store is None:
        raise InputError("--store is missing; with --engine spark open steps are kept in a folder beside it")
    if options.start is None or options.until is None or options.step is None:
        raise InputError("--engine spark needs --step, --start and --until; it takes none of them from the data")
    from eventide.engines.spark import spark_feed
    from eventide.engines.spark_files import read_file
    from eventide.engines.spark_tallies import Counting

    events, lines = read_file(_spark_session(), Path(options.source))
    counting = Counting(
        bins=bins,
        columns=Columns(options.time or "timestamp", options.user, options.bin or "bin"),
        arrival=None,
        other=options.other,
        start=options.start,
        step=options.step,
        zone=options.zone or "UTC",
        until=options.until,
        late=options.late,
        most=options.max_per_step,
        lines=lines,
    )
    return spark_feed(events, counting, f"{options.store}.spark", skew="1s", available_now=True, trigger="1 second")


def _spark_session() -> SparkSession:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError("Spark needs the extra spark; install it with: pip install 'eventide[spark]'") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.appName("eventide").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _start_in_store(options: Options) -> str | None:
    """Where a live source that names no start began when its store was made."""
    if not options.live:
        return None
    with reading(options.store) as store:
        epochs = store.epochs()
    return epochs[-1].setting.steps.get("start") if epochs else None
