"""Levels in a study: groups that a stream names, mechanisms that publish them, and an error for each level."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import eventide as ev
from eventide.bench import load_study, read_results, run_study
from eventide.cli import main
from eventide.errors import InputError

COUNTS = np.random.default_rng(5).poisson([3, 40, 40, 200], (30, 4))

STUDY = """
seed = 3
repetitions = 4
metrics = ["mae", "mae:ward", "mae:total", "total_mae"]

[[mechanisms]]
name = "uniform"

[[mechanisms]]
name = "uniform"
levels = true

[[streams]]
file = "counts.csv"
levels = "wards.csv"
public = true

[[privacy]]
epsilon = 1
window = 5
"""


@pytest.fixture
def folder(tmp_path):
    rows = [",".join(map(str, row)) for row in COUNTS]
    (tmp_path / "counts.csv").write_text("\n".join(["a,b,c,d", *rows]) + "\n")
    (tmp_path / "wards.csv").write_text("bin,ward\nd,W2\na,W1\nb,W1\nc,W2\n")
    return tmp_path


def written(folder, text=STUDY):
    (folder / "study.toml").write_text(text)
    return folder / "study.toml"


def test_a_study_has_an_error_for_each_level(folder):
    run_study(load_study(written(folder)), folder / "results.parquet")
    rows = read_results(folder / "results.parquet").table.to_pylist()
    means = {(row["mechanism"], row["metric"]): row["mean"] for row in rows}
    assert all(row["delta"] >= 1 for row in rows)
    for label in ("uniform", "uniform levels=True"):
        assert means[label, "mae:total"] == pytest.approx(means[label, "total_mae"])
        assert means[label, "mae:ward"] > means[label, "mae"]
    assert means["uniform levels=True", "mae:total"] != means["uniform", "mae:total"]
    label = next(row["stream"] for row in rows)
    assert label.endswith("levels=wards.csv")


def test_the_error_of_a_level_is_that_of_sums_over_its_bins(folder):
    study = load_study(written(folder))
    cell = next(cell for cell in study.cells if not cell.mechanism.parameters)
    figures = ev.bench.repeat_cell(study, cell)
    mechanism = cell.mechanism.build(cell.setting, 4, 4, ev.noise.Seeded(study.seed_of(cell)))
    released = ev.run(mechanism, COUNTS).values
    off = np.abs((released - COUNTS)[..., [0, 1]].sum(axis=2)) + np.abs((released - COUNTS)[..., [2, 3]].sum(axis=2))
    assert figures["mae:ward"] == pytest.approx(off.mean(axis=1) / 2)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("mae:ward", "mae:clinic", "no stream has the level of mae:clinic"),
        ('levels = "wards.csv"\n', "", "no stream has the level of mae:ward"),
        ("levels = true", 'levels = "wards.csv"', "levels of a mechanism in a study is true"),
        ("wards.csv", "nowhere.csv", "cannot read"),
        ('name = "uniform"\nlevels', 'name = "bd"\nlevels', "cannot have levels"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(folder, before, after, says):
    with pytest.raises(InputError, match=says) as refused:
        load_study(written(folder, STUDY.replace(before, after)))
    assert "study.toml" in str(refused.value)


def test_a_mechanism_with_levels_needs_a_stream_that_has_some(folder):
    text = STUDY.replace('levels = "wards.csv"\n', "").replace(', "mae:ward", "mae:total"', "")
    with pytest.raises(InputError, match="needs streams with levels"):
        load_study(written(folder, text))


def test_other_groups_are_another_study(folder):
    run_study(load_study(written(folder)), folder / "results.parquet")
    (folder / "wards.csv").write_text("bin,ward\na,W1\nb,W2\nc,W2\nd,W2\n")
    with pytest.raises(InputError, match="not the result of this study"):
        run_study(load_study(written(folder)), folder / "results.parquet")


@pytest.mark.slow
def test_a_choice_with_levels_tries_what_can_have_them(folder):
    history = np.tile(COUNTS, (2, 1))
    groups = {"ward": ["W1", "W1", "W2", "W2"]}
    choice = ev.bench.choose(
        history, epsilon=1, window=20, levels=groups, mechanisms=["hybrid", "ba"], repetitions=5, seed=2
    )
    assert {trial.mechanism for trial in choice.candidates} == {"uniform", "sample", "hybrid", "ba"}
    assert all(list(trial.levels) == ["ward", "total"] for trial in choice.candidates)
    errors = np.array([[trial.error, *trial.levels.values()] for trial in choice.candidates])
    scores = (errors / errors.min(axis=0)).mean(axis=1)
    assert scores.argmin() == 0
    assert "Errors of the levels above: ward" in str(choice)
    assert choice.released.shape == history.shape
    with pytest.raises(InputError, match="fast cannot have levels"):
        ev.bench.choose(history, epsilon=1, window=20, levels=groups, mechanisms=["fast"])


def test_the_command_reads_a_file_of_levels(folder):
    words = [
        "choose",
        "counts.csv",
        "--levels",
        "wards.csv",
        "--epsilon",
        "1",
        "--window",
        "5",
        "--mechanism",
        "uniform",
    ]
    words = [str(folder / word) if word.endswith(".csv") else word for word in words]
    told = CliRunner().invoke(main, [*words, "--repetitions", "5", "--json"])
    assert told.exit_code == 0, told.stderr
    found = json.loads(told.stdout)
    assert list(found["recommended"]["levels"]) == ["ward", "total"]
    assert found["publish"] is None or "--levels LEVELS" in found["publish"]
    refused = CliRunner().invoke(main, [*words, "--user", "who", "--step", "1h"])
    assert refused.exit_code == 2
    assert "--levels is for choosing a mechanism" in refused.stderr
