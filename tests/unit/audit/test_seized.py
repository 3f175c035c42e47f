"""The machine is taken away between two events: memory, store and log are the same in two worlds, whoever was there."""

import functools
import logging
import os
from types import SimpleNamespace

import numpy as np
import pytest
from noisy_lives import Life, line, moment

import eventide as ev
from eventide.audit.seizure import cells_of, seized
from eventide.audit.two_worlds import OnlyA, OnlyB, WorldsDiffer
from eventide.live.feeds import noisy_feed
from eventide.live.feeds.noisy_feed import NoisyFeed
from eventide.live.publisher import publisher as publishing
from eventide.live.sources.line_by_line import PipeLines
from eventide.privacy.measured import Measured
from eventide.privacy.noisy_cells import NoisyCells

IS_READY = PipeLines._is_ready
SLOT = 1 / 4  # of a minute: in each at most one event comes
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


class FilePart:
    """Events reach a file that is followed."""

    turns = 99  # it says by itself when it has nothing to do
    counted_after = 0  # its turns depend on whether there is a line

    def __init__(self, folder):
        self.source = None

    def send(self, life, *event):
        life.write(event[:2])

    def close(self):
        pass


class PipePart:
    """Events reach a pipe."""

    turns = 8  # more than an event and a step take
    counted_after = 2  # turns: one for the clock, one for the line

    def __init__(self, folder):
        self._read, self._write = os.pipe()
        self.source = functools.partial(PipeLines, self._read)

    def send(self, life, *event):
        os.write(self._write, line(*event[:2]))

    def close(self):
        os.close(self._read)
        os.close(self._write)


def run(world, part, looks, **options):
    """Let the events of a world come, one in a slot, and take everything after each slot."""
    part = part(world.folder)
    life = Life(world.folder, world.folder / "store.db", source=part.source, **options)
    coming = list(world.events)
    for slot in range(1, 29):
        if coming and arrival(coming[0]) < slot * SLOT:
            part.send(life, *coming.pop(0))
        life.clock.set(moment(slot * SLOT) - 3_000_000)
        read = 0
        for _ in range(part.turns):
            read += not life.turn()
            if read == part.counted_after:
                world.show(f"slot {slot}, at once", "\n".join(seized(life.publisher, life.turns)))
            if life.clock.now() > moment(slot * SLOT) - 2_500_000:  # it has waited twice
                break
        world.show(f"slot {slot}", "\n".join(seized(life.publisher, life.turns)))
        looks.setdefault(world.name, []).append(cells_of(life.publisher))
    assert not coming
    world.show("steps", str(life.publisher.next_step))
    life.close()
    part.close()


def check(person="is there", part=FilePart, looks=None, name="bd", **options):
    looks = {} if looks is None else looks
    way = functools.partial(
        run, part=part, looks=looks, noise=ev.noise.Zero(), given=(*MANY_LOOKS, ("name", name)), **options
    )
    return ev.check_two_worlds(way, events_of(person), window=range(1, 4))


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch):
    monkeypatch.setattr(noisy_feed, "POLL_SECONDS", 0.25)
    monkeypatch.setattr(publishing, "time", SimpleNamespace(monotonic=lambda: 0.0))  # when names were last looked for
    monkeypatch.setattr(PipeLines, "_is_ready", lambda self, _=0: IS_READY(self, 0))


USUAL = [("comes and goes", FilePart), ("is there", PipePart)]
OTHER = [
    pytest.param(person, part, marks=pytest.mark.slow)
    for person in PERSONS
    for part in (FilePart, PipePart)
    if (person, part) not in USUAL
]


@pytest.mark.parametrize(("person", "part"), USUAL + OTHER)
def test_whoever_takes_the_machine_between_two_events_finds_noisy_cells_only(person, part):
    looks = {}
    agreed = check(person, part, looks, late="1min")
    assert agreed.steps >= 4
    assert agreed.seen["slot 9"] > 50, "memory and store were found"
    differing = 0
    for ours, theirs in zip(looks["A"], looks["B"], strict=True):
        assert ours.keys() == theirs.keys()
        for step in ours:
            apart = np.abs(ours[step] - theirs[step]).sum()
            assert apart <= (1 if step in range(1, 4) else 0)
            differing += apart
    assert (differing > 0) == (person != "writes nonsense"), "events did go into cells"


@pytest.mark.parametrize("name", [pytest.param("bd", marks=pytest.mark.slow), "ba"])
def test_so_it_is_with_intrusions_that_nobody_announces(name):
    assert check("comes and goes", PipePart, mode="single", name=name).steps >= 4


class Buffering(NoisyFeed):
    """Counts events three at a time."""

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


class LoggingPosition(NoisyFeed):
    """Says how far it has read."""

    def counted(self, batch):
        place = os.lseek(self._source._files[0].descriptor, 0, os.SEEK_CUR)
        logging.getLogger("eventide.live").debug("read until %d", place)
        return super().counted(batch)


@pytest.mark.parametrize(("feed", "where"), [(Buffering, "slot"), (LoggingPosition, "log")])
def test_a_feed_that_holds_or_tells_more_is_found(feed, where):
    with pytest.raises(WorldsDiffer, match=where):
        check(feed=feed)


def test_the_sketch_of_the_paper_is_found(monkeypatch):
    """As published, cells are released as they are: no noise comes later, and the meter is not asked again."""

    def read(self, meter, where):
        amount = np.where(where, self.look_budget, 0)
        meter.ledger.charge(amount)
        return Measured(self._look.copy(), np.ones((1, 1)), amount > 0)

    monkeypatch.setattr(NoisyCells, "read", read)
    with pytest.raises(WorldsDiffer):
        check()


def test_counting_what_was_accepted_is_found(monkeypatch):
    counted = NoisyFeed.counted

    def counting(self, batch):
        taken = counted(self, batch)
        self.counters.add(taken)
        return taken

    monkeypatch.setattr(NoisyFeed, "counted", counting)
    with pytest.raises(WorldsDiffer, match="slot"):
        check()
