"""What would happen if a configuration were served now: which streams begin an epoch, and from when on each measures.

Reads the stores and changes nothing.
"""

from __future__ import annotations

from contextlib import closing

from eventide.errors import EventideError
from eventide.events.clock import SystemClock
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.publisher.setting import setting_of
from eventide.live.stores.base import Epoch, Setting, StoreMissing
from eventide.live.stores.open_store import open_store
from eventide.live.stores.setting_changes import differences, epoch_for
from eventide.service.config.settings import Config, StreamConfig
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


def _stream(stream: StreamConfig, not_before: int) -> list[str]:
    feed = EventFeed(None, stream.timeline(), stream.reader(), max_per_step=stream.max_per_step, late=stream.late)
    setting = setting_of(stream.build(), feed, stream.population, stream.questions())
    try:
        with closing(open_store(stream.store, read_only=True)) as store:
            epochs, next_step = store.epochs(), store.next_step()
            epoch = epoch_for(store, setting, new_epoch=True, not_before=not_before)
    except StoreMissing:
        epochs, next_step, epoch = [], 0, Epoch(0, 0, not_before, setting)
    said = [_changed(stream, epochs[-1].setting, setting)] if epochs and epoch.number == len(epochs) else []
    return said + ([waiting(stream, epoch.measured_from)] if epoch.measured_from > next_step else [])


def _changed(stream: StreamConfig, before: Setting, now: Setting) -> str:
    changed = "; ".join(differences(before, now, Setting._fields))
    why = changed or "other streams of the same people leave it no room at first"
    return f"stream {stream.name} begins a new epoch, which `serve` does only with --new-epoch: {why}"
