"""`eventide plan` and `eventide publish --queries`: predicted errors, answers in files, clear refusals."""

import json

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from command_words import with_last

from eventide import windows
from eventide.cli import main
from eventide.errors import InputError
from eventide.events.durations import milliseconds
from eventide.privacy.ledger import WindowLedger
from eventide.windows import Query
from eventide.windows.query_files import read_queries

TICKS, BINS = 130, ("north", "south")
COUNTS = 770_000 + np.arange(TICKS * 2).reshape(TICKS, 2) % 997
QUERIES = '[[query]]\nwindow = 15\nstep = 5\nname = "quarter"\n\n[[query]]\nwindow = 20\nstep = 10\n'
PRECISE = ("--epsilon", "1e6")  # at this epsilon the noise is 0 but for one draw in e^100,000


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run the command in a folder with counts and queries; give its exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    lines = ["t," + ",".join(BINS), *(f"{t},{a},{b}" for t, (a, b) in enumerate(COUNTS.tolist()))]
    (tmp_path / "counts.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "queries.toml").write_text(QUERIES)

    def call(*words):
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        return ended.value.code, *capsys.readouterr()

    return call


@pytest.fixture
def charges(monkeypatch):
    """Every amount that any ledger is asked to charge."""
    amounts, charge_each = [], WindowLedger.charge_each
    monkeypatch.setattr(
        WindowLedger, "charge_each", lambda ledger, asked: amounts.extend(asked) or charge_each(ledger, asked)
    )
    return amounts


def expected():
    sums = np.concatenate([np.zeros((1, 2)), np.cumsum(COUNTS, axis=0)])
    found = [
        (begin + window, position, name, begin, sums[begin + window] - sums[begin])
        for position, (name, window, step) in enumerate([("quarter", 15, 5), ("20 every 10", 20, 10)])
        for begin in range(0, TICKS - window + 1, step)
    ]
    return [(name, begin, end, values.tolist()) for end, _, name, begin, values in sorted(found, key=lambda f: f[:2])]


def test_a_plan_is_explained_and_nothing_is_charged(run, charges):
    code, out, err = run("plan", "queries.toml", "--epsilon", "0.5")
    plan = windows.plan([Query(15, 5, "quarter"), Query(20, 10)], 0.5)
    assert code == 0
    assert out.strip() == plan.explain()
    assert err.strip() == str(plan.guarantee)
    assert charges == []


def test_json_is_one_document_about_the_plan(run):
    code, out, _ = run("plan", "queries.toml", "--epsilon", "1", "--planner", "base", "--json")
    document = json.loads(out)
    plan = windows.plan([Query(15, 5), Query(20, 10)], 1, "base")
    assert code == 0
    assert (document["planner"], document["epsilon"]) == ("base", 1.0)
    errors = [query["standard_error"] ** 2 for query in document["queries"]]
    assert errors == pytest.approx(plan.query_errors)
    assert document["workload_error"] == pytest.approx(plan.workload_error)
    assert document["workload_error_of_planners"]["base"] == pytest.approx(plan.workload_error)
    assert document["levels"][0]["largest"] == 0.5
    assert document["queries"][0]["name"] == "quarter"


def test_a_plan_for_windows_has_what_publish_foresees_for_them(run):
    code, out, err = run("plan", "queries.toml", "--epsilon", "1", "--window", "1h", "--step", "20min", "--json")
    document = json.loads(out)
    assert (code, document["epsilon"], document["window"]) == (0, 1.0, 3)
    assert "any 3 consecutive steps" in document["guarantee"]
    assert "w-event" in err
    words = ("--epsilon", "1", "--window", "3", "--queries", "queries.toml", "--dry-run", "--json", "--out", "a.csv")
    foreseen = json.loads(run("publish", "counts.csv", *words)[1])["standard_errors"]
    errors = [query["standard_error"] for query in document["queries"]]
    assert errors == pytest.approx([each["standard_error"] for each in foreseen])
    code, _, err = run("plan", "queries.toml", "--epsilon", "1", "--window", "0")
    assert (code, "window" in err) == (2, True)


def test_a_query_beyond_the_horizon_has_no_error(run, tmp_path):
    (tmp_path / "far.toml").write_text("[[query]]\nwindow=6\nstep=3\n[[query]]\nwindow=70\nstep=7\n")
    code, out, _ = run("plan", "far.toml", "--epsilon", "1", "--horizon", "20", "--json")
    assert code == 0
    assert [query["standard_error"] is None for query in json.loads(out)["queries"]] == [False, True]


def test_durations_need_a_clock(run, tmp_path):
    (tmp_path / "hours.toml").write_text('[[query]]\nwindow = "1h"\nstep = "15min"\n')
    assert read_queries(tmp_path / "hours.toml", "5min") == [Query(12, 3)]
    code, out, _ = run("plan", "hours.toml", "--epsilon", "1", "--step", "5min", "--json")
    assert code == 0
    assert json.loads(out)["queries"][0]["window"] == 12
    code, _, err = run("plan", "hours.toml", "--epsilon", "1")
    assert code == 2
    assert "hours.toml, query 1: the window '1h' is a duration" in err
    code, _, err = run("publish", "counts.csv", *PRECISE, "--queries", "hours.toml", "--step", "7min")
    assert code == 2
    assert "no whole number of ticks" in err


@pytest.mark.parametrize("text", ["5", "min", "5 minutes", "-5min", "0min", "1.5h", "", "5min3"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(InputError, match="no duration"):
        milliseconds(text)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read"),
        ("[[query]", "no TOML file"),
        ("", "must hold a table [[query]] for each query, and nothing else"),
        ("window = 5", "must hold a table [[query]] for each query, and nothing else"),
        ("query = 5", "must hold a table [[query]] for each query, and nothing else"),
        ("query = []", "no query to plan"),
        ("[[query]]\nwindow = 5", "query 1: step is missing"),
        ("[[query]]\nwindow = 5\nstep = 5\nsize = 3", "'size' means nothing"),
        ("[[query]]\nwindow = 5\nstep = 5\nname = 3", "a name is text"),
        ("[[query]]\nwindow = 5\nstep = 2", "query 1: a window of 5 is no multiple"),
        ("[[query]]\nwindow = 5.0\nstep = 5", "whole number of ticks"),
        ("[[query]]\nwindow = true\nstep = 5", "whole number of ticks"),
        ('[[query]]\nwindow = "soon"\nstep = 5', "no duration"),
        ("[[query]]\nwindow = 4\nstep = 4\nname='a'\n[[query]]\nwindow = 2\nstep = 2\nname='a'", "named 'a'"),
        ("[[query]]\nwindow = 999999999989\nstep = 999999999989\n[[query]]\nwindow = 7\nstep = 7", "horizon"),
    ],
)
def test_bad_queries_are_refused_with_a_sentence(run, charges, tmp_path, content, says):
    if content is not None:
        (tmp_path / "bad.toml").write_text(content)
    for words in (
        ("plan", "bad.toml", "--epsilon", "1"),
        ("publish", "counts.csv", "--epsilon", "1", "--queries", "bad.toml"),
    ):
        if "horizon" in says and words[0] == "publish":
            continue  # the length of the file is the horizon
        code, out, err = run(*words)
        assert code == 2
        assert out == ""
        assert says in err
        assert err.startswith("Error: ")
        assert err.count("\n") == 1
    assert charges == []


@pytest.mark.parametrize(
    ("out", "layout"), [("a.csv", "wide"), ("a.csv", "long"), ("a.parquet", "wide"), ("a.parquet", "long")]
)
def test_a_table_holds_every_answer(run, out, layout):
    code, _, err = run("publish", "counts.csv", *PRECISE, "--queries", "queries.toml", "--out", out, "--layout", layout)
    assert code == 0
    table = (pa_csv.read_csv(out) if out.endswith("csv") else pq.read_table(out)).to_pydict()
    times = 1 if layout == "wide" else 2
    values = np.column_stack([table[name] for name in (BINS if layout == "wide" else ["value"])]).reshape(-1, 2)
    found = list(
        zip(table["query"][::times], table["begin"][::times], table["end"][::times], values.tolist(), strict=True)
    )
    assert found == expected()
    if layout == "long":
        assert table["bin"][:4] == ["north", "south"] * 2
    assert f"Published {len(found)} answers to 2 queries about 130 steps of 2 bins to {out}" in err


def test_json_lines_on_standard_output(run):
    code, out, err = run("publish", "counts.csv", *PRECISE, "--queries", "queries.toml")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [(line["query"], line["begin"], line["end"], line["values"]) for line in lines] == expected()
    assert all(line["variance"] >= 0 for line in lines)
    assert "NOT PRIVATE" not in err


def test_answers_are_truncated_unless_asked_otherwise(run, tmp_path):
    (tmp_path / "counts.csv").write_text("t,north\n" + "".join(f"{t},0\n" for t in range(400)))
    values = {}
    for name in ("truncate", "none"):
        words = ("--epsilon", "0.1", "--queries", "queries.toml", "--filter", name)
        values[name] = [json.loads(line)["values"][0] for line in run("publish", "counts.csv", *words)[1].splitlines()]
    assert min(values["truncate"]) == 0
    assert all(isinstance(value, int) for value in values["truncate"])
    assert min(values["none"]) < 0


def test_the_report_agrees_with_the_ledger(run, charges):
    words = (
        "--epsilon",
        "1",
        "--window",
        "4",
        "--sensitivity",
        "2",
        "--queries",
        "queries.toml",
        "--out",
        "a.jsonl",
        "--json",
    )
    code, out, err = run("publish", "counts.csv", *words)
    report = json.loads(out)
    assert code == 0
    assert (report["steps"], report["bins"], report["queries"], report["answers"]) == (TICKS, 2, 2, len(expected()))
    assert (report["window"], report["sensitivity"]) == (4, 2)
    assert (
        report["worst_window_spent"] == pytest.approx(max(np.convolve(charges, np.ones(4))) / 1e9) == pytest.approx(1)
    )
    assert "any 4 consecutive steps" in report["guarantee"]
    assert "w-event" in report["guarantee"]
    assert report["guarantee"] == err.splitlines()[-1]


def test_a_dry_run_predicts_and_charges_and_writes_nothing(run, charges, tmp_path):
    words = ("--epsilon", "1", "--window", "3", "--queries", "queries.toml", "--dry-run", "--json", "--out", "a.csv")
    code, out, err = run("publish", "counts.csv", *words)
    plan = windows.plan([Query(15, 5), Query(20, 10)])
    errors = [each["standard_error"] for each in json.loads(out)["standard_errors"]]
    assert code == 0
    assert errors == pytest.approx(np.sqrt(plan.errors(window=3)))
    assert charges == []
    assert "nothing was published or charged" in err
    assert not (tmp_path / "a.csv").exists()


def test_steps_with_few_common_factors_are_planned_for_the_length_of_the_file(run, tmp_path):
    (tmp_path / "coprime.toml").write_text("".join(f"[[query]]\nwindow={s}\nstep={s}\n" for s in (11, 13, 17)))
    code, out, _ = run("publish", "counts.csv", *PRECISE, "--queries", "coprime.toml")
    assert code == 0
    assert len(out.splitlines()) == sum(TICKS // step for step in (11, 13, 17))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--mechanism", "ba", "--queries", "queries.toml"), "a share of epsilon with --queries-epsilon"),
        (("--filter", "kalman", "--queries", "queries.toml"), "choose truncate or none"),
        (("--window", "24h", "--queries", "queries.toml"), "needs the length of a step"),
        (("--step", "5min", "--window", "3"), "--step says how long a step is for --queries"),
        ((), "--window is missing"),
        (("--queries", "queries.toml", "--layout", "wide"), "leave it out"),
        (("--queries", "queries.toml", "--json"), "add --out"),
        (("--queries", "queries.toml", "--out", "counts.csv"), "the file that is read"),
        (("--queries", "queries.toml", "--epsilon", "0"), "epsilon"),
    ],
)
def test_options_that_do_not_fit_are_refused(run, charges, tmp_path, words, says):
    code, _, err = run(*with_last("publish", "counts.csv", "--epsilon", "1", *words))
    assert code == 2
    assert says in err
    assert charges == []
    assert {path.name for path in tmp_path.iterdir()} == {"counts.csv", "queries.toml"}


def test_a_wide_table_keeps_its_own_column_names(run, tmp_path):
    (tmp_path / "counts.csv").write_text("end,north\n1,2\n" * 1 + "3,4\n" * 20)
    words = ("--epsilon", "1", "--queries", "queries.toml", "--out", "a.csv")
    code, _, err = run("publish", "counts.csv", *words)
    assert code == 2
    assert "column end of its own" in err
    assert run("publish", "counts.csv", *words, "--layout", "long")[0] == 0


def test_a_bad_cell_stops_before_anything_is_charged(run, charges, tmp_path):
    with open("counts.csv", "a") as file:
        file.write("130,770123,-1\n")
    code, out, err = run("publish", "counts.csv", "--epsilon", "1", "--queries", "queries.toml", "--out", "a.csv")
    assert (code, out, charges) == (2, "", [])
    assert "7701" not in err
    assert not (tmp_path / "a.csv").exists()


def test_a_plan_is_drawn_into_a_file(run, tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install '.[test-all]'")
    assert run("plan", "queries.toml", "--epsilon", "1", "--out", "plan.svg")[0] == 0
    assert (tmp_path / "plan.svg").stat().st_size > 1_000
    code, _, err = run("plan", "queries.toml", "--epsilon", "1", "--out", "plan.docx")
    assert code == 2
    assert "cannot draw plan.docx" in err
