"""NATS and Kafka as sources and sinks: a real NATS server, and the mock cluster inside confluent-kafka."""

import json
import time
from contextlib import ExitStack, closing
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, Producer
from nats_server import PATIENCE, NatsServer

import eventide as ev
from eventide.errors import InputError
from eventide.events.reader import EventReader
from eventide.live.feeds.base import Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sinks.jetstream import JetStreamSink
from eventide.live.sinks.kafka import KafkaSink
from eventide.live.sources.base import EventBatch
from eventide.live.sources.jetstream import JetStream
from eventide.live.sources.kafka import Kafka
from eventide.live.stream_spec import StreamSpec


def event(number):
    return {"timestamp": f"2026-01-01T00:00:{number % 60:02}Z", "user": number, "bin": "ab"[number % 2]}


def reader():
    made = EventReader(["a", "b"])
    made.key = bytes(16)
    return made


def polled(source, enough, moment=0):
    """Batches until so many events, refused ones included, have come, and the source has seen all up to a moment."""
    batches, until = [source.poll(0.2)], time.monotonic() + PATIENCE
    while sum(map(size, batches)) < enough or batches[-1].seen_until < moment:
        assert time.monotonic() < until, "the events do not come, or time does not pass"
        batches.append(source.poll(0.2))
    return batches


def size(batch):
    return len(batch.events.time) + batch.events.refused.total()


def test_nats_gives_each_message_once_with_its_append_time(nats, opened):
    nats.make_stream("ONCE", "once.>")
    before = time.time() * 1e6
    nats.send("once.a", [event(number) for number in range(250)])
    source = opened(JetStream(f"{nats.address}/ONCE", patience=PATIENCE))
    batches = polled(source, 250)
    arrivals = [moment for batch in batches for moment in batch.events.arrival.tolist()]
    assert len(arrivals) == 250
    assert arrivals == sorted(arrivals)
    assert before <= arrivals[0] <= arrivals[-1] <= time.time() * 1e6
    assert batches[-1].position["sequence"] == 250


def test_nats_goes_on_behind_a_position(nats, opened):
    nats.make_stream("RESUME", "resume.>")
    nats.send("resume.a", [event(number) for number in range(30)])
    first = polled(opened(JetStream(f"{nats.address}/RESUME", patience=PATIENCE)), 30)[-1]
    nats.send("resume.a", [event(59)])
    (batch,) = [
        b
        for b in polled(opened(JetStream(f"{nats.address}/RESUME", patience=PATIENCE), first.position), 1)
        if len(b.events.time)
    ]
    assert batch.events.time.tolist() == [1767225659000000]


def test_a_store_published_from_a_file_goes_on_with_the_first_message(nats, opened):
    nats.make_stream("MOVED", "moved.>")
    nats.send("moved.a", [event(number) for number in range(3)])
    source = JetStream(f"{nats.address}/MOVED", patience=PATIENCE)
    assert sum(map(size, polled(opened(source, {"at": 30, "file": "0" * 32}), 3))) == 3
    with pytest.raises(InputError, match="so no event would come"):
        opened(JetStream(f"{nats.address}/MOVED?subject=zzz", patience=PATIENCE), {"at": 30, "file": "0" * 32})


def counted_by_cells(address, events):
    """A pan-private publisher that has read so many events of a day, and nothing else in hand than its cells."""
    mechanism = ev.BudgetAbsorption(
        epsilon=1, window=8, bins=["a", "b"], pan_private="announced", noise=ev.noise.Zero()
    )
    publisher = ev.Publisher(address, mechanism, step="365d", start="2026-01-01T00:00:00Z", late="3650d")
    turns, until = publisher._closed_steps(), time.monotonic() + PATIENCE
    found = []
    with closing(publisher):
        while sum(found) < events:
            assert time.monotonic() < until, "the events do not come"
            assert next(turns) is None
            cells = publisher.mechanism._open._cells
            found = cells[0]._look[0].tolist() if cells else []
    return found


def test_nats_counts_into_cells_one_by_one_and_begins_with_a_moment(nats, opened):
    nats.make_stream("CELLS", "cells.>")
    nats.send("cells.a", [event(number) for number in range(5)])
    for _ in range(2):  # the second time everything of the open step is read again
        assert counted_by_cells(f"{nats.address}/CELLS", 5) == [3, 2]
    source = JetStream(f"{nats.address}/CELLS", patience=PATIENCE, one_by_one=True)
    batches = polled(opened(source, {"since": int(time.time() * 1e6) - 3_600_000_000}), 5)
    assert max(map(size, batches)) == 1
    later = JetStream(f"{nats.address}/CELLS", patience=PATIENCE, one_by_one=True)
    nothing = polled(opened(later, {"since": int(time.time() * 1e6) + 3_600_000_000}), 0, time.time() * 1e6)
    assert sum(map(size, nothing)) == 0


@pytest.mark.slow
def test_kafka_counts_into_cells_one_by_one(kafka):
    produce(kafka, "cells", [event(number) for number in range(5)])
    for _ in range(2):
        assert counted_by_cells(f"kafka://{kafka}/cells?arrival=read&group=cells", 5) == [3, 2]


def test_an_idle_nats_stream_still_sees_time_pass(nats, opened):
    nats.make_stream("IDLE", "idle.>")
    source = opened(JetStream(f"{nats.address}/IDLE", patience=PATIENCE))
    before = time.time() * 1e6
    seen = [polled(source, 0, before)[-1].seen_until for _ in range(3)]
    assert seen == sorted(seen)
    assert seen[2] <= time.time() * 1e6


def test_nats_sees_no_further_than_what_it_has_handed_over(nats, opened, monkeypatch):
    """
    appended    m1 ... m5 | m6 ... m10      now
    handed over m1 ... m5
    seen until         ^ m5, not now: the rest is still to come
    """
    monkeypatch.setattr("eventide.live.sources.jetstream.AT_A_TIME", 5)
    nats.make_stream("BEHIND", "behind.>")
    nats.send("behind.a", [event(number) for number in range(10)])
    source = opened(JetStream(f"{nats.address}/BEHIND", patience=PATIENCE))
    batches = polled(source, 5)
    assert sum(map(size, batches)) < 10
    assert batches[-1].seen_until == batches[-1].events.arrival[-1]


def test_what_is_no_event_is_refused_and_stops_nothing(nats, opened):
    nats.make_stream("BAD", "bad.>")
    nats.send("bad.a", [b"nonsense", b"[1, 2]", {"user": 1}, b"\xff", event(1), {**event(2), "bin": "elsewhere"}])
    batches = polled(opened(JetStream(f"{nats.address}/BAD", patience=PATIENCE)), 6)
    assert sum(len(batch.events.time) for batch in batches) == 1
    assert sum(batch.events.refused.total() for batch in batches) == 5


def test_messages_that_mostly_cannot_be_read_stop_the_first_run(nats, kafka):
    """Before anything is published, whatever step is due; a message is a row."""
    bad = [{**event(number), "bin": "B" if number else "a"} for number in range(9)]
    nats.make_stream("WRONG", "wrong.>")
    nats.send("wrong.a", bad)
    produce(kafka, "wrong", bad)
    for address in (f"{nats.address}/WRONG", f"kafka://{kafka}/wrong?arrival=read&group=wrong"):
        mechanism = ev.Uniform(epsilon=1, window=2, bins=["a", "b"])
        with ev.Publisher(address, mechanism, step="1h", start="2026-01-01", user="user") as publisher:
            with pytest.raises(InputError, match=r"column 'bin', first at row \d, the nearest bin name is 'b'"):
                publisher.run()
            assert (publisher.published, publisher.worst_window()) == (0, 0)


def test_only_the_asked_subject_counts_and_others_do_not_hold_time_up(nats, opened):
    nats.make_stream("TWO", "two.>")
    nats.send("two.mine", [event(1)])
    nats.send("two.other", [event(2), event(3)])
    source = opened(JetStream(f"{nats.address}/TWO?subject=two.mine", patience=PATIENCE))
    batches = polled(source, 1, time.time() * 1e6)
    assert sum(len(batch.events.time) for batch in batches) == 1


def test_a_subject_that_a_stream_does_not_take_is_refused_before_anything_is_charged(nats, tmp_path):
    """Which subjects it takes is in its configuration, and everybody may know it."""
    nats.make_stream("TAKES", "takes.>")
    nats.send("takes.a", [event(1)])
    mechanism = ev.Uniform(epsilon=1, window=2, bins=["a", "b"])
    how = {"step": "1h", "start": "2026-01-01", "until": "2026-01-01T02:00", "user": "user"}
    with ev.Publisher(f"{nats.address}/TAKES?subject=zzz", mechanism, **how) as publisher:
        with pytest.raises(InputError, match=r"stream TAKES takes takes\.> and not zzz, so no event would come"):
            publisher.run()
        assert (publisher.published, publisher.worst_window()) == (0, 0)
    out = f"{nats.address}/TAKES?subject=other.x"
    with pytest.raises(InputError, match=r"and not other\.x, so it would confirm no release"):
        ev.Publisher(f"{nats.address}/TAKES", ev.Uniform(epsilon=1, window=2, bins=2), tmp_path / "s.db", [out], **how)


def test_a_nats_server_that_was_killed_is_waited_for(tmp_path, opened):
    server = NatsServer(tmp_path).start()
    server.make_stream("KILLED", "killed.>")
    server.send("killed.a", [event(number) for number in range(20)])
    source = opened(JetStream(f"{server.address}/KILLED", patience=PATIENCE))
    polled(source, 20)
    server.kill()
    source._connection.patience = 0.5
    stalled = [source.poll(0.1).seen_until for _ in range(3)]
    assert stalled[1] == stalled[2]  # nothing is known about the present, so no step may close
    server.start()
    source._connection.patience = PATIENCE
    server.send("killed.a", [event(number) for number in range(7)])
    batches = polled(source, 7)
    assert batches[-1].position["sequence"] == 27
    server.kill()


def test_a_stream_that_was_made_anew_or_has_forgotten_is_refused(nats, opened):
    nats.make_stream("ANEW", "anew.>")
    nats.send("anew.a", [event(number) for number in range(5)])
    position = polled(opened(JetStream(f"{nats.address}/ANEW", patience=PATIENCE)), 5)[-1].position
    nats.send("anew.a", [event(number) for number in range(5)])
    nats.do(lambda stream: stream.purge_stream("ANEW"))
    with pytest.raises(InputError, match="no longer holds"):
        opened(JetStream(f"{nats.address}/ANEW", patience=PATIENCE), position)
    nats.do(lambda stream: stream.delete_stream("ANEW"))
    nats.make_stream("ANEW", "anew.>")
    with pytest.raises(InputError, match="made anew"):
        opened(JetStream(f"{nats.address}/ANEW", patience=PATIENCE), position)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nats://127.0.0.1:1/EVENTS", "no NATS server with JetStream answers"),
        ("nats://127.0.0.1:4222", "reads nats://"),
        ("nats://127.0.0.1:4222/A?queue=x", "reads nats://"),
    ],
)
def test_a_wrong_nats_address_is_refused(address, message):
    with pytest.raises(InputError, match=message):
        JetStream(address, patience=1)


def test_a_missing_stream_is_refused(nats, opened):
    with pytest.raises(InputError, match="no stream NOWHERE"):
        opened(JetStream(f"{nats.address}/NOWHERE", patience=PATIENCE))


def test_a_nats_server_that_does_not_answer_in_time_is_refused(nats, opened):
    nats.make_stream("SLOW", "slow.>")
    source = JetStream(f"{nats.address}/SLOW", patience=PATIENCE)
    source._connection.patience = 0.0
    with pytest.raises(InputError, match=r"no NATS server with JetStream answers at 127.0.0.1 \(TimeoutError\)"):
        opened(source)


def test_a_nats_server_without_jetstream_is_refused(tmp_path):
    with ExitStack() as ended:
        server = NatsServer(tmp_path, jetstream=False).start()
        ended.callback(server.kill)
        source = ended.enter_context(closing(JetStream(f"{server.address}/A", patience=PATIENCE)))
        sink = ended.enter_context(closing(JetStreamSink(f"{server.address}/A?subject=a", patience=PATIENCE)))
        for begin in (lambda: source.open(None, reader()), sink.open):
            with pytest.raises(InputError, match=r"no NATS server with JetStream answers at 127.0.0.1"):
                begin()


def test_an_error_of_the_nats_server_is_not_taken_for_a_missing_stream(tmp_path):
    """An account without JetStream: the server answers, with another error."""
    with ExitStack() as ended:
        server = NatsServer(tmp_path, settings="accounts { A: { users: [{ user: a, password: b }] } }\nno_auth_user: a")
        ended.callback(server.start().kill)
        source = ended.enter_context(closing(JetStream(f"{server.address}/A", patience=PATIENCE)))
        sink = ended.enter_context(closing(JetStreamSink(f"{server.address}/A?subject=a", patience=PATIENCE)))
        for begin in (lambda: source.open(None, reader()), sink.open):
            with pytest.raises(InputError, match="answers with error 10039 when asked about the stream A"):
                begin()


@pytest.mark.parametrize(("number", "ends"), [(10008, False), (10059, True)])
def test_in_a_run_an_error_of_the_nats_server_passes_and_a_stream_that_is_gone_does_not(
    nats, opened, monkeypatch, number, ends
):
    nats.make_stream(f"PASSING{number}", f"passing{number}.>")
    source = opened(JetStream(f"{nats.address}/PASSING{number}", patience=PATIENCE))

    async def refused(subject, payload, timeout):
        return SimpleNamespace(data=json.dumps({"error": {"code": 503, "err_code": number, "description": ""}}))

    with monkeypatch.context() as away:
        away.setattr(source._connection.client, "request", refused)
        if ends:
            with pytest.raises(InputError, match="no stream"):
                source.poll(0.01)
            return
        assert source.poll(0.01).seen_until < 0
    nats.send(f"passing{number}.a", [event(1)])
    polled(source, 1, time.time() * 1e6)


def test_the_nats_sink_drops_repeats_and_knows_what_it_has(nats):
    nats.make_stream("OUT", "out.>")
    sink = JetStreamSink(f"{nats.address}/OUT?subject=out.city", patience=PATIENCE)
    sink.open()
    assert sink.last_step() == -1
    for step in (0, 1, 1, 0):
        sink.send(step, json.dumps({"step": step}).encode())
    sink.close()
    again = JetStreamSink(f"{nats.address}/OUT?subject=out.city", patience=PATIENCE)
    again.open()
    assert again.last_step() == 1
    assert again.holds(b'{"step": 1}')
    assert not again.holds(b'{"step": 1, "values": []}')
    again.close()
    assert nats.do(lambda stream: stream.stream_info("OUT")).state.messages == 2


def test_a_nats_sink_needs_one_subject(nats):
    with pytest.raises(InputError, match="one subject"):
        JetStreamSink(f"{nats.address}/OUT?subject=out.>", patience=PATIENCE)


@pytest.fixture(scope="module")
def kafka():
    """The address of a mock cluster, which lives as long as its producer."""
    cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0})
    (broker,) = cluster.list_topics(timeout=PATIENCE).brokers.values()
    yield f"{broker.host}:{broker.port}"
    del cluster


def produce(brokers, topic, messages, **settings):
    producer = Producer({"bootstrap.servers": brokers, **settings})
    for message in messages:
        producer.produce(topic, message if isinstance(message, bytes) else json.dumps(message).encode())
    assert producer.flush(PATIENCE) == 0


def test_kafka_gives_each_message_once_and_goes_on_from_our_offsets(kafka, opened):
    produce(kafka, "once", [*map(event, range(300)), b"nonsense"])
    source = opened(Kafka(f"kafka://{kafka}/once?arrival=read", patience=PATIENCE))
    batches = polled(source, 301)
    assert sum(len(batch.events.time) for batch in batches) == 300
    position = json.loads(json.dumps(batches[-1].position))
    assert sum(position["offsets"].values()) == 301
    source.close()
    produce(kafka, "once", [event(59)])
    again = opened(Kafka(f"kafka://{kafka}/once?arrival=read&group=another", patience=PATIENCE), position)
    assert [batch.events.time.tolist() for batch in polled(again, 1) if len(batch.events.time)] == [[1767225659000000]]


@pytest.mark.slow
def test_kafka_sees_the_present_only_with_all_partitions_read(kafka, opened):
    produce(kafka, "idle", [event(1)])
    source = opened(Kafka(f"kafka://{kafka}/idle?arrival=read&group=idle", patience=PATIENCE))
    assert source.poll(0.01).seen_until < 0  # no partition is ours yet
    polled(source, 1, time.time() * 1e6)


@pytest.mark.slow
def test_a_partition_that_was_added_in_a_run_is_read_from_its_first_message(kafka, opened, monkeypatch):
    """The mock has four from the beginning and cannot add any: so at first two are hidden from us."""
    produce(kafka, "grown", map(event, range(200)))
    whole = Kafka._all_partitions
    monkeypatch.setattr(Kafka, "_all_partitions", lambda source: whole(source)[:2])
    source = opened(Kafka(f"kafka://{kafka}/grown?arrival=read&group=grown", patience=PATIENCE))
    monkeypatch.setattr(Kafka, "_all_partitions", whole)
    batches = polled(source, 200, time.time() * 1e6)
    assert sum(map(size, batches)) == 200
    assert len(batches[-1].position["offsets"]) == 4


@pytest.mark.slow
def test_kafka_does_not_see_the_present_while_a_partition_that_was_added_is_not_ours(kafka, opened, monkeypatch):
    """
    partitions  0 1 2 3 | a fifth is added
    ours        0 1 2 3 | 0 1 2 3
    seen until  now     | nothing, until the group shares it out
    """
    produce(kafka, "wider", [event(1)])
    source = opened(Kafka(f"kafka://{kafka}/wider?arrival=read&group=wider", patience=PATIENCE))
    polled(source, 1, time.time() * 1e6)
    whole = Kafka._all_partitions
    monkeypatch.setattr(Kafka, "_all_partitions", lambda source: [*whole(source), 4])
    assert source.poll(0.01).seen_until < 0
    monkeypatch.setattr(Kafka, "_all_partitions", lambda source: [])  # brokers that have just started
    assert source.poll(0.01).seen_until < 0


class BehindMarks:
    """A consumer of a topic in which each partition ends with the mark of a transaction, which is no message."""

    def __init__(self, consumer):
        self._consumer = consumer

    def __getattr__(self, name):
        return getattr(self._consumer, name)

    def get_watermark_offsets(self, *given):
        first, end = self._consumer.get_watermark_offsets(*given)
        return first, end + 1

    def consume(self, *given):
        return [_one_later(message) if message.error() else message for message in self._consumer.consume(*given)]


def _one_later(ended):
    assert ended.error().code() == KafkaError._PARTITION_EOF
    return SimpleNamespace(error=ended.error, partition=ended.partition, offset=lambda: ended.offset() + 1)


@pytest.mark.slow
def test_time_passes_in_an_idle_topic_that_ends_with_marks_of_transactions(kafka, opened):
    """The mock writes no such marks: what a client tells of them is put between it and us."""
    produce(kafka, "marked", [event(1)])
    source = Kafka(f"kafka://{kafka}/marked?arrival=read&group=marked", patience=PATIENCE)
    source._consumer = BehindMarks(source._consumer)
    now = time.time() * 1e6
    batches = polled(opened(source), 1, now)
    assert sum(map(size, batches)) == 1
    assert batches[-1].seen_until >= now


@pytest.mark.slow
def test_kafka_messages_of_megabytes_are_read(kafka, opened):
    large = json.dumps({**event(2), "more": "x" * 2_000_000}).encode()
    produce(kafka, "large", [event(1), large, event(3)], **{"message.max.bytes": 4_000_000})
    batches = polled(opened(Kafka(f"kafka://{kafka}/large?arrival=read&group=large", patience=PATIENCE)), 3)
    assert sum(len(batch.events.time) for batch in batches) == 3


@pytest.mark.slow
def test_the_time_a_producer_claims_is_no_arrival(kafka, opened):
    produce(kafka, "claims", [event(1)])
    source = opened(Kafka(f"kafka://{kafka}/claims?group=claims", patience=PATIENCE))
    with pytest.raises(InputError, match="LogAppendTime"):
        polled(source, 1)


@pytest.mark.parametrize("address", ["kafka://127.0.0.1:9092", "kafka://h/t?x=1", "kafka://h/t?arrival=never"])
def test_a_wrong_kafka_address_is_refused(address):
    with pytest.raises(InputError, match="Kafka"):
        Kafka(address)


def test_brokers_that_are_away_are_told_once_and_not_by_the_client(capfd):
    with pytest.raises(InputError, match=r"no Kafka broker answers .* \(log_level = 6 in them shows what it says\)"):
        Kafka("kafka://127.0.0.1:9/visits", patience=0.3)
    assert capfd.readouterr().err == ""


def test_a_problem_of_kafka_is_told_again_only_after_the_brokers_have_answered(kafka, opened, caplog):
    produce(kafka, "told", [event(1)])
    source = opened(Kafka(f"kafka://{kafka}/told?arrival=read&group=told", patience=PATIENCE))
    away, timed_out = KafkaError(KafkaError._TRANSPORT), KafkaError(KafkaError._TIMED_OUT)
    for problem in (away, away, timed_out, away):
        source._note(problem)
    told = [record.fields["problem"] for record in caplog.records]
    assert told == ["_TRANSPORT", "_TIMED_OUT"]
    assert source._knows_all()
    source._note(away)
    assert len(caplog.records) == 3


def test_a_missing_topic_is_refused(kafka):
    with pytest.raises(InputError, match="no topic nowhere"):
        Kafka(f"kafka://{kafka}/nowhere", patience=PATIENCE)


def test_the_kafka_sink_knows_what_it_has(kafka):
    sink = KafkaSink(f"kafka://{kafka}/released", patience=PATIENCE)
    sink.open()
    assert sink.last_step() == -1
    for step in range(3):
        sink.send(step, json.dumps({"step": step}).encode())
    again = KafkaSink(f"kafka://{kafka}/released", patience=PATIENCE)
    again.open()
    assert again.last_step() == 2
    assert again.holds(b'{"step": 2}')
    assert not again.holds(b'{"step": 3}')


def test_the_kafka_sink_takes_a_release_of_many_bins(kafka):
    release = json.dumps({"step": 0, "values": [1000] * 300_000}).encode()
    assert len(release) > 1_000_000  # more than the client sends by default
    sink = KafkaSink(f"kafka://{kafka}/wide", patience=PATIENCE)
    sink.open()
    sink.send(0, release)
    again = KafkaSink(f"kafka://{kafka}/wide", patience=PATIENCE)
    again.open()
    assert again.last_step() == 0
    assert again.holds(release)


RIDES = [
    *({**event(number), "user": "anna", "bin": "a", "fare": number} for number in (7, 7, 9)),
    {**event(4), "user": "ben", "bin": "b", "fare": "12.5"},
    {**event(5), "user": "ben", "bin": "a", "fare": 1e308},  # cut to 100
    {**event(6), "user": "cleo", "bin": "a", "fare": 5e-324},
    {**event(7), "user": "cleo", "bin": "a", "fare": 10**30},
    *({**event(8), "user": "dora", "bin": "a", "fare": fare} for fare in (float("nan"), "much", None, [1], True)),
    {**event(9), "user": "dora", "bin": "a"},
]


@pytest.mark.parametrize(
    ("statistic", "between", "counts", "refused"),
    [
        pytest.param("people", "", [4, 1], 0, marks=pytest.mark.slow),
        pytest.param("people/2h", "", [4, 1], 0, marks=pytest.mark.slow),
        ("sum:fare", "fare=0,100,0.5", [2 * (7 + 7 + 9 + 100 + 0 + 100), 25], 6),
    ],
)
def test_messages_are_counted_by_people_and_summed_by_value(statistic, between, counts, refused, nats, kafka):
    """Of everybody three events or bins count in an hour; a value that cannot be read refuses its message alone."""
    name = f"{statistic[:3]}{len(statistic)}"
    nats.make_stream(name, f"{name}.>")
    nats.send(f"{name}.a", RIDES)
    produce(kafka, name, RIDES)
    addresses = (f"{nats.address}/{name}", f"kafka://{kafka}/{name}?arrival=read&group={name}")
    for kind, address in zip((JetStream, Kafka), addresses, strict=True):
        options = {"step": "1h", "start": "2026-01-01", "bins": ["a", "b"], "user": "user", "late": "36500d"}
        feed = EventFeed(None, **StreamSpec(statistic=statistic, between=between, max_per_step=3, **options).counting())
        feed.begin(Resume(0, None, bytes(16), []))
        with closing(kind(address, patience=PATIENCE)) as source:
            source.open(None, feed.reader)
            for batch in polled(source, len(RIDES)):
                feed.take(batch._replace(seen_until=0))
        feed.take(EventBatch(feed.reader.read([]), None, feed.timeline.end(0) + 36500 * 86_400_000_000))
        assert [step.counts.tolist() for step in feed.closed()] == [counts]
        assert feed.counters.refused.total() == refused
