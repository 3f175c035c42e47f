"""The part of `eventide publish` that releases every step: checks, runs the publisher, reports.

SIGTERM ends the work after the step in hand, as if the source had ended.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from eventide.cli.live_log import logging_to_stderr
from eventide.cli.progress import counting, with_progress
from eventide.cli.publish import Options
from eventide.cli.publish.inputs import build, build_questions, longest_window_steps, stored
from eventide.cli.publish.summary import counted, described, operators_only, predicted, summary
from eventide.live.publisher.fitness import check_fit
from eventide.live.publisher.publisher import Publisher
from eventide.live.publisher.setting import setting_of
from eventide.live.sinks.base import Sink
from eventide.live.sinks.open_sink import open_sink
from eventide.live.sinks.whole_file import WholeFile
from eventide.live.stores.base import Setting
from eventide.live.stores.open_store import open_store
from eventide.live.stores.setting_changes import epoch_for


def publish_steps(options: Options) -> tuple[dict[str, Any], list[str]]:
    """Publish, or with a dry run only check; give a report and sentences about it."""
    longest_window = longest_window_steps(options)
    mechanism, feed, counts = build(options)
    questions = build_questions(options)
    check_fit(mechanism, feed.promise())
    _try_out(options, mechanism.bins)
    quiet = options.log is not None or (options.out in (None, "-") and sys.stdout.isatty())
    steps = None if counts is None else sum(1 for _ in with_progress(counts.steps(), "Checking", None, quiet))
    if options.dry_run:
        with Publisher(feed, mechanism, questions=questions) as publisher:
            report = described(options, publisher) | predicted(publisher) | {"steps": steps}
            setting = setting_of(mechanism, feed, options.people, questions)
        return report | {"next_step": _next_step(options, setting)}, [summary(report)]
    with (
        _terminated() as terminated,
        logging_to_stderr(options.log),
        Publisher(
            feed,
            mechanism,
            None if options.store is None else open_store(options.store),
            _sinks(options, mechanism.bins, feed.start_of(0) is not None),
            questions=questions,
            people=options.people,
            new_epoch=options.new_epoch,
            take_over=options.take_over,
            after_restore=options.after_restore,
            longest_window=longest_window,
            allow_refused=options.allow_refused,
        ) as publisher,
        counting("Publishing", steps and steps - publisher.next_step, quiet) as count,
    ):
        publisher.run(stop=lambda: count(publisher.published) or terminated())
    counters = operators_only(feed)
    report = described(options, publisher) | {
        "steps": publisher.published,
        "fresh_looks": publisher.fresh_looks,
        "worst_window_spent": publisher.worst_window(),
        "out": options.out if options.out != "-" else None,
    }
    report |= {} if counters is None else {"operators_only": counters}
    return report, [summary(report)] if counters is None else [summary(report), counted(counters)]


def _next_step(options: Options, setting: Setting) -> int:
    """Where the store of a dry run stands; a setting that it would refuse is refused now."""
    with stored(options) as store:
        if store is None:
            return 0
        epoch_for(store, setting, new_epoch=options.new_epoch)
        return store.next_step()


def _try_out(options: Options, bins: tuple[str, ...]) -> None:
    """Refuse an output that cannot be written now rather than after the work."""
    if options.out in (None, "-") or "://" in options.out:
        open_sink(options.out or "-", bins, layout=options.layout)
        return
    trial = WholeFile(options.out, bins, options.layout, source=Path(options.source))
    with contextlib.closing(trial):
        trial.open()


def _sinks(options: Options, bins: tuple[str, ...], starts: bool) -> list[Sink]:
    places = [options.out or "-", *options.webhook]
    growing = options.store is not None
    return [
        open_sink(place, bins, layout=options.layout if place == options.out else None, growing=growing, starts=starts)
        for place in places
    ]


@contextlib.contextmanager
def _terminated() -> Iterator[Callable[[], bool]]:
    """Whether SIGTERM has come."""
    asked = []
    before = signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGTERM, before)
