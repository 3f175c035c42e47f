"""Studies of sliding windows: histograms of the last steps, and planners that answer window queries."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np
import pytest

import eventide as ev
from eventide import windows
from eventide.bench import check_requirements, load_study, read_results, repeat_cell, run_study
from eventide.bench.run import plan_runs
from eventide.bench.run.plan_runs import PlanRun
from eventide.bench.run.runner import batches_of
from eventide.bench.study.metrics import PLAN_METRICS, MetricOptions
from eventide.bench.study.study import StudiedStream
from eventide.bench.study.workloads import StudiedWorkload, general
from eventide.errors import InputError
from eventide.streams.generators import bernoulli

HISTOGRAMS = """\
seed = 5
repetitions = 3
metrics = ["mse", "tse", "mae"]

[[mechanisms]]
vary.name = ["rg", "rg-baseline", "rg-window-baseline", "ba"]

[[streams]]
generator = "level-shifts"
length = 30
bins = 4
vary.span = [1, 7]

[[privacy]]
window = 1
epsilon = 0.5
"""
QUERIES = """\
seed = 5
repetitions = 3
metrics = ["workload_error", "mae", "mse", "mre"]

[[mechanisms]]
vary.planner = ["base", "best"]

[[streams]]
generator = "bernoulli"
length = 700
workload = "general"
vary.step_factor = [1, 2]

[[privacy]]
window = 2
vary.epsilon = [0.5, 1.0]
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def loaded(text):
        Path("study.toml").write_text(text)
        return load_study("study.toml")

    return loaded


def cell_of(study, mechanism, **described):
    return next(
        cell
        for cell in study.cells
        if cell.mechanism.name == mechanism and described.items() <= cell.stream.described.items()
    )


@pytest.mark.parametrize("span", [1, 3, 9, 20])
def test_what_is_asked_is_the_sum_of_the_last_steps(span):
    counts = np.random.default_rng(1).poisson(5, (2, 9, 3))
    asked = StudiedStream("generator", "constant", span=span).asked(counts)
    for step in range(9):
        assert np.array_equal(asked[:, step], counts[:, max(0, step + 1 - span) : step + 1].sum(axis=1))
    assert StudiedStream("generator", "constant").asked(counts) is counts


@pytest.mark.parametrize("span", [1, 7])
@pytest.mark.parametrize("name", ["rg", "rg-baseline", "rg-window-baseline"])
def test_a_mechanism_for_histograms_is_measured_by_its_histogram(load, name, span):
    study = load(HISTOGRAMS)
    cell = cell_of(study, name, span=span)
    mechanism = ev.mechanism(name, epsilon=0.5, bins=4, span=span, replicas=3, seed=study.seed_of(cell))
    counts = cell.stream.read()
    histograms = np.stack([mechanism.release(row).window_values for row in counts], axis=1)
    error = histograms - cell.stream.asked(counts)
    figures = repeat_cell(study, cell)
    assert np.allclose(figures["mse"], (error**2).mean(axis=(1, 2)))
    assert np.allclose(figures["tse"], (error**2).sum(axis=(1, 2)))


def test_any_other_mechanism_is_measured_by_the_sum_of_its_last_releases(load):
    study = load(HISTOGRAMS)
    cell = cell_of(study, "ba", span=7)
    counts = cell.stream.read()
    mechanism = ev.mechanism("ba", epsilon=0.5, window=1, bins=4, replicas=3, seed=study.seed_of(cell))
    released = ev.run(mechanism, counts).values
    windows = np.stack([released[:, max(0, step - 6) : step + 1].sum(axis=1) for step in range(30)], axis=1)
    assert np.allclose(repeat_cell(study, cell)["mae"], np.abs(windows - cell.stream.asked(counts)).mean(axis=(1, 2)))


def test_streams_of_one_bin_with_different_spans_are_not_one_run(load):
    study = load(HISTOGRAMS.replace("bins = 4", "bins = 1"))
    batches = batches_of(study)
    assert len(batches) == len(study.cells) == 8


def test_steps_are_kept_from_the_beginning(load):
    text = HISTOGRAMS.replace("vary.span = [1, 7]", "steps = 12")
    study = load(text)
    (stream,) = study.streams
    assert np.array_equal(stream.read(), stream.matrix().counts[:12])
    assert study.facts[stream.label].steps == 12
    with pytest.raises(InputError, match=r"line 12: level-shifts has only 30 of the 31 steps"):
        load(text.replace("steps = 12", "steps = 31"))


@pytest.fixture
def ticking(monkeypatch):
    """A processor clock that is a second later whenever it is read: others may stand still for a hundredth of one."""
    monkeypatch.setattr(time, "process_time", itertools.count().__next__)


@pytest.mark.usefixtures("ticking")
def test_times_are_measured_and_nothing_else_depends_on_them(load):
    study = load(HISTOGRAMS.replace('"mae"]', '"release_seconds"]'))
    rows = []
    for out in ("one.parquet", "two.parquet"):
        run_study(study, out)
        rows.append(read_results(out).table.to_pylist())
    times = [row["mean"] for row in rows[0] if row["metric"] == "release_seconds"]
    assert len(times) == len(study.cells)
    assert min(times) > 0
    one, two = ([row for row in each if row["metric"] != "release_seconds"] for each in rows)
    assert one == two


def test_a_workload_is_drawn_as_published_and_made_longer():
    plain = general(3)
    for factors, window, step in (((1, 1), 1, 1), ((4, 1), 4, 1), ((1, 3), 3, 3), ((2, 3), 6, 3)):
        asked = StudiedWorkload("general", 3, *factors).queries
        assert [(query.window, query.step) for query in asked] == [
            (query.window * window, query.step * step) for query in plain
        ]


@pytest.mark.parametrize("at_once", [2**21, 100])
@pytest.mark.parametrize("bins", [1, 2])
@pytest.mark.parametrize("planner", ["base", "best"])
@pytest.mark.usefixtures("ticking")
def test_a_planners_figures_are_those_of_its_answers(monkeypatch, planner, bins, at_once):
    monkeypatch.setattr(plan_runs, "CELLS_AT_ONCE", at_once)
    counts = bernoulli(700, bins)
    workload = StudiedWorkload("general")
    figures = PlanRun(planner, workload, counts, 0.5, 2, 3, 11).figures(PLAN_METRICS, MetricOptions(0.01))
    planned = windows.plan(general(0), 0.5, planner, 700)
    due = planned.start(bins, window=2, seed=11, replicas=3).push_many(counts)
    absolute, relative = {}, {}
    for answer in due:
        truth = counts[answer.begin : answer.end].sum(axis=0)
        error = np.abs(answer.value - truth)
        absolute.setdefault(id(answer.query), []).append(error.mean(axis=1))
        relative.setdefault(id(answer.query), []).append(
            (error / np.maximum(truth, 0.01 * counts.sum(axis=0))).mean(axis=1)
        )
    assert np.allclose(figures["mae"], np.mean([np.mean(each, axis=0) for each in absolute.values()], axis=0))
    assert np.allclose(figures["mre"], np.mean([np.mean(each, axis=0) for each in relative.values()], axis=0))
    assert np.allclose(figures["workload_error"], 4 * planned.cost)
    assert figures["planning_seconds"][0] == 1
    assert figures["answering_seconds"][0] >= 1 / 3  # a second for each block of three repetitions


def test_the_mean_squared_error_is_what_the_plan_foretells():
    counts = bernoulli(5000)
    figures = PlanRun("best", StudiedWorkload("general"), counts, 1.0, 1, 200, 3).figures(PLAN_METRICS, MetricOptions())
    assert 100 * figures["mse"].mean() == pytest.approx(figures["workload_error"][0], rel=0.1)


def test_a_plan_that_ends_before_the_stream_answers_until_then():
    counts = bernoulli(300_000)
    figures = PlanRun("binary", StudiedWorkload("special"), counts, 1.0, 1, 2, 3).figures(
        ("mse", "workload_error"), MetricOptions()
    )
    assert 100 * figures["mse"].mean() == pytest.approx(figures["workload_error"][0], rel=0.3)


def test_a_stream_too_short_for_any_answer_has_no_error():
    figures = PlanRun("base", StudiedWorkload("special"), bernoulli(10), 1.0, 1, 2, 3).figures(
        ("mae", "workload_error"), MetricOptions()
    )
    assert np.isnan(figures["mae"]).all()
    assert figures["workload_error"][0] > 0


def test_an_error_that_does_not_exist_has_no_place_in_the_results(load):
    run_study(load(QUERIES.replace("general", "special").replace("length = 700", "length = 10")), "results.parquet")
    rows = read_results("results.parquet").table.to_pylist()
    assert {row["metric"]: row["delta"] is None for row in rows} == {
        "workload_error": False, "mae": True, "mse": True, "mre": True
    }  # fmt: skip


def test_planners_stand_in_the_results_like_mechanisms(load):
    study = load(QUERIES)
    assert len(study.cells) == 2 * 2 * 2
    run_study(study, "one.parquet", processes=1)
    rows = read_results("one.parquet").table.to_pylist()
    first = rows[0]
    assert (first["mechanism"], first["metric"], first["steps"]) == ("base", "workload_error", 700)
    assert first["stream"] == ("bernoulli length=700 workload=general workload_seed=0 window_factor=1 step_factor=1")
    assert first["mean"] == windows.plan(general(0), 0.5, "base", 700).cost * 4
    assert first["delta"] > 1
    cell = study.cells[1]
    assert repeat_cell(study, cell)["mae"].mean() == rows[5]["mean"]


@pytest.mark.slow
def test_more_processes_give_the_same_bytes(load):
    for processes in (1, 2):
        run_study(load(QUERIES), f"{processes}.parquet", processes=processes)
    assert Path("1.parquet").read_bytes() == Path("2.parquet").read_bytes()


def test_a_study_of_planners_goes_on_where_it_stopped(load):
    study = load(QUERIES)
    run_study(study, "whole.parquet")

    def tell(done, total):
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(study, "results.parquet", tell=tell)
    run_study(study, "results.parquet")
    assert Path("results.parquet").read_bytes() == Path("whole.parquet").read_bytes()


@pytest.mark.parametrize(
    ("text", "old", "new", "line", "words"),
    [
        (QUERIES, '"base", "best"', '"base", "bset"', 6, "no planner 'bset'; did you mean 'best'?"),
        (QUERIES, '"base", "best"', '"sample-dp"', 6, "needs steps that divide each other"),
        (QUERIES, '["base", "best"]', '["base"]\nepsilon = 1', 7, "no key 'epsilon' of a planner"),
        (QUERIES, '"mre"]', '"season_kept"]', 3, "season_kept cannot be measured of base"),
        (QUERIES, '"general"', '"generall"', 11, "did you mean 'general'?"),
        (QUERIES, 'workload = "general"', "", 12, "step_factor is for streams with a workload"),
        (QUERIES, 'workload = "general"\nvary.step_factor = [1, 2]', "", 1, "nothing is left to run"),
        (QUERIES, "[1, 2]", "[1, 0]", 12, "step_factor is 0"),
        (QUERIES, "vary.step_factor = [1, 2]", "workload_seed = -1", 12, "a seed is a whole number"),
        (QUERIES, "length = 700", "length = 5", 6, "give a longer horizon"),
        (HISTOGRAMS, "[1, 7]", "[0, 7]", 12, "span is 0"),
        (HISTOGRAMS, '"ba"]', '"ba"]\nspan = 3', 7, "span is set by the study"),
        (HISTOGRAMS, '"mae"]', '"workload_error"]', 3, "workload_error cannot be measured of rg"),
    ],
)
def test_a_bad_study_of_windows_is_refused_with_its_line(load, text, old, new, line, words):
    assert old in text
    with pytest.raises(InputError, match=words.replace("?", r"\?")) as refused:
        load(text.replace(old, new))
    assert f"line {line}" in str(refused.value)


def test_baselines_are_those_of_what_is_asked(load):
    def fault(text):
        return next(each for each in check_requirements(load(text)) if each.code == "M-R2")

    assert fault(HISTOGRAMS).met
    assert fault(QUERIES).met
    assert "lacks the baseline rg-window-baseline" in fault(HISTOGRAMS.replace('"rg-window-baseline", ', "")).sentence
    assert "lacks the baseline base" in fault(QUERIES.replace('"base", ', "")).sentence
    assert "lacks the baselines uniform and sample" in fault(HISTOGRAMS.replace("vary.span = [1, 7]", "")).sentence
