"""The part of `eventide publish` that lets Spark count the events of a file.

Spark takes its settings, such as the cluster's address, from where it always does (spark-defaults.conf or
PYSPARK_SUBMIT_ARGS); without any it uses the cores of this machine.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from eventide.cli.publish_options import Options
from eventide.engines.spark import spark_feed
from eventide.engines.spark_files import read_file
from eventide.engines.spark_tallies import Counting
from eventide.errors import InputError
from eventide.events.reader import Columns
from eventide.live.feeds.base import Feed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_event_feed(options: Options, bins: tuple[str, ...]) -> Feed:
    """A feed of a file of events that Spark counts."""
    if options.live:
        raise InputError("--engine spark publishes complete files; for a stream call eventide.engines.spark.publish")
    if options.store is None:
        raise InputError("--store is missing; with --engine spark open steps are kept in a folder beside it")
    if options.start is None or options.until is None or options.step is None:
        raise InputError("--engine spark needs --step, --start and --until; it takes none of them from the data")
    events, lines = read_file(_session(), Path(options.source))
    counting = Counting(
        bins=bins,
        columns=Columns(options.time or "timestamp", options.user, options.bin or "bin"),
        arrival=None,
        other=options.other,
        start=options.start,
        step=options.step,
        zone=options.zone,
        until=options.until,
        late=options.late,
        most=options.max_per_step,
        lines=lines,
    )
    return spark_feed(events, counting, f"{options.store}.spark", skew="1s", available_now=True, trigger="1 second")


def _session() -> SparkSession:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError("Spark needs the extra spark; install it with: pip install 'eventide[spark]'") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.appName("eventide").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
