"""The part of `eventide publish` that turns options into a mechanism and a feed.

Options that do not fit together are refused here, before anything is published. Spark takes its settings, such as the
cluster's address, from where it always does (spark-defaults.conf or PYSPARK_SUBMIT_ARGS); without any it uses the cores
of this machine.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from eventide.cli.publish import OF_EVENTS, Options, option_of
from eventide.errors import InputError
from eventide.events.durations import steps_of_window
from eventide.events.files.members import one_path
from eventide.live.addresses import without_secrets
from eventide.live.feeds.base import Feed
from eventide.live.feeds.count_feed import CountFeed
from eventide.live.publisher.setup import reading
from eventide.live.publisher.window_queries import Questions
from eventide.mechanisms.base import Mechanism
from eventide.streams.count_files import CountFile, open_counts

ONLY_FOR_EVENTS = {
    "step": "--step says how long a step is for --queries and for events",
    "start": "--start says when the first step of events begins",
    "until": "--until says when the last step of events ends",
    "engine": "--engine says what counts events",
    "cap": "--cap says how many events of one user count in how long",
}


def build(options: Options) -> tuple[Mechanism, Feed, CountFile | None]:
    """The mechanism and the feed; and the file, if it holds counts."""
    options.spec.need("window", label=option_of)
    if options.events:
        feed = _event_feed(options)
        return options.spec.build_mechanism(), feed, None
    counts = open_count_file(options)
    return replace(options.spec, bins=counts.bins).build_mechanism(), CountFeed(counts), counts


def open_count_file(options: Options) -> CountFile:
    """The file of counts, with options that are for events refused."""
    given = options.stream | {"engine": options.engine}
    for name, meaning in ONLY_FOR_EVENTS.items():
        if given.get(name) and not (name == "step" and "queries" in given):
            raise InputError(
                f"{meaning}; counts have no clock, so leave it out. If the rows are events, say so: name their columns "
                "with --time, --user and --bin (also where they are timestamp, user and bin), and all bins with --bins"
            )
    return open_counts(one_path(options.sources), options.spec.counted_bins())


def build_questions(options: Options) -> Questions | None:
    """The window queries that are answered beside the releases, if there are any."""
    questions = options.spec.questions()
    if questions is not None and options.store is None:
        raise InputError("--store is missing; answers to window queries beside the releases are kept in a store")
    return questions


def longest_window_steps(options: Options) -> int | None:
    """The longest window since a backup, in steps, if somebody said it."""
    if options.longest_window is None:
        return None
    if not options.after_restore:
        raise InputError("--longest-window is about a store that was restored; give --after-restore as well")
    return steps_of_window(options.longest_window, options.spec.step or None)


def refuse_to_replace(options: Options) -> None:
    """What was published cannot be had again, so a run that cannot go on with a file leaves it as it is."""
    if options.store is None and options.out and (path := Path(options.out)).is_file() and path.stat().st_size:
        raise InputError(
            f"{path} exists, and a run without a store would replace it and spend its budget once more; choose another "
            "file, or remove this one; with --store a run goes on where the last one stopped"
        )


def _event_feed(options: Options) -> Feed:
    spec = options.spec
    if options.follow and not spec.step and not any(name in options.stream for name in OF_EVENTS):
        raise InputError(
            "--follow reads a log of events; if this one is, name its columns with --time, --user and --bin, and give "
            "--step and --bins. A file of counts is not followed: give the same command without --follow, and with "
            "--store, whenever it has grown"
        )
    if not spec.bins:
        raise InputError("--bins is missing; bins are never taken from events, so list all of them in a file")
    if "sensitivity" in options.stream:
        raise InputError(
            "--sensitivity is for counts; for events give --max-per-step, how many of one user count in a step"
        )
    if "window_sensitivity" in options.stream:
        raise InputError("--window-sensitivity is for counts; for events give --cap, such as --cap 2/7d")
    if not spec.step:
        raise InputError(
            "--step is missing: events are counted in steps of time; give the length of a step, such as --step 1h"
        )
    if options.engine == "spark":
        return _spark_feed(options)
    begun = replace(spec, start=spec.start or _start_in_store(options))
    return begun.feed(
        options.source,
        follow=options.follow,
        continue_with=options.continue_with,
        clients=options.clients,
        zone_is_given="zone" in options.stream,
    )


def _spark_feed(options: Options) -> Feed:
    """A feed of a file, folder or table of events that Spark counts."""
    source, *more = options.sources
    if more or (options.several and not Path(source).is_dir()):
        raise InputError("--engine spark reads one file, folder or table; name one, or leave --engine out")
    if options.live:
        raise InputError("--engine spark publishes complete files; for a stream call eventide.engines.spark.publish")
    if options.store is None:
        raise InputError("--store is missing; with --engine spark open steps are kept in a folder beside it")
    if not (options.spec.start and options.spec.until):
        raise InputError("--engine spark needs --step, --start and --until; it takes none of them from the data")
    from eventide.engines.spark import spark_feed
    from eventide.engines.spark_files import read_source
    from eventide.engines.spark_session import quiet_session
    from eventide.engines.spark_tallies import Counting

    events, lines = read_source(quiet_session(), source)
    counting, folder = Counting(options.spec, None, lines=lines), f"{without_secrets(options.store)}.spark"
    return spark_feed(events, counting, folder, skew="1s", available_now=True, trigger="1 second")


def _start_in_store(options: Options) -> str:
    """Where a live source that names no start began when its store was made; nothing for others."""
    if not options.live:
        return ""
    with reading(options.store, options.clients) as store:
        epochs = store.epochs()
    return epochs[-1].setting.steps.get("start", "") if epochs else ""
