"""Tables as sinks: each step once, whoever writes and however often; what holds something else is refused and kept."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from read_tables import CATALOG, KINDS, NEEDED, catalog_settings, place_of, rows_in, rows_of

import eventide as ev
from eventide.errors import InputError, StoreError
from eventide.live.sinks.open_sink import open_sink
from eventide.releases.level_values import LevelValues
from eventide.releases.lines import ReleaseLine, write_line

BINS = ("north", "south, far", "o'harbour")
START = "2026-01-01T00:00:00Z"


@pytest.fixture(params=KINDS)
def place(request, tmp_path, monkeypatch):
    """A place for a table of each kind."""
    pytest.importorskip(NEEDED[request.param])
    if request.param == "iceberg":
        from pyiceberg.utils.config import Config

        for name, value in catalog_settings(tmp_path).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    return place_of(request.param, tmp_path)


def release(step, seed=0):
    values = np.random.default_rng([seed, step]).integers(0, 1000, len(BINS)).astype(float)
    scale = np.array([2.5, np.inf, 1])
    return ReleaseLine(step, step % 2 == 0, values, scale, values - 1, values + 1, START)


def line(step, seed=0):
    return write_line(release(step, seed), START)


def opened(place, bins=BINS, **options):
    sink = open_sink(place, bins, **({"starts": True} | options))
    sink.open()
    return sink


def test_each_step_is_in_the_table_once_however_often_it_is_sent(place):
    with closing(opened(place)) as sink:
        assert sink.last_step() == -1
        sink.send(0, line(0))
        sink.send_all([(step, line(step)) for step in range(5)])  # of which it has the first
        sink.send(2, line(2))
    with closing(opened(place)) as again:
        assert again.last_step() == 4
        assert again.holds(line(4))
        assert not again.holds(line(4, seed=1))
        again.send_all([(step, line(step)) for step in range(3, 7)])
    assert rows_in(place) == rows_of(map(line, range(7)), BINS, starts=True)


def test_a_writer_that_was_taken_over_writes_nothing_twice(place):
    with closing(opened(place)) as first, closing(opened(place)) as second:
        first.send(0, line(0))
        second.send(0, line(0))
        second.send(1, line(1))
        assert first.look() == 1


def test_two_writers_at_the_same_moment_commit_a_step_once(place, monkeypatch):
    """Both have looked before either commits: the later one fails for now, and then finds that it is there."""
    with closing(opened(place)) as first, closing(opened(place)) as second:
        first.send(0, line(0))
        second.send(1, line(1))
        assert first.look() == 1
        whole = second.append

        def after_the_other(rows, last):
            first.send(2, line(2))
            whole(rows, last)

        with monkeypatch.context() as overtaken:
            overtaken.setattr(second, "append", after_the_other)
            with pytest.raises(OSError, match="did not take it"):
                second.send(2, line(2))
        second.send(2, line(2))
    assert rows_in(place) == rows_of(map(line, range(3)), BINS, starts=True)


def test_a_table_of_other_bins_or_columns_is_refused_and_kept(place):
    with closing(opened(place)) as sink:
        sink.send(0, line(0))
    before = rows_in(place)
    for bins, options in ((("a", "b", "c"), {}), (BINS[:2], {}), (BINS, {"groups": {"total": ["total"]}})):
        for begin in ("check", "open"):
            sink = open_sink(place, bins, starts=True, **options)
            with pytest.raises(InputError, match="choose another table"):
                getattr(sink, begin)()
            sink.close()
    assert rows_in(place) == before


def test_a_check_makes_nothing(place, tmp_path):
    with closing(open_sink(place, BINS, starts=True)) as sink:
        sink.check()
        assert sink.last_step() == -1
    assert not [path for path in tmp_path.iterdir() if "catalog" not in path.name]


def test_rows_of_levels(place):
    groups = {"side": ["land", "sea"], "total": ["total"]}
    told = {level: LevelValues(np.arange(len(names)) + 7.0, np.ones(len(names))) for level, names in groups.items()}
    written = write_line(replace(release(0), levels=told), START)
    with closing(opened(place, groups=groups)) as sink:
        sink.send(0, written)
    with closing(opened(place, groups=groups)) as sink:
        assert sink.holds(written)
        rows = sink.rows_of(0).select(["level", "bin", "value"]).to_pylist()
    found = {(row["level"], row["bin"]): row["value"] for row in rows}
    assert {key: value for key, value in found.items() if key[0] != "bin"} == {
        ("side", "land"): 7,
        ("side", "sea"): 8,
        ("total", "total"): 7,
    }
    assert len(found) == 6


def test_a_table_needs_a_store_and_has_one_layout(place):
    with pytest.raises(InputError, match="give a store too"):
        open_sink(place, BINS, growing=False)
    with pytest.raises(InputError, match="leave --layout wide out"):
        open_sink(place, BINS, layout="wide")


def test_a_publisher_fills_a_table_and_knows_a_restored_store(place, tmp_path):
    def publish(store, rows, **options):
        mechanism = ev.Uniform(epsilon=1, window=3, bins=BINS)
        with ev.Publisher(ev.MemoryFeed(rows), mechanism, tmp_path / store, [place], **options) as publisher:
            publisher.run()
            publisher.finish()
            return [release for _, release in publisher.store.releases()]

    rows = np.arange(90).reshape(30, 3)
    releases = publish("store.db", rows)
    assert rows_in(place) == rows_of(releases, BINS, starts=place.endswith("sqlite"))
    with pytest.raises(StoreError, match="--after-restore"):
        publish("other.db", rows[:10])


def test_a_folder_of_something_else_is_refused(tmp_path):
    pytest.importorskip("deltalake")
    (tmp_path / "diary.delta").mkdir()
    (tmp_path / "diary.delta" / "monday.txt").write_text("rain")
    (tmp_path / "file.delta").write_text("rain")
    for name in ("diary.delta", "file.delta"):
        with pytest.raises(InputError, match="something else than a Delta table"):
            opened(tmp_path / name)


def test_a_delta_table_that_somebody_else_filled_is_refused(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    path = str(tmp_path / "theirs.delta")
    with closing(opened(path)) as sink:
        rows = pa.table({name: [None] for name in sink.schema.names}, schema=sink.schema)
    deltalake.write_deltalake(path, rows, mode="append")
    with pytest.raises(InputError, match="rows that eventide did not write"):
        opened(path)


def test_what_a_kill_left_of_a_delta_commit_is_no_part_of_the_table(tmp_path):
    """A file of rows that no commit names, as it lies there between its writing and the commit."""
    deltalake = pytest.importorskip("deltalake")
    path = tmp_path / "killed.delta"
    with closing(opened(path)) as sink:
        sink.send_all([(0, line(0)), (1, line(1))])
    (last,) = path.glob("_delta_log/*1.json")
    last.unlink()
    with closing(opened(path)) as sink:
        assert sink.last_step() == -1
        sink.send_all([(0, line(0)), (1, line(1)), (2, line(2))])
    assert len(list(path.glob("*.parquet"))) == 2
    assert rows_in(str(path)) == rows_of(map(line, range(3)), BINS, starts=True)
    last = deltalake.DeltaTable(path).history(1)[0]
    assert (last["eventide.first-step"], last["eventide.last-step"]) == ("0", "2")


def test_a_delta_table_that_was_compacted_and_lost_its_old_log_goes_on(tmp_path):
    """What maintenance removes: small files, files that no commit names any more, and commits before a checkpoint."""
    deltalake = pytest.importorskip("deltalake")
    path = tmp_path / "kept.delta"
    with closing(opened(path)) as sink:
        for step in range(6):
            sink.send(step, line(step))
    table = deltalake.DeltaTable(path)
    assert table.optimize.compact()["numFilesRemoved"] == 6
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    table.create_checkpoint()
    for commit in path.glob("_delta_log/*.json"):
        if int(commit.stem) < table.version():
            commit.unlink()
    with closing(opened(path)) as sink:
        assert sink.last_step() == 5
        assert sink.holds(line(5))
        sink.send_all([(5, line(5)), (6, line(6))])
    assert len(list(path.glob("*.parquet"))) == 2
    assert rows_in(str(path)) == rows_of(map(line, range(7)), BINS, starts=True)


def test_an_iceberg_table_that_would_repeat_commits_is_refused(tmp_path, monkeypatch):
    config = pytest.importorskip("pyiceberg.utils.config")
    catalog = pytest.importorskip("pyiceberg.catalog")
    for name, value in catalog_settings(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(catalog, "_ENV_CONFIG", config.Config())
    place = place_of("iceberg", tmp_path)
    with closing(opened(place)) as sink:
        sink.send(0, line(0))
        table = catalog.load_catalog(CATALOG).load_table("city.releases")
        assert table.current_snapshot().summary["eventide.last-step"] == "0"
        with table.transaction() as changed:
            changed.remove_properties("commit.retry.num-retries")
        with pytest.raises(InputError, match=r"set its property commit.retry.num-retries to 0"):
            sink.send(1, line(1))
    for address in ("iceberg://lake", "iceberg://lake/releases", "iceberg://a:b@lake/city.releases"):
        with pytest.raises(InputError, match="an Iceberg address reads"):
            open_sink(address, BINS)
    with pytest.raises(InputError, match="has the catalog nowhere"):
        opened("iceberg://nowhere/city.releases")


def test_a_sqlite_file_of_something_else_is_refused_and_views_beside_the_tables_stay(tmp_path):
    (tmp_path / "text.sqlite").write_text("rain " * 100)
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as other:
        other.execute("CREATE TABLE releases (step, value)")
    for name in ("text", "other"):
        with pytest.raises(InputError, match="choose another name"):
            opened(tmp_path / f"{name}.sqlite")
    path = tmp_path / "out.sqlite"
    with closing(opened(path)) as sink, closing(sqlite3.connect(path)) as reader:
        reader.execute("CREATE VIEW totals AS SELECT step, sum(value) AS total FROM releases GROUP BY step")
        sink.send(0, line(0))
        assert reader.execute("SELECT * FROM totals").fetchall() == [(0, release(0).values.sum())]
    opened(path).close()


def test_queries_can_rely_on_the_columns_of_sqlite(tmp_path):
    """Names, order and types, as the how-to promises them; those of PostgreSQL's views are pinned in test_postgres."""
    opened(tmp_path / "releases.sqlite").close()
    numbers = [("value", "REAL"), ("low", "REAL"), ("high", "REAL"), ("scale", "REAL"), ("fresh", "BOOLEAN")]
    with closing(sqlite3.connect(tmp_path / "releases.sqlite")) as connection:
        for table, more in (("releases", []), ("levels", [("level", "TEXT")])):
            found = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
            assert found == [("step", "INTEGER"), ("start", "TEXT"), *more, ("bin", "TEXT"), *numbers]
