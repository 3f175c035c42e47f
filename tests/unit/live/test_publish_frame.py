"""Frames in, frames out: what `publish` takes, in whatever library and order, and what it gives back."""

from __future__ import annotations

import random
import re
import sys
import warnings
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eventide as ev
from eventide.events.reader import Columns, EventReader
from eventide.events.texts import texts
from eventide.events.zones import EARLIEST
from eventide.live.feeds.operators_only import OperatorsOnly
from eventide.live.python_words import in_python
from eventide.live.sources import frame_events
from eventide.live.sources.base import FOREVER
from eventide.live.sources.frame_events import FrameEvents
from eventide.streams.frames import _column, open_frame

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DISTRICTS = ["north", "south", "harbour"]
HOURS = 5


def rides(seed=3):
    """Rides of twenty people in five hours: rows of when, who and where, in the order of time."""
    chance = random.Random(seed)
    made = [
        (BEGIN + timedelta(seconds=chance.randrange(HOURS * 3600)), f"person {number % 20}", chance.choice(DISTRICTS))
        for number in range(200)
    ]
    return sorted([*made, (BEGIN, "person 0", "north"), (BEGIN + timedelta(hours=HOURS, seconds=-1), "last", "south")])


def table(rows):
    at, who, where = zip(*rows, strict=True)
    return pa.table(
        {"fare": [1.5] * len(at), "at": pa.array(at, pa.timestamp("us", "UTC")), "who": who, "where": where}
    )


def counted(rows):
    """What must come out without noise, where everybody counts as often as they ride: `(steps, bins)`."""
    counts = np.zeros((HOURS, len(DISTRICTS)), int)
    for at, _, where in rows:
        counts[int((at - BEGIN).total_seconds()) // 3600, DISTRICTS.index(where)] += 1
    return counts


def duckdb_relation(rows):
    connection = pytest.importorskip("duckdb").connect()
    connection.execute("set timezone = 'UTC'")
    return connection.from_arrow(table(rows))


def pandas_frame(rows):
    pytest.importorskip("pandas")
    return table(rows).to_pandas()


def polars_frame(rows):
    return pytest.importorskip("polars").from_arrow(table(rows))


EXACT = {"mechanism": "uniform", "parameters": {"noise": ev.noise.Zero()}}
EVENTS = {"epsilon": 1, "window": "3h", "step": "1h", "time": "at", "user": "who", "bin": "where", "bins": DISTRICTS}
ALL = EVENTS | EXACT | {"max_per_step": 1000}
FRAMES = {
    "arrow": table,
    "a dict": lambda rows: table(rows).to_pydict(),
    "text": lambda rows: {
        "at": [at.isoformat() for at, _, _ in rows],
        **table(rows).select(["who", "where"]).to_pydict(),
    },
    "a stream": lambda rows: table(rows).to_reader(max_chunksize=7),
    "pandas": pandas_frame,
    "an index of pandas": lambda rows: pandas_frame(rows).set_index(["at", "where"]),
    "categories of pandas": lambda rows: pandas_frame(rows).astype({"where": "category", "who": "category"}),
    "polars": polars_frame,
    "lazy polars": lambda rows: polars_frame(rows).lazy(),
    "a stream of polars": lambda rows: pa.RecordBatchReader.from_stream(
        polars_frame(rows).cast({"where": pytest.importorskip("polars").Categorical})
    ),
    "duckdb": duckdb_relation,
    "duckdb with text": lambda rows: duckdb_relation(rows).project(
        """strftime("at", '%Y-%m-%dT%H:%M:%SZ') as "at", who, "where" """
    ),
}
SLOW = ("pandas", "polars", "duckdb")


@pytest.fixture(params=[pytest.param(k, marks=pytest.mark.slow if any(s in k for s in SLOW) else ()) for k in FRAMES])
def frame(request):
    """What makes a frame of rows."""
    return FRAMES[request.param]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """So that a small frame has many."""
    monkeypatch.setattr(frame_events, "ROWS", 13)


def values(releases):
    return np.array(releases.to_arrow()["value"]).reshape(-1, len(releases.bins))


def test_every_frame_gives_the_same_counts_in_any_order(frame):
    rows = rides()
    mixed = random.Random(1).sample(rows, len(rows))
    for given in (rows, mixed):
        releases = ev.publish(frame(given), start="2026-01-01", **ALL)
        assert np.array_equal(values(releases), counted(rows))
        assert releases.operators_only.accepted == len(rows)
        assert releases.operators_only.late == 0


@pytest.mark.parametrize("given", ["in order", "backwards"])
def test_one_far_future_time_takes_nothing_from_others(frame, given):
    strange = (BEGIN + timedelta(days=300), "somebody", "north")
    rows = [*rides()[:100], strange, *rides()[100:]]
    releases = ev.publish(
        frame(rows if given == "in order" else rows[::-1]), start="2026-01-01", until="2026-01-01T05:00Z", **ALL
    )
    assert np.array_equal(values(releases), counted(rides()))
    assert releases.operators_only.refused == {"after the end": 1}


def test_steps_of_a_sorted_stream_close_while_it_is_read():
    def seen(frame, ordered):
        source, reader = (
            FrameEvents(open_frame(frame), ordered=ordered),
            EventReader(DISTRICTS, Columns("at", None, "where")),
        )
        source.open(None, reader)
        return [batch.seen_until for batch in iter(lambda: source.poll(0), None)]

    rows = rides()
    stream = lambda: table(rows).to_reader(max_chunksize=10)  # noqa: E731
    *before, last = seen(stream(), ordered=True)
    assert len(before) > 10
    assert before == sorted(before)
    assert before[len(before) // 2] > EARLIEST < last == FOREVER
    *before, last = seen(stream(), ordered=False)
    assert set(before) == {EARLIEST}
    assert last == FOREVER
    assert max(seen(table(rows), ordered=False)[:-2]) < FOREVER, "a frame in memory is looked through"


def test_rows_that_break_the_order_are_an_error_and_not_left_out():
    rows = rides()
    with pytest.raises(ev.InputError, match="not sorted by time"):
        ev.publish(table(rows[::-1]).to_reader(max_chunksize=10), start="2026-01-01", ordered=True, **ALL)
    releases = ev.publish(table(rows).to_reader(max_chunksize=10), start="2026-01-01", ordered=True, **ALL)
    assert np.array_equal(values(releases), counted(rows))


def test_the_start_comes_from_a_frame_that_can_be_read_twice_and_the_guarantee_says_so():
    releases = ev.publish(table(rides()), **ALL)
    assert np.array_equal(values(releases), counted(rides()))
    assert "The first step was taken from the data." in str(releases.guarantee)
    assert "first step" not in str(ev.publish(table(rides()), start="2026-01-01", **ALL).guarantee)
    with pytest.raises(ev.InputError, match="start is missing"):
        ev.publish(table(rides()).to_reader(), **ALL)


def test_columns_are_those_of_long_releases_and_times_are_times():
    filtered = EVENTS | {"mechanism": "uniform", "filter": "posterior-median"}
    releases = ev.publish(table(rides()), zone="Europe/Berlin", **filtered)
    found = releases.to_arrow()
    assert found.column_names == ["step", "start", "bin", "value", "low", "high", "scale", "fresh"]
    assert found["bin"].to_pylist() == DISTRICTS * HOURS
    assert found["start"].to_pylist()[::3] == [
        (BEGIN + timedelta(hours=hour)).astimezone(ZoneInfo("Europe/Berlin")) for hour in range(HOURS)
    ]
    assert np.allclose(found["scale"], 3)
    low, value, high = (np.array(found[name]) for name in ("low", "value", "high"))
    assert (low <= value).all()
    assert (value <= high).all()


def test_counts_are_wide_or_long_and_have_no_clock():
    wide = pa.table(dict(zip(DISTRICTS, counted(rides()).T, strict=True)))
    told = {"epsilon": 1, "window": 3} | EXACT
    releases = ev.publish(wide, **told)
    assert releases.bins == tuple(DISTRICTS)
    assert releases.to_arrow().column_names == ["step", "bin", "value", "scale", "fresh"]
    assert np.array_equal(values(releases), counted(rides()))
    assert releases.operators_only is None
    backwards = ev.publish(wide.select(DISTRICTS[::-1]), bins=DISTRICTS, **told)
    assert np.array_equal(values(backwards), counted(rides()))
    rows = [
        (step, name, int(count))
        for step, row in enumerate(counted(rides()))
        for name, count in zip(DISTRICTS, row, strict=True)
    ]
    long = dict(zip(("t", "bin", "count"), zip(*rows, strict=True), strict=True))
    assert np.array_equal(values(ev.publish(long, bins=DISTRICTS, **told)), counted(rides()))
    with pytest.raises(ev.InputError, match="bins are never taken from the data"):
        ev.publish(long, **told)
    with pytest.raises(ev.InputError, match="missing: 'airport'; unknown: 'harbour'"):
        ev.publish(wide, bins=["north", "south", "airport"], **told)


def test_an_empty_count_is_not_taken_for_an_event():
    with pytest.raises(ev.InputError, match=r"column 'a' in row 2 is empty or .* and 0 where nothing was counted$"):
        ev.publish({"a": [1.0, None]}, epsilon=1, window=2)
    with pytest.raises(ev.InputError, match=r"column 'a' in row 1 .* if its rows are events, give step="):
        ev.publish({"a": ["2026-01-01"]}, epsilon=1, window=2)


def test_rows_that_pandas_named_are_not_taken_for_steps():
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    setting = {"epsilon": 1, "window": 1, "mechanism": "uniform"}
    where = pandas.Series(DISTRICTS + DISTRICTS, name="where")
    hours = pandas.Series(pandas.to_datetime(["2026-01-01"] * 3 + ["2026-01-02"] * 3), name="hour")
    both = where.groupby([hours, where]).size()
    ranges = where.groupby(pandas.cut(range(6), 2), observed=True).size().rename("n")
    for named in (where.value_counts(), both.rename("n"), where.astype("category").value_counts(), ranges):
        with pytest.raises(ev.InputError, match=r"a row is a step.*list the columns with bins="):
            ev.publish(named, **setting)
    assert len(ev.publish(where.value_counts(), bins=["count"], **setting)) == 3
    row = ev.publish(where.value_counts().to_frame().T, **setting)
    assert (len(row), set(row.bins)) == (1, set(DISTRICTS))
    days = both.unstack()
    written = (["7", "8"], ["31.01.2026", "1"], ["08:00", "2026-W05"])
    for index in (days.index, days.index.astype(str), days.index.to_period("D"), days.index.date, *written):
        assert len(ev.publish(days.set_axis(index), **setting)) == 2


def test_a_bad_count_is_found_before_anything_is_released(tmp_path):
    wide = {"north": [1] * 99 + [-1]}
    with pytest.raises(ev.InputError, match="column 'north' in row 100 is negative"):
        ev.publish(wide, epsilon=1, window=3, mechanism="uniform", store=tmp_path / "store.db")
    assert not (tmp_path / "store.db").exists()


def test_with_a_store_the_same_call_goes_on(tmp_path):
    rows, store = rides(), tmp_path / "store.db"
    told = EVENTS | {"mechanism": "uniform", "store": store}
    first = ev.publish(table(rows), until="2026-01-01T02:00Z", **told)
    again = ev.publish(table(rows), until="2026-01-01T02:00Z", **told)
    assert again.to_arrow() == first.to_arrow()
    assert len(first) == 2
    later = ev.publish(table(rows[len(rows) // 3 :]), **told)  # it begins later, and the steps are those of the store
    assert len(later) == HOURS
    assert later.to_arrow()[: first.to_arrow().num_rows] == first.to_arrow()
    assert 0 < later.ledger.worst_window() <= 1
    assert "for this run only" not in str(later.guarantee)
    assert "The first step was taken from the data." in str(later.guarantee)
    assert later.operators_only.again > 0
    with pytest.raises(ev.InputError, match="made with another setting: epsilon"):
        ev.publish(table(rows), **told | {"epsilon": 2})


def test_a_cap_bounds_people_over_many_steps():
    releases = ev.publish(table(rides()), start="2026-01-01", **EVENTS | EXACT | {"cap": "1/20h", "window": "20h"})
    counted_rides = values(releases).sum()
    assert 21 <= counted_rides <= 2 * 21, "of each of 21 people one in each of their blocks, of which they may see two"
    assert releases.operators_only.left_out == len(rides()) - counted_rides


def test_mostly_unreadable_rows_are_refused_and_nothing_is_charged(tmp_path):
    unreadable = table(rides()).set_column(1, "at", pa.array(["yesterday"] * len(rides())))
    told = EVENTS | {
        "mechanism": "uniform",
        "start": "2026-01-01",
        "until": "2026-01-01T01:00Z",
        "store": tmp_path / "s.db",
    }
    with pytest.raises(
        ev.InputError, match=r"more than half of the first rows were refused.*column 'at', first at row 1"
    ):
        ev.publish(unreadable, **told)
    assert len(ev.publish(unreadable, allow_refused=True, **told)) == 1


def test_times_with_and_without_a_zone_are_refused_unless_somebody_says_where():
    texts = [at.isoformat() if number % 2 else f"{at:%Y-%m-%dT%H:%M}" for number, (at, _, _) in enumerate(rides())]
    mixed = table(rides()).set_column(1, "at", pa.array(texts))
    with pytest.raises(ev.InputError, match="zone"):
        ev.publish(mixed, **ALL)
    assert values(ev.publish(mixed, zone="UTC", **ALL)).sum() == len(rides())


@pytest.mark.parametrize(
    ("counted", "says"),
    [
        ({"accepted": 97, "refused": {"bin is not in the list": 3}}, "If a bin was forgotten, all of it is missing"),
        ({"accepted": 997, "refused": {"bin is not in the list": 3}}, None),
        ({"accepted": 97, "refused": {"after the end": 30}}, None),
        ({"accepted": 80, "refused": {"without a user": 20}}, "most often: without a user"),
        ({"accepted": 9, "left_out": 3}, "A larger max_per_step= lets more"),
        ({"accepted": 9, "left_out": 3, "left_out_by_cap": 1}, "A larger max_per_step= lets more"),
        ({"accepted": 9, "left_out": 3, "left_out_by_cap": 2}, "A larger cap= lets more"),
        ({"accepted": 9, "cut_to_range": {"fare": 0.2, "tip": 0.05}}, "a tenth of the values of fare lie outside"),
    ],
)
def test_operators_are_warned_of_what_surely_surprises_in_words_of_python(counted, says):
    told = [
        in_python(each)
        for each in OperatorsOnly(**{"late": 0, "again": 0, "left_out": 0, "refused": {}} | counted).warnings()
    ]
    assert len(told) == (says is not None)
    for each in told:
        assert says in each
        assert not re.search("[0-9]|--", each)


@pytest.mark.parametrize("kind", ["arrow", "a stream", pytest.param("lazy polars", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("own", "told", "warned"),
    [("Europe/Berlin", {}, True), ("Europe/Berlin", {"zone": "UTC"}, False), ("UTC", {}, False), (None, {}, False)],
)
def test_days_of_another_zone_than_the_frame_s_are_warned_of(kind, own, told, warned):
    given = table(rides())
    given = given.set_column(1, "at", given["at"].cast(pa.timestamp("us", own)))
    if kind == "lazy polars":
        given = pytest.importorskip("polars").from_arrow(given).lazy()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        made = given.to_reader(max_chunksize=50) if kind == "a stream" else given
        ev.publish(made, start="2026-01-01", **ALL | told)
    told_of = [each for each in found if "at is in Europe/Berlin, and steps are cut in UTC" in str(each.message)]
    assert bool(told_of) == warned
    assert all(each.filename == __file__ for each in told_of), "the place where somebody can correct it"


def test_a_frame_without_rows_or_times_is_told_apart():
    with pytest.raises(ev.InputError, match=r"the frame has no rows; .*give start=, until= and allow_refused=True"):
        ev.publish(table(rides())[:0], **ALL)
    german = table(rides()).set_column(1, "at", pa.array(["02.03.2026 14:30"] * len(rides())))
    with pytest.raises(ev.InputError, match=r"column 'at' of the frame holds no time .* with time_format=, such as %d"):
        ev.publish(german, **ALL)
    with pytest.raises(ev.InputError, match="no time that time_format='%m/%d/%Y' describes; correct the format"):
        ev.publish(german, **ALL, time_format="%m/%d/%Y")
    with pytest.raises(ev.InputError, match="epsilon is missing"):
        ev.publish(table(rides()))


def test_an_outlook_shows_itself():
    outlook = ev.publish(table(rides()), dry_run=True, start="2026-01-01", **EVENTS, mechanism="uniform")
    assert repr(outlook) == str(outlook)


def test_errors_name_parameters_of_python():
    rows = table(rides())
    with pytest.raises(ev.InputError) as refused:
        ev.publish(rows, **ALL | {"bins": ["a", "b"]})
    assert "one name with other=; to publish nonetheless, give allow_refused=True" in str(refused.value)
    with pytest.raises(ev.InputError, match="say how they are written with time_format=, or name"):
        ev.publish(rows.set_column(1, "at", pa.array(["1.2.2026 at 3"] * len(rows))), start="2026-01-01", **ALL)


def test_commands_in_errors_stay_commands(tmp_path):
    with pytest.raises(ev.InputError, match=r"`eventide account create .* --population NAME --epsilon 1 --window 7d`"):
        ev.publish(table(rides()), **ALL, store=tmp_path / "a.db", account=tmp_path / "people.account")


def test_what_is_raw_is_told_to_operators_alone():
    strange = [(BEGIN, "person 0", "nowhere"), *[(BEGIN, "busy", "north")] * 4]
    releases = ev.publish(table([*strange, *rides()]), **EVENTS, mechanism="uniform")
    said = str(releases.operators_only)
    assert "206 events were read" in said
    assert "besides these, 1 was refused (1: bin is not in the list)" in said
    assert repr(releases.operators_only) == "OperatorsOnly(raw numbers: print() shows them)"
    left_out = releases.operators_only.left_out
    assert f"{left_out:,} of them were left out by the limit per person" in said
    assert left_out == 206 - len({(at.hour, who) for at, who, where in [*strange[1:], *rides()]})
    shown = repr(releases) + releases._repr_html_() + repr(vars(releases))
    shown = re.sub("0x[0-9a-f]+", "", shown)  # an address in memory has any digits
    assert "206" not in shown
    assert "left out" not in shown


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"time": "when"}, "no column 'when'; its columns are fare, at, who, where"),
        ({"bins": None}, "bins is missing"),
        ({"epsilon": 0}, "epsilon"),
        ({"window": "1min"}, "shorter than a step"),
        ({"cap": 2}, "cap: 2 is no cap; write how many events count in how long, such as 2/7d"),
        ({"statistic": "events,people"}, "of several give each by itself"),
        ({"between": (0, 60), "statistic": "sum:fare"}, "it must give each column its numbers"),
        (
            {"between": {"fare": (9, 0)}, "statistic": "sum:fare"},
            "'fare=9,0' is no range for between; .* the lower end",
        ),
        (
            {"between": {"fare": (0, 60)}, "statistic": "quantiles:fare"},
            r"quantiles:fare takes no range \(between\) but buckets; give edges, such as fare=0,5,10,20",
        ),
        ({"bin": ["where", "who"]}, "not the column itself; of several columns make one"),
        ({"bins": "north,south"}, "Names stand in a file, one a line, or in Python in a list"),
    ],
)
def test_what_cannot_be_meant_is_refused(told, says):
    with pytest.raises(ev.InputError, match=says):
        ev.publish(table(rides()), **ALL | told)


class Column(list):
    """A series of some library: what it prints is what stands in it."""

    def to_list(self):
        return list(self)


RAW = Column(f"secret {number}" for number in range(30))


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"time": RAW}, "time: give the name of the column, such as time='pickup', not the column itself"),
        ({"user": RAW}, "user: give the name of the column"),
        ({"user": list(RAW)}, "user: give the name of the column"),
        ({"bin": np.array(RAW)}, "bin: give the name of the column"),
        ({"bins": Column([*RAW, *RAW])}, "bins: names must differ"),
        ({"bins": [*RAW, *RAW]}, "bin 31 is there before, so it appears twice"),
        ({"bins": pa.table({"bin": list(RAW)})}, "bins cannot be a frame; give the list of all bins"),
        ({"user": pa.table({"who": list(RAW)})}, "user cannot be a frame; give the name of the column"),
        ({"levels": pa.table({"bin": ["secret"] * 2, "district": ["secret"] * 2})}, "row 2 names a bin again"),
        ({"other": RAW}, "other: a list is no text"),
        ({"step": RAW}, "a list is no duration"),
        ({"window": RAW}, "a list is not a whole number from 1 to 1,000,000,000; give one"),
        ({"start": RAW}, "a list is no text"),
        ({"statistic": RAW}, "statistic: give text or a list of texts, not a column"),
        ({"statistic": "sum:fare", "between": RAW}, "between: give text or a list of texts, not a column"),
        ({"statistic": "sum:fare", "between": {"fare": RAW}}, "'fare=...' is no range"),
        ({"statistic": "quantiles:fare", "edges": {"fare": RAW}}, "'fare=...' are no buckets"),
        ({"statistic": "sum:fare", "between": list(range(7_000, 7_030))}, "it must give each column its numbers"),
        ({"quantiles": Column([7_000.5] * 200)}, "not a column"),
        ({"seasons": Column([7_000.5] * 200)}, "not a column"),
        ({"split": RAW}, "a list gives no parts"),
        ({"keep": RAW}, "a list is not a whole number"),
        ({"population": RAW}, "a list is no text"),
        ({"epsilon": RAW}, "a list is not a number"),
    ],
    ids=lambda given: str(given)[:40],
)
def test_no_error_shows_what_stands_in_a_column_that_is_given_for_something_else(told, says):
    with pytest.raises(ev.InputError) as refused:
        ev.publish(table(rides()), **ALL | told)
    assert says in str(refused.value)
    assert len(str(refused.value)) < 400
    assert not re.search("secret [0-9]|70[0-9][0-9]", str(refused.value))


FARES = {"statistic": "quantiles:fare", "edges": {"fare": [0, 5, 10]}}


def test_what_python_users_write_is_taken():
    """Whole numbers and truth as names of bins, sets in one order, lengths of time, levels as a frame."""
    spec = ev.StreamSpec(
        epsilon=1, window=timedelta(days=1), step=np.timedelta64(3_600_000_000_000, "ns"), bins={3, 20, 1}
    )
    assert (spec.window, spec.step, spec.bins) == (24, "1h", ("1", "20", "3"))
    assert ev.StreamSpec(epsilon=1, window=1, bins=np.array([1, 2])).bins == ("1", "2")
    assert ev.StreamSpec(epsilon=1, window=1, bins=[True, False]).bins == ("true", "false")
    assert ev.StreamSpec(epsilon=1, window=1, quantiles=0.5, step="1h", **FARES).quantiles == (0.5,)
    districts = pa.table({"bin": DISTRICTS, "side": ["city", "city", "sea"]})
    spec = ev.StreamSpec(epsilon=1, window=1, bins=DISTRICTS, levels=districts)
    assert spec.levels.groups == {"side": ("city", "sea"), "total": ("total",)}
    assert ev.StreamSpec(epsilon=1, window=1, step="1h", levels=districts).bins == tuple(DISTRICTS)
    with pytest.raises(ev.InputError, match="bins is missing"):
        ev.StreamSpec(epsilon=1, window=1, step="1h", levels={"side": ["city", "city", "sea"]}).reader()
    with pytest.raises(ev.InputError, match=r"'0:00:00\.000001' is no whole number of milliseconds"):
        ev.StreamSpec(epsilon=1, window=1, step=timedelta(microseconds=1))
    with pytest.raises(ev.InputError, match=r"such as \{'district'"):
        ev.Uniform(epsilon=1, window=1, bins=DISTRICTS, levels=["a", "a", "b"])


def test_what_is_no_frame_is_refused():
    with pytest.raises(ev.InputError, match="list is no frame"):
        ev.publish([1, 2], **ALL)


def test_the_picture_has_real_times_and_names_its_band():
    matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'eventide[plots]'")
    matplotlib.use("Agg")
    releases = ev.publish(table(rides()), **EVENTS, mechanism="uniform", filter="posterior-median")
    picture = releases.plot(bins=["south"])
    (axes,) = picture.axes
    (line,) = axes.get_lines()
    assert line.get_xdata()[0] == BEGIN
    assert line.get_xdata()[-1] == BEGIN + timedelta(hours=HOURS)
    assert np.array_equal(line.get_ydata()[::2], values(releases)[:, 1])
    assert [text.get_text() for text in picture.legends[0].get_texts()] == ["released", "from low to high"]
    assert picture._repr_png_().startswith(b"\x89PNG")


@pytest.mark.slow
def test_frames_come_out_in_the_library_that_is_asked_for():
    releases = ev.publish(polars_frame(rides()), **EVENTS, mechanism="uniform")
    run = ev.run(ev.Uniform(epsilon=1, window=3, bins=DISTRICTS, seed=1), counted(rides()))
    for thing in (releases, run):
        table = thing.to_arrow()
        assert thing.to_polars().to_arrow().column_names == table.column_names
        assert thing.to_polars()["value"].to_list() == table["value"].to_pylist()
        assert thing.to_pandas()["value"].tolist() == table["value"].to_pylist()
        assert list(thing.to_pandas().columns) == table.column_names
    assert str(releases.to_polars()["start"].dtype) == "Datetime(time_unit='us', time_zone='UTC')"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_without_a_library_it_is_said_what_to_install(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    run = ev.run(ev.Uniform(epsilon=1, window=3, bins=DISTRICTS, seed=1), counted(rides()))
    with pytest.raises(ev.InputError, match=f"pip install {library}"):
        getattr(run, f"to_{library}")()


def test_a_run_is_a_long_table_too():
    mechanism = ev.Sample(epsilon=1, window=2, bins=["a", "b"], noise=ev.noise.Zero())
    ev.run(mechanism, [[9, 9]])
    assert ev.run(mechanism, [[1, 2], [3, 4]]).to_arrow().to_pylist() == [
        {"step": 1, "bin": "a", "value": 9, "scale": 1, "fresh": False},
        {"step": 1, "bin": "b", "value": 9, "scale": 1, "fresh": False},
        {"step": 2, "bin": "a", "value": 3, "scale": 1, "fresh": True},
        {"step": 2, "bin": "b", "value": 4, "scale": 1, "fresh": True},
    ]
    several = ev.run(ev.Uniform(epsilon=1, window=2, bins=1, replicas=2, seed=1), [[1]])
    with pytest.raises(ev.InputError, match=r"run.replica\(0\)"):
        several.to_arrow()
    assert several.replica(1).to_arrow().num_rows == 1


@pytest.mark.parametrize("year", [1990, 2100])
def test_a_row_outside_the_steps_of_an_ordered_stream_changes_nothing_for_others(year):
    far = (datetime(year, 1, 1, tzinfo=UTC), "stranger", "north")
    parts = [table(part) for part in (rides()[:90], [far], rides()[90:])]
    stream = pa.RecordBatchReader.from_batches(
        parts[0].schema, [batch for part in parts for batch in part.to_batches()]
    )
    until = BEGIN + timedelta(hours=HOURS)
    releases = ev.publish(stream, ordered=True, start=BEGIN, until=until, **ALL)
    assert "1 lies outside the steps of this run (1: " in str(releases.operators_only)
    assert np.array_equal(np.reshape(releases.to_arrow()["value"], (HOURS, -1)), counted(rides()))


ODD = [
    Decimal("2.50"),
    2**70,
    datetime(2026, 1, 1).date(),
    datetime(2026, 1, 1),
    UUID(int=7),
    "text",
    "\ud800",
    2.5,
    True,
    b"x",
    None,
]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
@pytest.mark.parametrize("usual", [7, 7.5, "seven", datetime(2026, 1, 2, 3, 4, 5)], ids=lambda one: type(one).__name__)
def test_a_cell_is_read_as_if_it_stood_alone_whatever_stands_beside_it(usual, odd):
    alone = [texts(_column([cell]))[0].as_py() for cell in (usual, odd)]
    assert texts(_column([usual, odd])).to_pylist() == alone
    assert texts(_column([odd, usual])).to_pylist() == alone[::-1]


def test_files_and_folders_are_taken_as_frames_are(tmp_path):
    for number, part in enumerate((rides()[:90], rides()[90:])):
        pq.write_table(table(part), tmp_path / f"{number}.parquet")
    for files in (tmp_path, str(tmp_path / "*.parquet"), sorted(tmp_path.iterdir())):
        values = ev.publish(files, **ALL).to_arrow()["value"]
        assert np.array_equal(np.reshape(values, (HOURS, -1)), counted(rides()))
    counts = tmp_path / "counts.csv"
    counts.write_text("north,south\n3,5\n")
    assert ev.publish(counts, epsilon=1, window=1, **EXACT).to_arrow()["value"].to_pylist() == [3, 5]


@pytest.mark.parametrize(
    ("source", "says"),
    [("-", "complete"), ("nats://127.0.0.1:9/S", "complete"), (["a.csv", "b.csv"], "one file"), ([], "is no frame")],
)
def test_what_is_not_complete_or_not_one_file_of_counts_is_refused(source, says):
    with pytest.raises(ev.InputError, match=says):
        ev.publish(source, epsilon=1, window=1)


@pytest.mark.parametrize(("known", "warned"), [(DISTRICTS[:2], 1), (DISTRICTS, 0)])
def test_many_refused_rows_are_a_warning_for_operators_without_numbers(known, warned):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ev.publish(table(rides()), start="2026-01-01", **ALL | {"bins": known})
    assert len(told) == warned
    for each in told:
        assert "For operators only, since it depends on the events: more than a tenth of the rows" in str(each.message)
        assert "most often: bin is not in the list" in str(each.message)
        assert not any(letter.isdigit() for letter in str(each.message))
        assert each.filename == __file__


def test_a_limit_per_person_that_leaves_out_much_is_a_warning_for_operators():
    with pytest.warns(UserWarning, match="the limit per person left out more than a tenth of events"):
        ev.publish(table(rides()), start="2026-01-01", **EVENTS, **EXACT)


def test_a_dry_run_says_what_to_expect_and_makes_nothing(tmp_path):
    how = {"epsilon": 1, "window": 24, "step": "1h", "time": "at", "user": "who", "bin": "where", "bins": DISTRICTS}
    found = ev.publish(table(rides()), **how, mechanism="uniform", store=tmp_path / "rides.db", dry_run=True)
    assert "With this setting the expected error of a count is about" in str(found)
    assert "the limit per person" in str(found)
    assert (found.next_step, list(tmp_path.iterdir())) == (0, [])
    assert "It would begin with step 0." in str(found)
    assert "It would go on with step 3." in str(found._replace(next_step=3))


@pytest.mark.parametrize(
    ("mistaken", "says"),
    [
        ({"dryrun": True}, "there is no setting 'dryrun'; did you mean 'dry_run'?"),
        ({"epsilonn": 1}, "there is no setting 'epsilonn'; did you mean 'epsilon'?"),
        ({"out": "x.csv"}, "there is no setting 'out'; write a file of what releases.to_pandas"),
        ({"every": 2}, "there is no setting 'every'; .*; what only the mechanism takes stands in parameters="),
    ],
)
def test_a_mistyped_setting_is_told_with_what_may_be_meant(mistaken, says):
    with pytest.raises(TypeError, match=says):
        ev.publish({"a": [1]}, **mistaken)


@pytest.mark.parametrize("zone", [{}, {"zone": "UTC"}])
def test_operators_are_told_that_times_without_a_zone_were_read_as_utc(zone):
    rows = {"at": ["2026-01-01T09:10", "2026-01-01T09:40"], "who": [1, 2], "page": ["start", "help"]}
    how = {"epsilon": 1, "window": 2, "step": "1h", "time": "at", "user": "who", "bin": "page", "mechanism": "uniform"}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        releases = ev.publish(rows, bins=["start", "help"], **how, **zone)
    said = "Times without a zone were read as UTC. If they are of another zone, give it"
    assert [said in str(each.message) for each in warned] == ([] if zone else [True])
    assert (said in str(releases.operators_only), releases.operators_only.read_as_utc) == (not zone, not zone)
