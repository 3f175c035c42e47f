"""Running studies: figures that can be repeated, whoever ran beside them, in however many processes and pieces."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import eventide as ev
from eventide.bench import load_study, read_results, repeat_cell, run_study
from eventide.bench.run import runner
from eventide.bench.run.journal import Journal
from eventide.bench.run.results import standings, summaries, summary
from eventide.bench.run.runner import Runner, batches_of
from eventide.bench.run.workers import in_processes
from eventide.bench.study.study import Looked, StudiedMechanism
from eventide.cli.bench import command
from eventide.errors import BudgetExceeded, InputError, StateError, StoreError
from eventide.privacy.ledger import WindowLedger

STUDY = """\
seed = 5
repetitions = 6
sanity_bound = 0.001
metrics = ["mae", "mre", "season_kept", "crossing_precision", "publications", "unused_budget"]

[[mechanisms]]
vary.name = ["uniform", "sample", "bd"]

[[streams]]
generator = "seasonal"
length = 60
season = 20
vary.amplitude = [10, 1000, 100000]

[[streams]]
generator = "constant"
length = 60

[[streams]]
generator = "level-shifts"
length = 40
bins = 3

[[privacy]]
window = 8
vary.epsilon = [0.5, 2.0]
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return loaded(STUDY)


def loaded(text):
    Path("study.toml").write_text(text)
    return load_study("study.toml")


def cell_of(study, mechanism, bins):
    return next(
        cell for cell in study.cells if cell.mechanism.name == mechanism and study.facts[cell.stream.label].bins == bins
    )


def with_mechanism(study, name):
    return dataclasses.replace(study, mechanisms=(StudiedMechanism(name, name, {}),))


def test_streams_of_one_bin_and_one_length_are_one_run(study):
    batches = batches_of(study)
    sizes = sorted(len(batch.cells) for batch in batches)
    assert sizes == [1] * 6 + [4] * 6  # three mechanisms, two settings
    assert sorted(number for batch in batches for number in batch.cells) == list(range(len(study.cells)))
    for batch in batches:
        cells = [study.cells[number] for number in batch.cells]
        assert len({(cell.mechanism.label, cell.setting) for cell in cells}) == 1


QUICK = ("uniform", "ba", "dsat", "pegasus", "rg")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in ev.mechanism_names()]
)
def test_a_cell_alone_is_the_cell_among_others(study, name):
    study = with_mechanism(study, name)
    for batch in batches_of(study):
        cells = [study.cells[number] for number in batch.cells]
        together = Runner(study).figures(cells)
        for place, cell in enumerate(cells):
            for metric, alone in repeat_cell(study, cell).items():
                assert np.array_equal(alone, together[metric][place], equal_nan=True), (cell.stream.label, metric)


@pytest.mark.parametrize("bins", [1, 3])
@pytest.mark.parametrize("name", ["uniform", "bd"])
def test_a_cell_is_what_the_public_functions_give_with_its_seed(study, name, bins):
    cell = cell_of(study, name, bins)
    truth = cell.stream.read()
    mechanism = ev.mechanism(name, epsilon=0.5, window=8, bins=bins, replicas=6, seed=study.seed_of(cell))
    run = ev.run(mechanism, truth)
    figures = repeat_cell(study, cell)
    assert np.allclose(figures["mae"], np.abs(run.values - truth).mean(axis=(1, 2)))
    assert np.allclose(figures["publications"], run.fresh.mean(axis=1) * 8)
    windows = np.lib.stride_tricks.sliding_window_view(run.spent, 8, axis=1).sum(axis=2)
    assert np.allclose(figures["unused_budget"], (0.5 - windows).mean(axis=1) / 0.5)


@pytest.mark.parametrize("repetitions", [1, 6])
@pytest.mark.parametrize("bins", [1, 3])
def test_coverage_is_how_often_intervals_hold_the_truth(study, bins, repetitions):
    study = dataclasses.replace(with_mechanism(study, "tide"), metrics=("coverage",), repetitions=repetitions)
    cell = cell_of(study, "tide", bins)
    truth = cell.stream.read()
    run = ev.run(ev.Tide(epsilon=0.5, window=8, bins=bins, replicas=repetitions, seed=study.seed_of(cell)), truth)
    inside = ((run.low <= truth) & (truth <= run.high)).reshape(repetitions, -1).mean(axis=1)
    assert np.allclose(repeat_cell(study, cell)["coverage"], inside)


def test_what_gives_no_interval_covers_nothing_that_could_be_counted(study):
    study = dataclasses.replace(study, metrics=("mae", "coverage"))
    figures = repeat_cell(study, cell_of(study, "uniform", 3))
    assert np.isnan(figures["coverage"]).all()
    assert np.isfinite(figures["mae"]).all()


@pytest.mark.parametrize("name", ev.mechanism_names())
def test_unused_budget_is_what_the_ledger_has_left_at_the_end_of_a_step(study, monkeypatch, name):
    study = with_mechanism(study, name)
    left = []
    advance = WindowLedger.advance

    def spy(ledger):
        left.append(ledger.left())
        advance(ledger)

    monkeypatch.setattr(WindowLedger, "advance", spy)
    figures = repeat_cell(study, cell_of(study, name, 3))
    assert np.allclose(figures["unused_budget"], np.mean(left[7:], axis=0) / 0.5)


def test_repetitions_differ(study):
    assert len(set(repeat_cell(study, study.cells[0])["mae"])) == 6


def test_wide_streams_are_run_in_lots_and_long_ones_too(study, monkeypatch):
    built = []
    build = StudiedMechanism.build

    def spy(self, setting, bins, replicas, *how):
        built.append(replicas)
        return build(self, setting, bins, replicas, *how)

    monkeypatch.setattr(StudiedMechanism, "build", spy)
    monkeypatch.setattr(runner, "LARGEST_RUN", 9)
    figures = repeat_cell(study, cell_of(study, "uniform", 3))
    assert built == [3, 3]
    assert len(set(figures["mae"])) == 6
    built.clear()
    monkeypatch.setattr(runner, "LONGEST_RUN", 60 * 5)
    repeat_cell(study, cell_of(study, "uniform", 1))
    assert built == [5, 1]
    assert max(len(batch.cells) for batch in batches_of(study)) == 1


def test_metrics_see_few_values_at_once(study, monkeypatch):
    monkeypatch.setattr(runner, "BLOCK", 100)
    cell = cell_of(study, "uniform", 1)
    blocks = list(runner.releases(study, [cell], Looked.side_by_side(cell.stream.look()), 0, 6))
    assert max(block.released.size for block in blocks) <= 100
    assert sum(len(block.truth) for block in blocks) == 60


def test_the_file_holds_a_row_for_each_cell_and_metric(study):
    run_study(study, "results.parquet")
    table, about = read_results("results.parquet")
    rows = table.to_pylist()
    assert len(rows) == len(study.cells) * len(study.metrics)
    for number, cell in enumerate(study.cells[:5]):
        row = rows[number * len(study.metrics)]
        values = repeat_cell(study, cell)["mae"]
        assert (row["mechanism"], row["stream"], row["metric"]) == (cell.mechanism.label, cell.stream.label, "mae")
        assert (row["seed"], row["repetitions"]) == (study.seed_of(cell), 6)
        assert [row["mean"], row["standard_deviation"], row["q95"]] == summary(values)
    assert about["text"] == STUDY
    assert about["versions"]["eventide"] == ev.__version__
    assert about["streams"]["constant length=60"]["largest"] == 1000


def test_delta_is_the_error_over_the_best(study):
    run_study(study, "results.parquet")
    results = read_results("results.parquet")
    rows = [row for row in results.table.to_pylist() if row["metric"] == "mae"]
    assert all(row["delta"] is None for row in results.table.to_pylist() if row["metric"] == "publications")
    contests: dict[tuple, list] = {}
    for row in rows:
        contests.setdefault((row["stream"], row["epsilon"]), []).append(row)
    for contest in contests.values():
        least = min(row["mean"] for row in contest)
        assert [row["delta"] for row in contest] == [row["mean"] / least for row in contest]
    found = standings(results)
    assert sum(standing.best for standing in found) == len(contests)
    assert [standing.median_delta for standing in found] == sorted(standing.median_delta for standing in found)


def test_a_figure_that_never_exists_is_empty():
    assert summary(np.full(3, np.nan)) == [None, None, None]
    assert summary(np.array([2.0, np.nan])) == [2.0, None, 2.0]


def test_values_of_a_confidential_stream_stay_out_of_the_results(study):
    Path("counts.csv").write_text("a\n" + "77123\n" * 30)
    Path("secret.toml").write_text(STUDY + '\n[[streams]]\nfile = "counts.csv"\n')
    run_study(load_study("secret.toml"), "secret.parquet")
    assert b"77123" not in Path("secret.parquet").read_bytes()
    assert read_results("secret.parquet").about["streams"]["counts.csv"] == {"steps": 30, "bins": 1, "public": False}


def test_more_processes_give_the_same_bytes(study):
    run_study(study, "one.parquet", processes=1)
    run_study(study, "two.parquet", processes=2)
    assert Path("one.parquet").read_bytes() == Path("two.parquet").read_bytes()


class Stop(Exception):
    pass


def interrupted(study, after):
    """Run until so many batches are finished; leaves the journal behind."""
    heard = []

    def tell(done, total):
        heard.append(done)
        if len(heard) > after:
            raise Stop

    with pytest.raises(Stop):
        run_study(study, "results.parquet", tell=tell)


@pytest.mark.parametrize("after", [1, 12, *(pytest.param(after, marks=pytest.mark.slow) for after in (0, 5))])
def test_an_interrupted_study_goes_on_where_it_stopped(study, monkeypatch, after):
    run_study(study, "whole.parquet")
    interrupted(study, after)
    assert not Path("results.parquet").exists()
    ran = []
    call = Runner.__call__
    monkeypatch.setattr(Runner, "__call__", lambda self, numbers: ran.append(numbers) or call(self, numbers))
    heard = []
    run_study(study, "results.parquet", tell=lambda done, total: heard.append(done / total))
    assert len(ran) == len(batches_of(study)) - after
    assert heard[-1] == 1
    assert Path("results.parquet").read_bytes() == Path("whole.parquet").read_bytes()
    assert not Path("results.parquet.partial").exists()


def test_a_line_cut_short_anywhere_is_dropped(study):
    run_study(study, "whole.parquet")
    interrupted(study, 3)
    partial = Path("results.parquet.partial")
    text = partial.read_bytes()
    for cut in (0, 1, 40, len(text) // 2, len(text) - 1, len(text)):
        partial.write_bytes(text[:cut])
        interrupted(study, 1)
        run_study(study, "results.parquet")
        assert Path("results.parquet").read_bytes() == Path("whole.parquet").read_bytes()
        Path("results.parquet").unlink()


def test_a_journal_of_another_study_is_not_touched(study):
    interrupted(study, 2)
    left = Path("results.parquet.partial").read_bytes()
    with pytest.raises(InputError, match="left by another study"):
        run_study(dataclasses.replace(study, seed=6), "results.parquet")
    assert Path("results.parquet.partial").read_bytes() == left


def test_finished_results_are_kept_and_others_not_overwritten(study, monkeypatch):
    run_study(study, "results.parquet")
    shutil.copy("results.parquet", "copy.parquet")
    monkeypatch.setattr(Runner, "__call__", None)
    run_study(study, "results.parquet")
    filtered, hidden = 'filter = "truncate"\n' + STUDY, STUDY.replace("length = 40", "length = 40\npublic = false")
    for other in (
        dataclasses.replace(study, repetitions=7),
        dataclasses.replace(study, metrics=("mae",)),
        *map(loaded, (filtered, hidden)),
    ):
        with pytest.raises(InputError, match="is not the result of this study"):
            run_study(other, "results.parquet")
    assert Path("results.parquet").read_bytes() == Path("copy.parquet").read_bytes()
    Path("mine.parquet").write_text("something else")
    with pytest.raises(InputError, match="is not the result of this study"):
        run_study(study, "mine.parquet")
    assert Path("mine.parquet").read_text() == "something else"


def test_one_run_at_a_time_writes_results(study):
    other = Journal(Path("results.parquet.partial"), runner.fingerprint(study))
    with other, pytest.raises(StoreError, match=r"another run is writing results\.parquet\.partial"):
        run_study(study, "results.parquet")
    run_study(study, "results.parquet")
    assert not Path("results.parquet.partial").exists()


@pytest.mark.parametrize("line", [b"nonsense\n", b"\n", b"[]\n", b"{}\n", b"\0\0\n"])
def test_a_damaged_journal_is_named(study, line):
    with Journal(Path("results.parquet.partial"), runner.fingerprint(study)) as journal:
        journal._file.write(line)
    with pytest.raises(InputError, match=r"results\.parquet\.partial is damaged, or no journal"):
        run_study(study, "results.parquet")
    Path("other.parquet.partial").write_bytes(b"nonsense\n")
    with pytest.raises(InputError, match=r"other\.parquet\.partial is damaged, or no journal"):
        run_study(study, "other.parquet")


def test_results_of_another_format_are_not_read(study):
    run_study(study, "results.parquet")
    table, about = read_results("results.parquet")
    for changed in ({}, [1], about | {"format": 0}):
        pq.write_table(table.replace_schema_metadata({"eventide": json.dumps(changed)}), "other.parquet")
        with pytest.raises(InputError, match="results of another format"):
            read_results("other.parquet")
    pq.write_table(table.drop_columns(["delta"]), "other.parquet")
    with pytest.raises(InputError, match="results of another format"):
        read_results("other.parquet")


def test_a_study_that_cannot_be_written_says_so(study):
    with pytest.raises(InputError, match="cannot write"):
        run_study(study, "nowhere/results.parquet")


def test_a_mechanism_that_fails_on_the_way_is_named(study, monkeypatch):
    def refuse(self, counts):
        raise BudgetExceeded(1, 0, 8)

    monkeypatch.setattr(ev.Sample, "checked", refuse)
    with pytest.raises(InputError, match=r"sample on seasonal .* cannot go on: asked for 1"):
        run_study(study, "results.parquet")
    with Journal(Path("results.parquet.partial"), runner.fingerprint(study)) as journal:
        assert journal.finished


def test_work_is_shared_out_and_every_output_comes_back():
    assert sorted(in_processes(math.sqrt, enumerate(range(10)), 2)) == [(n, math.sqrt(n)) for n in range(10)]
    assert list(in_processes(math.sqrt, [], 2)) == []


@pytest.mark.slow
def test_what_goes_wrong_in_a_worker_is_raised_here():
    with pytest.raises(ValueError, match="math domain error"):
        list(in_processes(math.sqrt, enumerate([1, -1]), 2))


@pytest.mark.slow
def test_a_worker_that_dies_is_noticed():
    with pytest.raises(StateError, match="a worker process ended"):
        list(in_processes(os._exit, enumerate([1, 1]), 2))


def bench(*arguments):
    return CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_the_command_writes_results_and_tells_the_requirements(study):
    told = bench("study.toml", "--out", "results.parquet", "--processes", "1")
    assert told.exit_code == 0
    assert "30 cells, 180 runs" in told.stdout
    assert "NOT MET E-2" in told.stdout
    assert "met     M-R2" in told.stdout
    assert read_results("results.parquet").table.num_rows == 180
    assert "results in results.parquet" in told.stdout
    again = bench("study.toml", "--out", "results.parquet", "--processes", "1")
    assert "these results were there already: results.parquet" in again.stdout


def test_an_interrupted_command_says_how_to_go_on(study, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("eventide.bench.run_study", interrupted)
    with pytest.raises(KeyboardInterrupt):
        command.callback("study.toml", Path("results.parquet"), None, (), (), 1, False, False)
    assert "The same command goes on where this one stopped." in capsys.readouterr().err


def test_the_command_prints_one_document(study):
    Path("more.toml").write_text(STUDY + '\n[[streams]]\nreal = "flu_death"\n')
    Path("empty").mkdir()
    told = bench("more.toml", "--out", "results.parquet", "--processes", "1", "--data", "empty", "--json")
    document = json.loads(told.stdout)
    assert (document["cells"], document["runs"], document["out"]) == (30, 180, "results.parquet")
    assert "flu_death is skipped" in document["skipped"][0]
    assert "flu_death is skipped" in told.stderr
    assert {standing["mechanism"] for standing in document["standings"]} == {"uniform", "sample", "bd"}


def test_results_that_were_begun_under_another_ending_are_finished(study):
    Path("old.csv.partial").write_bytes(b"")
    assert bench("study.toml", "--out", "old.csv", "--processes", "1").exit_code == 0
    assert "were there already" in bench("study.toml", "--out", "old.csv", "--processes", "1").stdout


def test_the_command_refuses_a_number_of_processes_that_is_none(study):
    with pytest.raises(InputError, match="--processes is at least 1"):
        bench("study.toml", "--out", "results.parquet", "--processes", "0")


def test_the_command_prints_a_study_to_start_ones_own_from(tmp_path):
    printed = bench("quick", "--print")
    assert printed.exit_code == 0
    (tmp_path / "mine.toml").write_text(printed.output)
    assert load_study(tmp_path / "mine.toml").mechanisms == load_study("quick").mechanisms


def test_the_command_asks_where_results_go():
    with pytest.raises(InputError, match="say where the results go, with --out"):
        bench("quick")


def test_summaries_of_many_cells_are_those_of_each() -> None:
    values = np.random.default_rng(3).normal(size=(4, 11))
    with_gaps = np.where(values > 1, np.nan, values)
    for given in (values, with_gaps, values[:, :1]):
        assert summaries(given) == [summary(row) for row in given]
