"""The crash test fed by a real NATS server, on SQLite and on a real PostgreSQL server, which are killed in turn too.

NATS records when each message was appended, so what counts is settled once and for all: a twin that reads the same
stream later, undisturbed, must give the same bytes.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Consumer, Producer
from nats_server import PATIENCE, NatsServer
from publisher_lives import BINS, KILLED, check, check_like_twin, in_postgres, let_go, new_life, stored

SECONDS, TURNS = 6, 9  # at least, of deaths
STEP = {"step": "200ms", "late": "300ms", "user": "user"}


@pytest.fixture
def nats(tmp_path_factory):
    server = NatsServer(tmp_path_factory.mktemp("nats")).start()
    server.make_stream("EVENTS", "events")
    yield server
    server.kill()


def some_events(chance):
    """Events of this moment, in some disorder, and what is none."""
    for _ in range(chance.randrange(5, 40)):
        at = datetime.fromtimestamp(time.time() - chance.choice([0, 0, 0.2, 3]), UTC).isoformat()
        yield {"timestamp": at, "user": chance.randrange(9), "bin": chance.choice(["north", "south", "nowhere"])}
    if chance.random() < 0.2:
        yield b"no event"


def lived_through(lives, life, servers, nats, chance):
    """Send events while the publisher and the servers die in turn; how each life ended."""
    end, ends, turn = time.time() + SECONDS, Counter(), 0
    while time.time() < end or turn < TURNS:
        nats.send("events", some_events(chance))
        ends[lives(life, kill_after=chance.uniform(0, 0.7))] += 1
        for database in servers[1:]:
            let_go(database)
        if turn % 3 == 2:
            server = servers[turn // 3 % len(servers)]
            server.kill()
            server.start()
        turn += 1
    return ends


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["zero", "secure"])
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.database)])
def test_publisher_broker_and_database_are_killed_in_turn(lives, tmp_path, nats, request, database, noise):
    servers = [nats] if database == "sqlite" else [nats, request.getfixturevalue("postgres")]
    begin = datetime.now(UTC)
    feed = {"start": begin.isoformat()} | STEP
    life, twin = new_life(tmp_path, f"{nats.address}/EVENTS", mechanism="uniform", noise=noise, **feed)
    if database == "postgres":
        life, twin = in_postgres(life, twin, servers[1])
    ends = lived_through(lives, life, servers, nats, random.Random(8))
    assert set(ends) == {KILLED}
    sent = (datetime.now(UTC) - begin) // timedelta(milliseconds=200)  # on a slow machine none of these may be released
    steps = max(len(stored(life["store"])[0]), sent) + 5
    assert lives(life, until=steps) == 0
    if noise == "secure":
        check(life, steps, tmp_path)
        return
    releases = check_like_twin(lives, life, twin | {"until": steps}, tmp_path, steps)
    assert sum(sum(json.loads(release)["values"]) for _, release in releases) > 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "mechanism", "cap"),
    [
        *((point, "ba", None) for point in ("before-draw", "after-draw", "inside-transaction:2", "half-line")),
        *((point, "uniform", "3/7") for point in ("inside-transaction:3", "after-commit:3")),
    ],
)
def test_killed_at_a_write_point_fed_by_nats(lives, tmp_path, nats, point, mechanism, cap):
    begin = datetime.now(UTC).isoformat()
    life, twin = new_life(tmp_path, f"{nats.address}/EVENTS", mechanism=mechanism, start=begin, cap=cap, **STEP)
    chance = random.Random(9)
    for _ in range(6):
        nats.send("events", some_events(chance))
        time.sleep(0.1)
    assert lives(life, fault=point, until=8) == KILLED
    assert lives(life, until=8) == 0
    releases = check_like_twin(lives, life, twin | {"until": 8}, tmp_path, 8)
    assert len(releases) == 8
    if cap is not None:  # of nine people three in each of the blocks that eight steps meet
        assert sum(sum(json.loads(release)["values"]) for _, release in releases) <= 9 * 3 * 3


@pytest.fixture
def kafka():
    """The brokers of a mock cluster in this process, which lives of other processes reach over loopback."""
    cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0})
    (broker,) = cluster.list_topics(timeout=PATIENCE).brokers.values()
    yield f"{broker.host}:{broker.port}"
    del cluster


def produce(brokers, events):
    producer = Producer({"bootstrap.servers": brokers})
    for event in events:
        producer.produce("visits", event if isinstance(event, bytes) else json.dumps(event).encode())
    assert producer.flush(PATIENCE) == 0


@pytest.mark.slow
def test_kafka_over_deaths_and_a_rebalance(lives, tmp_path, kafka):
    """
    Under a cap: what people have used of it goes on from life to life.

    publisher   all partitions │ killed │ all again │ two of four │ all again
    intruder                                        │ the other two
    steps close ──────────────▶│        │──────────▶│  none        │──────────▶
    """
    begin, chance = datetime.now(UTC).isoformat(), random.Random(10)
    topic = f"kafka://{kafka}/visits?arrival=read&group=publisher"
    steps = {"step": "500ms", "late": "1min", "user": "user", "start": begin, "cap": "3/7"}
    life, twin = new_life(tmp_path, topic, mechanism="uniform", **steps)
    produce(kafka, [{"timestamp": begin, "user": "first", "bin": BINS[0]}, b"no event"])
    for _ in range(2):
        produce(kafka, some_events(chance))
        assert lives(life, kill_after=chance.uniform(8, 12)) == KILLED
    life["feed"] = steps | {"late": None}
    last = (datetime.now(UTC) - datetime.fromisoformat(begin)) // timedelta(milliseconds=500) + 120  # a minute from now
    ends = []
    publishing = threading.Thread(target=lambda: ends.append(lives(life, until=last)))
    publishing.start()
    intruder = Consumer({"bootstrap.servers": kafka, "group.id": "publisher", "session.timeout.ms": 6_000})
    intruder.subscribe(["visits"])
    until = time.monotonic() + PATIENCE
    while not intruder.assignment():
        assert time.monotonic() < until, "the partitions are not shared out anew"
        intruder.poll(0.2)
    assert publishing.is_alive()
    intruder.close()
    publishing.join(2 * PATIENCE)
    assert ends == [0]
    twin |= {"until": last, "source": topic + "twin", "feed": life["feed"]}
    check_like_twin(lives, life, twin, tmp_path, last)
