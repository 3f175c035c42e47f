"""What would happen if a configuration were served now: which streams begin an epoch, and from when on each measures.

Reads the stores and changes nothing.
"""

from __future__ import annotations

from eventide.errors import EventideError
from eventide.events.clock import SystemClock
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.publisher.publisher import Publisher
from eventide.live.stores.base import StoreSetting
from eventide.live.stores.epochs import differences
from eventide.service.config.config import Config, Stream
from eventide.service.populations.population import Population, waiting


def outlook(config: Config) -> list[str]:
    """Sentences about all streams that would not simply go on, or begin at once; and what would be refused."""
    said = []
    for name in config.populations:
        try:
            population = Population(name, config, SystemClock().now())
            for stream in population.streams:
                said += _stream(stream, population.first_steps[stream.name])
        except EventideError as problem:
            said.append(str(problem))
    return said


def _stream(stream: Stream, not_before: int) -> list[str]:
    feed = EventFeed(None, stream.timeline(), stream.reader(), max_per_step=stream.max_per_step, late=stream.late)
    found = Publisher.check(
        feed,
        stream.build(),
        stream.store,
        questions=stream.questions(),
        people=stream.population,
        new_epoch=True,
        not_before=not_before,
    )
    said = [] if found.before is None else [_changed(stream, found.before, found.epoch.setting)]
    return said + ([waiting(stream, found.epoch.measured_from)] if found.epoch.measured_from > found.next_step else [])


def _changed(stream: Stream, before: StoreSetting, now: StoreSetting) -> str:
    changed = "; ".join(differences(before, now, StoreSetting._fields))
    why = changed or "other streams of the same people leave it no room at first"
    return f"stream {stream.name} begins a new epoch, which `serve` does only with --new-epoch: {why}"
