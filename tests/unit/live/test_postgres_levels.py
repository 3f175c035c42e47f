"""What analysts see of levels and of spare bins in PostgreSQL: names, groups, and columns in the usual order."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest
from postgres_server import PostgresServer

import eventide as ev
from eventide.events.bins import with_spares
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.publisher import publisher as publishing
from eventide.live.publisher.naming import close_bin, name_bin
from eventide.live.stores.open_store import open_store

pytestmark = pytest.mark.database

BINS = with_spares(("a", "b", "c"), 2)
LONG = ["step", "start", "level", "bin", "value", "low", "high", "scale", "fresh"]


@pytest.fixture(scope="module")
def server():
    started = PostgresServer().start()
    yield started
    started.kill()


def publish(address, rows, bins, **options):
    mechanism = ev.Uniform(epsilon=1, window=2, bins=bins, filter="truncate", **options)
    with ev.Publisher(MemoryFeed(rows), mechanism, address, new_epoch=True) as publisher:
        publisher.run()


def seen(server, query):
    with psycopg.connect(server.address) as connection:
        cursor = connection.execute(query)
        return [column.name for column in cursor.description], cursor.fetchall()


def test_releases_have_a_level_where_there_is_more_than_one(server):
    address = f"{server.address}#levels"
    publish(address, [[1, 2, 3]] * 3, ["a", "b", "c"], levels={"ward": ["V", "W", "W"]})
    columns, rows = seen(server, "SELECT * FROM levels.releases ORDER BY step")
    assert columns == LONG
    assert sorted((row[2], row[3]) for row in rows if row[0] == 1) == [
        *(("bin", name) for name in "abc"),
        *(("total", "total"), ("ward", "V"), ("ward", "W")),
    ]
    values = {(row[0], row[3]): row[4] for row in rows}
    assert all(values[step, "W"] == values[step, "b"] + values[step, "c"] for step in range(3))


def test_a_view_that_somebody_reads_keeps_its_columns_and_gets_the_level_behind_them(server):
    address = f"{server.address}#granted"
    publish(address, [[1, 2, 3]] * 2, ["a", "b", "c"])
    columns, _ = seen(server, "SELECT * FROM granted.releases")
    assert columns == [name for name in LONG if name != "level"]
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("CREATE ROLE analyst")
        connection.execute("GRANT SELECT ON granted.releases TO analyst")
    publish(address, [[1, 2, 3]] * 5, ["a", "b", "c"], levels={"ward": ["V", "W", "W"]})
    columns, rows = seen(server, "SELECT * FROM granted.releases")
    assert columns == [*(name for name in LONG if name != "level"), "level"]
    assert {row[-1] for row in rows} == {"bin", "ward", "total"}
    _, granted = seen(server, "SELECT has_table_privilege('analyst', 'granted.releases', 'SELECT')")
    assert granted == [(True,)]


def test_spare_bins_appear_with_their_names(server, monkeypatch):
    monkeypatch.setattr(publishing, "LOOK_FOR_NAMES", 0.0)
    address = f"{server.address}#spare"

    def rows():
        for step in range(6):
            if step == 2:
                with closing(open_store(address)) as store:
                    name_bin(store, "d", "3")
                    close_bin(store, "c", "4")
            yield [1000, 1000, 1000, 1000, 0]

    publish(address, rows(), BINS)
    _, found = seen(server, "SELECT step, bin, value FROM spare.releases ORDER BY step, bin")
    assert {bin for _, bin, _ in found} == {"a", "b", "c", "d"}
    assert [step for step, bin, _ in found if bin == "d"] == [3, 4, 5]
    assert all(value > 500 for _, bin, value in found if bin in "abd")
    assert [value > 500 for _, bin, value in found if bin == "c"] == [True] * 4 + [False] * 2
    with closing(open_store(address, read_only=True)) as store:
        store.verify()
        assert len(store.epochs()) == 1
