"""The publisher behind Spark Structured Streaming: `publish` takes a streaming frame of events.

Spark counts on its executors, bounded by the same keyed hash as on one machine; mechanism, ledger and release run on
the driver, one transaction of the store for a step or for several that are due together. A step that Spark hands over
again is never drawn again. Needs the extra `spark`: pyspark is imported when a query starts.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from eventide.engines.spark_feed import SparkFeed
from eventide.engines.spark_tallies import Counting
from eventide.engines.spark_work_folder import WorkFolder
from eventide.errors import InputError
from eventide.events.durations import milliseconds
from eventide.events.timeline import MILLISECOND
from eventide.live.addresses import without_secrets
from eventide.live.publisher.publisher import Publisher, PublisherOptions
from eventide.live.sinks.base import Sink
from eventide.live.stores.base import Store
from eventide.live.stream_spec import EventOptions, StreamSpec
from eventide.mechanisms.base import Mechanism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NEEDED = ("step", "start", "user", "bin")


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


class SparkOptions(EventOptions, PublisherOptions, total=False):
    """How events are read and published: the options of a feed and of a `Publisher`."""


def publish(
    events: DataFrame,
    *,
    arrival: str | None,
    mechanism: Mechanism,
    store: Store | str | Path,
    work: str | Path | None = None,
    skew: str = "1min",
    sinks: Iterable[Sink | str | Path] = (),
    available_now: bool = False,
    trigger: str = "1 second",
    **options: Unpack[SparkOptions],
) -> Publishing:
    """Publish the events of a streaming frame; gives at once what is at work.

    Parameters
    ----------
    events
        A streaming frame.
    arrival
        The column that says when the source got an event (Kafka's `timestamp`), by the clock of the source. None means
        that the source is complete: an event arrives when it happens, `until` must be given, and all steps are
        published when everything was read.
    mechanism
        A new one; its sensitivity is how many events of one person count in a step.
    store, sinks
        As of `Publisher`.
    work
        A folder that the driver and all executors see, for Spark's checkpoint and the tallies of open steps; beside
        the store where left out.
    skew
        How far one part of the source may be behind another, and the driver's clock before the source's.
    available_now
        End when what is there now was read.
    trigger
        How often Spark looks for more.
    **options
        step, start, user and bin, which have no default here (user is None where each event is its own); until, zone,
        other, late, time, cap, statistic and between, as a `StreamSpec` has them; anything else goes to `Publisher`.
    """
    if missing := [name for name in NEEDED if name not in options]:
        raise TypeError(f"publish needs {', '.join(missing)}, which have no default here")
    cut = {name: options.pop(name) for name in EventOptions.__annotations__ if name in options}  # type: ignore[misc]
    spec = StreamSpec.for_mechanism(mechanism, cast(EventOptions, cut))
    work = _work_folder(store, work)
    feed = spark_feed(events, Counting(spec, arrival), work, skew=skew, available_now=available_now, trigger=trigger)
    return Publishing(Publisher(feed, mechanism, store, sinks, **cast(PublisherOptions, options)))


def spark_feed(
    events: DataFrame, counting: Counting, work: str | Path, *, skew: str, available_now: bool, trigger: str
) -> SparkFeed:
    """A feed of a streaming frame, with what cannot be right refused."""
    if not events.isStreaming:
        raise InputError("this frame is no stream; read it with spark.readStream")
    if missing := [name for name in counting.wanted if name not in events.columns]:
        raise InputError(f"the frame has no column {missing[0]!r}; its columns are {', '.join(events.columns)}")
    if slots := counting.spec.made_statistic().slots:
        raise InputError(
            f"Spark cannot publish people of {slots[0]} beside other statistics; publish them alone, or without Spark"
        )
    complete = counting.arrival is None
    if complete and counting.spec.late:
        raise InputError("nothing in a complete source is late; leave the allowed lateness out, or name the arrival")
    if complete and counting.spec.until is None:
        raise InputError("a complete source needs until, which says in public when its last step ends")
    often: dict[str, Any] = {"availableNow": True} if complete or available_now else {"processingTime": trigger}
    return SparkFeed(events, counting, WorkFolder(work), often, milliseconds(skew) * MILLISECOND)


def _work_folder(store: Store | str | Path, work: str | Path | None) -> str | Path:
    if work is not None:
        return work
    if isinstance(store, Store):
        raise InputError("work is missing; name a folder that the driver and all executors see")
    return f"{without_secrets(str(store))}.spark"
