"""Steps counted by Spark, as a feed: Spark tallies batches and adds up what is due, `EventFeed` says when it is due.

An event counts by its arrival against the public clock, as on one machine; Spark's own watermark, which follows the
times that events claim, is not used. After a crash Spark hands the last batch over again, which replaces its tallies;
what was published stays as it was stored.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from eventide.engines.spark_open_steps import OpenSteps
from eventide.engines.spark_query import TallyingQuery
from eventide.engines.spark_tallies import Counting
from eventide.engines.spark_work import WorkFolder
from eventide.errors import InputError
from eventide.events.clock import SystemClock
from eventide.events.reader import Counters, Events
from eventide.events.zones import EARLIEST
from eventide.live.feeds.base import ClosedStep, Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.first_rows import FirstRows, MostRowsRefused
from eventide.live.sources.base import FOREVER, EventBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CELLS_AT_ONCE = 1 << 26  # counts that wait on the driver to be published
STEPS_AT_ONCE = 1000


class SparkFeed(EventFeed):
    """A feed of a streaming frame of events; `trigger` is what Spark's trigger takes, `skew` in microseconds.

    Where events bring no arrival the source is complete: each arrives when it happens, and all is seen at its end.
    To a store it is the same feed as that of one machine, so that publishing can move from one engine to another.
    """

    def __init__(
        self, events: DataFrame, counting: Counting, work: WorkFolder, trigger: dict[str, Any], skew: int
    ) -> None:
        self._driver_clock = SystemClock()
        super().__init__(None, clock=self._driver_clock if counting.arrival else None, **counting.rules())
        self._events, self._counting, self._work = events, counting, work
        self._trigger, self._skew = trigger, skew
        self._latest = EARLIEST
        self._at_once = max(1, min(STEPS_AT_ONCE, CELLS_AT_ONCE // len(counting.bins)))

    def steps(self, resume: Resume) -> Iterator[ClosedStep | None]:
        """Run the query until it ends or the last step is closed."""
        if resume.kept:
            raise InputError("the store keeps open events of another source; let that one publish them first")
        self._prepare(resume)
        try:
            if not self._over:
                yield from self._counted()
        except MostRowsRefused:
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
            self._open_steps.add_counts(steps, self._counting)
            yield from steps
            self._counting = dataclasses.replace(self._counting, next_step=steps[-1].index + 1)
            self._open_steps.forget(self._counting.next_step)
