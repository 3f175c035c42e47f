"""Means, quantiles, sums below 0 and several statistics at once, from the source to the release, under one ledger."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from command_words import with_last
from rides import EXACT, START, STREAM, UNTIL, frame_of, write_rides

import eventide as ev
from eventide.cli import main
from eventide.errors import InputError
from eventide.events.statistic_names import parse_statistic
from eventide.live.stores.open_store import open_store
from eventide.live.stream_spec import StreamSpec
from eventide.mechanisms.several import Several

ROWS = [
    ("2026-01-01T00:10", "anna", "north", "12.5"),
    ("2026-01-01T00:20", "anna", "south", "-7"),
    ("2026-01-01T00:30", "ben", "north", "1e308"),  # cut to 120
    ("2026-01-01T00:40", "cleo", "north", "much"),  # refused, as the next two are
    ("2026-01-01T01:40", "cleo", "north", ""),
    ("2026-01-01T01:50", "cleo", "north", "inf"),
    ("2026-01-01T02:30", "ben", "south", "5e-324"),  # 0
    ("2026-01-01T02:40", "anna", "south", "-1" + "0" * 30),  # cut to -10
]
FRAME = frame_of(ROWS)
FARE = {"between": "fare=-10,120,0.5"}
MEAN, SUM = {"statistic": "mean:fare", **FARE}, {"statistic": "sum:fare", **FARE}
STAYS = {"statistic": "quantiles:fare", "edges": "fare=-10,0,10,20,120", "quantiles": (0.25, 0.5)}
ALL = {
    "statistic": ["people", "mean:fare", "quantiles:fare"],
    "between": FARE["between"],
    "edges": STAYS["edges"],
    "split": "people=0.5,mean:fare=0.25,quantiles:fare=0.25",
}
NO = None


@pytest.fixture
def source(tmp_path):
    return write_rides(tmp_path, ROWS)


def words(source, *more):
    told = ["publish", source, "--epsilon", 1, "--window", 2, "--step", "1h", "--start", START, "--until", UNTIL]
    told += ["--user", "user", "--bins", source.with_name("bins.txt"), "--mechanism", "uniform", "--max-per-step", 2]
    told += ["--statistic", "people", "--statistic", "mean:fare", "--between", FARE["between"]]
    told += ["--statistic", "quantiles:fare", "--edges", STAYS["edges"], "--split", ALL["split"], *more]
    return [*map(str, told)]


def called(*told):
    return CliRunner().invoke(main, with_last(*told))


def test_means_of_frames_and_files_are_exact_and_no_data_is_none(source):
    for given in (FRAME, source):
        released = ev.publish(given, **STREAM, **MEAN, **EXACT)
        assert released.to_arrow()["value"].to_pylist() == [66.25, -7, NO, NO, NO, -5]
        assert released.operators_only.refused == {"value cannot be read": 3}
    assert released.guarantee.sensitivity == 2 * 260
    assert "Values of fare are cut to the range from -10 to 120" in str(released.guarantee)


@pytest.mark.slow
def test_no_data_is_not_a_number_in_pandas():
    shown = ev.publish(FRAME, **STREAM, **MEAN, **EXACT).to_pandas()
    assert [math.isnan(value) for value in shown["value"]] == [False, False, True, True, True, False]


def test_sums_below_0_are_exact():
    released = ev.publish(FRAME, **STREAM, **SUM, **EXACT)
    assert released.to_arrow()["value"].to_pylist() == [132.5, -7, 0, 0, 0, -10]
    assert released.guarantee.sensitivity == 2 * 240
    below = ev.publish(FRAME, **STREAM, statistic="sum:fare", between="fare=-120,-1,1", **EXACT)
    assert below.to_arrow()["value"].to_pylist() == [-2, -7, 0, 0, 0, -121]


def test_quantiles_are_interpolated_between_the_edges():
    table = ev.publish(FRAME, **STREAM, **STAYS, **EXACT).to_arrow()
    assert table.column_names == ["step", "start", "bin", "statistic", "value", "low", "high", "scale", "fresh"]
    rows = table.select(["step", "bin", "statistic", "value"]).to_pylist()
    found = {(row["step"], row["bin"], row["statistic"]): row["value"] for row in rows}
    assert found[0, "north", "quantile:fare:0.25"] == 15
    assert found[0, "north", "quantile:fare:0.5"] == 20
    assert found[1, "north", "quantile:fare:0.5"] is None
    assert found[2, "south", "quantile:fare:0.5"] == 0  # the edge between the two


def test_several_share_one_ledger_and_each_has_its_part():
    spec = StreamSpec(**STREAM, **ALL)
    mechanism = spec.build_mechanism()
    shares = [part.epsilon for part in mechanism._parts._parts.values()]
    assert shares == [0.5, 0.25, 0.25]
    released = ev.publish(FRAME, **STREAM, **ALL, **EXACT)
    table = released.to_arrow()
    names = ["people", "mean:fare", "quantile:fare:0.5"]
    assert table["statistic"].to_pylist()[:6] == [name for name in names for _ in range(2)]
    assert table["value"].to_pylist()[:6] == [2, 1, 66.25, -7, 20, -5]
    assert table["scale"].to_pylist()[:6] == [2 * 2 * 2.0] * 2 + [2 * 4 * 260.0] * 2 + [2 * 4 * 2.0] * 2
    assert released.ledger.worst_window() == 1
    assert "releases of people, mean:fare, quantiles:fare together" in str(released.guarantee)
    assert "with epsilon 1. In a step one person adds at most 2 to the events that count" in str(released.guarantee)


@pytest.mark.parametrize("mechanism", ["uniform", "sample", "hybrid", "ba"])
def test_every_mechanism_that_can_keeps_to_epsilon_and_goes_on_from_its_saved_state(mechanism):
    told = StreamSpec(**STREAM | {"window": 4, "mechanism": mechanism}, **ALL).build_mechanism()
    one = type(told)(**told.parameters() | {"noise": ev.noise.Seeded(5)})
    numbers = [[3, 4, 500, 700, 20, 30, 1, 0, 2, 3, 0, 1, 4, 2]] * 12
    for step, row in enumerate(numbers):
        if step == 5:
            other = ev.load(one.save())
        if step >= 5:
            wanted, found = one.release(row), other.release(row)
            assert found.values.tolist() == wanted.values.tolist()
            assert repr(found.statistics) == repr(wanted.statistics)
        else:
            one.release(row)
    assert isinstance(other, Several)
    assert one.ledger.worst_window() <= 1


def test_a_cap_is_worth_for_several_what_it_is_for_one():
    capped = STREAM | {"window": 9, "cap": "2/9"}
    released = ev.publish(FRAME, **capped, **ALL, **EXACT)
    events = StreamSpec(**capped).build_mechanism()
    several = StreamSpec(**capped, **ALL).build_mechanism()
    assert several.window_sensitivity == events.window_sensitivity
    assert several.ledger.nano_epsilon == events.ledger.nano_epsilon
    parts = [part.ledger.nano_epsilon for part in several._parts._parts.values()]
    assert sum(parts) <= several.ledger.nano_epsilon < sum(parts) + 3
    assert released.to_arrow()["value"].to_pylist()[:4] == [2, 1, 66.25, -7]
    mean = StreamSpec(**capped, **MEAN).build_mechanism()
    assert mean.window_sensitivity == 260 * events.window_sensitivity


def test_the_command_publishes_resumes_exports_and_compares(source, tmp_path):
    store = tmp_path / "store.db"
    places = ("--store", store, "--out", tmp_path / "out.csv")
    half = [word if word != UNTIL else "2026-01-01T02:00:00+00:00" for word in words(source, *places)]
    assert called(*half).exit_code == 0
    done = called(*words(source, *places))
    assert done.exit_code == 0, done.output
    rows = list(csv.reader((tmp_path / "out.csv").read_text().splitlines()))
    assert rows[0] == ["step", "start", "bin", "statistic", "value", "low", "high", "scale", "fresh"]
    assert len(rows) == 1 + 3 * 3 * 2
    assert called("export", str(store), "--check", str(tmp_path / "out.csv")).exit_code == 0
    for name in ("all.csv", "all.parquet", "all.jsonl"):
        exported = called("export", str(store), "--out", str(tmp_path / name))
        assert exported.exit_code == 0, exported.output
    written = [[cell or None for cell in row] for row in rows[1:]]
    again = [[cell or None for cell in row] for row in csv.reader((tmp_path / "all.csv").read_text().splitlines())][1:]
    numbers = [[None if cell is None else float(cell) for cell in row[4:8]] for row in written]
    assert [[None if cell is None else float(cell) for cell in row[4:8]] for row in again] == numbers
    assert pq.read_table(tmp_path / "all.parquet")["value"].to_pylist() == [row[0] for row in numbers]
    line = json.loads((tmp_path / "all.jsonl").read_text().splitlines()[0])
    assert (line["statistic"], list(line["statistics"])) == ("people", ["mean:fare", "quantile:fare:0.5"])
    totals = tmp_path / "groups.toml"
    totals.write_text('all = ["north", "south"]\n')
    refused = called("export", str(store), "--out", str(tmp_path / "totals.csv"), "--totals", str(totals))
    assert "do not add up" in refused.stderr
    verified = called("ledger", str(store))
    assert verified.exit_code == 0, verified.output
    other = called(*[word.replace("20,120", "30,120") for word in words(source, *places, "--new-epoch")])
    assert other.exit_code == 2
    assert "steps.edges" in other.stderr


def test_an_epoch_repeats_what_was_released_of_each(source, tmp_path):
    places = ("--store", tmp_path / "store.db", "--out", tmp_path / "out.jsonl")
    half = [word if word != UNTIL else "2026-01-01T01:00:00+00:00" for word in words(source, *places)]
    assert called(*half).exit_code == 0
    changed = [
        word if word != ALL["split"] else "people=1,mean:fare=1,quantiles:fare=1" for word in words(source, *places)
    ]
    assert called(*changed).exit_code == 2
    done = called(*changed, "--new-epoch")
    assert done.exit_code == 0, done.output
    first, second, third = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert second["values"] == first["values"]
    assert second["statistics"]["mean:fare"]["values"] == first["statistics"]["mean:fare"]["values"]
    assert (second["fresh"], third["fresh"]) == (False, True)
    assert called("export", str(tmp_path / "store.db"), "--out", str(tmp_path / "all.csv")).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("point", ["inside-transaction:2", "half-line:2"])
def test_a_killed_publisher_goes_on_and_says_what_it_would_have_said(source, tmp_path, point):
    places = ("--store", tmp_path / "store.db", "--out", tmp_path / "out.csv")
    program = "from eventide.live.publisher import publisher; publisher.TOGETHER = 1; "
    program += "from eventide.cli import main; main()"
    environment = os.environ | {"EVENTIDE_FAULT": point}
    killed = subprocess.run([sys.executable, "-c", program, *words(source, *places)], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert called(*words(source, *places)).exit_code == 0
    assert called("export", str(tmp_path / "store.db"), "--check", str(tmp_path / "out.csv")).exit_code == 0
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1 + 3 * 3 * 2
    store = open_store(tmp_path / "store.db", read_only=True)
    assert store.next_step() == 3
    store.close()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"split": "people=1"}, "it must give a part to each of people, mean:fare, quantiles:fare"),
        ({"mechanism": "pegasus"}, "pegasus cannot measure"),
        ({"levels": {}}, "cannot be published with it"),
        ({"queries": [ev.Query(2, 1)], "queries_epsilon": 0.5}, "cannot be published with it"),
        ({"user": None, "max_per_step": 1}, "need a person"),
        ({"split": "people=0,mean:fare=1,quantiles:fare=1"}, "above 0"),
    ],
)
def test_what_does_not_go_together_is_refused(change, says):
    with pytest.raises(InputError, match=says):
        StreamSpec(**STREAM | ALL | change).build_mechanism()


EACH = {"mechanism": "people=ba,mean:fare=sample", "filter": "people=none,mean:fare=repeat"}


def test_each_statistic_has_the_mechanism_and_filter_that_were_chosen_for_it():
    mechanism = StreamSpec(**STREAM | ALL | EACH | {"mechanism": "people=ba,mean:fare=sample,quantiles:fare=uniform"})
    told = mechanism.build_mechanism().statistics
    assert [each["mechanism"] for each in told] == ["ba", "sample", "uniform"]
    assert [each["filter"] for each in told] == ["none", "repeat", "truncate"]  # which is what the last has by default
    built = mechanism.build_mechanism()._parts._parts.values()
    assert [type(part).__name__ for part in built] == ["BudgetAbsorption", "Sample", "Uniform"]


def test_a_plain_name_is_stored_as_it_always_was():
    told = StreamSpec(**STREAM, **ALL).build_mechanism().statistics[0]
    assert told == {"statistic": "people", "part": "1/2", "mechanism": "uniform", "parameters": {}}


def test_parameters_go_to_the_mechanisms_that_take_them():
    chosen = {"mechanism": "people=hybrid,mean:fare=uniform,quantiles:fare=uniform", "parameters": {"k": 2}}
    told = StreamSpec(**STREAM | ALL | chosen).build_mechanism().statistics
    assert [each["parameters"] for each in told] == [{"k": 2}, {}, {}]
    with pytest.raises(InputError, match="kk"):
        StreamSpec(**STREAM | ALL | chosen | {"parameters": {"kk": 2}}).build_mechanism()
    with pytest.raises(InputError, match="takes no seasons"):
        StreamSpec(**STREAM | ALL | chosen | {"seasons": (24,), "parameters": {}}).build_mechanism()


def test_what_was_chosen_for_the_only_statistic_is_plain():
    spec = StreamSpec(**STREAM | {"statistic": "people", "mechanism": "people=ba", "filter": "people=none"})
    assert (spec.mechanism, spec.filter) == ("ba", "none")
    assert type(spec.build_mechanism()).__name__ == "BudgetAbsorption"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"mechanism": "people=unifrom"}, "mechanism: there is no mechanism 'unifrom'; did you mean 'uniform'?"),
        ({"mechanism": "peeple=ba"}, "mechanism: there is no statistic 'peeple'; did you mean 'people'?"),
        ({"filter": "people=kallman"}, "filter: there is no filter 'kallman'; did you mean 'kalman'?"),
        ({"filter": "fare=none"}, "filter: there is no statistic 'fare'; did you mean 'mean:fare'?"),
        ({"mechanism": "people=ba,uniform"}, "must name each statistic once, such as people=ba,sum:fare=uniform"),
        ({"mechanism": "people=ba,people=tide"}, "must name each statistic once"),
        ({"mechanism": "people=pegasus"}, "mechanism: pegasus cannot measure"),
    ],
)
def test_a_wrong_choice_for_a_statistic_is_told(change, says):
    with pytest.raises(InputError, match=re.escape(says)):
        StreamSpec(**STREAM | ALL | change)


@pytest.mark.slow
def test_the_command_chooses_for_each_and_goes_on_with_the_same_choice(source, tmp_path):
    told = words(source, "--store", tmp_path / "store.db", "--out", tmp_path / "out.jsonl")
    chosen = [*told, "--mechanism", "people=ba,mean:fare=sample", "--filter", "people=none"]
    for _ in range(2):
        done = called(*chosen)
        assert done.exit_code == 0, done.output
    other = called(*told, "--mechanism", "people=ba,mean:fare=uniform", "--filter", "people=none")
    assert "statistics.mean:fare.mechanism (sample before, uniform now)" in other.stderr
    shown = called("ledger", str(tmp_path / "store.db"))
    assert "ba, sample, tide" in shown.stdout


def test_a_split_of_one_statistic_is_refused():
    with pytest.raises(InputError, match="several statistics, which there are not"):
        StreamSpec(**STREAM, **MEAN, split="mean:fare=1")


def test_a_dry_run_says_errors_of_looks_in_events(source):
    told = called(*words(source, "--dry-run", "--json"))
    report = json.loads(told.stdout)
    assert (report["errors_are_in"], report["smallest_error_of_a_look"]) == ("events", 4 * 2)  # half of epsilon, m = 2
    assert "Expected error of one measurement in events: 8 to 16, depending on" in told.stderr
    assert "Events that the limit per person (--max-per-step, --cap) leaves out are not included" in told.stderr


def test_wide_tables_hold_one_statistic(source, tmp_path):
    wide = called(*words(source, "--out", tmp_path / "out.csv", "--layout", "wide"))
    assert "several statistics have a row for each bin and statistic" in wide.stderr


def test_a_sqlite_file_has_the_first_among_releases_and_others_among_statistics(source, tmp_path):
    places = ("--store", tmp_path / "s.db", "--out", tmp_path / "out.sqlite")
    for _ in range(2):  # the second time it compares what is there
        done = called(*words(source, *places))
        assert done.exit_code == 0, done.output
    with closing(sqlite3.connect(tmp_path / "out.sqlite")) as tables:
        assert tables.execute("SELECT count(*) FROM releases").fetchone() == (3 * 2,)
        found = tables.execute("SELECT DISTINCT statistic FROM statistics ORDER BY statistic").fetchall()
    assert found == [("mean:fare",), ("quantile:fare:0.5",)]


def test_people_alone_are_still_what_they_were():
    assert parse_statistic("people").direct
    assert type(StreamSpec(**STREAM, statistic="people").build_mechanism()).__name__ == "Uniform"
    assert type(StreamSpec(**STREAM, statistic="sum:fare", between="fare=0,9").build_mechanism()).__name__ == "Uniform"
