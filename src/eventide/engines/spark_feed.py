"""Steps counted by Spark, as a feed: Spark tallies batches and adds up what is due, `EventFeed` says when it is due.

An event counts by its arrival against the public clock, as on one machine; Spark's own watermark, which follows the
times that events claim, is not used. A batch is finished, and Spark commits it, only after everything that fell due by
it has been published; when there is nothing to hand over, the driver's clock goes on, since Spark tells when it last
looked and found nothing. Neither is believed beyond what the driver's clock is certain of. After a crash Spark hands
the last batch over again, which replaces its tallies; what was published stays as it was stored.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eventide.arrays import Ints
from eventide.engines.spark_tallies import Counting
from eventide.engines.spark_work_folder import OpenSteps, WorkFolder
from eventide.errors import InputError, StateError
from eventide.events.bin_names import BinNames
from eventide.events.cap_memory import is_memory
from eventide.events.clock import Clock, SystemClock
from eventide.events.reader import Counters, Events
from eventide.events.tally import Tally
from eventide.events.zones import EARLIEST
from eventide.live import faults
from eventide.live.feeds.base import ClosedStep, Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.first_rows import FirstRows, FirstRowsRefused
from eventide.live.sources.base import FOREVER, EventBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CELLS_AT_ONCE = 1 << 26  # counts that wait on the driver to be published
STEPS_AT_ONCE = 1000
POLL_SECONDS = 0.5
SETTINGS = {
    "spark.sql.streaming.noDataProgressEventInterval": "1000",  # milliseconds after which Spark tells of no data
    "spark.sql.streaming.minBatchesToRetain": "1",  # where batches began and ended tells how many events they had
}


class SparkFeed(EventFeed):
    """A feed of a streaming frame of events; `trigger` is what Spark's trigger takes, `skew` in microseconds.

    Where events bring no arrival the source is complete: each arrives when it happens, and all is seen at its end.
    To a store it is the same feed as that of one machine, so that publishing can move from one engine to another.
    """

    def __init__(
        self, events: DataFrame, counting: Counting, work: WorkFolder, trigger: dict[str, Any], skew: int
    ) -> None:
        self._driver_clock = SystemClock()
        super().__init__(None, clock=self._driver_clock if counting.arrival else None, **counting.spec.counting())
        self._events, self._counting, self._work = events, counting, work
        self._trigger, self._skew = trigger, skew
        self._latest = EARLIEST
        self._at_once = max(1, min(STEPS_AT_ONCE, CELLS_AT_ONCE // len(counting.spec.bins)))

    def know(self, names: BinNames) -> None:
        """Refuse: what counts on other machines does not hear of names."""
        raise InputError("the bins of this store come and go, which Spark does not follow; publish without Spark")

    def steps(self, resume: Resume) -> Iterator[ClosedStep | None]:
        """Run the query until it ends or the last step is closed."""
        if not all(is_memory(data) for _, data in resume.kept):
            raise InputError("the store keeps open events of another source; let that one publish them first")
        self._prepare(resume)
        try:
            if not self._over:
                yield from self._counted()
        except FirstRowsRefused:
            self._work.withdraw()
            raise

    def _counted(self) -> Iterator[ClosedStep | None]:
        complete = self._counting.arrival is None
        query = TallyingQuery(
            self._events, self._take_batch, self._work.checkpoint, self._trigger, self._skew, self._driver_clock
        )
        try:
            for moment in query.moments():
                if self._over:  # asked here, so that the batch behind the last step is finished too
                    return
                if moment is not None:
                    self._look_at_first_rows()
                    if not complete:
                        yield from self._closed(moment)
                yield None
            yield from self._closed(FOREVER if complete else query.seen_at_start)
            self._first_rows.decide()
        finally:
            query.stop()

    def _look_at_first_rows(self) -> None:
        """Refuse rows that mostly cannot be read; without the number of one, since Spark does not count rows."""
        while self._taken:
            counters = self._taken.popleft()
            rows = counters.accepted + counters.late + counters.refused.total()
            self._first_rows.add(rows, counters.refused)

    def _prepare(self, resume: Resume) -> None:
        self._first_rows = FirstRows(self.reader, checked=resume.check_first_rows)
        self._taken: deque[Counters] = deque()
        spark = self._events.sparkSession
        counting = dataclasses.replace(self._counting, key=resume.key, next_step=resume.next_step)
        self._counting = self._work.settle(counting, spark.sparkContext.defaultParallelism)
        self._open_steps = OpenSteps(spark, self._work.open_steps, self._work.mark)
        read_before = self._work.checkpoint.exists()  # or Spark begins anew, and so must the tallies
        self._open_steps.forget(resume.next_step if read_before else math.inf)
        self.begin(resume)

    def _take_batch(self, events: DataFrame, batch: int) -> int:
        summary = self._open_steps.write(events, batch, self._counting)
        self.counters.add(summary.counters)
        self._taken.append(summary.counters)
        self._latest = max(self._latest, summary.latest)
        return self._latest

    def _closed(self, seen_until: int) -> Iterator[ClosedStep]:
        """The steps that are over, many at a time where many are; what was tallied goes when they are published."""
        self.take(EventBatch(Events.none(), None, seen_until))
        closing = self.closed()
        while steps := list(itertools.islice(closing, self._at_once)):
            self._first_rows.decide()
            added = self._open_steps.add_counts(steps, self._counting, self._memory)
            self.left_out += added.left_out
            self.left_out_by_cap += added.left_out_by_cap
            yield from (self._remembering(step, added.used[step.index]) for step in steps)
            self._counting = dataclasses.replace(self._counting, next_step=steps[-1].index + 1)
            self._open_steps.forget(self._counting.next_step)

    def _counts_of(self, step: int, tally: Tally) -> tuple[Ints, None]:
        """None that the driver has: those of the executors are added."""
        return tally.counts(step), None

    def _remembering(self, step: ClosedStep, used: list[bytes]) -> ClosedStep:
        """A step with what it used of a cap, as the executors decided; kept with it as on one machine."""
        if self._memory is None:
            return step
        return step._replace(kept=self._memory.to_keep(step.index, self._memory.take_together(step.index, used)))


class _Moment(NamedTuple):
    seen_until: int
    published: threading.Event


class TallyingQuery:
    """A query that is running, as moments: up to each of them everything that arrived has been tallied.

    tally: called with each batch and its number; makes its tallies durable and says when the last of it arrived.
    trigger: what Spark's `trigger` takes. skew: how far, in microseconds, arrivals in one part of the source may be
    behind those in another, and the driver's clock before that of the source.
    """

    def __init__(
        self,
        events: DataFrame,
        tally: Callable[[DataFrame, int], int],
        checkpoint: Path,
        trigger: dict[str, Any],
        skew: int,
        clock: Clock,
    ) -> None:
        self._tally, self._skew, self._clock = tally, skew, clock
        self._moments: queue.Queue[_Moment] = queue.Queue()
        self._stopped = False
        self._spark = events.sparkSession
        self.seen_at_start = clock.certain() - skew
        writer = events.writeStream.foreachBatch(self._batch).option("checkpointLocation", str(checkpoint))
        with _set(self._spark, SETTINGS):
            self._query: StreamingQuery = writer.trigger(**trigger).start()
        self._listener = _idle_listener(self._idle)
        self._spark.streams.addListener(self._listener)

    def moments(self) -> Iterator[int | None]:
        """Moments as they come, and None now and then while waiting; ends with the query, which may fail.

        Asking for the next one says that everything due by the one before is published.
        """
        while True:
            active = self._query.isActive
            try:
                moment = self._moments.get(timeout=POLL_SECONDS if active else 0)
            except queue.Empty:
                if not active:
                    break
                yield None
                continue
            yield moment.seen_until
            moment.published.set()
        if failure := self._query.exception():
            raise StateError("the Spark query has failed; nothing is lost, start again when it is mended") from failure

    def stop(self) -> None:
        """End the query; a batch in hand is handed over again by the next one."""
        self._stopped = True
        self._query.stop()
        self._spark.streams.removeListener(self._listener)

    def _batch(self, batch: DataFrame, number: int) -> None:
        """Called by Spark, which commits the batch when this returns."""
        faults.passing("spark-batch-begins")
        latest = self._tally(batch, number)
        faults.passing("spark-batch-tallied")
        moment = self._told(latest)
        while not moment.published.wait(POLL_SECONDS):
            if self._stopped:
                raise StateError("publishing ended before this batch was published; it will be handed over again")

    def _idle(self, run: str, looked_at: str) -> None:
        """Told by Spark: whatever arrived before it looked has been handed over."""
        if run == self._query.runId:
            self._told(round(datetime.fromisoformat(looked_at).timestamp() * 1e6))

    def _told(self, seen_until: int) -> _Moment:
        moment = _Moment(min(seen_until, self._clock.certain()) - self._skew, threading.Event())
        self._moments.put(moment)
        return moment


def _idle_listener(tell: Callable[[str, str], None]) -> Any:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class IdleListener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None: ...

        def onQueryProgress(self, event: Any) -> None: ...

        def onQueryTerminated(self, event: Any) -> None: ...

        def onQueryIdle(self, event: Any) -> None:
            tell(str(event.runId), event.timestamp)

    return IdleListener()


@contextmanager
def _set(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Settings of a session for as long as something begins."""
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
