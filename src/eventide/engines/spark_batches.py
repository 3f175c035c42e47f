"""Batches on their way from Spark to the publisher, through a folder that both see.

The function that Spark calls with each batch may run in another process, or with Spark Connect on another machine. It
makes the tallies of the batch durable in the folder and waits. The publisher takes them from there, publishes what fell
due by them, and says so; then the function returns, and Spark commits the batch. The folder belongs to one run of the
publisher and is removed with it: a function that a killed publisher left behind fails, its batch is handed over again,
and what it may still write is read by nobody.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eventide.engines.spark_tallies import TALLY_COLUMNS, Counting, Tallying
from eventide.errors import StateError
from eventide.live import faults

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOOK_SECONDS = 0.05


@dataclasses.dataclass(frozen=True)
class HandOver:
    """What Spark calls with each batch. `mark` is a file by which an executor knows that it sees what others see."""

    folder: Path
    mark: Path
    counting: Counting

    def __call__(self, events: DataFrame, batch: int) -> None:
        """Tally a batch; Spark commits it when this returns."""
        faults.passing("spark-batch-begins")
        counting = dataclasses.replace(self.counting, next_step=self._published()["next_step"])
        columns = (f"`{name}`" for name in counting.wanted)
        tallies = events.select(*columns).mapInArrow(_tallying(counting, self.mark), TALLY_COLUMNS)
        writer = tallies.write.mode("overwrite").option("partitionOverwriteMode", "static")
        writer.partitionBy("step").parquet(str(self.folder / f"batch={batch}"))
        (self.folder / f"{batch}.written").touch()
        faults.passing("spark-batch-tallied")
        while self._published()["batch"] < batch:
            time.sleep(LOOK_SECONDS)

    def _published(self) -> dict[str, int]:
        try:
            published: dict[str, int] = json.loads((self.folder / "published.json").read_text())
        except FileNotFoundError:
            raise StateError(
                f"the publisher that {self.folder.parent} belongs to has ended, or Spark's server does not see this "
                "folder; the batch will be handed over again"
            ) from None
        return published


class HandedOver:
    """The publisher's side: batches that are written, and how far they are published."""

    def __init__(self, folder: Path, next_step: int) -> None:
        shutil.rmtree(folder, ignore_errors=True)  # of publishers that were killed
        self.folder = folder / secrets.token_hex(8)
        self.folder.mkdir(mode=0o700, parents=True)
        self.publish(-1, next_step)

    def written(self) -> int | None:
        """The number of a batch whose tallies are durable and wait to be taken."""
        return next((int(mark.stem) for mark in self.folder.glob("*.written")), None)

    def take(self, batch: int, place: Path) -> None:
        """Move the tallies of a batch to their place; those of the same batch that were there before go."""
        shutil.rmtree(place, ignore_errors=True)
        (self.folder / f"batch={batch}").rename(place)
        (self.folder / f"{batch}.written").unlink()

    def publish(self, batch: int, next_step: int) -> None:
        """Say that everything due by a batch is published."""
        unfinished = self.folder / "published.unfinished"
        unfinished.write_text(json.dumps({"batch": batch, "next_step": next_step}))
        unfinished.replace(self.folder / "published.json")

    def end(self) -> None:
        """Remove the folder; a function that still waits fails."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _tallying(counting: Counting, mark: Path) -> Any:
    def tally(batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        if not mark.exists():
            raise StateError(f"an executor does not see {mark.parent}; put the work folder where all of them see it")
        context = TaskContext.get()
        assert context is not None
        return Tallying(counting, context.partitionId()).rows(batches)

    return tally
