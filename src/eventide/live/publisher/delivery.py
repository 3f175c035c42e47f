"""Bring stored releases to a sink: in order, none left out, again after a failure, and never in the way for long.

A sink that fails is left alone for a while, longer each time; one that is slow gets at most half of the time. What it
missed stays in the store and is sent later, in this run or the next.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple

from eventide.errors import StoreError
from eventide.live import faults
from eventide.live.sinks.base import Sink
from eventide.live.stores.base import Store, StoreSetting
from eventide.live.stores.stored_releases import levels_of

log = logging.getLogger("eventide.live")

AT_A_TIME = 1.0  # seconds that a sink may take before others go on
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds after a failure
LAST_PATIENCE = 10.0  # seconds of failures at the end of a run
REMEMBERED_EVERY = 64  # steps after which the store is told how far a sink is


class SinkStanding(NamedTuple):
    """The last step that a sink has, -1 before the first, and how often it failed in this run."""

    name: str
    last: int
    failures: int


class Undelivered(StoreError):
    """A sink lacks releases at the end of a run; they are in the store, and the next run brings them."""


class Delivery:
    """What one sink has of one store; with `only_reads` the store is not told, and may be written by somebody else."""

    def __init__(
        self,
        store: Store,
        sink: Sink,
        next_step: int,
        *,
        may_be_ahead: bool = False,
        last_patience: float = LAST_PATIENCE,
        only_reads: bool = False,
    ) -> None:
        self._store, self._sink, self._last_patience, self._only_reads = store, sink, last_patience, only_reads
        known = sink.last_step()
        if known is not None and known >= next_step and store.durable and not may_be_ahead:
            raise StoreError(
                f"{sink.name} holds releases up to step {known}, and {_reach(next_step)}. Either it belongs to another "
                "store: then choose another output, or that store. Or the store was restored from a backup: then "
                "--after-restore goes on behind what was published"
            )
        if known is not None and known >= 0:
            stored = store.release(known)
            if stored is not None and not sink.holds(stored):
                raise StoreError(
                    f"{sink.name} holds another release of step {known} than the store. Either it belongs to another "
                    "store, or the store was restored from a backup and went on without it: choose another output"
                )
        self.last = store.delivered(sink.name) if known is None else known
        self.last = max(-1 if sink.begins_anew else self.last, self._first() - 1)
        self._remembered = self.last
        self.name, self.failures = sink.name, 0
        self._pause, self._rest_until = FIRST_PAUSE, 0.0
        self._failure: OSError | None = None

    def advance(self) -> None:
        """Send what is stored and not sent yet, unless the sink has to rest."""
        if not self._store.durable:  # nothing keeps what the sink would miss
            self._send_until(None)
            return
        began = time.monotonic()
        if began < self._rest_until:
            return
        self._send_until(began + AT_A_TIME)
        now = time.monotonic()
        self._rest_until = now + (self._pause if self._failure else now - began)

    def finish(self) -> None:
        """Send the rest, with some patience, and let the sink show it; say what it lacks."""
        give_up = None
        while True:
            before = self.last
            self._send_until(None)
            if self._failure is None:
                break
            now = time.monotonic()
            give_up = now + self._last_patience if give_up is None or self.last > before else give_up
            if now + self._pause > give_up or not self._store.durable:
                raise (Undelivered if self._store.durable else StoreError)(
                    f"{self._sink.name} has {_delivered(self.last)}: {_reason(self._failure)}; the others are in the "
                    "store, and the same command delivers them when it works again"
                )
            time.sleep(self._pause)
        self._check_place()
        self._durable(self._sink.finish)
        self._remember()

    def _first(self) -> int:
        """The first of the steps, up to now, whose releases the sink can show."""
        epochs = self._store.epochs()
        others = [not _is_shown(self._sink, epoch.setting) for epoch in epochs[:-1]]
        return max((later.first_step for other, later in zip(others, epochs[1:], strict=True) if other), default=0)

    def _send_until(self, end: float | None) -> None:
        self._failure = None
        releases = iter(self._store.releases(self.last + 1))
        while batch := list(islice(releases, self._sink.steps_at_a_time)):
            faults.passing("before-emit")
            self._check_place()
            try:
                self._sink.send_all(batch)
            except BrokenPipeError:  # whoever read standard output has enough
                raise
            except OSError as failure:
                self._failed(failure)
                return
            faults.passing("after-emit")
            self.last, self._pause = batch[-1][0], FIRST_PAUSE
            if self.last - self._remembered >= REMEMBERED_EVERY:
                self._remember()
            if end is not None and time.monotonic() > end:
                return

    def _failed(self, failure: OSError) -> None:
        if not self._store.durable:
            raise StoreError(
                f"cannot write to {self._sink.name}: {_reason(failure)}; this run has no store, so what was published "
                "is lost (use --store)"
            )
        self._failure, self._pause = failure, min(2 * self._pause, LONGEST_PAUSE)
        self.failures += 1
        fields = {"sink": self._sink.name, "has": self.last, "again_in": self._pause, "reason": _reason(failure)}
        log.warning("sink failed", extra={"fields": fields})

    def _check_place(self) -> None:
        if not self._only_reads:
            self._store.check_place()

    def _remember(self) -> None:
        """Tell the store, after the sink has made it durable."""
        if self.last > self._remembered and not self._only_reads:
            self._durable(self._sink.flush)
            faults.passing("before-deliver")
            self._store.deliver(self._sink.name, self.last)
            self._remembered = self.last

    def _durable(self, work: Callable[[], None]) -> None:
        """What a disk failed to take may be lost whatever it says next, so nothing is told to the store."""
        try:
            work()
        except BrokenPipeError:
            raise
        except OSError as failure:
            raise StoreError(
                f"{self._sink.name} cannot be made durable: {_reason(failure)}; look at its disk, then give the same "
                "command again"
            ) from None


class Deliveries:
    """What all sinks of a publisher have of its store; they are opened and closed together."""

    def __init__(self, store: Store, sinks: Iterable[Sink] = (), last_patience: float = LAST_PATIENCE) -> None:
        self._store, self._sinks, self._last_patience = store, list(sinks), last_patience
        self._opened: list[Sink] = []
        self._each: list[Delivery] = []

    def open(self, next_step: int, *, may_be_ahead: bool) -> None:
        """Open all sinks, once more where the store asks again, and refuse those that do not follow it."""
        self.close()
        for sink in self._sinks:
            sink.open()
            self._opened.append(sink)
            self._each.append(
                Delivery(self._store, sink, next_step, may_be_ahead=may_be_ahead, last_patience=self._last_patience)
            )

    def behind_all(self, next_step: int) -> int:
        """The first step from `next_step` on that no sink has."""
        known = [last for sink in self._opened if (last := sink.last_step()) is not None]
        return max([next_step, *(last + 1 for last in known)])

    def advance(self) -> None:
        """Bring to the sinks what they lack, as far as they take it now."""
        for delivery in self._each:
            delivery.advance()

    def standing(self) -> list[SinkStanding]:
        """How far each sink is; asked from any thread."""
        return [SinkStanding(each.name, each.last, each.failures) for each in self._each]

    def finish(self) -> None:
        """Bring everything to the sinks, and let them show it."""
        lacking = []
        for delivery in self._each:
            try:
                delivery.finish()
            except Undelivered as problem:
                lacking.append(str(problem))
        if lacking:
            raise Undelivered("; ".join(lacking))

    def close(self) -> None:
        """Let go of the sinks."""
        for sink in self._opened:
            sink.close()
        self._opened, self._each = [], []


def _delivered(last: int) -> str:
    return f"the releases up to step {last} only" if last >= 0 else "no release yet"


def _reach(next_step: int) -> str:
    return f"the store only up to step {next_step - 1}" if next_step else "the store holds none"


def _reason(failure: OSError) -> str:
    return failure.strerror or str(failure)


def _is_shown(sink: Sink, setting: StoreSetting) -> bool:
    """Whether releases of a setting stand in the rows of a sink: groups have their places, and no names, in a release.

    Releases from before there were levels have gaps there.
    """
    if sink.bins is None:
        return True
    own = levels_of(setting) if sink.groups else None
    same_groups = own is None or list(own.groups.items()) == list((sink.groups or {}).items())
    return sink.bins == setting.bins and same_groups
