"""The store of a seized publisher is in PostgreSQL: rows, what the server was told, and the pages of its tables.

Two worlds tell the server the same, word by word and value by value, at every event. So whatever it writes (pages, its
log for recovery, copies on other servers) is the same but for times and numbers of its own; the pages are looked at as
well, with rows that are dead.
"""

import contextlib
import functools

import pytest
from postgres_server import PostgresServer
from seizures import BROKEN, PERSONS, FilePart, PipePart, check_looks, events_of, read_as_sketched, without_chance
from seizures import run as run_in_file

import eventide as ev
from eventide.audit.seizure import TABLES
from eventide.audit.two_worlds import WorldsDiffer
from eventide.live.feeds.noisy_feed import NoisyFeed
from eventide.privacy.noisy_cells import NoisyCells

pytestmark = [pytest.mark.nightly, pytest.mark.database]


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch):
    without_chance(monkeypatch)


@pytest.fixture(scope="module")
def server():
    running = PostgresServer().start()
    with connected(running.address) as connection:
        connection.execute("CREATE EXTENSION pageinspect")
        connection.execute("ALTER SYSTEM SET autovacuum TO off")
        connection.execute("SELECT pg_reload_conf()")
    yield running
    running.kill()


def connected(address):
    import psycopg

    return psycopg.connect(address, autocommit=True)


def dead_and_alive(connection, table):
    """The data of every row of a table that its pages hold, also of those that nobody can read any more."""
    (size,) = connection.execute(f"SELECT pg_relation_size('world.{table}') / 8192").fetchone()
    for page in range(size):
        query = f"SELECT lp, t_data FROM heap_page_items(get_raw_page('world.{table}', {page}))"
        yield from connection.execute(query).fetchall()


def run(world, server, listening, **options):
    """A life whose store is a new schema; all that the server is told is shown, and at the end its pages."""
    with connected(server.address) as connection:
        connection.execute("DROP SCHEMA IF EXISTS world CASCADE")
    with listening(lambda *told: world.show("told", repr(told))):
        run_in_file(world, store=f"{server.address}#world", **options)
    with connected(server.address) as connection:
        connection.execute("CHECKPOINT")
        for table in TABLES:
            world.show(f"pages of {table}", "\n".join(map(str, dead_and_alive(connection, table))))


@pytest.fixture
def check(server, monkeypatch):
    import psycopg

    @contextlib.contextmanager
    def listening(hear):
        with monkeypatch.context() as patch:
            for name in ("execute", "executemany"):
                patch.setattr(psycopg.Cursor, name, heard(getattr(psycopg.Cursor, name), hear))
            yield

    def check(person="is there", part=PipePart, looks=None, **options):
        looks = {} if looks is None else looks
        given = (("epsilon", 1000), ("name", "bd"))
        options |= {"part": part, "looks": looks, "noise": ev.noise.Zero(), "given": given}
        way = functools.partial(run, server=server, listening=listening, **options)
        return ev.check_two_worlds(way, events_of(person), window=range(1, 4))

    return check


def heard(method, hear):
    def listening(cursor, query, values=None, **options):
        told = list(values) if method.__name__ == "executemany" else values
        hear(str(query), told)
        return method(cursor, query, told, **options)

    return listening


@pytest.mark.parametrize("part", [FilePart, PipePart])
@pytest.mark.parametrize("person", PERSONS)
def test_a_store_in_postgresql_is_told_nothing_of_anybody(check, person, part):
    looks = {}
    agreed = check(person, part, looks, late="1min")
    assert agreed.steps >= 4
    assert min(agreed.seen["slot 9"], agreed.seen["told"]) > 50
    assert agreed.seen["pages of step"] >= 4
    check_looks(looks, person)


@pytest.mark.parametrize("how", BROKEN)
def test_a_feed_that_holds_or_tells_more_is_found(check, how):
    where = {"logs": "log", "writes and erases": "told"}.get(how, "slot")
    with pytest.raises(WorldsDiffer, match=where):
        check(feed=BROKEN[how](NoisyFeed))


def test_the_sketch_of_the_paper_is_found(check, monkeypatch):
    monkeypatch.setattr(NoisyCells, "read", read_as_sketched)
    with pytest.raises(WorldsDiffer):
        check()
