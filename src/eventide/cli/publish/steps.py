"""The part of `eventide publish` that releases every step: checks, runs the publisher, reports.

SIGTERM ends the work after the step in hand, as if the source had ended.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from eventide.cli.live_log import logging_to_stderr
from eventide.cli.progress import counting, naming, with_progress
from eventide.cli.publish import Options
from eventide.cli.publish.inputs import build, build_questions, longest_window_steps, refuse_to_replace
from eventide.cli.publish.summary import described, not_checked, summary
from eventide.errors import InputError
from eventide.live.addresses import without_secrets
from eventide.live.client_settings import read_clients
from eventide.live.feeds.base import Feed
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.operators_only import OperatorsOnly
from eventide.live.notices import NOTICES
from eventide.live.publisher.delivery import Undelivered
from eventide.live.publisher.prediction import answers_told, checked, document, sentences
from eventide.live.publisher.publisher import Publisher
from eventide.live.publisher.setup import passed_over, past_of_pipe, places_of, statistics
from eventide.live.sinks.base import Sink
from eventide.live.sinks.open_sink import open_sink
from eventide.mechanisms.base import Mechanism
from eventide.releases.files import refuse_read

WANTS_THE_PAST = "To publish what the source has of an earlier time, give --start with a new store"


def publish_steps(options: Options) -> tuple[dict[str, Any], list[str]]:
    """Publish, or with a dry run only check; give a report and sentences about it."""
    if options.clients is not None:
        read_clients(options.clients)  # refused also where no address needs it
    longest_window = longest_window_steps(options)
    with naming("Looking at the source"):
        mechanism, feed, counts = build(options)
    questions = build_questions(options)
    sinks = _sinks(options, places_of(mechanism, options.store, options.clients), feed)
    told: dict[str, Any] = {
        "questions": questions,
        "population": options.spec.population,
        "new_epoch": options.new_epoch,
        "new_columns": options.new_columns,
        "after_restore": options.after_restore,
        "account": options.account,
        "clients": options.clients,
    }
    found = Publisher.check(feed, mechanism, options.store, sinks, **told)
    quiet = options.log is not None or (options.out in (None, "-") and sys.stdout.isatty())
    steps = None if counts is None else sum(1 for _ in with_progress(counts.steps(), "Checking", None, quiet))
    if options.dry_run:
        with Publisher(feed, mechanism, questions=questions) as publisher, naming("predicting the error"):
            report = described(options, publisher) | {"dry_run": True} | found.known()
            errors = found.expected_error()
        report |= {"steps": steps, "next_step": found.next_step} | document(errors)
        report |= {"guarantee": str(found.guarantee)} if options.account else {}
        foreseen = sentences(errors, limited=options.spec.user is not None)
        lines = [checked(report), *foreseen, *answers_told(report), *not_checked(options, rows=steps is not None)]
        return report, [*lines, *_left_out(sinks), *(f"Note: {each}." for each in _heading(options))]
    with (
        _terminated() as terminated,
        logging_to_stderr(options.log),
        Publisher(
            feed,
            mechanism,
            options.store,
            sinks,
            take_over=options.take_over,
            longest_window=longest_window,
            allow_refused=options.allow_refused,
            keep=options.spec.keep,
            **told,
        ) as publisher,
        counting("Publishing", steps and steps - publisher.next_step, quiet) as count,
    ):
        if past := past_of_pipe(feed, publisher.next_step):
            NOTICES.info("%s", past)
        elif passed := passed_over(feed, publisher.next_step, publisher.measured_from):
            NOTICES.info("%s. %s", passed, WANTS_THE_PAST)
        for each in _heading(options):
            NOTICES.info("%s", each)
        if isinstance(feed, EventFeed) and not options.allow_refused:
            feed.tell_operator = partial(click.echo, err=True)
        publisher.run(stop=lambda: count(publisher.published) or terminated())
        lacking = _brought_to_sinks(publisher, terminated)
    counted = OperatorsOnly.of(feed)
    report = described(options, publisher) | {
        "steps": publisher.published,
        "fresh_looks": publisher.fresh_looks,
        "worst_window_spent": publisher.worst_window(),
        "out": without_secrets(options.out) if options.out not in (None, "-") else None,
    }
    report |= {} if counted is None else {"operators_only": vars(counted)}
    return report, [summary(report), *_left_out(sinks), *([] if counted is None else counted.lines()), *lacking]


def _brought_to_sinks(publisher: Publisher, terminated: Callable[[], bool]) -> list[str]:
    """Bring everything to the sinks; after SIGTERM one that cannot take it is no failure, and what it lacks is said."""
    lacking = []
    try:
        publisher.finish()
    except Undelivered as problem:
        if not terminated():
            raise
        lacking.append(f"Stopped. Still to be sent: {problem}")
    publisher.close_sinks()
    return lacking


def _heading(options: Options) -> list[str]:
    """That the list of bins seems to begin with a heading, if it does."""
    column, bins = options.spec.bin, options.spec.bins
    if not (options.events and bins and bins[0].casefold() == column.casefold()):
        return []
    return [
        f"the first bin is named {bins[0]!r}, as the column of --bin is; if that is a heading, remove it from --bins "
        "(a store that has it as a bin then needs --new-epoch)"
    ]


def _left_out(sinks: list[Sink]) -> list[str]:
    """What is not in an output, although it is published."""
    if not any(sink.leaves_out_windows for sink in sinks):
        return []
    return [
        "The output has the counts of single steps and no histograms of sliding windows: it is wide, or was begun "
        "without them. Long files, JSON lines and the store have both (--layout long, or eventide export)."
    ]


def _sinks(options: Options, mechanism: Mechanism, feed: Feed) -> list[Sink]:
    if options.store is not None and "://" not in options.store:
        refuse_read(Path(options.store), [Path(source) for source in options.sources], "--store")
    how: dict[str, Any] = {"growing": options.store is not None, "starts": feed.start_of(0) is not None}
    how |= {"sources": options.sources, "clients": options.clients}
    bins, levels = mechanism.bins, mechanism.levels
    how |= {"groups": levels and levels.groups, "statistics": statistics(mechanism, feed)}
    out = open_sink(options.out or "-", bins, layout=options.layout, intervals=options.intervals, **how)
    refuse_to_replace(options)
    if not all(place.startswith(("http://", "https://")) for place in options.webhook):
        raise InputError("--webhook takes an address that begins with http:// or https://; write it in full")
    return [out, *(open_sink(place, bins, **how) for place in options.webhook)]


@contextlib.contextmanager
def _terminated() -> Iterator[Callable[[], bool]]:
    """Whether SIGTERM has come."""
    asked = []
    before = signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGTERM, before)
