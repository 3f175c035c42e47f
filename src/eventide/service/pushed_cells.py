"""A feed that requests hand events to and that holds none: they are in noisy cells before the request is answered.

A request is in hand until it is counted: its body, and one that waits for the thread of the stream. There is no longer
queue; who finds the place taken is answered with 429. Nothing is kept of a batch, also not its key, which would tell
that its sender was there: so a batch that is sent again counts again. What was in open cells is lost when the service
ends. Numbers of events, which operators see of other streams, are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from eventide.live.feeds.base import ClosedStep, Resume
from eventide.live.feeds.noisy_feed import NoisyFeed
from eventide.live.sources.base import EventBatch
from eventide.live.stream_spec import StreamSpec
from eventide.service.pushed_feed import LOOK_UP, STEPS_BETWEEN, PushedFeed, Receipt, Submitted


class PushedCells(PushedFeed, NoisyFeed):
    """A pushed feed of a pan-private mechanism."""

    takes_keys = False

    def __init__(self, *given: Any, most_waiting: int = 1, **options: Any) -> None:
        super().__init__(*given, most_waiting=1, **options)

    def steps(self, resume: Resume) -> Iterator[ClosedStep | None]:
        """Close steps before the next batch is taken, until `end`."""
        self.begin(resume)
        self.begun.set()
        while not self._ended:
            for closed in islice(self.closed_until(self.arrivals.worked_off_until()), STEPS_BETWEEN):
                yield closed
                self.notices.announce(closed.index)  # whoever asks for more has published this one
            self._take_next(LOOK_UP)
            yield None

    def _taken(self, submitted: Submitted) -> Receipt:
        arrival = np.full(len(submitted.events.time), submitted.arrival.moment)
        batch = EventBatch(submitted.events._replace(arrival=arrival), None, submitted.arrival.moment)
        return Receipt(self.counted(batch), duplicate=False)


def pushed_feed(spec: StreamSpec, **options: Any) -> PushedFeed:
    """The feed of a stream of the service."""
    made = PushedCells if spec.one_by_one else PushedFeed
    return made(**options, **spec.counting())
