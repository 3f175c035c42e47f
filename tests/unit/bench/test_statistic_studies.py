"""Studies of sums, means and quantiles: what is measured, what is true, what an error is, and what reports show."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import eventide as ev
from eventide.bench import load_study, read_results, repeat_cell, run_study
from eventide.bench.run.runner import releases
from eventide.bench.study.metrics import MetricOptions, MetricTally, StepBlock
from eventide.bench.study.study import Looked, StudiedMechanism
from eventide.cli.report import command as report
from eventide.errors import InputError
from eventide.streams.event_numbers import numbers_of, studied_statistic
from eventide.streams.value_generators import VALUE_GENERATORS, fares

STUDY = """
seed = 5
repetitions = 6
metrics = ["mae", "mre", "coverage", "data_missed", "data_invented", "total_mae"]

[[mechanisms]]
vary.name = ["uniform", "ba"]
filter = "truncate"

[[streams]]
generator = "fares"
length = 30
level = 60
STATISTIC

[[privacy]]
epsilon = 8.0
window = 4
"""
STATISTICS = {
    "mean": 'statistic = "mean:fare"\nbetween = "fare=0,60"',
    "quantiles": 'statistic = "quantiles:fare"\nedges = "fare=0,5,10,15,20,30,60"\nquantiles = [0.25, 0.5]\nbins = 2',
    "sum": 'statistic = "sum:fare"\nbetween = "fare=0,60"',
    "people": 'statistic = "people"',
}


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def load(statistic, text=STUDY):
        Path("study.toml").write_text(text.replace("STATISTIC", STATISTICS.get(statistic, statistic)))
        return load_study("study.toml")

    return load


def test_what_is_true_is_what_people_would_compute(load):
    rides = fares(length=30, level=60, bins=2)
    steps = [rides.value[(rides.step == step) & (rides.bin == place)] for step in range(30) for place in range(2)]
    truth = load("quantiles").streams[0].look().truth
    wanted = [np.quantile(np.clip(each, 0, 60), (0.25, 0.5)) if len(each) else [np.nan] * 2 for each in steps]
    np.testing.assert_allclose(truth, np.reshape(wanted, (30, 4)))
    rides = fares(length=30, level=60)
    truth = load("mean").streams[0].look().truth[:, 0]
    wanted = [np.clip(rides.value[rides.step == step], 0, 60).mean() for step in range(30)]
    np.testing.assert_allclose(truth, wanted, atol=0.03)  # half a unit of the grid
    assert load("people").streams[0].read().max() <= 60 * 2
    sums = load("sum").streams[0].look()
    np.testing.assert_allclose(sums.truth, sums.numbers * 0.06)


def test_a_study_tells_what_a_publisher_would(load):
    """Of the same events, without noise."""
    rides = fares(length=6, level=20)
    events = enumerate(zip(rides.step, rides.value, strict=True))
    rows = [f"2026-01-01T{step:02}:30,{row},0,{fare}" for row, (step, fare) in events]
    Path("rides.csv").write_text("\n".join(["timestamp,user,bin,fare", *rows, ""]))
    told = {"statistic": "quantiles:fare", "edges": "fare=0,5,10,15,20,30,60", "quantiles": "0.25,0.5"}
    columns = {"step": "1h", "start": "2026-01-01", "until": "2026-01-01T06:00", "user": "user", "bins": ["0"]}
    how = {"epsilon": 8, "window": 4, "mechanism": "uniform", "parameters": {"noise": ev.noise.Zero()}}
    released = np.reshape(ev.publish("rides.csv", **told, **columns, **how).to_arrow()["value"].to_pylist(), (6, 2))
    study = load(STATISTICS["quantiles"].replace("bins = 2", ""), STUDY.replace("30", "6", 1).replace("60", "20", 1))
    exact = replace(study.cells[0], mechanism=WithoutNoise(**vars(study.cells[0].mechanism)))
    (block,) = releases(study, [exact], Looked.side_by_side(exact.stream.look()), 0, 2)
    np.testing.assert_allclose(block.released[:, 0, 1], released)


class WithoutNoise(StudiedMechanism):
    def build(self, setting, bins, replicas, noise, *asked):
        return super().build(setting, bins, replicas, ev.noise.Zero(), *asked)


@pytest.mark.parametrize("statistic", ["mean", "quantiles", "sum"])
def test_a_study_runs_to_a_report_and_a_table(load, statistic):
    study = load(statistic)
    run_study(study, "results.parquet")
    results = read_results("results.parquet")
    rows = {(row["mechanism"], row["metric"]): row["mean"] for row in results.table.to_pylist()}
    adds_up = statistic == "sum"
    assert 0 < rows["uniform filter=truncate", "mae"] < (600 if adds_up else 20)  # in the unit of the column
    assert (rows["uniform filter=truncate", "mre"] is None) == (rows["ba filter=truncate", "total_mae"] is None)
    assert (rows["uniform filter=truncate", "mre"] is None) == (not adds_up)
    assert (rows["uniform filter=truncate", "data_missed"] is None) == adds_up
    assert adds_up or rows["uniform filter=truncate", "coverage"] > 0.8
    figures = repeat_cell(study, study.cells[0])["mae"]
    assert figures.mean() == rows["uniform filter=truncate", "mae"]
    assert results.about["streams"][study.streams[0].label]["bins"] == (2 if statistic == "quantiles" else 1)
    done = CliRunner().invoke(report, ["results.parquet", "--out", "report.html", "--table", "errors.csv"])
    assert done.exit_code == 0, done.output
    page, table = Path("report.html").read_text(), list(csv.DictReader(Path("errors.csv").read_text().splitlines()))
    assert "True values and one release of each mechanism" in page
    assert ("Releasing zeros for ever" in page) == adds_up
    assert "NaN" not in page.split('id="data"')[1].split("</script>")[0]
    assert (len(table), float(table[0]["uniform filter=truncate"])) == (1, figures.mean())


def test_errors_are_of_what_has_data_and_no_data_are_the_middle_of_the_range():
    nan = np.nan
    truth = np.array([[[10.0, nan], [nan, 4.0]]])
    released = np.array([[12.0, 7.0], [nan, nan]])[:, None, None]
    asked = ("mae", "mse", "mre", "total_mae", "coverage", "data_missed", "data_invented")
    tally = MetricTally(asked, truth, 1, 1.0, 1, MetricOptions(), adds_up=False)
    ends = np.stack([released - 1, released + 3], axis=1)
    flags = np.ones((2, 1, 1), bool)
    tally.add(StepBlock(0, truth[0][:, None, None], released, flags, 1.0 * flags, ends, without_data=30.0))
    found = {name: figures[0, 0] for name, figures in tally.figures().items()}
    assert (found["mae"], found["mse"]) == (14.0, (2**2 + 26**2) / 2)
    assert np.isnan([found["mre"], found["total_mae"]]).all()
    assert (found["coverage"], found["data_missed"], found["data_invented"]) == (0.0, 0.5, 0.5)


def test_a_stream_without_data_anywhere_is_refused(load):
    text = STUDY.replace('generator = "fares"\nlength = 30\nlevel = 60', 'events = "rides.csv"\nstep = "1h"')
    Path("rides.csv").write_text("timestamp,bin,fare\n2026-01-01T00:30,north,3\n2026-01-01T01:30,south,3\n")
    with pytest.raises(InputError, match="there are no events in any of its steps and bins"):
        load(STATISTICS["mean"] + '\ncolumns = ["south"]\nsteps = 1', text)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ('statistic = "mean:tip"\nbetween = "tip=0,5"', "these events have the column fare, not tip"),
        ('statistic = "mean:fare"', "mean:fare needs the range of fare"),
        ("people = 0", "length, level, people and bins must be above 0"),
    ],
)
def test_what_made_up_events_do_not_have_is_said(load, told, says):
    with pytest.raises(InputError, match=says):
        load(told)


def test_made_up_events_are_the_same_again_and_have_the_shape_that_is_promised():
    for make in VALUE_GENERATORS.values():
        one, other = make(length=50, bins=3, seed=4), make(length=50, bins=3, seed=4)
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
        assert (one.step.max() < 50, one.bin.max(), one.value.min() >= 0) == (True, 2, True)
        assert (np.diff(np.bincount(one.bin)) < 0).all()


def test_people_count_once_in_a_cell_and_quantiles_of_one_value_are_that_value():
    cells, people, values = np.array([0, 0, 2]), np.array([7, 7, 7]), np.array([3.0, 4.0, 99.0])
    assert numbers_of(studied_statistic("people"), cells, 3, ("a",), people, None).counts.tolist() == [[1], [0], [1]]
    median = numbers_of(studied_statistic("quantiles:x", edges="x=0,2,9"), cells, 3, ("a",), None, values)
    assert median.counts.tolist() == [[0, 2], [0, 0], [0, 1]]
    np.testing.assert_array_equal(median.truth, [[3.5], [np.nan], [9.0]])
