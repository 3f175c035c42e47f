"""`eventide publish`: what is written is what was released; bad input stops it before it charges or writes anything."""

from __future__ import annotations

import gzip
import json
import re
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from pairwise import pairwise

from eventide.cli import main
from eventide.cli.publish.summary import summary
from eventide.mechanisms.base import Mechanism
from eventide.privacy.ledger import WindowLedger
from eventide.releases.files import ReleaseFile
from eventide.streams.count_files import open_counts

STEPS, BINS = 300, ("north", "south")
COUNTS = (
    770_000 + np.arange(STEPS * len(BINS)).reshape(STEPS, len(BINS)) % 997
)  # no such number may appear in a message
PRIVACY = ("--epsilon", "1", "--window", "10")


@pytest.fixture
def publish(capsys, tmp_path, monkeypatch):
    """Run `eventide publish` in an empty folder; give its exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(["publish", *words])
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def charges(monkeypatch):
    """Every amount that any ledger is asked to charge."""
    amounts = []
    charge = WindowLedger.charge

    def spy(ledger, amount):
        if ledger.replicas == 1:  # several publish made-up streams side by side, for a prediction
            amounts.append(np.max(amount))
        charge(ledger, amount)

    monkeypatch.setattr(WindowLedger, "charge", spy)
    return amounts


@pytest.fixture
def released(monkeypatch):
    """Everything that any mechanism releases."""
    releases = []
    release = Mechanism.release

    def spy(mechanism, counts):
        releases.append(release(mechanism, counts))
        return releases[-1]

    monkeypatch.setattr(Mechanism, "release", spy)
    return releases


def wide_lines(counts=COUNTS):
    return [",".join(["t", *BINS]), *(f"{t},{a},{b}" for t, (a, b) in enumerate(counts.tolist()))]


def long_lines(counts=COUNTS):
    return ["t,bin,count", *(f"{t},{BINS[b]},{counts[t, b]}" for t in range(len(counts)) for b in (0, 1))]


def typed(cells):
    """Cells of text as numbers, None where empty; as they are where one is a word."""
    try:
        return [float(cell) if cell else None for cell in cells]
    except ValueError:
        return cells


def save(path, lines):
    """Write lines of CSV as the ending of the path says."""
    text = "\n".join(lines) + "\n"
    if path.suffix == ".parquet":
        header, *rows = (line.split(",") for line in lines)
        pq.write_table(pa.table([typed(list(cells)) for cells in zip(*rows, strict=True)], names=header), path)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)


@pytest.mark.parametrize("source", ["wide.csv", "wide.csv.gz", "wide.parquet", "long.csv", "long.parquet"])
def test_every_kind_of_file_is_published_step_by_step(publish, released, tmp_path, source):
    save(tmp_path / source, wide_lines() if source.startswith("wide") else long_lines())
    (tmp_path / "bins.txt").write_text("\n".join(BINS))
    code, out, err = publish(
        source, "--epsilon", "1e6", "--window", "1", "--bins", "bins.txt", "--mechanism", "uniform"
    )
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["step"] for line in lines] == list(range(STEPS))
    # At this epsilon the noise is 0 but for one draw in e^1,000,000: what comes out is what went in.
    np.testing.assert_array_equal([line["values"] for line in lines], COUNTS)
    np.testing.assert_array_equal([release.values for release in released], COUNTS)
    assert f"Published {STEPS} steps of 2 bins to standard output" in err


TABLES = pairwise(
    {
        "mechanism": ["ba", "bd", "sample"],
        "filter_name": ["truncate", "none"],
        "out": ["p.csv", "p.parquet"],
        "layout": ["wide", "long"],
    },
    fits=lambda case: True,
)


@pytest.mark.parametrize(("mechanism", "filter_name", "out", "layout"), [tuple(case.values()) for case in TABLES])
def test_a_table_holds_what_was_released(publish, released, tmp_path, mechanism, filter_name, out, layout):
    save(tmp_path / "counts.csv", wide_lines(COUNTS[:50] % 7))
    words = ("--mechanism", mechanism, "--filter", filter_name, "--out", out, "--layout", layout)
    assert publish("counts.csv", *PRIVACY, *words)[0] == 0
    expected = np.array([release.values for release in released])
    table = pa_csv.read_csv(out) if out.endswith("csv") else pq.read_table(out)
    columns = [table[name].to_numpy() for name in (BINS if layout == "wide" else ["value"])]
    np.testing.assert_array_equal(np.column_stack(columns).reshape(50, 2), expected)
    if filter_name == "truncate":
        np.testing.assert_array_equal(list(open_counts(out, BINS).steps()), expected)


def test_truncation_can_be_left_out(publish, released, tmp_path):
    save(tmp_path / "counts.csv", wide_lines(0 * COUNTS))
    for filter_name in ("truncate", "none"):
        assert publish("counts.csv", *PRIVACY, "--mechanism", "uniform", "--filter", filter_name)[0] == 0
    values = np.array([release.values for release in released])
    assert values[:STEPS].min() == 0
    assert values[STEPS:].min() < 0  # half of 600 draws are


def test_json_is_one_document_that_agrees_with_the_run(publish, released, charges, tmp_path):
    save(tmp_path / "counts.csv", wide_lines())
    code, out, err = publish("counts.csv", *PRIVACY, "--out", "private.jsonl", "--json", "--sensitivity", "3")
    document = json.loads(out)
    assert code == 0
    assert (document["steps"], document["bins"], document["mechanism"]) == (STEPS, 2, "tide")
    assert (document["epsilon"], document["window"], document["sensitivity"]) == (1.0, 10, 3)
    assert document["fresh_looks"] == sum(release.fresh for release in released)
    spent = np.array([release.spent for release in released])
    windows = np.convolve(spent, np.ones(10))
    assert document["worst_window_spent"] == pytest.approx(windows.max())
    assert document["worst_window_spent"] <= 1
    assert document["out"] == "private.jsonl"
    assert document["guarantee"] == err.splitlines()[-1]
    assert charges


def test_the_guarantee_is_private_and_no_option_makes_it_otherwise(publish, tmp_path):
    save(tmp_path / "counts.csv", wide_lines())
    code, _, err = publish("counts.csv", *PRIVACY, "--out", "private.csv")
    guarantee = err.splitlines()[-1]
    assert code == 0
    assert "10 consecutive steps" in guarantee
    assert "with epsilon 1." in guarantee
    assert "NOT PRIVATE" not in guarantee
    for option in ("--seed", "--noise"):
        assert publish("counts.csv", *PRIVACY, option, "7")[0] == 2


@pytest.mark.parametrize("mechanism", ["uniform", "sample", "hybrid", "bd", "ba"])
def test_a_dry_run_checks_and_predicts_and_charges_and_writes_nothing(publish, charges, tmp_path, mechanism):
    save(tmp_path / "counts.csv", wide_lines())
    words = ("--dry-run", "--json", "--mechanism", mechanism, "--out", "private.csv")
    code, out, err = publish("counts.csv", *PRIVACY, *words)
    document = json.loads(out)
    assert code == 0
    assert document["steps"] == STEPS
    assert document["worst_window_spent_at_most"] == 1
    least = {"uniform": 10, "sample": 1, "hybrid": 4, "bd": 4, "ba": 2}[mechanism]
    assert document["smallest_error_of_a_look"] == pytest.approx(least, rel=1e-6)
    assert "nothing was published or charged" in err
    assert re.search(r"expected error of a count is about .*; at counts of 5, 50, 500 and 5,000 that is .* %\.", err)
    assert ("Known from a formula" in err) == (mechanism == "uniform")
    assert re.search(r"\n   *50: .* %  █", err)  # the picture
    assert "limit per person" not in err  # counts have none
    assert "Not checked" not in err
    assert charges == []
    assert [path.name for path in tmp_path.iterdir()] == ["counts.csv"]


@pytest.mark.parametrize("store", [(), ("--store", "city.db")])
def test_a_dry_run_promises_what_the_run_itself_does(publish, tmp_path, store):
    save(tmp_path / "counts.csv", wide_lines())
    words = ("counts.csv", *PRIVACY, *store, "--out", "private.jsonl")
    _, _, before = publish(*words, "--dry-run")
    assert not (tmp_path / "city.db").exists()
    _, _, after = publish(*words)
    assert before.splitlines()[-1] == after.splitlines()[-1]
    assert ("for this run only" in before) == (not store)


def test_a_dry_run_says_where_the_store_stands_and_changes_nothing(publish, tmp_path):
    save(tmp_path / "counts.csv", wide_lines(COUNTS[:20]))
    words = ("counts.csv", *PRIVACY, "--store", "city.db", "--json")
    assert publish(*words, "--out", "private.jsonl")[0] == 0
    held = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, _ = publish(*words, "--dry-run")
    assert code == 0
    assert json.loads(out)["next_step"] == 20
    changed = (*words, "--dry-run", "--mechanism", "uniform")
    code, _, err = publish(*changed)
    assert code == 2
    assert "another setting" in err
    assert publish(*changed, "--new-epoch")[0] == 0
    assert {name: (tmp_path / name).read_bytes() for name in held} == held


def test_a_dry_run_refuses_an_output_that_does_not_follow_the_store(publish, tmp_path):
    save(tmp_path / "counts.csv", wide_lines())
    words = ("counts.csv", *PRIVACY, "--store")
    assert publish(*words, "city.db", "--out", "private.jsonl")[0] == 0
    (tmp_path / "other.csv").write_text("step,elsewhere\n")
    held = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    code, _, err = publish(*words, "new.db", "--out", "private.jsonl", "--dry-run")
    assert (code, "and the store holds none. Either it belongs to another store" in err) == (5, True)
    code, _, err = publish(*words, "city.db", "--out", "other.csv", "--dry-run")
    assert (code, "other columns" in err) == (2, True)
    code, _, err = publish(*words, "city.db", "--webhook", "https://", "--dry-run")
    assert (code, "a webhook is an address" in err) == (2, True)
    assert {name: (tmp_path / name).read_bytes() for name in held} == held
    assert not (tmp_path / "new.db").exists()


def test_a_dry_run_refuses_a_store_that_cannot_be_one(publish, tmp_path):
    save(tmp_path / "counts.csv", wide_lines())
    (tmp_path / "folder").mkdir()
    code, _, err = publish("counts.csv", *PRIVACY, "--store", "folder", "--dry-run")
    assert code == 2
    assert "is a folder" in err


BAD_CELLS = {"negative": "-770123", "NaN": "nan", "fractional": "770123.5", "empty": "", "word": "about 770123"}


def refused(result, tmp_path, files):
    """Exit code 2, one sentence that shows no count, and the folder as it was."""
    code, out, err = result
    assert code == 2
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert "7701" not in err
    assert {path.name for path in tmp_path.iterdir()} == files
    return err


BAD_LAST_ROWS = pairwise(
    {
        "fault": list(BAD_CELLS),
        "source": ["wide.csv", "wide.parquet", "long.csv.gz", "long.parquet"],
        "out": [None, "private.csv", "private.parquet", "private.jsonl"],
    },
    fits=lambda case: True,
)


@pytest.mark.parametrize(("fault", "source", "out"), [tuple(case.values()) for case in BAD_LAST_ROWS])
def test_a_bad_cell_in_the_last_row_stops_before_anything_is_done(publish, charges, tmp_path, fault, source, out):
    lines = wide_lines() if source.startswith("wide") else long_lines()
    lines[-1] = lines[-1].rsplit(",", 1)[0] + "," + BAD_CELLS[fault]
    save(tmp_path / source, lines)
    (tmp_path / "bins.txt").write_text("\n".join(BINS))
    result = publish(source, *PRIVACY, "--bins", "bins.txt", *(["--out", out] if out else []))
    err = refused(result, tmp_path, {source, "bins.txt"})
    assert f"row {len(lines) - 1} is" in err
    assert charges == []


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("3,770123", "row 4 has 2 columns"),
        ("3,770123,770124,770125", "row 4 has 4 columns"),
        ("4,770123,770124", "row 4"),
    ],
)
def test_a_row_with_too_few_or_too_many_counts_or_out_of_turn_is_refused(publish, charges, tmp_path, row, sentence):
    lines = wide_lines()
    lines[4] = row
    save(tmp_path / "counts.csv", lines)
    assert sentence in refused(publish("counts.csv", *PRIVACY, "--out", "private.csv"), tmp_path, {"counts.csv"})
    assert charges == []


def test_a_missing_column_is_refused(publish, charges, tmp_path):
    save(tmp_path / "wide.csv", wide_lines())
    (tmp_path / "bins.txt").write_text("north\nsouth\nwest\n")
    save(tmp_path / "long.csv", [line.rsplit(",", 1)[0] for line in long_lines()])
    files = {"wide.csv", "long.csv", "bins.txt"}
    words = (*PRIVACY, "--bins", "bins.txt", "--out", "private.csv")
    assert "do not fit the list of bins (missing: 'west')" in refused(publish("wide.csv", *words), tmp_path, files)
    assert "column count or value is missing" in refused(publish("long.csv", *words), tmp_path, files)
    assert charges == []


def test_a_truncated_parquet_file_is_refused(publish, charges, tmp_path):
    save(tmp_path / "whole.parquet", wide_lines())
    whole = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-100])
    result = publish("cut.parquet", *PRIVACY, "--out", "private.csv")
    assert "cut short" in refused(result, tmp_path, {"whole.parquet", "cut.parquet"})
    assert charges == []


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_output_that_cannot_be_written_is_refused(publish, charges, tmp_path, dry_run):
    save(tmp_path / "counts.csv", wide_lines())
    before = (tmp_path / "counts.csv").read_text()
    for out in ("absent/private.csv", "counts.csv/private.csv", "counts.csv", "private.xlsx"):
        words = ("--out", out, *(["--dry-run"] if dry_run else []))
        assert out in refused(publish("counts.csv", *PRIVACY, *words), tmp_path, {"counts.csv"})
    assert (tmp_path / "counts.csv").read_text() == before
    assert charges == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--epsilon", "0", "--window", "10"), "epsilon"),
        (("--epsilon", "nan", "--window", "10"), "epsilon"),
        (("--epsilon", "1", "--window", "24h"), "needs the length of a step"),
        (("--epsilon", "1", "--window", "0"), "window"),
        ((*PRIVACY, "--mechanism", "magic"), "magic"),
        ((*PRIVACY, "--filter", "magic"), "magic"),
        ((*PRIVACY, "--sensitivity", "0"), "sensitivity"),
        ((*PRIVACY, "--max-per-step", "3"), "name what holds the person, as --user"),
        ((*PRIVACY, "--json"), "add --out"),
        ((*PRIVACY, "--json", "--out", "-"), "add --out"),
        ((*PRIVACY, "--layout", "wide"), "leave it out"),
        ((*PRIVACY, "--bins", "3"), "missing: '0', '1', '2'; unknown: 'north', 'south'"),
        ((*PRIVACY, "--bins", "absent.txt"), "absent.txt"),
    ],
)
def test_a_bad_option_is_refused(publish, charges, tmp_path, words, sentence):
    save(tmp_path / "counts.csv", wide_lines())
    assert sentence in refused(publish("counts.csv", *words), tmp_path, {"counts.csv"})
    assert charges == []


def test_an_interruption_leaves_no_output(publish, monkeypatch, tmp_path):
    def interrupt(file, release):
        raise KeyboardInterrupt

    save(tmp_path / "counts.csv", wide_lines())
    monkeypatch.setattr(ReleaseFile, "write", interrupt)
    assert publish("counts.csv", *PRIVACY, "--out", "private.csv")[0] == 130
    assert {path.name for path in tmp_path.iterdir()} == {"counts.csv"}


@pytest.mark.parametrize(("words", "goes_on"), [(("--store", "a.db"), True), ((), False)])
def test_whoever_interrupts_is_told_where_the_same_command_goes_on(publish, monkeypatch, tmp_path, words, goes_on):
    def interrupt(mechanism, *given):
        raise KeyboardInterrupt

    save(tmp_path / "counts.csv", wide_lines())
    monkeypatch.setattr(Mechanism, "release", interrupt)
    code, _, told = publish("counts.csv", *PRIVACY, "--out", "private.csv", *words)
    assert (code, "The same command goes on" in told) == (130, goes_on)


@pytest.mark.parametrize("out", ["private.csv", "private.parquet", "private.jsonl"])
def test_what_was_published_without_a_store_is_not_replaced(publish, charges, tmp_path, out):
    save(tmp_path / "counts.csv", wide_lines())
    (tmp_path / out).write_text("as it was")
    for further in ((), ("--dry-run",)):
        result = publish("counts.csv", *PRIVACY, "--out", out, *further)
        assert f"{out} exists" in refused(result, tmp_path, {"counts.csv", out})
    assert (tmp_path / out).read_text() == "as it was"
    assert charges == []


def test_a_terminal_sees_progress(publish, monkeypatch, tmp_path):
    save(tmp_path / "counts.csv", wide_lines())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, _, err = publish("counts.csv", *PRIVACY, "--out", "private.csv")
    assert code == 0
    assert "Checking" in err
    assert "Publishing" in err
    assert len(list(open_counts(tmp_path / "private.csv").steps())) == STEPS


def test_one_step_is_told_as_one():
    report = {
        "steps": 1,
        "bins": 2,
        "out": "a.csv",
        "fresh_looks": 1,
        "worst_window_spent": 1,
        "epsilon": 1,
        "window": 1,
    }
    told = summary(report | {"window_sensitivity": None})
    assert told.startswith("Published 1 step of 2 bins to a.csv; 1 of the steps was measured.")
