"""The machine is taken away between two events that came by a broker or by HTTP, or whose store is in PostgreSQL."""

import functools
import itertools

import pytest
from confluent_kafka import Producer
from nats_server import PATIENCE
from noisy_lives import line
from seizures import BROKEN, PERSONS, FilePart, check, check_looks, read_as_sketched, without_chance

from eventide.audit.two_worlds import WorldsDiffer
from eventide.live.feeds import noisy_feed
from eventide.live.feeds.noisy_feed import NoisyFeed
from eventide.live.sources.jetstream import JetStream
from eventide.live.sources.kafka import Kafka, KafkaAddress
from eventide.live.sources.nats_streams import Consumer, NatsAddress, NatsConnection
from eventide.privacy.noisy_cells import NoisyCells

NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch):
    without_chance(monkeypatch)
    monkeypatch.setattr(noisy_feed, "POLL_SECONDS", 0.02)


class Place(dict):
    """How far a broker was read, in a stream of which name: what our sources count, and what is not compared."""


def standing_apart(name):
    """An attribute that is kept in the place of its object."""
    return property(lambda self: self._place[name], lambda self, value: self._place.update({name: value}))


class BrokerPart(FilePart):
    """Events reach a broker. Its client counts what it is sent, and is no part of the view."""

    def __init__(self, world, broker):
        self.broker, self.name, self.sent = broker, f"SEIZED{next(NUMBERS)}", 0

    def send(self, life, *event):
        self.broker.send(self.name, line(*event[:2]))
        self.sent += 1

    def turns(self, life, slot):
        """Until all that was sent was read, and the source has seen that nothing more came."""
        life.turn()
        while not self.made.has_seen_all(self.sent):
            life.turn()
        for _ in range(3):  # what is due is published
            life.turn()
        yield False


class NatsPart(BrokerPart):
    """Events reach a stream of NATS."""

    def __init__(self, world, broker):
        super().__init__(world, broker)
        broker.make_stream(self.name, self.name)

    @staticmethod
    def passing_over(thing):
        return isinstance(thing, Place | NatsAddress | NatsConnection | Consumer)

    def source(self, clock):
        class OnOurClock(JetStream):
            """The place stands apart, and the server's time is that of the test."""

            def __init__(self, *given, **options):
                self._place = Place()
                super().__init__(*given, **options)

            _sequence, _created = standing_apart("sequence"), standing_apart("created")

            def _events(self, messages):
                return super()._events([one._replace(appended=clock.now()) for one in messages])

            async def _catch_up(self):
                if await self._consumer.is_exhausted():
                    self._seen_until = clock.now()

            def has_seen_all(self, sent):
                return self._sequence == sent and self._seen_until == clock.now()

        self.made = OnOurClock(f"{self.broker.address}/{self.name}", patience=PATIENCE, one_by_one=True)
        return self.made


class KafkaPart(BrokerPart):
    """Events reach a topic of Kafka."""

    @staticmethod
    def passing_over(thing):
        return isinstance(thing, Place | KafkaAddress) or type(thing).__module__ == "cimpl"

    def source(self, clock):
        class StandingApart(Kafka):
            """The place stands apart."""

            def __init__(self, *given, **options):
                self._place = Place()
                super().__init__(*given, **options)

            _offsets = standing_apart("offsets")

            def has_seen_all(self, sent):
                read = bool(self._assigned) and sum(self._offsets.values()) == sent
                return read and self._seen_until() == clock.certain()

        self.broker.make_topic(self.name)
        address = f"kafka://{self.broker.address}/{self.name}?arrival=read&group={self.name}"
        self.made = StandingApart(address, clock, patience=PATIENCE, one_by_one=True)
        return self.made


class NatsBroker:
    """A NATS server, as a part needs it."""

    def __init__(self, server):
        self.address, self.make_stream = server.address, server.make_stream
        self.send = lambda name, data: server.send(name, [data])


class KafkaBroker:
    """A mock cluster, which lives as long as its producer."""

    def __init__(self):
        self._cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0})
        (broker,) = self._cluster.list_topics(timeout=PATIENCE).brokers.values()
        self.address = f"{broker.host}:{broker.port}"
        self._producer = Producer({"bootstrap.servers": self.address, "log_level": 0})

    def make_topic(self, name):
        self._producer.list_topics(name, PATIENCE)

    def send(self, name, data):
        self._producer.produce(name, data)
        assert self._producer.flush(PATIENCE) == 0


@pytest.fixture(scope="module")
def parts(request):
    """Parts by name; each server is started when it is asked for."""

    @functools.cache
    def part(name):
        if name == "kafka":
            return functools.partial(KafkaPart, broker=KafkaBroker())
        return functools.partial(NatsPart, broker=NatsBroker(request.getfixturevalue("nats")))

    return part


BROKERS = ["nats", "kafka"]


@pytest.mark.nightly
@pytest.mark.parametrize("broker", BROKERS)
@pytest.mark.parametrize("person", PERSONS)
def test_events_of_a_broker_leave_noisy_cells_only(parts, broker, person):
    looks = {}
    agreed = check(person, parts(broker), looks, late="1min")
    assert agreed.steps >= 4
    assert agreed.seen["slot 9"] > 50, "memory, store and its files were found"
    check_looks(looks, person)


@pytest.mark.nightly
@pytest.mark.parametrize("broker", BROKERS)
@pytest.mark.parametrize("how", BROKEN)
def test_a_feed_of_a_broker_that_holds_or_tells_more_is_found(parts, broker, how):
    with pytest.raises(WorldsDiffer, match="log" if how == "logs" else "slot"):
        check(part=parts(broker), feed=BROKEN[how](NoisyFeed))


@pytest.mark.nightly
@pytest.mark.parametrize("broker", BROKERS)
def test_the_sketch_of_the_paper_is_found_behind_a_broker(parts, broker, monkeypatch):
    monkeypatch.setattr(NoisyCells, "read", read_as_sketched)
    with pytest.raises(WorldsDiffer):
        check(part=parts(broker))
