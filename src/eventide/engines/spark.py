"""The publisher behind Spark Structured Streaming: `publish` takes a streaming frame of events.

Spark counts on its executors, bounded by the same keyed hash as on one machine; mechanism, ledger and release run on
the driver, one transaction of the store a step. A step that Spark hands over again is never drawn again. Needs the
extra `spark`: pyspark is imported when a query starts.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eventide.engines.spark_feed import SparkFeed
from eventide.engines.spark_tallies import Counting
from eventide.engines.spark_work_folder import WorkFolder
from eventide.errors import InputError
from eventide.events.durations import milliseconds
from eventide.events.reader import Columns
from eventide.events.timeline import MILLISECOND
from eventide.live.publisher.publisher import Publisher
from eventide.live.sinks.base import Sink
from eventide.live.stores.base import Store
from eventide.mechanisms.base import Mechanism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Publishing:
    """A publisher at work in a thread of its own; `publisher` is what it works with."""

    def __init__(self, publisher: Publisher) -> None:
        self.publisher = publisher
        self._asked_to_stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="eventide-spark", daemon=True)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        """Whether it still publishes."""
        return self._thread.is_alive()

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, at most so many seconds, and say whether it has; raises what made it fail."""
        self._thread.join(timeout)
        if self._failure is not None:
            raise self._failure
        return not self.is_active

    def stop(self) -> None:
        """End after the step in hand; the next one goes on where this one stopped."""
        self._asked_to_stop.set()
        self.await_termination()

    def _work(self) -> None:
        try:
            with self.publisher:
                self.publisher.run(stop=self._asked_to_stop.is_set)
        except BaseException as failure:
            self._failure = failure


def publish(
    events: DataFrame,
    *,
    step: str,
    start: str,
    user: str | None,
    bin: str,
    arrival: str | None,
    mechanism: Mechanism,
    store: Store | str | Path,
    work: str | Path | None = None,
    time: str = "timestamp",
    until: str | None = None,
    zone: str = "UTC",
    other: str | None = None,
    late: str | None = None,
    skew: str = "1min",
    sinks: Iterable[Sink | str | Path] = (),
    available_now: bool = False,
    trigger: str = "1 second",
    **publishing: Any,
) -> Publishing:
    """Publish the events of a streaming frame; gives at once what is at work.

    step, start, until, zone, other, late: as of `Publisher`; `start` is public and has no default here. time, user,
    bin, arrival: columns; `arrival` is when the source got an event (Kafka's `timestamp`), by the clock of the source.
    None for arrival means that the source is complete: an event arrives when it happens, `until` must be given, and all
    steps are published when everything was read. store, sinks: as of `Publisher`. work: a folder that the driver and
    all executors see, for Spark's checkpoint and the tallies of open steps; beside the store where left out. skew: how
    far one part of the source may be behind another, and the driver's clock before the source's. available_now: end
    when what is there now was read. trigger: how often Spark looks for more. Anything else goes to `Publisher`.

    max_per_step is the mechanism's sensitivity.
    """
    feed = spark_feed(
        events,
        Counting(
            mechanism.bins, Columns(time, user, bin), arrival, other, start, step, zone, until, late,
            mechanism.sensitivity,
        ),
        _work_folder(store, work),
        skew=skew,
        available_now=available_now,
        trigger=trigger,
    )  # fmt: skip
    return Publishing(Publisher(feed, mechanism, store, sinks, **publishing))


def spark_feed(
    events: DataFrame, counting: Counting, work: str | Path, *, skew: str, available_now: bool, trigger: str
) -> SparkFeed:
    """A feed of a streaming frame, with what cannot be right refused."""
    if not events.isStreaming:
        raise InputError("this frame is no stream; read it with spark.readStream")
    if missing := [name for name in counting.wanted if name not in events.columns]:
        raise InputError(f"the frame has no column {missing[0]!r}; its columns are {', '.join(events.columns)}")
    if counting.other is not None and counting.other not in counting.bins:
        raise InputError(f"the bin {counting.other!r} for other events is not in the list; add it there")
    complete = counting.arrival is None
    if complete and counting.late:
        raise InputError("nothing in a complete source is late; leave the allowed lateness out, or name the arrival")
    if complete and counting.until is None:
        raise InputError("a complete source needs until, which says in public when its last step ends")
    often: dict[str, Any] = {"availableNow": True} if complete or available_now else {"processingTime": trigger}
    return SparkFeed(events, counting, WorkFolder(work), often, milliseconds(skew) * MILLISECOND)


def _work_folder(store: Store | str | Path, work: str | Path | None) -> str | Path:
    if work is not None:
        return work
    if isinstance(store, Store):
        raise InputError("work is missing; name a folder that the driver and all executors see")
    return f"{store}.spark"
