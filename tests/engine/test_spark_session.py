"""What decides over steps on Spark: the public clock and arrivals, never the times that events claim."""

import json
import os
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from live_stores import make_twin
from spark_cluster import PATIENCE
from spark_driver import frame, mechanism
from spark_events import BINS, SEVERAL_WITH_A_CAP, check_store, new_life, releases_of_one_machine, stored, write_events

from eventide.engines import spark_feed
from eventide.engines.spark import publish
from eventide.errors import InputError
from eventide.live.stores.open_store import open_store

pytestmark = pytest.mark.engine
STEPS = 6


def published(spark, life, **changed):
    """Publish the files of a life in this process."""
    options = {"store": life["store"], "work": life["work"], "mechanism": mechanism(life)} | life["steps"] | changed
    publishing = publish(
        frame(spark, life), user="user", bin="bin", arrival=life["arrival"], available_now=True, **options
    )
    publishing.await_termination()
    return publishing.publisher.feed.counters


def arriving_life(folder, bounds=None):
    several = "statistic" in (bounds or {})
    write_events(folder / "events", rows=3_000, steps=STEPS, users=300, files=2, seed=3, delay=8, fares=several)
    return new_life(folder, folder / "events", steps=STEPS, arrival="arrival", late="20s", **(bounds or {}))


@pytest.fixture
def arriving(tmp_path):
    return arriving_life(tmp_path)


def test_a_timestamp_in_the_far_future_changes_nothing_for_others(spark, arriving, tmp_path):
    published(spark, arriving)
    quiet = check_store(arriving, STEPS)
    assert quiet == releases_of_one_machine(tmp_path, arriving)
    attacked = arriving | {"store": str(tmp_path / "attacked.db"), "work": str(tmp_path / "attacked")}
    make_twin(tmp_path / "empty.db", attacked["store"])
    first = Path(attacked["source"]) / "000.csv"
    header, row, rest = first.read_text().split("\n", 2)
    arrival = row.split(",")[3]
    soon = datetime.fromisoformat(attacked["steps"]["until"]).timestamp() - 1
    attack = [f'{when},"attacker","place 0",{arrival}' for when in (4102444800, soon)]
    first.write_text("\n".join([header, *attack, row, rest]))
    os.utime(first, (1, 1))
    counters = published(spark, attacked)
    assert (counters.refused["after the end"], counters.refused["in the future"]) == (1, 1)
    assert check_store(attacked, STEPS) == quiet


@pytest.mark.parametrize("bounds", [{}, {"cap": "3/7min"}, SEVERAL_WITH_A_CAP], ids=["plain", "cap", "several"])
def test_a_store_moves_between_engines(spark, tmp_path, bounds):
    """Under a cap with what people have used of it, which both keep in the same bytes."""
    arriving = arriving_life(tmp_path, bounds)
    half = (datetime.fromisoformat(arriving["steps"]["start"]) + timedelta(minutes=STEPS / 2)).isoformat()
    published(spark, arriving, until=half)
    assert len(stored(arriving["store"])[0]) == STEPS / 2
    whole = releases_of_one_machine(tmp_path, arriving)
    moved = arriving | {"store": str(tmp_path / "moved.db")}
    make_twin(arriving["store"], tmp_path / "moved.db")
    assert releases_of_one_machine(tmp_path, moved, "moved.db") == whole
    published(spark, arriving)  # another end: the work folder is made anew, which had passed over what came later
    assert check_store(arriving, STEPS) == whole
    kept = [kept_in(tmp_path / name) for name in ("store.db", "moved.db", "oracle.db")]
    assert kept[0] == kept[1] == kept[2]
    assert len(kept[0]) == (STEPS if bounds else 0)


def test_an_idle_stream_closes_steps_on_time(spark, arriving, tmp_path):
    folder, now = tmp_path / "few", datetime.now(UTC)
    folder.mkdir()
    rows = [f"{now.timestamp()},{user},place 1,{now.timestamp()}" for user in "abc"]
    (folder / "one.csv").write_text("\n".join(["timestamp,user,bin,arrival", *rows]) + "\n")
    life = arriving | {"source": str(folder)}
    start, until = now.replace(microsecond=0), now.replace(microsecond=0) + timedelta(seconds=6)
    publishing = publish(
        frame(spark, life),
        mechanism=mechanism(life),
        store=life["store"],
        work=life["work"],
        user="user",
        bin="bin",
        arrival="arrival",
        step="2s",
        start=start.isoformat(),
        until=until.isoformat(),
        skew="1s",
    )
    assert publishing.await_termination(PATIENCE)
    assert datetime.now(UTC) > until + timedelta(seconds=1)
    assert [sum(values) for values in map(values_of, stored(life["store"])[0])] == [3, 0, 0]


def test_events_without_users_are_all_counted(spark, tmp_path):
    write_events(tmp_path / "events", rows=3_000, steps=STEPS, users=5, files=2, seed=4)
    life = new_life(tmp_path, tmp_path / "events", steps=STEPS, most=1)
    publish(
        frame(spark, life),
        mechanism=mechanism(life),
        store=life["store"],
        user=None,
        bin="bin",
        arrival=None,
        **life["steps"],
    ).await_termination()
    known = sum("place" in line for path in Path(life["source"]).iterdir() for line in path.read_text().splitlines())
    assert sum(sum(values_of(release)) for release in stored(life["store"])[0]) == known


def test_wide_bins_come_as_one_machine_counts_them(spark, tmp_path):
    names = [*BINS, *(f"far {number}" for number in range(100_000))]
    write_events(tmp_path / "events", rows=2_000, steps=3, users=100, files=2, seed=5)
    life = new_life(tmp_path, tmp_path / "events", steps=3) | {"bins": names}
    published(spark, life)
    assert check_store(life, 3) == releases_of_one_machine(tmp_path, life)


def test_a_parquet_file_shows_every_step(spark, arriving, tmp_path):
    published(spark, arriving, sinks=[tmp_path / "private.parquet"])
    rows = parquet.read_table(tmp_path / "private.parquet").to_pylist()
    released = check_store(arriving, STEPS)
    assert [row["step"] for row in rows] == list(range(STEPS))
    assert [[row[name] for name in BINS] for row in rows] == [values_of(release) for release in released]


def test_a_work_folder_belongs_to_one_store(spark, arriving, tmp_path):
    published(spark, arriving)
    with pytest.raises(InputError, match="another store"):
        published(spark, arriving, store=open_store(tmp_path / "other.db", for_tests=True))


def test_nothing_is_read_again_once_all_is_published(spark, arriving, monkeypatch):
    published(spark, arriving)
    monkeypatch.setattr(spark_feed, "TallyingQuery", None)  # so that a query would fail
    published(spark, arriving)
    check_store(arriving, STEPS)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"time": "when"}, "no column 'when'"),
        ({"other": "elsewhere"}, "not in the list"),
        ({"until": None}, "needs until"),
        ({"late": "5s"}, "nothing in a complete source is late"),
        ({"store": "object"}, "work is missing"),
    ],
)
def test_what_cannot_be_right_is_refused_at_once(spark, arriving, tmp_path, changed, sentence):
    changed = {name: open_store(tmp_path / "x.db") if value == "object" else value for name, value in changed.items()}
    given = {"step": "1min", "start": "2024-03-30", "until": "2024-03-31", "store": arriving["store"]} | changed
    with pytest.raises(InputError, match=sentence):
        publish(frame(spark, arriving), mechanism=mechanism(arriving), user="user", bin="bin", arrival=None, **given)


def kept_in(path):
    with closing(open_store(path, read_only=True)) as store:
        return store.kept()


def values_of(release):
    return json.loads(release[1])["values"]


def test_spark_forgets_where_earlier_batches_began(spark, tmp_path):
    write_events(tmp_path / "events", rows=3_000, steps=STEPS, users=300, files=6, seed=3, delay=8)
    life = new_life(tmp_path, tmp_path / "events", steps=STEPS, arrival="arrival", late="20s")
    published(spark, life)
    check_store(life, STEPS)
    for log in ("offsets", "commits"):
        batches = [int(path.name) for path in Path(life["work"], "checkpoint", log).glob("[0-9]*")]
        assert max(batches) >= 4
        assert len(batches) <= 2
