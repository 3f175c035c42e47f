"""One run of a streaming query, as moments: up to each of them everything that arrived has been tallied.

Spark hands batches over; a batch is finished, and Spark commits it, only after everything that fell due by it has been
published. When there is nothing to hand over, the driver's clock goes on: Spark tells when it last looked and found
nothing. Neither depends on the times that events claim for themselves, and neither is believed beyond what the driver's
clock is certain of.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eventide.errors import StateError
from eventide.events.clock import Clock
from eventide.live import faults

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_SECONDS = 0.5
SETTINGS = {
    "spark.sql.streaming.noDataProgressEventInterval": "1000",  # milliseconds after which Spark tells of no data
    "spark.sql.streaming.minBatchesToRetain": "1",  # where batches began and ended tells how many events they had
}


class _Moment(NamedTuple):
    seen_until: int
    published: threading.Event


class TallyingQuery:
    """A query that is running.

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
