"""A store in a real PostgreSQL server keeps the promises of one in a file, also when the server is killed."""

import json
import threading
import time
from contextlib import closing

import numpy as np
import psycopg
import pytest
from live_stores import SETTING, a_commit, changes, check_withdrawal, in_a_child
from old_stores import make_old_schema, mark_of, position_of, release_of
from population_lives import live, people
from postgres_server import PostgresServer

import eventide as ev
from eventide.errors import InputError, StateError, StoreError
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.publisher import publisher as publisher_module
from eventide.live.publisher import window_queries
from eventide.live.sinks.base import Sink
from eventide.live.stores.base import PlanStep
from eventide.live.stores.database_store import DatabaseStore
from eventide.live.stores.open_store import open_store
from eventide.live.stores.postgres_database import PostgresDatabase
from eventide.live.stores.tables import RAW
from eventide.live.stores.verification import verify
from eventide.releases.lines import ReleaseLine, write_line

pytestmark = pytest.mark.database


@pytest.fixture(scope="module")
def server():
    running = PostgresServer().start()
    yield running
    running.kill()


@pytest.fixture
def address(server, request):
    """A store of its own for each test."""
    return f"{server.address}#s{abs(hash(request.node.name))}"


@pytest.fixture
def opened(address):
    stores = []

    def open_again(**options):
        stores.append(open_store(address, **options))
        return stores[-1]

    yield open_again
    for store in stores:
        store.close()


def test_what_was_committed_is_there_again(opened):
    store = opened()
    standing = store.begin(SETTING)
    assert (standing.next_step, standing.snapshot, standing.last_release) == (0, None, None)
    for step in range(5):
        store.commit(a_commit(step, snapshot=b"state" if step == 2 else None))
    store.deliver("a sink", 3)
    store.deliver("a sink", 4)
    key = standing.key
    store.close()
    again = opened()
    standing = again.begin(SETTING)
    assert (standing.next_step, standing.key, standing.snapshot) == (5, key, b"state")
    assert standing.recorded == [b"tape 3", b"tape 4"]
    assert standing.position == {"offset": 4}
    assert [step for step, _ in again.releases()] == [0, 1, 2, 3, 4]
    assert [entry.amount for entry in again.entries()] == [100] * 5
    assert again.delivered("a sink") == 4
    again.verify()


def test_a_writer_that_is_just_ending_is_waited_for(opened):
    ending = opened()
    ending.begin(SETTING)
    ends = threading.Timer(0.6, ending.close)
    ends.start()
    assert opened().begin(SETTING).next_step == 0
    ends.join()


def test_events_are_kept_once_and_erased_with_their_step(opened):
    store = opened()
    store.begin(SETTING)
    assert store.keep([(0, b"one"), (1, b"two")], "first")
    assert not store.keep([(0, b"one")], "first")
    assert store.keep([(1, b"three")])
    store.commit(a_commit(0))
    assert store.kept() == [(1, b"two"), (1, b"three")]


def test_a_writer_that_withdraws_leaves_the_store_as_it_found_it(opened):
    check_withdrawal(opened)


@pytest.mark.parametrize("table", ["kept", "batch", "plan", "snapshot", "head"])
def test_what_was_erased_is_written_over(opened, address, server, table):
    """Rows that a step leaves behind take the places of erased ones, of which there are no more than a few."""
    store, steps = opened(), 30
    store.begin(SETTING)
    for step in range(steps):
        if table == "kept":
            store.keep([(step + 1, b"event")])
        if table == "batch":
            store.keep([(step + 1, b"event")], f"batch {step}")
        plan = PlanStep(b"snapshot", b"open slots", whole=True) if table == "plan" else None
        store.commit(a_commit(step, snapshot=b"state" if table == "snapshot" else None)._replace(plan=plan))
    with psycopg.connect(server.address) as connection:
        query = f"SELECT max((ctid::text::point)[1]) FROM {address.partition('#')[2]}.{table}"
        (furthest,) = connection.execute(query).fetchone()
    assert furthest < steps / 2


# Older versions.

STEPS = 90


@pytest.fixture
def old(address, server):
    """A store of the first version, of which the server has statistics."""
    with psycopg.connect(server.address, autocommit=True) as connection:
        make_old_schema(connection, address.partition("#")[2], STEPS)
        connection.execute("ANALYZE")
    return address


def check_content(store):
    store.verify()
    assert list(store.releases()) == [(step, release_of(step)) for step in range(STEPS)]
    assert len(list(store.entries())) == STEPS
    assert store.kept() == [(STEPS, b"tally")]


def check_goes_on(store):
    check_content(store)
    standing = store.begin(SETTING)
    assert (standing.next_step, standing.snapshot) == (STEPS, b"state")
    assert standing.position == position_of(STEPS - 1)
    store.commit(a_commit(STEPS))
    store.verify()


def files_of(server, address):
    """The files of a store's tables; what is in them is on the disk."""
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        query = (
            "SELECT pg_relation_filepath(oid), pg_relation_filepath(nullif(reltoastrelid, 0)) FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = %s::regnamespace"
        )
        found = connection.execute(query, (address.partition("#")[2],)).fetchall()
    return [server.folder / path for pair in found for path in pair if path]


def marks_left(files):
    """The steps whose positions are in some files, as far as they are there."""
    content = b"".join(path.read_bytes() for path in files if path.exists())
    return [step for step in range(STEPS) if mark_of(step) in content]


WITH_MARKS = [step for step in range(STEPS) if not position_of(step)["parts"]]  # long ones are compressed


def sampled(server, address):
    """The raw columns of which the server has statistics."""
    with psycopg.connect(server.address, autocommit=True) as connection:
        query = "SELECT tablename, attname FROM pg_stats WHERE schemaname = %s"
        found = connection.execute(query, (address.partition("#")[2],)).fetchall()
    return [f"{table}.{column}" for table, column in found if column in RAW.get(table, ()) or column == "position"]


def test_an_old_store_is_brought_to_this_version_and_keeps_no_old_position(old, opened, server):
    before = files_of(server, old)
    assert marks_left(before) == WITH_MARKS
    assert "step.position" in sampled(server, old)
    store = opened()
    assert marks_left([*before, *files_of(server, old)]) == [STEPS - 1]
    assert sampled(server, old) == []
    check_goes_on(store)
    with psycopg.connect(server.address) as connection:
        (rows,) = connection.execute(f"SELECT count(*) FROM {old.partition('#')[2]}.releases").fetchone()
    assert rows == STEPS + 1


@pytest.mark.parametrize("point", ["migrating-step:70", "inside-migration", "after-migration"])
def test_a_migration_that_is_killed_goes_on(old, opened, server, point, monkeypatch):
    before = files_of(server, old)
    with monkeypatch.context() as dying:
        dying.setenv("EVENTIDE_FAULT", point)
        in_a_child("open_store(path)", old, dies=-9)
    with psycopg.connect(server.address, autocommit=True) as connection:  # the server needs a moment to notice
        while connection.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'").fetchone():
            time.sleep(0.01)
    check_content(opened(read_only=True))
    store = opened()
    assert marks_left([*before, *files_of(server, old)]) == [STEPS - 1]
    check_goes_on(store)


def test_a_reader_takes_an_old_store_as_it_is(old, opened, server):
    check_content(opened(read_only=True))
    assert marks_left(files_of(server, old)) == WITH_MARKS


def test_nobody_writes_while_a_store_is_brought_to_this_version(old, opened, server):
    with psycopg.connect(server.address, autocommit=True) as writer:
        writer.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (f"eventide {old.partition('#')[2]}",))
        with pytest.raises(StoreError, match="being written by another process; stop it: nobody may write"):
            opened()
    check_goes_on(opened())


def test_a_newer_store_is_refused(opened, address, server):
    opened().close()
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(f"INSERT INTO {address.partition('#')[2]}.migration VALUES (99, 'later')")
    for read_only in (True, False):
        with pytest.raises(StoreError, match="newer eventide"):
            opened(read_only=read_only)


def test_the_server_has_no_statistics_of_what_is_raw(opened, address, server):
    store = opened()
    store.begin(SETTING)
    store.keep([(step, b"event") for step in range(1, 90)], "batch")
    store.commit(a_commit(0, snapshot=b"state")._replace(plan=PlanStep(b"snapshot", b"open slots", whole=True)))
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("ANALYZE")
        query = "SELECT count(*) FROM pg_stats WHERE schemaname = %s"
        assert connection.execute(query, (address.partition("#")[2],)).fetchone()[0] > 0
    assert sampled(server, address) == []


# Writers.


def test_a_second_writer_is_refused_and_a_taken_over_one_commits_nothing(opened):
    first, second = opened(), opened()
    first.begin(SETTING)
    first.commit(a_commit(0))
    with pytest.raises(StoreError, match="another process"):
        second.begin(SETTING)
    assert second.begin(SETTING, take_over=True).next_step == 1
    for change in changes(first):
        with pytest.raises(StoreError, match="taken over"):
            change()
    second.commit(a_commit(1))


def test_another_setting_is_refused_or_a_new_epoch_that_waits(opened):
    store = opened()
    store.begin(SETTING)
    store.commit(a_commit(0))
    store.close()
    store = opened()
    with pytest.raises(InputError, match="window"):
        store.begin(SETTING._replace(window=5))
    standing = store.begin(SETTING._replace(window=5), new_epoch=True)
    assert (standing.next_step, standing.measured_from) == (1, 5)
    with pytest.raises(StateError, match="nothing may be measured"):
        store.commit(a_commit(1))


def test_after_a_restore_the_last_window_counts_as_spent(opened):
    store = opened()
    store.begin(SETTING)
    store.commit(a_commit(0))
    standing = store.after_restore(7)
    assert (standing.next_step, standing.measured_from) == (7, 9)


def test_readers_change_nothing(opened, address):
    with pytest.raises(InputError, match="there is no store"):
        open_store(address, read_only=True)
    store = opened()
    store.begin(SETTING)
    store.commit(a_commit(0))
    reader = opened(read_only=True)
    assert reader.release(0) == b'{"step": 0}'
    with pytest.raises(StateError, match="only the writer"):
        reader.commit(a_commit(1))


def test_a_changed_row_is_found(opened, address, server):
    store = opened()
    store.begin(SETTING)
    for step in range(3):
        store.commit(a_commit(step))
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(f"UPDATE {address.partition('#')[2]}.step SET release = 'x' WHERE step = 1")
    with pytest.raises(StoreError, match="step 1"):
        store.verify()


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", StoreError, "cannot be opened"),
        ("postgresql://h/d#a;b", InputError, "letters and digits"),
        ("postgresql://h/d#" + 64 * "a", InputError, "up to 63 letters"),
        ("mysql://h/d", InputError, "postgresql"),
    ],
)
def test_a_wrong_address_is_refused(url, error, message):
    with pytest.raises(error, match=message):
        open_store(url, waits=False)


@pytest.mark.parametrize(("code", "message"), [("53100", "no room left"), ("57014", "QueryCanceled")])
def test_what_a_server_refuses_while_it_works_is_said_and_not_tried_for_ever(opened, address, server, code, message):
    store = opened()
    store.begin(SETTING)
    store.commit(a_commit(0))
    schema = address.partition("#")[2]
    refusing = f"BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END"
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(f"CREATE FUNCTION {schema}.no() RETURNS trigger LANGUAGE plpgsql AS $${refusing}$$")
        trigger = f"BEFORE INSERT ON {schema}.step FOR EACH ROW EXECUTE FUNCTION {schema}.no()"
        connection.execute(f"CREATE TRIGGER refusing {trigger}")
        with pytest.raises(StoreError, match=message):
            store.commit(a_commit(1))
        connection.execute(f"DROP TRIGGER refusing ON {schema}.step")
    store.commit(a_commit(1))
    assert [step for step, _ in store.releases()] == [0, 1]


@pytest.mark.parametrize("again", [False, True])
def test_a_store_that_was_dropped_or_replaced_is_said_and_not_written_to(opened, address, server, again):
    store = opened()
    store.begin(SETTING)
    store.commit(a_commit(0))
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {address.partition('#')[2]} CASCADE")
    if again:
        other = opened()
        other.begin(SETTING, take_over=True)
        other.commit(a_commit(0))
        assert other._rows.head() == store._rows.head()
    sentence = "was replaced" if again else "was removed from its database"
    for change in (lambda: store.commit(a_commit(1)), lambda: store.keep([(1, b"event")])):
        with pytest.raises(StoreError, match=f"{sentence} while it was in use.*--after-restore"):
            change()
    if again:
        assert other.next_step() == 1
    else:
        with pytest.raises(StoreError, match=sentence):
            store.check_place()


def test_a_session_that_holds_the_head_is_not_waited_for_for_ever(address, server):
    with closing(DatabaseStore(PostgresDatabase(address, patience=0.5))) as store:
        store.begin(SETTING)
        with psycopg.connect(server.address) as other:
            other.execute(f"SELECT 1 FROM {address.partition('#')[2]}.head FOR UPDATE")
            with pytest.raises(StoreError, match="held by another process"):
                store.commit(a_commit(0))
        store.commit(a_commit(0))


def test_a_schema_that_is_something_else_is_left_alone(server):
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA someone")
    with pytest.raises(StoreError, match="no store of eventide"):
        open_store(f"{server.address}#someone")


def test_analysts_see_releases_bin_by_bin(opened, address, server):
    store = opened(for_tests=True)
    mechanism = ev.Uniform(epsilon=1, window=2, bins=["north", "south"], noise=ev.noise.Zero())
    with ev.Publisher(MemoryFeed([[3, 5], [4, 4]]), mechanism, store) as publisher:
        publisher.run()
    with psycopg.connect(server.address) as connection:
        found = connection.execute(f"SELECT * FROM {address.partition('#')[2]}.releases ORDER BY step, bin")
        rows = found.fetchall()
    assert [column.name for column in found.description] == [
        "step", "start", "bin", "value", "low", "high", "scale", "fresh",
    ]  # fmt: skip
    assert rows == [
        (0, None, "north", 3, None, None, 2, True),
        (0, None, "south", 5, None, None, 2, True),
        (1, None, "north", 4, None, None, 2, True),
        (1, None, "south", 4, None, None, 2, True),
    ]


def test_analysts_see_sums_in_the_unit_of_their_values(address, server):
    rides = {"timestamp": ["2026-01-01T00:10Z"] * 2, "user": ["anna", "ben"], "bin": ["north", "south"]}
    summed = {"statistic": "sum:fare", "between": "fare=0,120,0.5", "user": "user", "bins": ["north", "south"]}
    steps = {"step": "1h", "start": "2026-01-01T00:00Z", "until": "2026-01-01T02:00Z", "window": 2, "epsilon": 10**6}
    ev.publish(rides | {"fare": ["12.5", "1e9"]}, store=address, mechanism="uniform", **summed, **steps)
    with psycopg.connect(server.address, autocommit=True) as connection:
        query = f"SELECT bin, value FROM {address.partition('#')[2]}.releases WHERE step = 0 ORDER BY bin"
        assert connection.execute(query).fetchall() == [("north", 12.5), ("south", 120)]


def test_analysts_see_several_statistics(address, server):
    rides = {"timestamp": ["2026-01-01T00:10Z"] * 2, "user": ["anna", "ben"], "bin": ["north", "north"]}
    several = {
        "statistic": ["people", "mean:fare"],
        "between": "fare=0,100,1",
        "user": "user",
        "bins": ["north", "south"],
    }
    steps = {"step": "1h", "start": "2026-01-01T00:00Z", "until": "2026-01-01T01:00Z", "window": 2, "epsilon": 10**6}
    ev.publish(rides | {"fare": ["20", "40"]}, store=address, mechanism="uniform", **several, **steps)
    with psycopg.connect(server.address, autocommit=True) as connection:
        found = connection.execute(f"SELECT * FROM {address.partition('#')[2]}.statistics ORDER BY statistic DESC, bin")
        columns = [column.name for column in found.description]
        rows = [(row[columns.index("statistic")], row[2], row[4]) for row in found.fetchall()]
    assert columns == ["step", "start", "bin", "statistic", "value", "low", "high", "scale", "fresh"]
    assert rows[:2] == [("people", "north", 2), ("people", "south", 0)]
    assert rows[2:] == [("mean:fare", "north", 30), ("mean:fare", "south", None)]


def test_analysts_see_releases_that_are_stored_as_differences(opened, address, server):
    counts = np.random.default_rng(4).poisson(50, (6, 30))
    mechanism = ev.Sample(epsilon=1, window=3, bins=30, noise=ev.noise.Zero())
    with ev.Publisher(MemoryFeed(counts), mechanism, opened(for_tests=True)) as publisher:
        publisher.run()
    schema = address.partition("#")[2]
    with psycopg.connect(server.address) as connection:
        bases = connection.execute(f"SELECT base FROM {schema}.step ORDER BY step").fetchall()
        rows = connection.execute(f"SELECT step, value, fresh FROM {schema}.releases ORDER BY step, bin::integer")
        shown = np.array([(step, value, fresh) for step, value, fresh in rows]).reshape(6, 30, 3)
    assert [base for (base,) in bases] == [None, 0, 0, None, 3, 3]
    assert shown[:, 0, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert shown[:, 0, 2].tolist() == [1, 0, 0, 1, 0, 0]
    assert (shown[..., 1] == np.repeat(counts[::3], 3, axis=0)).all()


EARLIER_VIEW = """
    SELECT step.step, body ->> 'start' AS start, (body ->> 'fresh')::boolean AS fresh, bin.name AS bin,
        (body -> 'values' ->> (bin.place - 1)::integer)::double precision AS value,
        (body -> 'scale' ->> (bin.place - 1)::integer)::double precision AS scale
    FROM step JOIN epoch ON epoch.number = step.epoch,
        LATERAL (SELECT convert_from(step.release, 'UTF8')::jsonb AS body) AS released,
        LATERAL jsonb_array_elements_text(epoch.setting::jsonb -> 'bins') WITH ORDINALITY AS bin (name, place)
"""


def test_the_view_of_an_older_store_gets_intervals_and_keeps_its_readers(opened, address, server):
    schema = address.partition("#")[2]
    store = opened()
    store.begin(SETTING)
    release = write_line(
        ReleaseLine(0, True, *(np.array([number] * len(SETTING.bins)) for number in (3.0, 2.0, 1.0, 5.0)))
    )
    store.commit(a_commit(0)._replace(release=release))
    store.close()
    columns = f"SELECT attname FROM pg_attribute WHERE attrelid = '{schema}.releases'::regclass ORDER BY attnum"
    with psycopg.connect(server.address) as connection:
        connection.execute(f"SET LOCAL search_path TO {schema}")
        connection.execute(f"DROP VIEW releases; CREATE VIEW releases AS {EARLIER_VIEW}")
        connection.execute("CREATE VIEW upon AS SELECT value FROM releases")
        connection.execute("GRANT SELECT ON releases TO public")
    with psycopg.connect(server.address) as reading:
        reading.execute(f"SELECT * FROM {schema}.releases")  # and does not end
        opened().close()
        assert [name for (name,) in reading.execute(columns)] == ["step", "start", "fresh", "bin", "value", "scale"]
    opened().close()
    with psycopg.connect(server.address) as connection:
        names = [name for (name,) in connection.execute(columns)]
        assert names == ["step", "start", "fresh", "bin", "value", "scale", "low", "high"]
        assert connection.execute(f"SELECT value, low, high FROM {schema}.releases LIMIT 1").fetchall() == [(3, 1, 5)]
        assert connection.execute(f"SELECT value FROM {schema}.upon LIMIT 1").fetchall() == [(3,)]
        granted = connection.execute(
            "SELECT count(*) FROM information_schema.table_privileges WHERE table_schema = %s AND grantee = 'PUBLIC'",
            (schema,),
        )
        assert granted.fetchone() == (1,)


def test_queries_can_rely_on_the_columns_of_the_views(opened, address, server):
    """Names, order and types, as the how-to promises them; those of SQLite are pinned in test_tables."""
    opened().close()
    number, text, long = "double precision", "text", "bigint"
    numbers = [("value", number), ("low", number), ("high", number), ("scale", number), ("fresh", "boolean")]
    answer = [("value", number), ("variance", number)]
    views = {
        "releases": [("step", long), ("start", text), ("bin", text), *numbers],
        "levels": [("step", long), ("start", text), ("level", text), ("bin", text), *numbers],
        "answers": [("step", long), ("query", text), ("begin_step", long), ("end_step", long), ("bin", text), *answer],
    }
    question = "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = %s AND \
        table_name = %s ORDER BY ordinal_position"
    with psycopg.connect(server.address) as connection:
        for view, columns in views.items():
            assert connection.execute(question, (address.partition("#")[2], view)).fetchall() == columns


def test_answers_go_on_over_restarts_and_analysts_see_them(opened, address, server, monkeypatch):
    monkeypatch.setattr(window_queries, "SNAPSHOT_EVERY", 3)
    counts = [[step, 10 * step] for step in range(9)]
    for until in (2, 4, 5, 9):
        mechanism = ev.Uniform(epsilon=1, window=2, bins=["north", "south"], noise=ev.noise.Zero())
        asked = ev.Questions((ev.Query(4, 2, "four"),), 1)
        with ev.Publisher(MemoryFeed(counts), mechanism, opened(for_tests=True), questions=asked) as publisher:
            publisher.run(until=until)
    with psycopg.connect(server.address) as connection:
        columns = "step, query, begin_step, end_step, bin, value"
        query = f"SELECT {columns} FROM {address.partition('#')[2]}.answers ORDER BY step, bin"
        rows = connection.execute(query).fetchall()
    expected = [(begin, size, name) for begin in (0, 2, 4) for size, name in ((1, "north"), (10, "south"))]
    assert rows == [
        (begin + 3, "four", begin, begin + 4, name, size * sum(range(begin, begin + 4)))
        for begin, size, name in expected
    ]


def test_analysts_see_levels(opened, address, server):
    counts, groups = [[1, 2, 3], [4, 5, 6]], {"ward": ["W2", "W1", "W2"]}
    for levels, until in ((None, 1), (groups, 2)):
        with psycopg.connect(server.address) as connection:  # a store of before levels has no view of them
            connection.execute(f"DROP VIEW IF EXISTS {address.partition('#')[2]}.levels")
        mechanism = ev.Uniform(epsilon=1, window=1, bins=["a", "b", "c"], noise=ev.noise.Zero(), levels=levels)
        with ev.Publisher(MemoryFeed(counts), mechanism, opened(for_tests=True), new_epoch=True) as publisher:
            publisher.run(until=until)
    with psycopg.connect(server.address) as connection:
        query = (
            f"SELECT step, level, bin, value, fresh FROM {address.partition('#')[2]}.levels ORDER BY level DESC, value"
        )
        rows = connection.execute(query).fetchall()
    assert rows == [(1, "ward", "W1", 5, True), (1, "ward", "W2", 10, True), (1, "total", "total", 15, True)]


def test_analysts_see_histograms_of_windows(opened, address, server):
    counts, schema = [[1, 2], [4, 5], [7, 9]], address.partition("#")[2]
    for name, until in (("uniform", 1), ("rg-baseline", 3)):
        with psycopg.connect(server.address) as connection:  # a store of before statistics has no view of them
            connection.execute(f"DROP VIEW IF EXISTS {schema}.statistics")
        parameters = {"span": 2} if name == "rg-baseline" else {}
        mechanism = ev.mechanism(name, epsilon=1, window=1, bins=["a", "b"], noise=ev.noise.Zero(), **parameters)
        with ev.Publisher(MemoryFeed(counts), mechanism, opened(for_tests=True), new_epoch=True) as publisher:
            publisher.run(until=until)
    with psycopg.connect(server.address) as connection:
        query = (
            "SELECT step, bin, statistic, value, round((value - low)::numeric, 2), round((high - value)::numeric, 2), "
        )
        query += f"round(scale::numeric, 3), fresh FROM {schema}.statistics"
        rows = connection.execute(f"{query} ORDER BY step, bin").fetchall()
        assert connection.execute(f"SELECT count(*) FROM {schema}.releases").fetchone() == (6,)
    assert [(*row[:4], *map(float, row[4:7]), row[7]) for row in rows] == [
        (1, "a", "window:events", 4, 2.33, 2.33, 1, True),
        (1, "b", "window:events", 5, 2.33, 2.33, 1, True),
        (2, "a", "window:events", 11, 3.29, 3.29, 1.414, True),
        (2, "b", "window:events", 14, 3.29, 3.29, 1.414, True),
    ]


@pytest.fixture(params=[True, False], ids=["answer lost", "commit lost"])
def lose_next_commit(request, monkeypatch, server):
    """
    commit sent ──▶ server has it ──✂── answer        the rows are there: nothing is written again
    commit sent ──✂── server                          they are not: the same rows are written, nothing is drawn
    """

    def lose(store):
        connection = store._database._connection
        real = connection.transaction

        class CutOff:
            def __enter__(self):
                self.inner = real()
                return self.inner.__enter__()

            def __exit__(self, *problem):
                if request.param:
                    self.inner.__exit__(*problem)
                session = connection.info.backend_pid
                connection.close()
                with psycopg.connect(server.address, autocommit=True) as other:  # the server needs a moment to notice
                    while other.execute("SELECT 1 FROM pg_locks WHERE pid = %s", (session,)).fetchone():
                        time.sleep(0.01)
                raise psycopg.OperationalError("the connection was lost")

        monkeypatch.setattr(connection, "transaction", CutOff)  # of this connection only
        return lambda: store._database._connection is not connection

    return lose


def test_a_commit_whose_answer_was_lost_is_settled_by_reading(opened, lose_next_commit):
    store = opened()
    store.begin(SETTING)
    store.commit(a_commit(0))
    lost = lose_next_commit(store)
    store.commit(a_commit(1))
    assert lost()
    assert [step for step, _ in store.releases()] == [0, 1]
    store.commit(a_commit(2))
    store.verify()


def test_kept_events_whose_answer_was_lost_are_not_doubled(opened, lose_next_commit):
    store = opened()
    store.begin(SETTING)
    lost = lose_next_commit(store)
    assert store.keep([(0, b"one")], "batch")
    assert lost()
    assert store.kept() == [(0, b"one")]


def test_a_beginning_whose_answer_was_lost_begins_one_epoch(opened, lose_next_commit):
    store = opened()
    store.begin(SETTING)
    store.commit(a_commit(0))
    store.close()
    store = opened()
    lost = lose_next_commit(store)
    standing = store.begin(SETTING._replace(window=5), new_epoch=True)
    assert lost()
    assert (standing.next_step, standing.measured_from, len(store.epochs())) == (1, 5, 2)
    store.commit(a_commit(1, charge=0))
    store.verify()


def test_a_beginning_whose_place_was_lost_does_not_push_another_out(opened, lose_next_commit):
    store, other = opened(), opened()
    lose_next_commit(store)
    come_back = store._database.come_back

    def come_back_late():
        other.begin(SETTING)
        come_back()

    store._database.come_back = come_back_late
    with pytest.raises(StoreError, match="another process"):
        store.begin(SETTING)
    other.commit(a_commit(0))


def test_a_restore_whose_answer_was_lost_counts_once(opened, lose_next_commit):
    store = opened()
    store.begin(SETTING)
    store.commit(a_commit(0))
    lost = lose_next_commit(store)
    standing = store.after_restore(7)
    assert lost()
    assert (standing.next_step, standing.measured_from, len(store.epochs())) == (7, 9, 2)
    store.commit(a_commit(7, charge=0))


class Heard(Sink):
    """Remembers all that it was sent, and how often it was opened and not closed."""

    name = "a sink that listens"

    def __init__(self):
        self.steps, self.held = [], 0

    def open(self):
        self.held += 1

    def send(self, step, release):
        self.steps.append(step)

    def close(self):
        self.held -= 1


def test_a_sink_gets_every_step_once_though_the_beginning_was_lost(opened, lose_next_commit):
    store, sink = opened(), Heard()
    lost = lose_next_commit(store)
    mechanism = ev.Uniform(epsilon=1, window=2, bins=2)
    with ev.Publisher(MemoryFeed([[1, 2], [3, 4]]), mechanism, store, iter([sink])) as publisher:
        assert lost()
        assert sink.held == 1
        publisher.run()
    assert sink.steps == [0, 1]
    assert sink.held == 0


def test_publishing_goes_on_when_the_server_is_killed_and_comes_back():
    server = PostgresServer().start()
    store = DatabaseStore(PostgresDatabase(f"{server.address}#killed", patience=300.0))  # as a slow machine may need
    mechanism = ev.BudgetAbsorption(epsilon=1, window=5, bins=3)
    done = threading.Event()
    kills = 0
    with ev.Publisher(MemoryFeed([[5, 6, 7]] * 400), mechanism, store) as publisher:

        def publish():
            publisher.run(stop=lambda: time.sleep(0.01) or False)
            done.set()

        worker = threading.Thread(target=publish)
        worker.start()
        for _ in range(4):
            if done.wait(0.4):
                break
            server.kill()
            server.start()
            kills += 1
        worker.join(600)
        assert done.is_set()
        assert kills >= 2
        steps = [json.loads(release)["step"] for _, release in publisher.store.releases()]
        assert steps == list(range(400))
        found = verify(publisher.store.entries(), publisher.store.epochs(), publisher.store.next_step())
        assert found.holds
        publisher.store.verify()
    server.kill()


def test_a_store_holds_after_a_group_what_it_holds_after_each(opened):
    """Kept events, the plan, the snapshot, the position and all rows, whose chain is checked."""

    def commits():
        for step in range(6):
            plan, kept = PlanStep(b"plan", b"open %d" % step, whole=step == 3), (step + 2, b"used at %d" % step)
            yield a_commit(step, snapshot=b"state" if step == 4 else None)._replace(plan=plan, kept=kept)

    store = opened()
    store.begin(SETTING)
    store.keep([(3, b"open"), (7, b"later")], "batch")
    store.commit(*commits())
    store.verify()
    assert store.kept() == [(6, b"used at 4"), (7, b"later"), (7, b"used at 5")]
    assert list(store.releases()) == [(each.step, each.release) for each in commits()]
    store.close()
    state = opened().begin(SETTING)
    assert (state.next_step, state.snapshot, state.recorded) == (6, b"state", [b"tape 5"])
    assert (state.plan.released, state.plan.open_slots, state.position) == ([b"plan"] * 2, b"open 5", {"offset": 5})


def test_releases_that_are_not_kept_are_gone_from_the_view_too(opened, address, server, monkeypatch):
    monkeypatch.setattr(publisher_module, "SNAPSHOT_EVERY", 4)
    with ev.Publisher(
        MemoryFeed([[1, 2]] * 64), ev.Uniform(epsilon=1, window=2, bins=2), opened(), keep=8
    ) as publisher:
        publisher.run()
        kept_from = publisher.store.kept_from()
        publisher.store.verify()
        assert len(list(publisher.store.entries())) == 64
    assert kept_from > 40
    with psycopg.connect(server.address) as connection:
        shown = connection.execute(f"SELECT min(step), max(step) FROM {address.partition('#')[2]}.releases").fetchone()
    assert shown == (kept_from, 63)


def test_a_server_that_is_down_at_the_start_is_waited_for(caplog):
    server = PostgresServer()
    starting = threading.Timer(0.5, server.start)
    starting.start()
    with closing(DatabaseStore(PostgresDatabase(f"{server.address}#awaited", patience=300.0))) as store:
        assert store.next_step() == 0
    starting.join()
    server.kill()
    assert [record.message for record in caplog.records] == ["127.0.0.1#awaited does not answer; waiting for it"]


@pytest.mark.parametrize(
    ("said", "is_waited_for"),
    [
        ("FATAL:  the database system is starting up", True),
        ("FATAL:  the database system is not yet accepting connections", True),  # after a kill -9
        ("could not receive data from server: Connection reset by peer", True),
        ("No route to host", True),
        ("FATAL:  sorry, too many clients already", True),
        ('FATAL:  password authentication failed for user "eventide"', False),
        ('FATAL:  database "nowhere" does not exist', False),
    ],
)
def test_what_passes_at_the_start_is_waited_for_and_what_does_not_is_said(monkeypatch, said, is_waited_for):
    class Reached(Exception):
        pass

    answers = iter([psycopg.OperationalError(f"connection failed: {said}"), Reached()])

    def connected(self):
        raise next(answers)

    monkeypatch.setattr(PostgresDatabase, "_connected", connected)
    with pytest.raises(Reached if is_waited_for else StoreError):
        PostgresDatabase("postgresql://127.0.0.1/city")


def test_who_only_looks_is_told_at_once_that_a_server_is_down(caplog):
    server = PostgresServer()
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(f"{server.address}#awaited", read_only=True)
    assert caplog.records == []  # nothing was waited for


def test_streams_of_one_population_are_remembered_in_the_database(server, tmp_path):
    """One is taken out of the configuration, the other gets its share; passwords are not written down."""
    shared = server.address.replace("eventide@", "eventide:secret@")
    streams = {name: {"store": f"{shared}#people_{name}", "mechanism": "sample"} for name in "ab"}
    streams["a"] |= {"epsilon": 0.5, "mechanism": "uniform"}
    live(people(tmp_path, streams | {"b": streams["b"] | {"epsilon": 0.5}}), 5)
    alone = people(tmp_path, {"b": streams["b"] | {"epsilon": 1}})
    assert live(alone, 6) == live(alone, 7) == {"b": 9}
    with psycopg.connect(server.address) as connection:
        ((text,),) = connection.execute("SELECT text FROM eventide_populations.record").fetchall()
        assert "people_a" in text
        assert "secret" not in text
        connection.execute("UPDATE eventide_populations.record SET text = '{}'")
    with pytest.raises(StoreError, match=r"people\.population in 127.*not what the service wrote"):
        live(alone, 8)


def test_what_the_server_said_of_a_connection_is_told(server):
    missing = server.address.replace("/postgres", "/nodb") + "#visits"
    with pytest.raises(StoreError, match='database "nodb" does not exist'):
        open_store(missing)
    with pytest.raises(StoreError, match=f"port {server.port + 1} failed: Connection refused"):
        open_store(server.address.replace(str(server.port), str(server.port + 1)), read_only=True)
