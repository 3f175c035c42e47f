"""How a stream waits for its store: with growing pauses, until it can be used again or the stream is to stop.

Other streams notice nothing. Why asking again is private is said in `live/stores/patience.py`.
"""

from __future__ import annotations

import logging
import threading
from typing import NamedTuple

from eventide.live.stores.database import Unavailable
from eventide.live.stores.patience import Patience
from eventide.service.pushed_feed import PushedFeed

LOG = logging.getLogger("eventide.live.service")


class Pauses(NamedTuple):
    """How long a stream waits before it asks its store again, in seconds: at first, and at most."""

    first: float = 0.5
    longest: float = 60.0


USUAL_PAUSES = Pauses()


class StoreWait(Patience):
    """The wait of one stream, whose feed refuses batches meanwhile; `stopping` ends it."""

    def __init__(self, name: str, feed: PushedFeed, stopping: threading.Event, pauses: Pauses = USUAL_PAUSES) -> None:
        self.waiting = False
        self._name, self._feed, self._stopping = name, feed, stopping
        self._pauses, self._pause = pauses, pauses.first

    looks = True

    def lost(self) -> None:
        """A server may be back in a moment: until then batches wait with us."""
        if not self.waiting:
            LOG.warning("stream %s waits for its store: its server does not answer", self._name)
        self.waiting = True

    def wait(self, fault: Unavailable) -> None:
        """Refuse batches and pause, twice as long each time."""
        self.waiting = True
        self._feed.halt()
        fields = {"again_in": self._pause}
        LOG.warning("stream %s waits for its store: %s", self._name, fault.what, extra={"fields": fields})
        if self._stopping.wait(self._pause):
            raise fault
        self._pause = min(2 * self._pause, self._pauses.longest)

    @property
    def is_over(self) -> bool:
        """Whether the stream is to stop."""
        return self._stopping.is_set()

    def healed(self) -> None:
        """Take batches again."""
        if self.waiting:
            self.waiting, self._pause = False, self._pauses.first
            self._feed.go_on()
            LOG.warning("stream %s goes on: its store can be used again", self._name)
