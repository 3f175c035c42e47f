"""The machine that runs a service is taken away between two requests: queue, rates and connections tell nothing."""

import functools
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest
from noisy_lives import BINS, moment
from running_service import ALL_REFUSED, EXACT, configuration, running, stream, wait_until
from seizures import BROKEN, PERSONS, SLOT, check_looks, events_of, read_as_sketched, slots, without_chance

import eventide as ev
from eventide.audit.seizure import _memory, cells_of, seized
from eventide.audit.two_worlds import WorldsDiffer
from eventide.privacy.noisy_cells import NoisyCells
from eventide.service import pushed_cells
from eventide.service.http.tokens import Tokens
from eventide.service.live_stream import LiveStream
from eventide.service.pulse import Pulse
from eventide.service.pushed_cells import PushedCells

NEEDLE = "what nobody counts"  # in every event
SETTINGS = {"mechanism": "bd", "window": 8, "user": None, "bins": BINS, "late": "1min", "epsilon": 1000}


@pytest.fixture(autouse=True)
def turn_by_turn(monkeypatch):
    """The stream has no thread: the test takes its turns, so that it can stop between any two."""
    without_chance(monkeypatch)

    def start(self):
        self.turns = self.publisher._closed_steps()
        turn(self)

    monkeypatch.setattr(LiveStream, "start", start)
    monkeypatch.setattr(pushed_cells, "LOOK_UP", 0.01)


def is_of_the_machine(thing):
    """Whether it was drawn by chance, or is a time or a thread of this machine."""
    return isinstance(thing, Tokens | Pulse | threading.Thread)


def turn(stream):
    if (closed := next(stream.turns)) is not None:
        stream.publisher._publish(closed)


def hand_in(up, stream, sender, event):
    """A request with one event, counted while it waits; afterwards the server has done with it."""
    sent = {"time": moment(event[0]) // 1000, "bin": event[1], "note": NEEDLE}
    asked = sender.submit(up.post, [sent])
    while not asked.done():
        turn(stream)
    assert asked.result().status_code in (200, ALL_REFUSED), asked.result().text
    wait_until(lambda: not up.server.server_state.tasks)


def serve(world, looks, mode="announced"):
    """Let the events of a world come by requests, one in a slot, and take everything after each slot."""
    settings = SETTINGS | {"parameters": {"pan_private": mode} | EXACT}
    config = configuration(world.folder, [stream(world.folder, **settings)])
    with ThreadPoolExecutor(1) as sender, running(config) as up:
        live = up.service.streams["city"]
        for slot, event in slots(world):
            up.clock.set(moment(slot * SLOT) - 3_000_000)
            if event is not None:
                hand_in(up, live, sender, event)
            for _ in range(3):
                turn(live)
            found = seized(live.publisher, live.turns, up.service, passing_over=is_of_the_machine)
            world.show(f"slot {slot}", "\n".join(found))
            looks.setdefault(world.name, []).append(cells_of(live.publisher))
            look_for_needles(up.server)


def look_for_needles(server):
    """See that nothing of a request can be reached from the server or stands in a thread, and that none was counted."""
    assert server.server_state.total_requests == 0
    for protocol in server.server_state.connections:
        assert [protocol.scope, protocol.headers, protocol.cycle] == [None] * 3
    readers = [thread.ident for thread in threading.enumerate() if thread.name.startswith("AnyIO")]
    frames = [sys._current_frames()[reader] for reader in readers]
    held = [frame.f_locals for stack in frames for frame, _ in traceback.walk_stack(stack)]
    assert not [text for text in _memory([server.server_state, *held], lambda _: False) if NEEDLE in text]


def check(person="is there", looks=None, **options):
    run = functools.partial(serve, looks={} if looks is None else looks, **options)
    return ev.check_two_worlds(run, events_of(person), window=range(1, 4))


@pytest.mark.slow
@pytest.mark.parametrize("person", PERSONS)
def test_requests_leave_noisy_cells_only(person):
    looks = {}
    agreed = check(person, looks)
    assert agreed.steps >= 4
    assert agreed.seen["slot 9"] > 50, "memory, store and its files were found"
    check_looks(looks, person)


@pytest.mark.slow
@pytest.mark.parametrize("how", BROKEN)
def test_a_service_that_holds_or_tells_more_is_found(how, monkeypatch):
    monkeypatch.setattr(pushed_cells, "PushedCells", BROKEN[how](PushedCells))
    with pytest.raises(WorldsDiffer, match="log" if how == "logs" else "slot"):
        check()


@pytest.mark.slow
def test_the_sketch_of_the_paper_is_found_behind_a_service(monkeypatch):
    monkeypatch.setattr(NoisyCells, "read", read_as_sketched)
    with pytest.raises(WorldsDiffer):
        check()
