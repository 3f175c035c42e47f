"""A short stream of which everything is taken away after each quarter of a minute, in two worlds, whatever it came by.

A part hands events to a publisher: a file, a pipe, a broker. Broken feeds hold or tell more than they may.
"""

import functools
import itertools
import logging
import os
from datetime import datetime
from types import SimpleNamespace

import numpy as np
from noisy_lives import Life, line, moment

import eventide as ev
from eventide.audit.seizure import cells_of, seized
from eventide.audit.two_worlds import OnlyA, OnlyB
from eventide.events.reader import Counters
from eventide.live.feeds import noisy_feed
from eventide.live.publisher import publisher as publishing
from eventide.live.sources.line_by_line import PipeLines
from eventide.live.stores import sqlite_database, sqlite_file
from eventide.live.stores.home import Home
from eventide.privacy.measured import Measured

IS_READY = PipeLines._is_ready
SLOT, SLOTS = 1 / 4, 28  # of a minute: in each at most one event comes
MANY_LOOKS = (("epsilon", 1000),)
OTHERS = [(0.1, "a"), (0.3, "b"), (0.9, "a"), (1.6, "b"), (2.3, "a"), (3.6, "b"), (4.1, "a"), (5.2, "a")]
PERSONS = {
    "is there": [OnlyA((1.3, "b")), OnlyA((2.6, "a"))],
    "comes and goes": [OnlyA((1.3, "a")), OnlyB((2.1, "b")), OnlyA((3.1, "b"))],
    "is late": [OnlyA((1.3, "a", 2.6)), OnlyA((1.4, "a", 4.6))],
    "writes nonsense": [OnlyA((1.3, "nowhere")), OnlyB((99, "a", 2.1))],
}


def arrival(event):
    told = event.event if isinstance(event, OnlyA | OnlyB) else event
    return told[2] if len(told) > 2 else told[0] + 0.01


def events_of(person):
    return sorted([*OTHERS, *PERSONS[person]], key=arrival)


def slots(world):
    """The slots, each with the event that comes in it or None."""
    coming = list(world.events)
    for slot in range(1, SLOTS + 1):
        yield slot, coming.pop(0) if coming and arrival(coming[0]) < slot * SLOT else None
    assert not coming


class FilePart:
    """Events reach a file that is followed."""

    source = None
    passing_over = staticmethod(lambda _: False)

    def __init__(self, world):
        """Nothing to make."""

    def send(self, life, *event):
        life.write(event[:2])

    def turns(self, life, slot):
        """It says by itself when it has nothing to do: it waits, twice. Views are due after each True."""
        yield True  # its turns depend on whether there is a line
        while life.clock.now() <= moment(slot * SLOT) - 2_500_000:
            life.turn()
            yield False

    def close(self):
        """Nothing to let go of."""


class PipePart(FilePart):
    """Events reach a pipe."""

    def __init__(self, world):
        self._read, self._write = os.pipe()
        self.source = functools.partial(PipeLines, self._read)

    def send(self, life, *event):
        os.write(self._write, line(*event[:2]))

    def turns(self, life, slot):
        """More than an event and a step take; after two, one for the clock and one for the line, all was read."""
        read = 0
        for _ in range(8):
            read += not life.turn()
            yield read == 2

    def close(self):
        os.close(self._read)
        os.close(self._write)


def run(world, part, looks, store=None, **options):
    """Let the events of a world come, one in a slot, and take everything after each slot."""
    part = part(world)
    life = Life(world.folder, store or world.folder / "store.db", source=part.source, **options)

    def take_all(channel):
        world.show(channel, "\n".join(seized(life.publisher, life.turns, passing_over=part.passing_over)))

    for slot, event in slots(world):
        if event is not None:
            part.send(life, *event)
        life.clock.set(moment(slot * SLOT) - 3_000_000)
        for at_once in part.turns(life, slot):
            if at_once:
                take_all(f"slot {slot}, at once")
        take_all(f"slot {slot}")
        looks.setdefault(world.name, []).append(cells_of(life.publisher))
    world.show("steps", str(life.publisher.next_step))
    life.close()
    part.close()


def check(person="is there", part=FilePart, looks=None, name="bd", **options):
    looks = {} if looks is None else looks
    given = (*MANY_LOOKS, ("name", name))
    way = functools.partial(run, part=part, looks=looks, noise=ev.noise.Zero(), given=given, **options)
    return ev.check_two_worlds(way, events_of(person), window=range(1, 4))


def check_looks(looks, person):
    """See that an event changed the cells of its own step by one, and nothing else did."""
    differing = 0
    for ours, theirs in zip(looks["A"], looks["B"], strict=True):
        assert ours.keys() == theirs.keys()
        for step in ours:
            apart = np.abs(ours[step] - theirs[step]).sum()
            assert apart <= (1 if step in range(1, 4) else 0)
            differing += apart
    assert (differing > 0) == (person != "writes nonsense"), "events did go into cells"


def without_chance(monkeypatch):
    """Nothing that is taken depends on the time of this machine or on the number of a file."""
    monkeypatch.setattr(noisy_feed, "POLL_SECONDS", 0.25)
    monkeypatch.setattr(publishing, "time", SimpleNamespace(monotonic=lambda: 0.0))  # when names were last looked for
    monkeypatch.setattr(PipeLines, "_is_ready", lambda self, _=0: IS_READY(self, 0))
    ticks = itertools.count()  # the log is cut at every third commit
    monkeypatch.setattr(sqlite_database, "time", SimpleNamespace(monotonic=lambda: next(ticks) * 0.4))
    monkeypatch.setattr(sqlite_file, "datetime", SimpleNamespace(now=lambda _: datetime(2026, 1, 1)))
    monkeypatch.setattr(Home, "of", classmethod(lambda cls, path: cls(path, "1")))


def buffering(base):
    """A feed that counts events three at a time."""

    class Buffering(base):
        def begin(self, resume):
            super().begin(resume)
            self._batch = []

        def counted(self, batch):
            if len(batch.events.time):
                self._batch.append(batch)
            if len(self._batch) == 3:
                for each in self._batch:
                    super().counted(each)
                self._batch = []
            return Counters()

    return Buffering


def logging_position(base):
    """A feed that says when it has come further."""

    class LoggingPosition(base):
        def counted(self, batch):
            if len(batch.events.time):
                logging.getLogger("eventide.live").debug("read %d events more", len(batch.events.time))
            return super().counted(batch)

    return LoggingPosition


def counting(base):
    """A feed that counts what it has accepted."""

    class Counting(base):
        def counted(self, batch):
            taken = super().counted(batch)
            self.counters.add(taken)
            return taken

    return Counting


def erasing(base):
    """A feed that writes what comes into the store, and erases it before anybody can read the row."""

    class Erasing(base):
        def begin(self, resume):
            super().begin(resume)
            self._database = resume.cells._store._database

        def counted(self, batch):
            if len(batch.events.time):
                with self._database.transaction():
                    row = 99, batch.events.time.tobytes(), b""
                    self._database.change("INSERT INTO kept (step, tally, digest) VALUES (?, ?, ?)", *row)
                    self._database.change("DELETE FROM kept")
            return super().counted(batch)

    return Erasing


BROKEN = {"buffers": buffering, "logs": logging_position, "counts": counting, "writes and erases": erasing}


def read_as_sketched(self, meter, where):
    """As published, cells are released as they are: no noise comes later, and the meter is not asked again."""
    amount = np.where(where, self.look_budget, 0)
    meter.ledger.charge(amount)
    return Measured(self._look.copy(), np.ones((1, 1)), amount > 0)
