"""One stream of the service: a feed that requests push to, a publisher in a thread of its own, and what readers ask.

The thread alone writes to the store; readers have a connection of their own and see what is committed.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from eventide.errors import EventideError
from eventide.events.clock import JUMP, Clock
from eventide.events.durations import steps_of_window
from eventide.events.levels import Levels
from eventide.live.guarantee.of_store import store_part
from eventide.live.guarantee.over_epochs import promises, sentences
from eventide.live.guarantee.page import Part
from eventide.live.publisher.naming import name_bins
from eventide.live.publisher.publisher import Publisher
from eventide.live.publisher.spare_bins import over_places
from eventide.live.setting_readers import settings_of
from eventide.live.stores.base import Epoch, StoreSetting
from eventide.live.stores.database import Unavailable
from eventide.live.stores.open_store import open_store
from eventide.live.stores.stored_releases import levels_of
from eventide.live.stores.verification import Verification, verify
from eventide.privacy.amounts import NANO
from eventide.service.config.settings import StreamConfig
from eventide.service.latest_windows import LatestWindows
from eventide.service.pushed_cells import pushed_feed
from eventide.service.step_notices import StepNotices
from eventide.service.store_wait import USUAL_PAUSES, Pauses, StoreWait

LOG = logging.getLogger("eventide.live.service")
WAITS = "wait for a restart; run `eventide config check` before it"  # a start may refuse them
SLACK = 5.0  # seconds that a step may be overdue before the stream counts as behind
PATIENCE = 5.0  # seconds for which a batch waits for a server that went away, before it is refused; readers do not wait


class Circumstances(NamedTuple):
    """What a publisher must be told before it goes on with a store that is not as it was left."""

    new_epoch: bool = False
    take_over: bool = False
    after_restore: bool = False
    longest_window: str | None = None  # since the backup: a number of steps, or a duration

    def of_stream(self, step: str) -> dict[str, Any]:
        """The same for a stream with steps of this length."""
        window = self.longest_window
        return self._asdict() | {"longest_window": None if window is None else steps_of_window(window, step)}


USUAL = Circumstances()


class LiveStream:
    """Opens the store of a stream and goes on where it stands; `start` begins to publish."""

    def __init__(
        self,
        settings: StreamConfig,
        clock: Clock,
        *,
        most_waiting: int = 64,
        for_tests: bool = False,
        circumstances: Circumstances = USUAL,
        not_before: int = 0,
        account: str | Path | None = None,
        clients: str | None = None,
        pauses: Pauses = USUAL_PAUSES,
    ) -> None:
        self.settings, self._clients = settings, clients
        self.notices = StepNotices()
        self.followed = True  # until those who follow are sent away
        self.failed = False
        self.failure: EventideError | None = None  # why, where it is an error that may be told
        self._stopping = threading.Event()
        self.feed = pushed_feed(settings, clock=clock, notices=self.notices, most_waiting=most_waiting)
        self.reader = self.feed.reader
        store = open_store(settings.store, for_tests=for_tests, clients=clients, patience=PATIENCE)
        told = circumstances.of_stream(settings.step)
        self.publisher = Publisher(
            self.feed,
            settings.build_mechanism(),
            store,
            settings.out,
            clients=clients,
            population=settings.population,
            questions=settings.questions(),
            not_before=not_before,
            account=account,
            keep=settings.keep,
            **told,
        )
        self.publisher.log_fields = {"stream": settings.name}
        self._wait = store.patience = StoreWait(settings.name, self.feed, self._stopping, pauses)
        if self.publisher.account is not None:
            self.publisher.account.patience = self._wait
        self.notices.last = self.publisher.next_step - 1
        self._stored = open_store(settings.store, read_only=True, clients=clients, patience=0.0)
        self.first_step = 0  # since which releases are over the bins and groups of now
        self._find_epoch()
        self._before = self._windows_before()
        self._windows, self._windows_lock = LatestWindows(self._epoch, self._before), threading.Lock()
        self._to_sign: tuple[int, Part] | None = None
        self._signing = threading.Lock()
        with self.windows():
            pass  # counted now, so that nobody who asks later waits for it
        self._thread = threading.Thread(target=self._publish, name=f"eventide-{settings.name}", daemon=True)

    @property
    def measured_from(self) -> int:
        """The first step of its epoch that is measured; before it every step repeats the last release."""
        return self._epoch.measured_from

    def start(self) -> None:
        """Publish from now on."""
        self._thread.start()
        self.feed.begun.wait()

    def dismiss(self) -> None:
        """Send those away who follow the stream."""
        self.followed = False
        self.notices.announce(self.notices.last)

    @property
    def closing(self) -> bool:
        """Whether the stream was told to stop."""
        return self._stopping.is_set()

    def end_soon(self) -> None:
        """Stop after the step in hand."""
        self._stopping.set()

    def stop(self) -> None:
        """Finish the step in hand, however long it takes (the first of Tide may have to be compiled), and let go.

        One that waits for its store is not waited for: what was drawn and not committed is discarded, as after a crash.
        """
        self.end_soon()
        self.dismiss()
        self.feed.end()
        if self._thread.is_alive():
            self._thread.join()
            self._finish_sinks()
        self.publisher.close()
        self._stored.close()

    @property
    def ready(self) -> bool:
        """Whether it takes events and publishes."""
        return not (self.failed or self.closing or self._wait.waiting or self.ahead)

    @property
    def ahead(self) -> bool:
        """Whether a step was released that is not over yet by the clock, which was wrong once: no event counts now."""
        last = self.notices.last
        return last >= 0 and self.feed.clock.now() + JUMP < self.feed.timeline.end(last)

    @property
    def health(self) -> Literal["running", "behind", "ahead", "waiting", "failed"]:
        """Whether steps come out on time."""
        if self.failed:
            return "failed"
        if self._wait.waiting:
            return "waiting"
        if self.ahead:
            return "ahead"
        return "behind" if self.feed.overdue() > SLACK else "running"

    @property
    def bins(self) -> tuple[str, ...]:
        """The names of the bins by now, in the order of the values; spare bins that wait for a name are called so."""
        names = self.publisher.names
        return self.publisher.mechanism.bins if names is None else names.names

    @property
    def spare(self) -> list[int]:
        """The places of spare bins that wait for a name."""
        names = self.publisher.names
        return [] if names is None else names.free()

    @property
    def closed(self) -> list[int]:
        """The places of bins that are closed by the next step."""
        names = self.publisher.names
        return [] if names is None else names.ended(self.notices.last + 1)

    @property
    def levels(self) -> Levels | None:
        """The groups that the bins are in."""
        return self.publisher.mechanism.levels

    def take_names(self, settings: StreamConfig) -> None:
        """Give spare bins the names of those that a configuration has and the stream does not, from the next step on.

        Nothing else of a stream changes while it goes on; where something did, a warning says so.
        """
        try:
            with closing(open_store(self.settings.store, clients=self._clients)) as store:
                last = store.epochs()[-1].setting
                placed = over_places(settings.build_mechanism(), last)
                if placed.new:
                    name_bins(store, placed.new, clock=self.feed.clock)
        except EventideError as problem:
            LOG.warning("stream %s keeps its bins as they were: %s", settings.name, problem)
            return
        others = [name for name in settings_of(StreamConfig) if name not in ("bins", "levels")]
        changed = any(getattr(settings, name) != getattr(self.settings, name) for name in others)
        if changed or placed.mechanism.bins != last.bins:
            LOG.warning("stream %s: other changes of its settings %s", settings.name, WAITS)

    def lines(self, first: int, most: int, last: int | None = None) -> list[tuple[int, bytes]]:
        """Up to `most` stored releases from `first` on, none after `last`; those over other bins or groups left out."""
        first = max(first, self.first_step)
        return list(self._stored.releases(first, min(self.last_until(last), first + most - 1)))

    def last_until(self, last: int | None) -> int:
        """The last step that is released, and no later than `last`."""
        return self.notices.last if last is None else min(last, self.notices.last)

    @contextmanager
    def windows(self) -> Iterator[LatestWindows]:
        """What the windows hold, up to the last release; it stays so inside the block."""
        with self._windows_lock:
            if self._windows.last < (last := self.notices.last):
                self._windows.add([*self._stored.entries(self._windows.last + 1)], last)
            yield self._windows

    def part_spent(self) -> float:
        """The part of the current window's budget that is spent; as it was last known, where the store is away."""
        if not self._wait.waiting:
            with suppress(Unavailable), self.windows():
                pass
        return float(self._windows.now / (self.settings.epsilon * NANO))

    def promised_before(self) -> list[str]:
        """What was promised from when until when, in sentences; none where that never changed."""
        if self._before is None:
            return []
        *earlier, last = self._stored.epochs()
        now = verify([], [last], last.first_step).spending
        past = promises([*earlier, last], self._before._replace(spending=[*self._before.spending, *now]))
        return [f"{each[0].upper()}{each[1:]}." for each in sentences(past, last.setting)]

    def to_sign(self) -> Part:
        """What the store says for people who must sign the promise, up to the last release."""
        with self._signing:
            last = self.notices.last
            if self._to_sign is None or self._to_sign[0] < last:
                self._to_sign = last, store_part(self._stored, self.settings.store, last + 1)
            return self._to_sign[1]

    def _publish(self) -> None:
        try:
            self.publisher.run(stop=lambda: self.closing)
        except EventideError as problem:
            if self.closing and isinstance(problem, Unavailable):
                LOG.warning("stream %s ends without its store: %s; nothing is lost", self.settings.name, problem.what)
            else:
                LOG.error("stream %s has stopped: %s", self.settings.name, problem)
                self.failed, self.failure = True, problem
        except Exception as problem:  # what it says could hold a true count
            LOG.error("stream %s has stopped: unexpected %s", self.settings.name, type(problem).__name__)
            self.failed = True
        finally:
            self.feed.begun.set()
            self.feed.end()

    def _finish_sinks(self) -> None:
        """Deliver the rest; what a sink does not take now it gets after the next start."""
        try:
            self.publisher.finish()
        except EventideError as problem:
            LOG.warning("stream %s: %s", self.settings.name, problem)

    def _windows_before(self) -> Verification | None:
        """What windows of earlier epochs held, such as those before a backup was restored."""
        begin, earlier = self._epoch.first_step, self._stored.epochs()[: self._epoch.number]
        if not earlier:
            return None
        return verify((entry for entry in self._stored.entries() if entry.step < begin), earlier, begin)

    def _find_epoch(self) -> None:
        """Learn from the store in which epoch it is, and since when releases and answers are as they are now."""
        epochs = self._stored.epochs()
        self._epoch = epochs[-1]
        now = self._epoch.setting
        self.first_step = _first_like_the_last(epochs, lambda one: _has_same_rows(one, now))
        self.answered_from = _first_like_the_last(
            epochs, lambda one: _has_same_rows(one, now) and one.queries == now.queries
        )


def _has_same_rows(one: StoreSetting, now: StoreSetting) -> bool:
    """Whether releases are over the bins and groups of now; those from before there were levels have gaps there."""
    levels = levels_of(now)
    return one.bins == now.bins and (levels is None or levels_of(one) in (None, levels))


def _first_like_the_last(epochs: list[Epoch], is_like: Callable[[StoreSetting], bool]) -> int:
    """The first step since which all settings are like that of now."""
    return min(epoch.first_step for epoch in itertools.takewhile(lambda one: is_like(one.setting), epochs[::-1]))
