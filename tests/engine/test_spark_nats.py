"""A NATS JetStream as a source of Spark: each message once, also when batches come again after a restart."""

import functools
import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from nats_server import NatsServer
from spark_events import BINS, stored

import eventide as ev
from eventide.engines.spark import publish
from eventide.engines.spark_nats import SequenceReader, read_nats
from eventide.errors import InputError
from eventide.events.clock import SystemClock
from eventide.live.sinks.base import Sink
from eventide.live.stores.open_store import open_store

pytestmark = pytest.mark.engine
COLUMNS = ["timestamp", "user", "bin"]


@pytest.fixture
def nats(tmp_path):
    server = NatsServer(tmp_path).start()
    server.make_stream("EVENTS", "events.>")
    yield server
    server.kill()


def send(nats, users):
    now = datetime.now(UTC).isoformat()
    nats.send("events.city", [{"timestamp": now, "user": user, "bin": BINS[user % 50]} for user in users])


class Failing(Sink):
    """A sink that takes nothing once Spark has committed its second batch, and whose failure ends the work."""

    name = "failing"

    def __init__(self, commits):
        self.commits = commits

    def send(self, step, release):
        if (self.commits / "1").exists():
            raise RuntimeError("no")


def test_each_message_counts_once_though_a_batch_comes_again(spark, nats, tmp_path, monkeypatch):
    """A source that remembers its place in memory would begin anew here, and count messages twice.

    Whoever is slow is not late: a step waits for a minute, and only the driver's clock is beyond that.
    """
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=70)
    open_store(tmp_path / "store.db", for_tests=True).close()
    commits = tmp_path / "store.db.spark" / "checkpoint" / "commits"
    ahead = functools.partial(SystemClock, lambda: time.time_ns() + 70 * 10**9)
    monkeypatch.setattr("eventide.engines.spark_feed.SystemClock", ahead)

    def publish_all(sinks=()):
        publish(
            read_nats(spark, f"{nats.address}/EVENTS?subject=events.city", COLUMNS, max_messages=30),
            mechanism=ev.Uniform(epsilon=1, window=3, bins=BINS, sensitivity=4, noise=ev.noise.Zero()),
            store=tmp_path / "store.db",
            start=start.isoformat(),
            step="1s",
            late="1min",
            user="user",
            bin="bin",
            arrival="arrival",
            skew="1s",
            available_now=True,
            sinks=sinks,
        ).await_termination()

    send(nats, range(60))
    time.sleep(1.1)  # so that the third batch brings a step to its end
    send(nats, range(60, 100))
    with pytest.raises(RuntimeError, match="no"):
        publish_all([Failing(commits)])
    assert not (commits / "2").exists()
    nats.send("events.city", [b"not json", [1, 2]])
    send(nats, range(100, 200))
    publish_all()
    assert (commits / "6").exists()
    counts = [json.loads(release)["values"] for _, release in stored(tmp_path / "store.db")[0]]
    assert [sum(column) for column in zip(*counts, strict=True)] == [4] * 50


def test_a_server_that_does_not_answer_in_time_is_refused_in_a_sentence(nats):
    with pytest.raises(InputError, match=r"no NATS server with JetStream answers at 127.0.0.1 \(TimeoutError\)"):
        SequenceReader(f"{nats.address}/EVENTS", COLUMNS, 30, 1, patience=0.0).initialOffset()


def test_where_a_batch_ends_is_told_from_where_it_starts(nats):
    send(nats, range(50))
    address = f"{nats.address}/EVENTS"
    begin = SequenceReader(address, COLUMNS, 30, 1).initialOffset()
    first = SequenceReader(address, COLUMNS, 30, 1).latestOffset(begin, None)
    assert (begin["sequence"], first["sequence"]) == (0, 30)
    anew = SequenceReader(address, COLUMNS, 30, 3)
    assert anew.latestOffset(first, None)["sequence"] == 50
    parts = anew.partitions(begin, first)
    rows = [row for part in parts for batch in anew.read(part) for row in batch.to_pylist()]
    assert len(parts) == 3
    assert [row["user"] for row in rows] == [str(user) for user in range(30)]
    assert all(abs(row["arrival"] - datetime.now(UTC)) < timedelta(minutes=5) for row in rows)
