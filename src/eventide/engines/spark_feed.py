"""Steps counted by Spark, as a feed: Spark tallies batches and adds up what is due, `EventFeed` says when it is due.

An event counts by its arrival against the public clock, as on one machine; Spark's own watermark, which follows the
times that events claim, is not used. A batch is finished, and Spark commits it, only after everything that fell due by
it has been published; when there is nothing to hand over, the driver's clock goes on, since Spark tells when it last
looked and found nothing. Neither is believed beyond what the driver's clock is certain of. After a crash Spark hands
the last batch over again, which replaces its tallies; what was published stays as it was stored.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import queue
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from eventide.arrays import Ints
from eventide.engines.spark_batches import LOOK_SECONDS, HandedOver, HandOver
from eventide.engines.spark_session import cores_of, settings_set
from eventide.engines.spark_tallies import Counting
from eventide.engines.spark_work_folder import OpenSteps, WorkFolder
from eventide.errors import InputError, StateError
from eventide.events.bin_names import BinNames
from eventide.events.cap_memory import is_memory
from eventide.events.clock import SystemClock
from eventide.events.reader import Counters, Events
from eventide.events.tally import Tally
from eventide.events.zones import EARLIEST
from eventide.live.feeds.base import ClosedStep, Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.first_rows import FirstRows, FirstRowsRefused
from eventide.live.sources.base import FOREVER, EventBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

CELLS_AT_ONCE = 1 << 26  # counts that wait on the driver to be published
STEPS_AT_ONCE = 1000
LOOKS = 10  # after which waiting is interrupted
STARTS = 6
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
        complete, seen_at_start = self._counting.arrival is None, self._certain(FOREVER)
        handed = HandedOver(self._work.handover, self._counting.next_step)
        hand_over = HandOver(handed.folder, self._work.mark, self._counting)
        query = TallyingQuery(self._events, hand_over, self._work.checkpoint, self._trigger)
        try:
            for news in query.news(handed):
                if self._over:  # asked here, so that the batch behind the last step is finished too
                    return
                if news is not None:
                    moment = news.looked_at if isinstance(news, Idle) else self._take_batch(handed, news)
                    self._look_at_first_rows()
                    if not complete:
                        yield from self._closed(self._certain(moment))
                    if isinstance(news, int):
                        handed.publish(news, self._counting.next_step)
                yield None
            yield from self._closed(FOREVER if complete else seen_at_start)
            self._first_rows.decide()
        finally:
            handed.end()
            query.stop()

    def _certain(self, moment: int) -> int:
        """Until when everything was seen, if what was handed over goes up to a moment of the source's clock."""
        return min(moment, self._driver_clock.certain()) - self._skew

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
        cores = cores_of(spark)
        self._counting = self._work.settle(counting, cores)
        self._open_steps = OpenSteps(spark, self._work.open_steps, cores)
        read_before = self._work.checkpoint.exists()  # or Spark begins anew, and so must the tallies
        self._open_steps.forget(resume.next_step if read_before else math.inf)
        self.begin(resume)

    def _take_batch(self, handed: HandedOver, batch: int) -> int:
        summary = self._open_steps.take(handed, batch)
        self.counters.add(summary.counters)
        self._taken.append(summary.counters)
        self._latest = max(self._latest, summary.latest)
        return self._latest

    def _closed(self, seen_until: int) -> Iterator[ClosedStep]:
        """The steps that are over, many at a time where many are; what was tallied goes when they are published."""
        self.take(EventBatch(Events.none(), None, seen_until))
        while steps := list(self.closed(self._at_once)):
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


class Idle(NamedTuple):
    """Spark has handed over whatever had arrived when it looked, in microseconds of its clock."""

    looked_at: int


class TallyingQuery:
    """A query that is running: the numbers of batches that are tallied, and when Spark found nothing.

    trigger: what Spark's `trigger` takes.
    """

    def __init__(self, events: DataFrame, hand_over: HandOver, checkpoint: Path, trigger: dict[str, Any]) -> None:
        self._idle: queue.Queue[Idle] = queue.Queue()
        self._spark = events.sparkSession
        writer = events.writeStream.foreachBatch(hand_over).option("checkpointLocation", str(checkpoint))
        with settings_set(self._spark, SETTINGS):
            self._query = started(writer.trigger(**trigger))
        self._listener = _idle_listener(self._told_of_idleness)
        self._spark.streams.addListener(self._listener)

    def news(self, handed: HandedOver) -> Iterator[int | Idle | None]:
        """News as they come, and None now and then while waiting; ends with the query, which may fail."""
        active = True
        while active:
            active = self._query.isActive
            for _ in range(LOOKS if active else 1):
                if (batch := handed.written()) is not None:
                    yield batch
                    break
                with contextlib.suppress(queue.Empty):
                    yield self._idle.get(timeout=LOOK_SECONDS if active else 0)
                    active = True  # there may be more
                    break
            else:
                yield None
        if failure := self._query.exception():
            raise StateError("the Spark query has failed; nothing is lost, start again when it is mended") from failure

    def stop(self) -> None:
        """End the query; a batch in hand is handed over again by the next one."""
        self._query.stop()
        self._spark.streams.removeListener(self._listener)

    def _told_of_idleness(self, run: str, looked_at: str) -> None:
        if run == self._query.runId:
            self._idle.put(Idle(round(datetime.fromisoformat(looked_at).timestamp() * 1e6)))


def started(writer: Any) -> StreamingQuery:
    """The query of a writer. A Connect server gives the process for batches ten seconds, which a busy machine exceeds:
    that is tried again."""
    from pyspark.errors import PySparkException

    for left in reversed(range(STARTS)):
        try:
            return cast("StreamingQuery", writer.start())
        except PySparkException as failure:
            if not left or "failed to connect back" not in str(failure):
                raise StateError("Spark did not start the query; nothing is lost, start again later") from failure
    raise AssertionError


def _idle_listener(tell: Callable[[str, str], None]) -> Any:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class IdleListener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None: ...

        def onQueryProgress(self, event: Any) -> None: ...

        def onQueryTerminated(self, event: Any) -> None: ...

        def onQueryIdle(self, event: Any) -> None:
            tell(str(event.runId), event.timestamp)

    return IdleListener()
