"""The work folder of a Spark publisher: Spark's checkpoint, the open steps, and what they were made for.

Tallies name users by the store's key and bins by their place in the list, and events after the end are in none of them.
So a folder belongs to one store, one list of bins and one end, and to the number of shards it began with.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

from eventide.engines.spark_tallies import Counting
from eventide.errors import InputError
from eventide.events.siphash_kernels import hash_texts, key_words
from eventide.events.texts import buffers, texts
from eventide.live.stores.digests import digest


class WorkFolder:
    """A folder that the driver and all executors see under the same name; it is closed to everybody else."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()
        self.checkpoint, self.open_steps = self.path / "checkpoint", self.path / "open"
        self.mark = self.path / "setting.json"

    def settle(self, counting: Counting, shards: int) -> Counting:
        """Make the folder, or refuse one that was made for something else; say how many shards it has."""
        self._made_here = not self.path.exists()
        for folder in (self.path, self.open_steps):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        hashes, _ = hash_texts(key_words(counting.key), *buffers(texts(["the work folder of a store"])))
        purpose = {
            "store": hashes[0].item(),
            "bins": digest(*counting.bins).hex(),
            "users": counting.columns.user is not None,
            "until": counting.until,
        }
        if not self.mark.exists():
            unfinished = self.mark.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(purpose | {"shards": shards}))
            unfinished.replace(self.mark)
        found = json.loads(self.mark.read_text())
        if found | purpose != found:
            raise InputError(
                f"{self.path} was made for another store, bins or end; choose a new work folder, or delete this one to "
                "have the source read again from its beginning"
            )
        return dataclasses.replace(counting, shards=found["shards"])

    def withdraw(self) -> None:
        """Remove the folder if it was made for this run, so that another one has the source read from its beginning."""
        if self._made_here:
            shutil.rmtree(self.path)
