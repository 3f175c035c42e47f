"""One of two worlds: its events, a folder, a clock, and everything that is seen of it while the system runs.

While a world runs, the meter, the publisher, the points of faults, the log, random keys and the noise of this process
are listened to or replaced; only one world runs at a time. Made for tests on made-up events: the noise comes from a
seed.
"""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from eventide.arrays import Array, Ints
from eventide.audit.two_worlds.answers import AnswerRecord, Attempt, Question
from eventide.audit.two_worlds.stores import public_rows
from eventide.audit.two_worlds.view import PublicView
from eventide.errors import EventideError
from eventide.events.clock import ManualClock
from eventide.live import faults
from eventide.live.accounts import account, open_account
from eventide.live.feeds.base import ClosedStep
from eventide.live.publisher import delivery
from eventide.live.publisher.publisher import Publisher
from eventide.live.stores import memory_store, postgres_schema, sqlite_file
from eventide.live.stores.base import Store, StoreMissing
from eventide.privacy.meter import Meter
from eventide.privacy.noise import Secure, Seeded
from eventide.privacy.sealed import SealedStep

KEY = bytes(range(1, 17))  # every store has this key
OTHERS_LOGS = ("httpx", "httpcore")  # of whoever asks the service, not of the service


@dataclass(frozen=True)
class OnlyA:
    """Something that the person whose events differ did in world A only.

    Parameters
    ----------
    event
        An event, or several in one batch, in any form that `run` understands.
    """

    event: Any


@dataclass(frozen=True)
class OnlyB:
    """Something that the person whose events differ did in world B only.

    Parameters
    ----------
    event
        An event, or several in one batch, in any form that `run` understands.
    """

    event: Any


class Crash(BaseException):
    """The end of a life at a named point."""


class World:
    """What a run is given. `own` are the events that are not in the other world.

    What is left in the folder `seen` is public. `clock` stands at 0 until somebody sets it.

    Parameters
    ----------
    name
        "A" or "B".
    events
        Those of this world, in the order in which they come.
    folder
        For inputs and stores, at the same place in both worlds.
    """

    def __init__(self, name: str, events: Iterable[Any], folder: Path) -> None:
        self.name = name
        own, other = (OnlyA, OnlyB) if name == "A" else (OnlyB, OnlyA)
        here = [event for event in events if not isinstance(event, other)]
        self.events = [event.event if isinstance(event, own) else event for event in here]
        self.own = [event.event for event in here if isinstance(event, own)]
        self.folder, self.seen = folder, folder / "seen"
        self.seen.mkdir(parents=True)
        self.clock = ManualClock()
        self.view = PublicView()
        self._stores: list[str | Path] = []
        self._accounts: list[str | Path] = []

    def show(self, channel: str, content: bytes | str) -> None:
        """Say that something is seen."""
        self.view.show(channel, content)

    def show_store(self, place: str | Path) -> None:
        """Say that the public tables of a store are seen, when the run has ended."""
        if place not in self._stores:
            self._stores.append(place)

    def show_account(self, place: str | Path) -> None:
        """Say that all entries of an account are seen, when the run has ended."""
        self._accounts.append(place)

    def live(self, work: Callable[[], object], dies_at: str | None = None, of: type[BaseException] = Crash) -> None:
        """Do some work; a refusal by eventide is seen, and ends only this work.

        `dies_at` is a point of `eventide.live.faults`; "before-commit:5" is the fifth time that it is passed. There
        `of` is raised: by default what ends the work as if the process had ended, or an error such as a disk gives.
        """
        with _dying(dies_at, of) as died:
            try:
                work()
            except Crash:
                pass
            except EventideError as refusal:
                self.show("errors", f"{type(refusal).__name__}: {refusal}")
        self.show("lives", f"died at {dies_at}" if died else "came to its end")
        if dies_at is not None and not died and self.name == "A":
            raise ValueError(f"{dies_at} was never passed, so nothing died there; choose another point")

    def close(self) -> None:
        """Look at what the run has left."""
        for path in sorted(self.seen.rglob("*")):
            if path.is_file():
                self.show(f"file {path.relative_to(self.seen)}", path.read_bytes())
        for place in self._stores:
            name = f"store {Path(str(place)).name}"
            try:
                for table, row in public_rows(place):
                    self.show(f"{name}, {table}", row)
            except StoreMissing:
                self.show(name, "is missing")
        for place in self._accounts:
            with open_account.open_account(place, read_only=True) as opened:
                for (event,) in opened.database.all("SELECT event FROM entry ORDER BY number"):
                    self.show(f"account {Path(str(place)).name}", event)


@contextmanager
def lived(world: World, record: AnswerRecord, seed: int) -> Iterator[None]:
    """Listen to everything that happens in this process."""
    ears = _Ears(record, seed)
    counter = itertools.count()
    known = SimpleNamespace(
        token_bytes=lambda size: KEY[:size],
        token_hex=lambda size: f"{next(counter):0{2 * size}x}",
        randbits=lambda bits: next(counter),
    )
    ours, handler = logging.getLogger("eventide"), _Lines(world.view)
    with ExitStack() as stack:
        stack.enter_context(_replaced(Meter, "_answered", ears.answered))
        stack.enter_context(_replaced(Meter, "seal", ears.sealed))
        stack.enter_context(_replaced(Meter, "_ended", ears.ended))
        stack.enter_context(_replaced(Publisher, "_draw", ears.drawn))
        stack.enter_context(_replaced(Publisher, "_commit", ears.committed))
        stack.enter_context(_replaced(Secure, "laplace", lambda _: lambda _, *asked: ears.noise.laplace(*asked)))
        stack.enter_context(_replaced(Secure, "binomial", lambda _: lambda _, *asked: ears.noise.binomial(*asked)))
        stack.enter_context(_replaced(delivery, "time", lambda _: _NoTime()))
        for module in (sqlite_file, postgres_schema, memory_store, account, open_account):  # which make names and keys
            stack.enter_context(_replaced(module, "secrets", lambda _: known))
        stack.callback(ours.setLevel, ours.level)
        ours.setLevel(logging.DEBUG)
        logging.getLogger().addHandler(handler)
        stack.callback(logging.getLogger().removeHandler, handler)
        yield


class _Ears:
    """What listens; each method takes what was there and gives what stands in its place."""

    def __init__(self, record: AnswerRecord, seed: int) -> None:
        self.record, self.noise = record, Seeded(seed)
        self._now = threading.local()
        self._memory: list[Store] = []
        self._open: dict[Publisher, list[Attempt]] = {}  # what each has drawn, and perhaps not committed

    def drawn(self, draw: Callable[[Publisher, ClosedStep], None]) -> Callable[[Publisher, ClosedStep], None]:
        def listening(publisher: Publisher, closed: ClosedStep) -> None:
            if closed.index != publisher._next_drawn:  # it comes again, and was published before
                return draw(publisher, closed)
            self._now.attempt = attempt = self.record.begin(self._stream(publisher.store), closed.index)
            self._open.setdefault(publisher, []).append(attempt)
            try:
                draw(publisher, closed)
            finally:
                self._now.attempt = None

        return listening

    def committed(self, commit: Callable[[Publisher], None]) -> Callable[[Publisher], None]:
        def listening(publisher: Publisher) -> None:
            try:
                commit(publisher)
            finally:
                for attempt in self._open.pop(publisher, []):
                    attempt.committed = _holds(publisher.store, attempt.step)

        return listening

    def sealed(self, seal: Callable[[Meter, Ints], SealedStep]) -> Callable[[Meter, Ints], SealedStep]:
        def listening(meter: Meter, counts: Ints) -> SealedStep:
            if attempt := self._attempt(meter, begins=True):
                attempt.sealed.append((attempt.step, np.array(counts)))
            return seal(meter, counts)

        return listening

    def ended(self, end: Callable[..., list[Array]]) -> Callable[..., list[Array]]:
        def listening(meter: Meter, sums: Any, counts: Ints, cuts: Any) -> list[Array]:
            if attempt := self._attempt(meter):
                alone = attempt is getattr(self._now, "alone", None)
                first = int(meter.ledger.step) - len(counts) if alone else attempt.step  # they are charged already
                attempt.sealed += [(first + place, row.copy()) for place, row in enumerate(counts)]
            return end(meter, sums, counts, cuts)

        return listening

    def answered(self, answer: Callable[..., Array]) -> Callable[..., Array]:
        def listening(
            meter: Meter, kind: str, shape: tuple[int, ...], about: dict[str, Array], measure: Callable[[], Array]
        ) -> Array:
            question = Question(kind, shape, {name: np.array(value) for name, value in about.items()})

            def measured() -> Array:
                attempt = self._attempt(meter)
                return measure() if attempt is None else self.record.answer(attempt, question, measure)

            return answer(meter, kind, shape, about, measured)

        return listening

    def _attempt(self, meter: Meter, *, begins: bool = False) -> Attempt | None:
        """The step that this thread works on; a mechanism that nobody publishes works on its own."""
        attempt: Attempt | None = getattr(self._now, "attempt", None)
        if attempt is None and meter.recorded is None:
            if begins or getattr(self._now, "alone", None) is None:
                self._now.alone = self.record.begin("", int(meter.ledger.step))
                self._now.alone.committed = True
            attempt = self._now.alone
        return attempt

    def _stream(self, store: Store) -> str:
        """By what a stream is known in both worlds and after a crash."""
        if store.durable:
            return f"store {getattr(store, 'name', '').lstrip('0')}".strip()
        if store not in self._memory:
            self._memory.append(store)
        return f"run {self._memory.index(store) + 1}"


class _NoTime:
    """Time for deliveries, which passes only while they sleep: how slow a sink is decides when it gets its share."""

    def __init__(self) -> None:
        self._slept = 0.0

    def monotonic(self) -> float:
        return self._slept

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
        self._slept += seconds


class _Lines(logging.Handler):
    """Log lines of every level, with all that was added to them."""

    _usual = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

    def __init__(self, view: PublicView) -> None:
        super().__init__(logging.DEBUG)
        self._view = view

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith(OTHERS_LOGS):
            return
        added = {name: value for name, value in vars(record).items() if name not in self._usual}
        failure = record.exc_info and f"{record.exc_info[1]!r}"
        said = {"log": record.name, "level": record.levelname, "says": record.getMessage(), **added, "failure": failure}
        thread = f" of {record.threadName}" if str(record.threadName).startswith("eventide-") else ""
        self._view.show(f"log{thread}", json.dumps(said, default=str))


def _holds(store: Store, step: int) -> bool:
    try:
        return store.next_step() > step
    except EventideError:
        return False


@contextmanager
def _replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Put what `make` makes of it in the place of something, for a while."""
    before = vars(owner)[name]
    setattr(owner, name, make(before))
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def _dying(at: str | None, of: type[BaseException]) -> Iterator[list[str]]:
    """Raise `of` at a named point; what is given holds the point from then on."""
    point, _, count = (at or "nowhere").partition(":")
    if at is not None and point not in faults.POINTS:
        raise ValueError(f"there is no point {point!r}; choose one of {', '.join(faults.POINTS)}")
    left, died = itertools.count(int(count or 1), -1), list[str]()

    def passing(passed: str) -> None:
        if passed == point and next(left) == 1:
            died.append(point)
            raise of(f"a fault was made at {point}")

    def pieces(passed: str, data: bytes) -> Iterator[bytes]:
        half = len(data) // 2 if passed == point else 0
        yield data[:half]
        passing(passed)
        yield data[half:]

    with _replaced(faults, "passing", lambda _: passing), _replaced(faults, "pieces", lambda _: pieces):
        yield died
