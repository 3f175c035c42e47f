"""The store of a run that leaves nothing behind: a ledger that ends with the process, as the guarantee then says.

It keeps the last few releases only, so memory stays bounded however long the run is.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable, Iterator

from eventide.errors import StoreError
from eventide.events.bin_names import BinNames
from eventide.live.stores.base import Approve, Commit, Epoch, Rename, Store, StoreSetting, StoreState, still_kept
from eventide.privacy.ledger import Entry

KEPT_RELEASES = 64


class MemoryStore(Store):
    """Forgets: no recorded answers, no entries, no positions; `durable` is False."""

    durable = False

    def __init__(self) -> None:
        self._setting: StoreSetting | None = None
        self._next_step = 0
        self._releases: deque[tuple[int, bytes]] = deque(maxlen=KEPT_RELEASES)
        self._delivered: dict[str, int] = {}
        self._kept: list[tuple[int, bytes]] = []  # what commits brought to be kept until a step; raw

    def begin(
        self,
        setting: StoreSetting,
        *,
        new_epoch: bool = False,
        take_over: bool = False,
        after_restore: bool = False,
        not_before: int = 0,
        approve: Approve = lambda _: None,
    ) -> StoreState:
        """Begin at step 0 with a fresh key; a second run needs a second store."""
        if self._setting is not None:
            raise StoreError("cannot resume: this run has no store; give one with store=")
        approve(0)
        self._setting = setting
        return StoreState(0, not_before, not_before, None, [], None, None, secrets.token_bytes(16))

    def after_restore(self, next_step: int, not_before: int = 0, longest_window: int = 0) -> StoreState:
        """There is no backup of what leaves nothing behind."""
        raise StoreError("only a store can be restored from a backup; give one")

    def begin_apart(self, not_before: int = 0) -> StoreState:
        """There is nothing before what leaves nothing behind."""
        raise StoreError("cannot resume: this run has no store; give one with store=")

    def commit(self, *commits: Commit) -> None:
        """Remember the releases for those who are about to read them, and what the feed still needs."""
        self._releases += ((commit.step, commit.release) for commit in commits)
        self._next_step = commits[-1].step + 1
        self._kept = still_kept(commits, self._kept)

    def release(self, step: int) -> bytes | None:
        """One of the last releases."""
        return next((release for stored, release in self._releases if stored == step), None)

    def releases(self, first: int = 0, last: int | None = None) -> Iterator[tuple[int, bytes]]:
        """The last releases in order."""
        return iter([pair for pair in self._releases if first <= pair[0] and (last is None or pair[0] <= last)])

    def entries(self, first: int = 0) -> Iterator[Entry]:
        """None are kept."""
        return iter(())

    def epochs(self) -> list[Epoch]:
        """The only one."""
        return [] if self._setting is None else [Epoch(0, 0, 0, self._setting)]

    def rename(self, change: Rename) -> BinNames:
        """Name or close bins for the rest of the run."""
        assert self._setting is not None, "names belong to a run that has begun"
        names = change(BinNames(self._setting.bins, self._setting.named or ()), self._next_step)
        self._setting = self._setting._replace(named=[list(each) for each in names.said])
        return names

    def next_step(self) -> int:
        """The first step that is not released."""
        return self._next_step

    def delivered(self, sink: str) -> int:
        """The last step that a sink has confirmed."""
        return self._delivered.get(sink, -1)

    def deliver(self, sink: str, step: int) -> None:
        """Remember what a sink has."""
        self._delivered[sink] = step

    def keep(self, tallies: Iterable[tuple[int, bytes]], batch: str | None = None) -> bool:
        """Nothing outlives the process, so nothing needs keeping."""
        return True

    def kept(self) -> list[tuple[int, bytes]]:
        """What commits brought to be kept: open events are where they came from."""
        return list(self._kept)

    def close(self) -> None:
        """Nothing to let go of."""
