"""`eventide publish --queries-epsilon`, `eventide export --answers` and what `eventide ledger` says about them."""

from __future__ import annotations

import csv
import json

import pytest
from click.testing import CliRunner

from eventide.cli import main

COUNTS = "north,south\n" + "".join(f"{step},{100 - step}\n" for step in range(40))
QUERIES = '[[query]]\nwindow = 6\nstep = 2\nname = "six"\n[[query]]\nwindow = 12\nstep = 4\n'
ASKED = ("--epsilon", "1000", "--window", "5", "--mechanism", "uniform", "--queries", "queries.toml")
BOTH = (*ASKED, "--queries-epsilon", "400")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text(COUNTS)
    (tmp_path / "queries.toml").write_text(QUERIES)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, arguments)


def exported(*options):
    result = run("export", "city.db", "--answers", *options, "--out", "answers.csv")
    assert result.exit_code == 0, result.output
    with open("answers.csv") as file:
        return list(csv.DictReader(file)), result.stderr


@pytest.mark.parametrize("of", ["bins", "total"])
def test_steps_and_answers_are_published_together(here, of):
    result = run("publish", "counts.csv", *BOTH, "--queries-of", of, "--store", "city.db", "--out", "a.jsonl", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["epsilon"], report["steps"]) == (1000, 40)
    assert report["worst_window_spent"] == pytest.approx(1000)
    assert "Of this epsilon 400 is for answers to window queries: one part in 5" in report["guarantee"]
    rows, said = exported()
    assert "26 answers written" in said
    assert [(row["begin"], row["end"]) for row in rows if row["query"] == "six"][:2] == [("0", "6"), ("2", "8")]
    lines = [json.loads(line) for line in (here / "a.jsonl").read_text().splitlines()]
    assert sum(len(line.get("answers", ())) for line in lines) == len(rows) == 18 + 8
    for row in rows:
        north, south = (sum(range(int(row["begin"]), int(row["end"]))), 100 * (int(row["end"]) - int(row["begin"])))
        south -= north
        near = {"total": north + south} if of == "total" else {"north": north, "south": south}
        assert {name: abs(int(row[name]) - value) < 1 for name, value in near.items()} == dict.fromkeys(near, True)


def test_the_ledger_names_the_queries_share(here):
    run("publish", "counts.csv", *BOTH, "--store", "city.db", "--out", "a.jsonl")
    result = run("ledger", "city.db")
    assert result.exit_code == 0
    assert "of it 400 for 2 window queries" in result.stdout
    assert "no window was over epsilon; the fullest, 1000" in result.stdout


def test_a_dry_run_predicts_the_errors_of_answers(here):
    result = run("publish", "counts.csv", *BOTH, "--store", "city.db", "--out", "a.jsonl", "--dry-run", "--json")
    errors = json.loads(result.stdout)["standard_errors"]
    assert [each["query"] for each in errors] == ["six", "12 every 4"]
    assert all(0 < each["standard_error"] < 1 for each in errors)
    assert not (here / "city.db").exists()


def test_epochs_about_other_things_are_exported_into_one_table(here):
    publish = ("publish", "counts.csv", *BOTH, "--store", "city.db", "--out", "a.jsonl")
    (here / "counts.csv").write_text("".join(COUNTS.splitlines(keepends=True)[:20]))
    assert run(*publish).exit_code == 0
    (here / "counts.csv").write_text(COUNTS)
    result = run(*publish, "--queries-of", "total", "--new-epoch")
    assert result.exit_code == 0, result.output
    rows, _ = exported()
    assert list(rows[0]) == ["query", "begin", "end", "total", "north", "south", "variance"]
    assert {(row["total"] == "nan", row["north"] == "nan") for row in rows} == {(True, False), (False, True)}


def test_answers_alone_may_be_of_the_total(here):
    result = run(
        "publish",
        "counts.csv",
        "--epsilon",
        "1000",
        "--queries",
        "queries.toml",
        "--queries-of",
        "total",
        "--out",
        "t.csv",
    )
    assert result.exit_code == 0, result.output
    with open("t.csv") as file:
        assert {round(int(row["total"]) / 100) for row in csv.DictReader(file)} == {6, 12}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((*BOTH, "--out", "a.jsonl"), "--store is missing"),
        ((*ASKED, "--queries-epsilon", "1000", "--store", "city.db"), "leaves nothing of epsilon 1000"),
        (("--epsilon", "1", "--window", "5", "--queries-epsilon", "0.5"), "name their file with --queries"),
        ((*ASKED, "--store", "city.db"), "a share of epsilon with --queries-epsilon"),
    ],
)
def test_what_does_not_fit_is_refused(here, arguments, sentence):
    result = run("publish", "counts.csv", *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_a_store_without_queries_has_no_answers_to_export(here):
    run("publish", "counts.csv", "--epsilon", "1", "--window", "5", "--store", "city.db", "--out", "a.jsonl")
    result = run("export", "city.db", "--answers", "--out", "b.csv")
    assert (result.exit_code, "without window queries" in result.stderr) == (2, True)
    result = run("export", "city.db", "--answers", "--totals", "x.toml", "--out", "b.csv")
    assert (result.exit_code, "choose one of them" in result.stderr) == (2, True)
