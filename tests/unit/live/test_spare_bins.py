"""Bins that come and go while a stream goes on: no new epoch, no step lost, the same charges, all history readable."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import eventide as ev
from eventide.cli import main
from eventide.errors import InputError
from eventide.events.bins import with_spares
from eventide.events.clock import ManualClock
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.publisher import publisher as publishing
from eventide.live.publisher.naming import close_bin, name_bin
from eventide.live.stores.open_store import open_store

BINS = with_spares(("north", "south"), 2)
START = "2026-01-01T00:00:00Z"


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(publishing, "LOOK_FOR_NAMES", 0.0)
    monkeypatch.setattr(publishing, "SNAPSHOT_EVERY", 3)


def mechanism(bins=BINS, *, name="ba", **options):
    return ev.mechanism(name, epsilon=1, window=3, bins=bins, filter="truncate", **{"noise": ev.noise.Zero()} | options)


def publisher(folder, rows, sinks=(), bins=BINS, **options):
    store = open_store(folder / "s.db", for_tests=True)
    return ev.Publisher(MemoryFeed(rows), mechanism(bins, **options), store, sinks)


def named(folder, *arguments, close=False):
    """Name or close a bin as another process would."""
    with closing(open_store(folder / "s.db")) as store:
        (close_bin if close else name_bin)(store, *arguments)


def released(folder):
    with closing(open_store(folder / "s.db", read_only=True)) as store:
        store.verify()
        return [json.loads(line) for _, line in store.releases()], list(store.entries()), store.epochs()


def rows_that_name(folder, steps=12):
    """Counts of everybody at every step; meanwhile a bin is named and another one closed."""
    for step in range(steps):
        if step == 3:
            named(folder, "harbour", "5")
        if step == 7:
            named(folder, "south", "8", close=True)
        yield [10 + step, 20, 30, 40]


def test_a_bin_that_is_named_or_closed_meanwhile_stops_nothing(tmp_path):
    sinks = [tmp_path / "wide.csv", tmp_path / "lines.jsonl", tmp_path / "rows.sqlite"]
    with publisher(tmp_path, rows_that_name(tmp_path), sinks, name="uniform") as part:
        part.run()
    lines, entries, epochs = released(tmp_path)
    assert len(epochs) == 1
    assert [line["step"] for line in lines] == list(range(12))
    assert all(line["fresh"] for line in lines)
    assert [line["values"][0] for line in lines] == [10 + step for step in range(12)]
    assert [line["values"][1] for line in lines] == [20] * 8 + [0] * 4
    assert [line["values"][2] for line in lines] == [0] * 5 + [30] * 7
    assert [line["values"][3] for line in lines] == [0] * 12
    assert [line.get("bins") for line in lines] == [None] * 5 + [{"(spare 1)": "harbour"}] * 7
    other = ev.run(mechanism(["north", "south"], name="uniform"), [[1, 1]] * 12)
    assert [entry.amount / 1e9 for entry in entries] == other.spent.tolist()  # no bin has a charge of its own
    wide = list(csv.DictReader((tmp_path / "wide.csv").read_text().splitlines()))
    assert [row["(spare 1)"] for row in wide] == ["0"] * 5 + ["30"] * 7
    assert (tmp_path / "lines.jsonl").read_text().count("harbour") == 7
    with closing(sqlite3.connect(tmp_path / "rows.sqlite")) as table:
        found = table.execute("SELECT step, value FROM releases WHERE bin = 'harbour' ORDER BY step").fetchall()
    assert found == [(step, 30.0) for step in range(5, 12)]


def test_gone_on_with_after_any_step_it_is_as_if_it_had_never_stopped(tmp_path):
    for folder in (tmp_path / "whole", tmp_path / "parts"):
        folder.mkdir()
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    with publisher(whole, rows_that_name(whole)) as part:
        part.run()
    rows = [[10 + step, 20, 30, 40] for step in range(12)]
    for until in (2, 4, 5, 8, 9, 12):
        if until == 4:
            named(parts, "harbour", "5")
        if until == 8:
            named(parts, "south", "8", close=True)
        with publisher(parts, rows, [parts / "long.csv"]) as part:
            part.run(until=until)
    assert released(parts)[:2] == released(whole)[:2]


def test_a_long_file_has_the_name_from_its_step_on_and_goes_on(tmp_path):
    events = [
        *(f"2026-01-01T{hour:02}:10:00Z,{name},{name}" for hour in range(7) for name in ("harbour", "north", "west")),
        *("2026-01-01T00:00:00Z,somebody,(spare 1)", "2026-01-01T05:00:00Z,somebody,mall"),
    ]
    (tmp_path / "events.csv").write_text("\n".join(["timestamp,user,bin", *events]) + "\n")
    bins, store = tmp_path / "bins.txt", str(tmp_path / "e.db")

    def publish(until, *names):
        bins.write_text("".join(name + "\n" for name in ("north", *names)))
        told = [tmp_path / "events.csv", "--step", "1h", "--start", START, "--until", f"2026-01-01T{until:02}:00:00Z"]
        told += ["--user", "user", "--epsilon", 1000, "--window", 2, "--mechanism", "uniform", "--bins", bins]
        told += ["--allow-refused", "--spare-bins", 2, "--store", store]
        told += ["--layout", "long", "--out", tmp_path / "long.csv"]
        ended = CliRunner().invoke(main, ["publish", *map(str, told)])
        return ended.exit_code, ended.stderr

    assert publish(2, "south")[0] == 0
    told = CliRunner().invoke(main, ["bins", store, "--name", "harbour", "--from", "3"])
    assert (told.exit_code, told.stderr) == (0, "harbour counts from step 3 on\n")
    assert publish(5, "south")[0] == 0
    assert publish(6, "south", "harbour", "mall")[0] == 0  # one that has its name by now, and a new one
    rows = list(csv.DictReader((tmp_path / "long.csv").read_text().splitlines()))
    assert [(row["step"], row["bin"], row["value"]) for row in rows if row["bin"] not in ("north", "south")] == [
        *((str(step), f"(spare {number})", "0") for step in range(3) for number in (1, 2)),
        *(("3", "harbour", "1"), ("3", "(spare 2)", "0"), ("4", "harbour", "1"), ("4", "(spare 2)", "0")),
        *(("5", "harbour", "1"), ("5", "mall", "1")),
    ]
    listed = json.loads(CliRunner().invoke(main, ["bins", store, "--json"]).stdout)["bins"]
    assert [(each["name"], each["from"]) for each in listed] == [
        ("north", 0),
        ("south", 0),
        ("harbour", 3),
        ("mall", 5),
    ]
    assert "no spare bin is left" in publish(6, "south", "pier")[1]
    assert "other bins" in publish(6)[1]
    assert CliRunner().invoke(main, ["bins", store, "--close", "south"]).exit_code == 0
    assert publish(7)[0] == 0  # which the list may leave out now


def test_an_export_has_the_names_of_now_over_all_of_history(tmp_path):
    with publisher(tmp_path, rows_that_name(tmp_path), name="uniform") as part:
        part.run()
    out = tmp_path / "export.csv"
    assert CliRunner().invoke(main, ["export", str(tmp_path / "s.db"), "--out", str(out)]).exit_code == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0]) == ["step", "north", "south", "harbour"]
    assert [row["harbour"] for row in rows] == ["0"] * 5 + ["30"] * 7
    assert [row["south"] for row in rows] == ["20"] * 8 + ["0"] * 4


def test_a_name_stays_through_a_new_epoch_and_a_restored_backup(tmp_path):
    with publisher(tmp_path, rows_that_name(tmp_path, 6)) as part:
        part.run()
    store = open_store(tmp_path / "s.db", for_tests=True)
    with ev.Publisher(MemoryFeed([[1, 2, 3, 4]] * 12), mechanism(name="uniform"), store, new_epoch=True) as part:
        part.run()
    lines = released(tmp_path)[0]
    assert lines[6]["values"][2] == lines[5]["values"][2] == 30  # repeated until nothing of before is in a window
    assert lines[11]["values"] == [1, 2, 3, 0]
    store = open_store(tmp_path / "s.db", for_tests=True)
    with ev.Publisher(
        MemoryFeed([[1, 2, 3, 4]] * 20), mechanism(name="uniform"), store, after_restore=True, longest_window=3
    ) as part:
        part.run()
    assert released(tmp_path)[0][-1]["values"] == [1, 2, 3, 0]
    assert released(tmp_path)[2][-1].setting.names == ("north", "south", "harbour", "(spare 2)")


def test_a_frame_takes_bins_that_are_new_and_has_no_rows_of_spare_ones(tmp_path):
    def publish(hours, bins):
        events = {
            "at": [f"2026-01-01T{hour:02}:10" for hour in hours for _ in range(3)],
            "who": [person for _ in hours for person in range(3)],
            "place": ["north", "south", "harbour"] * len(hours),
        }
        columns = {"time": "at", "user": "who", "bin": "place", "start": "2026-01-01", "store": tmp_path / "s.db"}
        until = f"2026-01-01T{hours[-1] + 1:02}:00"
        setting = {"epsilon": 1000, "window": 2, "step": "1h", "mechanism": "uniform", "spare_bins": 3}
        return ev.publish(events, bins=bins, until=until, **columns, **setting).to_arrow()

    assert set(publish([0, 1], ["north", "south"])["bin"].to_pylist()) == {"north", "south"}
    table = publish([2, 3], ["north", "south", "harbour"])
    harbour = [row["value"] for row in table.to_pylist() if row["bin"] == "harbour"]
    assert harbour == [0, 0, 1, 1]


def test_counts_of_a_file_get_a_column(tmp_path):
    def publish(text):
        (tmp_path / "counts.csv").write_text(text)
        told = [tmp_path / "counts.csv", "--epsilon", 1000, "--window", 1, "--mechanism", "uniform", "--spare-bins", 1]
        told += ["--store", tmp_path / "c.db", "--out", tmp_path / "out.jsonl"]
        return CliRunner().invoke(main, ["publish", *map(str, told)])

    assert publish("a,b\n1,2\n3,4\n").exit_code == 0
    grown = publish("a,b,c\n1,2,0\n3,4,0\n5,6,7\n")
    assert grown.exit_code == 0, grown.stderr
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["values"] for line in lines] == [[1, 2, 0], [3, 4, 0], [5, 6, 7]]


LEVELS = "bin,ward\nnorth,N\nsouth,S\neast,N\n(spare 1),N\n"


def with_levels(tmp_path, text, hours, mechanism="ba", **more):
    (tmp_path / "levels.csv").write_text(text)
    bins = [line.partition(",")[0] for line in text.splitlines()[1:] if "spare" not in line]
    events = {
        "at": [f"2026-01-01T{hour:02}:10" for hour in hours for _ in range(30)],
        "who": [person for _ in hours for person in range(30)],
        "bin": (bins * 30)[:30] * len(hours),
    }
    setting = {"epsilon": 1000, "window": 2, "step": "1h", "start": "2026-01-01", "time": "at", "user": "who"}
    until, place = f"2026-01-01T{hours[-1] + 1:02}:00", {"store": tmp_path / "s.db", "levels": tmp_path / "levels.csv"}
    return ev.publish(events, until=until, spare_bins=3, mechanism=mechanism, **place, **setting, **more)


@pytest.mark.parametrize("mechanism", ["ba", "uniform"])
def test_with_levels_a_new_bin_takes_a_spare_one_of_its_groups_and_all_adds_up(tmp_path, mechanism):
    with_levels(tmp_path, LEVELS, range(3), mechanism)
    with_levels(tmp_path, LEVELS + "harbour,N\n", range(3, 8), mechanism)
    lines, _, epochs = released(tmp_path)
    assert len(epochs) == 1
    assert epochs[-1].setting.names == ("north", "south", "east", "harbour", "(spare 2)", "(spare 3)")
    for line in lines:
        values = line["values"]
        assert line["levels"]["ward"]["values"] == [values[0] + values[2] + values[3], values[1], 0]
        assert line["levels"]["total"]["values"] == [sum(values)]
        assert values[3] == 0 or line["step"] >= 3
        assert values[4:] == [0, 0]
    assert any(line["values"][3] for line in lines)
    with pytest.raises(InputError, match="no spare bin is left in N"):
        with_levels(tmp_path, LEVELS + "harbour,N\nmall,N\n", range(8, 9), mechanism)
    with_levels(tmp_path, LEVELS + "harbour,N\nmall,spare\n", range(8, 9), mechanism)
    with pytest.raises(InputError, match="another setting"):
        with_levels(tmp_path, LEVELS.replace("south,S", "south,N") + "harbour,N\n", range(9, 10), mechanism)


def test_where_there_are_levels_the_verb_says_which_groups(tmp_path):
    with_levels(tmp_path, LEVELS, range(2), "uniform")
    with closing(open_store(tmp_path / "s.db")) as store:
        with pytest.raises(InputError, match="say which with --like"):
            name_bin(store, "harbour")
        assert name_bin(store, "harbour", like="north").names[3] == "harbour"
        with pytest.raises(InputError, match="no spare bin is left in N"):
            name_bin(store, "mall", like="harbour")
        assert name_bin(store, "mall", like="(spare 2)").names[4] == "mall"


def test_the_step_is_the_next_to_begin_or_one_that_is_said(tmp_path):
    feed = {"step": "1h", "start": START, "until": "2026-01-01T03:00:00Z", "user": "user"}
    (tmp_path / "events.csv").write_text("timestamp,user,bin\n2026-01-01T00:10:00Z,u,north\n")
    with ev.Publisher(tmp_path / "events.csv", mechanism(noise="secure"), tmp_path / "s.db", **feed) as part:
        part.run()
    clock, hour = ManualClock(), 3_600_000_000
    clock.set(part.feed.timeline.start + 4 * hour)
    with closing(open_store(tmp_path / "s.db")) as store:
        with pytest.raises(InputError, match="step 2 is released already; the next one is 3"):
            name_bin(store, "harbour", "2")
        with pytest.raises(InputError, match="2025-12-31 lies before the first step; the next one is 3"):
            name_bin(store, "harbour", "2025-12-31")
        assert name_bin(store, "harbour", clock=clock).said[-1].first == 5
        clock.set(part.feed.timeline.start + 10**6 * hour)  # nobody publishes as time goes by
        assert name_bin(store, "mall", clock=clock).said[-1].first == 3
        assert close_bin(store, "north", "2026-01-01T06:30:00Z").said[-1].end == 7
        with pytest.raises(InputError, match="no spare bin is left"):
            name_bin(store, "pier")


def test_events_of_a_bin_that_is_not_open_go_where_unknown_ones_go(tmp_path):
    rows = [
        f"2026-01-01T{hour:02}:10:00Z,u{number},{name}"
        for hour in range(4)
        for number, name in enumerate(("north", "harbour", "(spare 2)"))
    ]
    (tmp_path / "events.csv").write_text("\n".join(["timestamp,user,bin", *rows]) + "\n")
    feed = {"step": "1h", "start": START, "until": "2026-01-01T04:00:00Z", "user": "user", "other": "else"}
    bins = with_spares(("north", "else"), 2)
    store = open_store(tmp_path / "s.db", for_tests=True)
    with ev.Publisher(tmp_path / "events.csv", mechanism(bins, name="uniform"), store, **feed) as part:
        part.run(until=1)
    named(tmp_path, "harbour", "2")
    named(tmp_path, "north", "3", close=True)
    store = open_store(tmp_path / "s.db", for_tests=True)
    with ev.Publisher(tmp_path / "events.csv", mechanism(bins, name="uniform"), store, **feed) as part:
        part.run()
    values = np.array([line["values"] for line in released(tmp_path)[0]])
    assert values.tolist() == [[1, 2, 0, 0], [1, 2, 0, 0], [1, 1, 1, 0], [0, 2, 1, 0]]
    with closing(open_store(tmp_path / "s.db")) as store, pytest.raises(InputError, match="for other events"):
        close_bin(store, "else")


def test_events_of_a_bin_that_is_named_later_wait_for_their_step(tmp_path):
    """Whatever lies behind the end of a run is read by the next one, also of a bin that no list had by then."""

    def publish(until, bins, number=0):
        table = pa.table({"timestamp": times, "user": [str(each) for each in range(len(times))], "bin": names})
        pq.write_table(table, tmp_path / "events.parquet", row_group_size=20)
        feed = {"step": "1h", "start": START, "until": f"2026-01-01T0{until}:00:00Z", "user": "user"}
        told = mechanism(with_spares(bins, number) if number else bins, name="uniform")
        (tmp_path / str(number)).mkdir(exist_ok=True)
        store = open_store(tmp_path / str(number) / "s.db", for_tests=True)
        with ev.Publisher(
            tmp_path / "events.parquet", told, store, **feed, allow_refused=True, new_epoch=not number
        ) as part:
            part.run()
        return part.feed.counters

    times = ["2026-01-01T00:10:00Z"] + ["2026-01-01T02:10:00Z"] * 70 + ["2026-01-01T03:10:00Z"] * 30
    names = ["north"] + ["harbour"] * 100
    first = publish(2, ["north", "south"], 2)
    assert (first.accepted, dict(first.refused)) == (1, {"after the end": 19})
    named(tmp_path / "2", "harbour", "2")
    assert publish(4, ["north", "south"], 2).accepted == 100
    assert [line["values"][2] for line in released(tmp_path / "2")[0]] == [0, 0, 70, 30]
    publish(1, ["north"])
    publish(4, ["north", "harbour"])
    assert released(tmp_path / "0")[0][-1]["values"] == [0, 30]


def test_a_run_over_files_that_is_stopped_reads_events_again_whose_bin_got_a_name(tmp_path):
    rows = [("00:10", "north"), *[("02:10", "harbour")] * 5, *[("01:10", "north")] * 6, ("02:20", "north")]
    table = [{"timestamp": f"2026-01-01T{at}:00Z", "user": f"u{n}", "bin": name} for n, (at, name) in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(table), tmp_path / "events.parquet", row_group_size=6)
    feed = {"step": "1h", "start": START, "until": "2026-01-01T03:00:00Z", "user": "user"}
    for until in (2, 3):
        store = open_store(tmp_path / "s.db", for_tests=True)
        told = mechanism(with_spares(["north"], 1), name="uniform")
        with ev.Publisher(tmp_path / "events.parquet", told, store, **feed, allow_refused=True) as part:
            part.run(until=until)
        if until == 2:
            named(tmp_path, "harbour", "2")
    assert released(tmp_path)[0][2]["values"] == [1, 5]


def test_a_store_without_spare_bins_is_as_it_was(tmp_path):
    with publisher(tmp_path, [[1, 2]] * 3, bins=["north", "south"]) as part:
        part.run()
    assert part.names is None
    setting = released(tmp_path)[2][0].setting
    assert setting.named is None
    with closing(open_store(tmp_path / "s.db")) as store, pytest.raises(InputError, match="has no spare bins"):
        name_bin(store, "harbour")
    told = CliRunner().invoke(main, ["bins", str(tmp_path / "s.db")])
    assert told.stdout == "north\nsouth\n0 spare bins left; the next step is 3\n"


def test_statistics_that_are_computed_have_no_spare_bins(tmp_path):
    more = {"user": "who", "statistic": "mean:fare", "between": "fare=0,100,1", "mechanism": "uniform"}
    with pytest.raises(InputError, match="cannot have bins that come and go"):
        ev.StreamSpec(epsilon=1, window=2, step="1h", bins=["a"], spare_bins=2, **more)
    events = {"timestamp": ["2026-01-01T00:10"], "who": [1], "bin": ["a"], "fare": [3]}
    bounds = {"start": "2026-01-01", "until": "2026-01-01T01:00", "store": tmp_path / "s.db"}
    ev.publish(events, epsilon=1, window=2, step="1h", bins=["a"], **bounds, **more)
    with closing(open_store(tmp_path / "s.db")) as store, pytest.raises(InputError, match="bins that come and go"):
        close_bin(store, "a")


def test_events_held_in_noisy_cells_have_no_spare_bins():
    setting = {"mechanism": "ba", "parameters": {"pan_private": "single"}, "step": "1h", "bins": ["a"]}
    with pytest.raises(InputError, match="pan_private is for releases of bins alone"):
        ev.StreamSpec(epsilon=1, window=2, spare_bins=2, **setting)
