"""What a NATS stream drops, or a broken connection swallows, is read again or refused: never silently left out."""

import asyncio
import contextlib
import socket
import threading
import time
from types import SimpleNamespace

import pytest
from nats_server import PATIENCE, NatsServer
from running_service import wait_until

from eventide.errors import InputError
from eventide.live.sinks.jetstream import JetStreamSink
from eventide.live.sources.jetstream import JetStream
from eventide.live.sources.nats_streams import Consumer, MessagesLost


def event(number):
    return {"timestamp": "2026-01-01T00:00:00Z", "user": number, "bin": "a"}


def polled(source, enough):
    """How many events come: `enough` of them, or fewer if the patience ends before."""
    total, until = 0, time.monotonic() + PATIENCE
    while total < enough and time.monotonic() < until:
        total += len(source.poll(0.2).events.time)
    return total


def caught_up(source):
    """A batch that says that the source has seen everything until just now."""
    asked, until = time.time() * 1e6, time.monotonic() + PATIENCE
    while (batch := source.poll(0.1)).seen_until < asked:
        assert time.monotonic() < until, "time stands still"
    return batch


def nobody_waits(nats, stream):
    """Whether the server has forgotten what it was asked for, and sends nothing by itself."""
    return not any(consumer.num_waiting for consumer in nats.do(lambda server: server.consumers_info(stream)))


class CuttingProxy:
    """Passes on what a server says, until it is told to break the connection some bytes later, once."""

    def __init__(self, port):
        self._port, self._listener = port, socket.create_server(("127.0.0.1", 0))
        self.address = f"nats://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cut_after = None
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                for one, other, counts in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pass_on, args=(one, other, counts), daemon=True).start()

    def _pass_on(self, one, other, counts):
        with one, contextlib.suppress(OSError):
            while data := one.recv(4096):
                if counts and self.cut_after is not None:
                    self.cut_after -= len(data)
                    if self.cut_after < 0:
                        self.cut_after = None
                        break
                other.sendall(data)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)


def test_what_was_on_its_way_when_the_connection_broke_is_read_again(nats, opened):
    nats.make_stream("CUT", "cut.>")
    with contextlib.closing(CuttingProxy(nats.port)) as proxy:
        source = opened(JetStream(f"{proxy.address}/CUT", patience=PATIENCE))
        caught_up(source)
        nats.send("cut.a", [event(number) for number in range(2000)])
        proxy.cut_after = 50_000
        assert polled(source, 2000) == 2000
        assert proxy.cut_after is None
        assert caught_up(source).position["sequence"] == 2000


def consumer_of(*deliveries):
    """A consumer that is sent messages with these numbers, batch by batch; the server says it sent ten."""
    batches = iter(deliveries)

    async def fetch(most, timeout):
        numbers = next(batches)
        if not numbers:
            raise TimeoutError
        return [SimpleNamespace(data=b"", reply=f"$JS.ACK.S.C.1.{n + 100}.{n}.5000.0") for n in numbers]

    async def consumer_info():
        return SimpleNamespace(num_pending=0, delivered=SimpleNamespace(consumer_seq=10))

    return Consumer(SimpleNamespace(fetch=fetch, consumer_info=consumer_info))


def test_a_message_that_is_missing_ends_a_batch_and_the_next_one_says_so():
    consumer = consumer_of([1, 2, 4], [5, 6])
    assert [message.sequence for message in asyncio.run(consumer.fetch(9, 1))] == [101, 102]
    with pytest.raises(MessagesLost):
        asyncio.run(consumer.fetch(9, 1))


def test_messages_that_were_sent_and_do_not_come_are_lost():
    consumer = consumer_of([1, 2], [], [])
    assert len(asyncio.run(consumer.fetch(9, 1))) == 2
    assert asyncio.run(consumer.fetch(9, 1)) == []
    assert not asyncio.run(consumer.is_exhausted())
    with pytest.raises(MessagesLost):
        asyncio.run(consumer.fetch(9, 1))


def test_what_the_stream_drops_before_it_is_read_is_refused_in_the_middle_of_a_run(nats, opened):
    nats.do(lambda stream: stream.add_stream(name="SMALL", subjects=["small.>"], max_msgs=10))
    source = opened(JetStream(f"{nats.address}/SMALL", patience=PATIENCE))
    nats.send("small.a", [event(0)])
    assert polled(source, 1) == 1
    caught_up(source)
    wait_until(lambda: nobody_waits(nats, "SMALL"))
    nats.send("small.a", [event(number) for number in range(100)])
    with pytest.raises(InputError, match="no longer holds") as refusal:
        assert polled(source, 100) < 100
    assert not any(letter.isdigit() for letter in str(refusal.value))  # numbers of messages are raw


def test_a_full_stream_can_be_begun_with(nats, opened):
    nats.do(lambda stream: stream.add_stream(name="FULL", subjects=["full.>"], max_msgs=10))
    nats.send("full.a", [event(number) for number in range(30)])
    source = opened(JetStream(f"{nats.address}/FULL", patience=PATIENCE))
    nats.send("full.a", [event(number) for number in range(5)])
    assert polled(source, 10) == 10


def test_a_stream_that_is_made_anew_in_the_middle_of_a_run_is_refused(nats, opened):
    nats.make_stream("AGAIN", "again.>")
    nats.send("again.a", [event(number) for number in range(5)])
    source = opened(JetStream(f"{nats.address}/AGAIN", patience=PATIENCE))
    assert polled(source, 5) == 5
    nats.do(lambda stream: stream.delete_stream("AGAIN"))
    nats.make_stream("AGAIN", "again.>")
    nats.send("again.a", [event(number) for number in range(20)])
    with pytest.raises(InputError, match="made anew"):
        polled(source, 1)


def test_time_passes_in_a_stream_that_was_emptied(nats, opened):
    nats.make_stream("EMPTIED", "emptied.>")
    nats.send("emptied.a", [event(number) for number in range(5)])
    nats.do(lambda stream: stream.purge_stream("EMPTIED"))
    assert caught_up(opened(JetStream(f"{nats.address}/EMPTIED", patience=PATIENCE))).position["sequence"] == 5


def test_what_other_subjects_drop_is_nothing_to_a_reader_that_was_there(nats, opened):
    nats.do(lambda stream: stream.add_stream(name="OTHERS", subjects=["others.>"], max_msgs=10))
    nats.send("others.mine", [event(0)])
    source = opened(JetStream(f"{nats.address}/OTHERS?subject=others.mine", patience=PATIENCE))
    assert polled(source, 1) == 1
    nats.send("others.theirs", [event(number) for number in range(20)])
    position = caught_up(source).position
    nats.send("others.mine", [event(1)])
    assert polled(opened(JetStream(f"{nats.address}/OTHERS?subject=others.mine", patience=PATIENCE), position), 1) == 1


def test_a_release_whose_confirmation_was_lost_is_not_sent_twice(nats, monkeypatch):
    """The stream knows an id for a tenth of a second only, as if the server had been away for longer than it does."""
    nats.do(lambda stream: stream.add_stream(name="OUT", subjects=["out.>"], duplicate_window=0.1))
    with contextlib.closing(JetStreamSink(f"{nats.address}/OUT?subject=out.city", patience=PATIENCE)) as sink:
        sink.open()
        publish = sink._connection.stream.publish

        async def unheard(*message, **options):
            await publish(*message, **options)
            raise TimeoutError

        for step in range(2):
            monkeypatch.setattr(sink._connection.stream, "publish", unheard)
            with pytest.raises(OSError, match="did not confirm"):
                sink.send(step, f"release {step}".encode())
            monkeypatch.undo()
            time.sleep(0.5)
            sink.send(step, f"release {step}".encode())
    assert nats.do(lambda stream: stream.stream_info("OUT")).state.messages == 2


def test_a_source_whose_server_is_away_can_be_let_go_of(tmp_path, opened):
    server = NatsServer(tmp_path).start()
    server.make_stream("AWAY", "away.>")
    source = opened(JetStream(f"{server.address}/AWAY", patience=PATIENCE))
    caught_up(source)
    server.kill()
    source._connection.patience = 0.5
    assert not any(len(source.poll(0.2).events.time) for _ in range(3))
    source.close()
    with contextlib.closing(asyncio.sleep(0)) as work, pytest.raises(RuntimeError, match="Runner is closed"):
        source._connection.wait(work)  # nothing of it runs any more
