"""What a NATS server or its client cuts short: large messages, slow readers, consumers that somebody deletes."""

import functools
import json
import time
from types import SimpleNamespace

import pytest
from nats_server import PATIENCE, NatsServer

from eventide.engines.spark_nats import SequenceReader
from eventide.live.sinks.jetstream import JetStreamSink
from eventide.live.sources.jetstream import JetStream

SMALL = 2_000  # bytes


def event(second, more=""):
    return {"timestamp": 1767225600 + second, "user": second, "bin": "a", "more": more}


def times_read(source, enough):
    """The seconds of the events that come, in their order, until there are `enough` and time has passed since."""
    times, until, asked = [], time.monotonic() + PATIENCE, float("inf")
    while True:
        batch = source.poll(0.2)
        times += (batch.events.time // 1_000_000 - 1767225600).tolist()
        if len(times) >= enough:
            asked = min(asked, time.time() * 1e6)
            if batch.seen_until >= asked:  # whatever came twice would have come by now
                return times
        assert time.monotonic() < until, "the events do not come"


@pytest.fixture
def started(tmp_path):
    """Starts a server with settings of its own."""
    servers = []

    def start(settings):
        servers.append(NatsServer(tmp_path, settings=settings).start())
        servers[0].make_stream("LIMITS", "limits.>")
        return servers[0]

    yield start
    for server in servers:
        server.kill()


def source_of(server, opened):
    return opened(JetStream(f"{server.address}/LIMITS", patience=PATIENCE))


def test_messages_of_megabytes_are_read_once(started, opened):
    server = started("max_payload: 8MB, max_pending: 16MB")
    server.send("limits.a", [event(0), event(1, "x" * 2_000_000), event(2)])
    assert times_read(source_of(server, opened), 3) == [0, 1, 2]


def test_a_release_that_is_longer_than_the_server_takes_says_so_and_goes_when_it_does(started, opened):
    server = started(f"max_payload: {SMALL}")
    sink = opened_sink(server)
    try:
        sink.send(0, json.dumps({"step": 0}).encode())
        with pytest.raises(OSError, match="longer than max_payload"):
            sink.send(1, json.dumps({"step": 1, "values": [0] * SMALL}).encode())
        sink.send(1, json.dumps({"step": 1}).encode())
    finally:
        sink.close()
    sink = opened_sink(server)
    assert sink.last_step() == 1
    sink.close()


def opened_sink(server):
    sink = JetStreamSink(f"{server.address}/LIMITS?subject=limits.out", patience=PATIENCE)
    sink.open()
    return sink


@pytest.mark.slow
def test_what_a_client_drops_because_it_waits_too_long_is_read_again(nats, opened, monkeypatch):
    """The client holds at most so many bytes of messages that nobody has taken; what comes then is dropped."""
    from nats.js import JetStreamContext

    holding_few = functools.partialmethod(JetStreamContext.pull_subscribe, pending_bytes_limit=SMALL)
    monkeypatch.setattr(JetStreamContext, "pull_subscribe", holding_few)
    nats.make_stream("FULL", "full.>")
    nats.send("full.a", [event(second, "x" * 100) for second in range(200)])
    source = opened(JetStream(f"{nats.address}/FULL", patience=PATIENCE))
    assert times_read(source, 200) == list(range(200))


HOLDS_LITTLE = "max_pending: 100KB, max_payload: 50KB"


@pytest.mark.slow
def test_a_reader_that_the_server_cuts_off_as_too_slow_goes_on_where_it_was(started, opened):
    """The server cuts off whoever asks for more than it holds for a reader: so fewer are asked for then."""
    server = started(HOLDS_LITTLE)
    server.send("limits.a", [event(second, "x" * 10_000) for second in range(60)])
    assert times_read(source_of(server, opened), 60) == list(range(60))


@pytest.mark.slow
def test_a_reader_of_spark_that_the_server_cuts_off_goes_on_as_well(started):
    server = started(HOLDS_LITTLE)
    server.send("limits.a", [event(second, "x" * 10_000) for second in range(60)])
    reader = SequenceReader(f"{server.address}/LIMITS", ["user"], 1_000, 1, patience=PATIENCE, fetch_seconds=0.2)
    batches = list(reader.read(SimpleNamespace(value=(0, 60))))
    assert [int(user) for batch in batches for user in batch.column(0).to_pylist()] == list(range(60))


def test_a_consumer_that_somebody_deletes_is_made_again_behind_what_was_read(nats, opened, monkeypatch):
    """The server then delivers again what it has delivered before, unless it is asked for what comes behind."""
    monkeypatch.setattr("eventide.live.sources.jetstream.AT_A_TIME", 5)
    nats.make_stream("AGAIN", "again.>")
    nats.send("again.a", [event(second) for second in range(20)])
    source = opened(JetStream(f"{nats.address}/AGAIN", patience=PATIENCE))
    first = (source.poll(0.2).events.time // 1_000_000 - 1767225600).tolist()

    async def delete_all(stream):
        for consumer in await stream.consumers_info("AGAIN"):
            await stream.delete_consumer("AGAIN", consumer.name)

    nats.do(delete_all)
    source._connection.patience = 1
    assert first + times_read(source, 20 - len(first)) == list(range(20))
