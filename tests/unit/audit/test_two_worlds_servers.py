"""Two worlds with real servers: brokers as sources and sinks, a webhook, and PostgreSQL as the store."""

from __future__ import annotations

import itertools
import json
import threading
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from nats_server import PATIENCE
from postgres_server import PostgresServer
from worlds import FEEDS, MINUTE, START, WINDOW, Setup, as_json, check, events, mechanism, minutes, run, timed

import eventide as ev
from eventide.live.sinks.jetstream import JetStreamSink
from eventide.live.sinks.kafka import KafkaSink
from eventide.live.sources import jetstream
from eventide.live.sources.jetstream import JetStream
from eventide.live.sources.kafka import Kafka

pytestmark = pytest.mark.nightly


@pytest.fixture
def from_nats(nats, monkeypatch):
    """Events from a stream, each appended in its minute; a few are read at a time."""
    monkeypatch.setattr(jetstream, "AT_A_TIME", 7)

    def feed(world, setup, ended):
        name, new = named(world)
        appended = [START + minute * MINUTE + MINUTE // 2 for minute, _ in world.events]

        class OnOurClock(JetStream):
            def _events(self, messages):
                return super()._events([one._replace(appended=appended[one.sequence - 1]) for one in messages])

            async def _catch_up(self):
                if await self._consumer.is_exhausted():
                    self._seen_until = appended[-1] + 10 * MINUTE

        if new:
            nats.make_stream(name, f"{name}.>")
            nats.send(f"{name}.x", [as_json(one).encode() for one in world.events])
        return timed(OnOurClock(f"{nats.address}/{name}", patience=PATIENCE), setup)

    monkeypatch.setitem(FEEDS, "nats", feed)


NUMBERS = itertools.count()


def named(world):
    """A name of its own for each world, the same in all its lives; and whether it was made now."""
    new = not hasattr(world, "called")
    if new:
        world.called = f"WORLD{next(NUMBERS)}"
    return world.called, new


@pytest.fixture(scope="module")
def brokers():
    """The address of a mock cluster, which lives as long as its producer."""
    cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0})
    (broker,) = cluster.list_topics(timeout=PATIENCE).brokers.values()
    yield f"{broker.host}:{broker.port}"
    del cluster


@pytest.fixture
def from_kafka(brokers, monkeypatch):
    """Events from a topic, minute by minute, each minute as soon as the one before has been read."""
    producer = Producer({"bootstrap.servers": brokers, "log_level": 0})

    def feed(world, setup, ended):
        topic, _ = named(world)
        producer.list_topics(topic, PATIENCE)

        def produce(lines):
            for line in lines:
                producer.produce(topic, as_json((0, line)).encode())
            assert producer.flush(PATIENCE) == 0
            world.clock.produced = getattr(world.clock, "produced", 0) + len(lines)

        clock = minutes(world, produce)

        class InStep(Kafka):
            def poll(self, timeout):
                if self._assigned and sum(self._offsets.values()) == getattr(clock, "produced", 0):
                    clock.wait(0)
                return super().poll(timeout)

        return timed(InStep(f"kafka://{brokers}/{topic}?arrival=read", clock, patience=PATIENCE), setup)

    monkeypatch.setitem(FEEDS, "kafka", feed)


@pytest.mark.parametrize("life", ["to its end", "dies before the commit", "is restored"])
def test_events_from_nats(from_nats, life):
    assert check(Setup(source="nats", life=life)).changed


@pytest.mark.parametrize("person", ["writes nonsense", "is early and late"])
def test_strange_events_from_nats(from_nats, person):
    assert check(Setup(source="nats", person=person, mechanism="uniform")).changed == []


@pytest.mark.parametrize("life", ["to its end", "dies before the commit"])
def test_events_from_kafka(from_kafka, life):
    assert check(Setup(source="kafka", life=life)).changed


class Receiver(BaseHTTPRequestHandler):
    """A webhook that notes everything."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        known = {name: value for name, value in self.headers.items() if name != "Host"}  # its port is by chance
        self.server.world.show("webhook", json.dumps(known))
        self.server.world.show("webhook", body)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        """Nothing."""


def test_releases_to_brokers_and_a_webhook(nats, brokers):
    def publishing(world):
        topic = stream = named(world)[0]
        nats.make_stream(stream, f"{stream}.>")
        with ExitStack() as ended:
            server = HTTPServer(("127.0.0.1", 0), Receiver)
            server.world = world
            threading.Thread(target=server.serve_forever).start()
            ended.callback(server.server_close)
            ended.callback(server.shutdown)
            Producer({"bootstrap.servers": brokers}).list_topics(topic, PATIENCE)
            to_nats = f"{nats.address}/{stream}?subject={stream}.x"

            def publish():
                feed = FEEDS["csv"](world, Setup(), ended)
                sinks = [
                    f"http://127.0.0.1:{server.server_port}/x",
                    KafkaSink(f"kafka://{brokers}/{topic}", patience=PATIENCE),
                    JetStreamSink(to_nats, patience=PATIENCE),
                ]
                with ev.Publisher(feed, mechanism(Setup(), 1), world.folder / "store.db", sinks) as publisher:
                    publisher.run()

            world.live(publish, "after-emit:4")
            world.live(publish)
        world.show("nats", b"\n".join(messages_of(nats, stream)))
        world.show("kafka", b"\n".join(records_of(brokers, topic)))

    verdict = ev.check_two_worlds(publishing, events("is there"), window=WINDOW, most=2)
    assert verdict.changed == [3, 5]
    assert min(verdict.seen[sink] for sink in ("webhook", "nats", "kafka")) >= 8


def messages_of(nats, stream):
    async def read(jetstream):
        last = (await jetstream.stream_info(stream)).state.last_seq
        return [(await jetstream.get_msg(stream, number)).data for number in range(1, last + 1)]

    return nats.do(read)


def records_of(brokers, topic):
    settings = {"bootstrap.servers": brokers, "group.id": topic, "auto.offset.reset": "earliest"}
    found = []
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe([topic])
        partitions = [TopicPartition(topic, number) for number in consumer.list_topics(topic).topics[topic].partitions]
        last = sum(consumer.get_watermark_offsets(partition, PATIENCE)[1] for partition in partitions)
        while len(found) < last:
            message = consumer.poll(PATIENCE)
            if message.error() is None:
                found.append((message.partition(), message.offset(), message.value()))
    return [value for _, _, value in sorted(found)]


@pytest.fixture(scope="module")
def postgres():
    running = PostgresServer().start()
    yield running
    running.kill()


@pytest.mark.database
@pytest.mark.parametrize("source", ["csv", "pipe"])
@pytest.mark.parametrize("life", ["to its end", "dies before the commit", "needs an epoch"])
def test_a_store_in_postgresql(postgres, source, life):
    import psycopg

    address = f"{postgres.address}#world"

    def run_anew(world, setup):
        with psycopg.connect(postgres.address, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS world CASCADE")
        run(world, setup, address)
        with psycopg.connect(postgres.address) as connection:
            for view in ("releases", "answers"):
                rows = connection.execute(f"SELECT * FROM world.{view} ORDER BY 1, 2, 3, 4, 5").fetchall()
                world.show(f"view {view}", "\n".join(map(str, rows)))

    assert check(Setup(source=source, life=life, queries=True), run_anew).changed
