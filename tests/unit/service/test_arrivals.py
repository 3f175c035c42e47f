"""A request arrives when its body is complete: nobody else's requests decide whether its events count."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from urllib.parse import urlsplit

import pytest
from running_service import PATIENCE, START, configuration, event, running, wait_until

from eventide.errors import StateError
from eventide.events.clock import ManualClock
from eventide.events.reader import Columns, EventReader
from eventide.events.timeline import Timeline
from eventide.live.feeds.base import Resume
from eventide.service.http import ingest
from eventide.service.pushed_feed import Busy, PushedFeed
from eventide.service.step_notices import StepNotices

OTHERS = [event("south", f"user {number}") for number in range(500)]


@pytest.fixture
def city(tmp_path):
    with running(configuration(tmp_path)) as up:
        yield up


def in_background(work, *arguments):
    thread = threading.Thread(target=work, args=arguments)
    thread.start()
    return thread


def end_of_step(up):
    return up.service.streams["city"].feed.timeline.end(0)


def count_of_others(up):
    """What step 0 has of everybody but the neighbour, who is in the north."""
    wait_until(lambda: up.service.streams["city"].notices.last == 0)
    (release,) = up.client("read").get("/v1/streams/city/releases").json()["releases"]
    return release["values"][1]


def test_others_count_the_same_with_and_without_a_neighbour_who_keeps_the_writer_busy(tmp_path):
    # writer   |--- the neighbour's batch is made durable ---|- 500 of others -|
    # others        arrive                                     are taken
    # step 0   -----------------|  ends
    counts = {}
    for busy in (False, True):
        folder = tmp_path / str(busy)
        folder.mkdir()
        with running(configuration(folder)) as up:
            feed, held, go = up.service.streams["city"].feed, threading.Event(), threading.Event()
            take = feed.take

            def slow(batch, take=take, held=held, go=go):
                if len(batch.events.time) == 1:
                    held.set()
                    go.wait(PATIENCE)
                take(batch)

            feed.take = slow
            senders = []
            if busy:
                senders.append(in_background(up.post, [event("north", "neighbour")]))
                assert held.wait(PATIENCE)
            senders.append(in_background(up.post, OTHERS))
            wait_until(lambda feed=feed, busy=busy: feed.waiting == 1 if busy else feed.totals.accepted)
            up.clock.set(end_of_step(up))
            go.set()
            counts[busy] = count_of_others(up)
            for sender in senders:
                sender.join()
    assert counts == {False: 500, True: 500}


def test_a_step_waits_for_what_arrived_before_its_end_and_is_still_being_read(city, monkeypatch):
    feed, held, go, looks = city.service.streams["city"].feed, threading.Event(), threading.Event(), []
    take, read_events = feed.take, ingest.read_events

    def read_slowly(*arguments):
        held.set()
        go.wait(PATIENCE)
        return read_events(*arguments)

    monkeypatch.setattr(ingest, "read_events", read_slowly)
    feed.take = lambda batch: (looks.append(batch), take(batch))
    sender = in_background(city.post, OTHERS)
    assert held.wait(PATIENCE)
    city.clock.set(end_of_step(city))
    before = len(looks)
    wait_until(lambda: len(looks) > before + 2)  # the writer has looked whether the step is over
    assert feed.notices.last == -1
    go.set()
    assert count_of_others(city) == 500
    sender.join()


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/json"}])
def test_a_refused_body_lets_the_step_end(city, headers):
    client = city.client("ingest")
    assert client.post("/v1/streams/city/events", content="no array", headers=headers).status_code in (400, 415)
    city.pass_steps()


def test_whoever_sends_slowly_holds_nothing_back_and_is_late_alone(city):
    body = json.dumps([event("south", "slow")]).encode()
    head = (
        f"POST /v1/streams/city/events HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {city.tokens['ingest']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    where = urlsplit(city.address)
    with socket.create_connection((where.hostname, where.port), timeout=PATIENCE) as connection:
        connection.sendall(head.encode() + body[:10])
        city.post([event("north", "quick")])
        city.pass_steps()
        connection.sendall(body[10:])
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["refused"] == {"late": 1}
    assert count_of_others(city) == 0


# The feed alone, on a clock that moves when told.


class Pushed:
    """A feed of steps of a minute, its clock, and what it gives when it is asked once more."""

    def __init__(self, **options):
        self.clock = ManualClock(Timeline(START, "1min").start)
        reader = EventReader(["north", "south"], Columns("time", "user", "bin"))
        self.feed = PushedFeed(Timeline(START, "1min"), reader, self.clock, StepNotices(), **options)
        self._steps = self.feed.steps(Resume(0, None, bytes(16), [], lambda tallies, key: list(tallies) is not None))
        assert self.look() is None

    def look(self):
        closed = next(self._steps)
        return closed and (closed.index, closed.counts.tolist())

    def submit(self, arrival, *events):
        return self.feed.submit(self.feed.reader.read(list(events)), arrival)


def test_a_stamp_that_is_not_worked_off_keeps_its_step_open_and_no_earlier_one():
    # time    0         1         2         3
    # step    |----0----|----1----|----2----|
    # stamps       x         y
    pushed = Pushed()
    pushed.clock.wait(30)
    with pushed.feed.arrivals.stamp() as first:
        pushed.clock.wait(60)
        with pushed.feed.arrivals.stamp() as second:
            pushed.clock.wait(90)
            assert pushed.look() is None
            receipt = pushed.submit(first, event("north", "anna"))
            assert pushed.look() == (0, [1, 0])
            assert receipt.result(0).counters.accepted == 1
            assert pushed.look() is None  # published
            assert pushed.look() is None
            receipt = pushed.submit(second, event("north", "anna"), event("south", "bert", 1))
            assert [pushed.look(), pushed.look()] == [(1, [0, 1]), (2, [0, 0])]
            counters = receipt.result(0).counters
            assert (counters.accepted, counters.late) == (1, 1)


def test_a_request_that_breaks_off_lets_its_step_end():
    pushed = Pushed()
    with contextlib.suppress(ValueError), pushed.feed.arrivals.stamp():
        pushed.clock.wait(60)
        assert pushed.look() is None
        raise ValueError
    assert pushed.look() == (0, [0, 0])


def test_a_batch_whose_sender_has_left_is_not_counted_and_lets_its_step_end():
    pushed = Pushed()
    with pushed.feed.arrivals.stamp() as arrival:
        assert pushed.submit(arrival, event("north", "anna")).cancel()
        pushed.clock.wait(60)
        assert pushed.look() == (0, [0, 0])


def test_a_batch_that_finds_no_place_lets_its_step_end():
    pushed = Pushed(most_waiting=1)
    with pushed.feed.arrivals.stamp() as first:
        pushed.submit(first, event("north", "anna"))
        with pytest.raises(Busy), pushed.feed.arrivals.stamp() as second:
            pushed.submit(second, event("south", "bert"))
        pushed.clock.wait(60)
        assert pushed.look() == (0, [1, 0])


def test_what_is_on_its_way_when_a_stream_ends_is_refused():
    pushed = Pushed()
    with pushed.feed.arrivals.stamp() as arrival:
        waiting = pushed.submit(arrival, event("north", "anna"))
        pushed.feed.end()
        with pytest.raises(StateError, match="was closed"):
            waiting.result(0)
        with pytest.raises(StateError, match="is closed"):
            pushed.submit(arrival, event("south", "bert"))
    pushed.clock.wait(60)
    assert pushed.feed.arrivals.worked_off_until() == pushed.clock.now()
