"""Histograms of sliding windows in every output: once each, with their scale, and what was begun without them stays."""

from __future__ import annotations

import csv
import json
from contextlib import closing

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from read_tables import KINDS, NEEDED, catalog_settings, place_of, rows_in

import eventide as ev
from eventide.cli import main
from eventide.errors import InputError
from eventide.live.stores.open_store import open_store
from eventide.mechanisms.registry import build_mechanism
from eventide.mechanisms.window_baselines import TimeUnitBaseline
from eventide.releases.lines import read_line

BINS = ["start", "help"]
COUNTS = [[3, 40], [5, 44], [4, 41], [90, 2], [88, 3]]
HISTOGRAMS = [[3, 40], [8, 84], [12, 125], [99, 87], [182, 46]]  # of the last three steps
COLUMNS = ["step", "bin", "statistic", "value", "low", "high", "scale", "fresh"]


def mechanism(name="rg-baseline", **parameters):
    return ev.mechanism(name, epsilon=1, window=1, bins=BINS, span=3, noise=ev.noise.Zero(), **parameters)


def publish(store, sinks=(), counts=COUNTS, made=None, **told):
    made, store = made or mechanism(), open_store(store, for_tests=True)
    with ev.Publisher(ev.MemoryFeed(counts), made, store, sinks, **told) as publisher:
        publisher.run()
        return str(publisher.guarantee)


def windows_of(rows):
    """The histograms in the rows of a long table, step by step."""
    found = {}
    for row in rows:
        if row["statistic"] == "window:events":
            found.setdefault(row["step"], []).append(row["value"])
    return [values for _, values in sorted(found.items())]


@pytest.mark.parametrize("name", ["rg", "rg-baseline", "rg-window-baseline"])
def test_a_line_has_the_histogram_and_its_scale(tmp_path, name):
    publish(tmp_path / "store.db", [tmp_path / "out.jsonl"], made=mechanism(name))
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    of_window = ["window_values", "window_scale", "window_low", "window_high"]
    assert [list(line) for line in lines] == [["step", "fresh", "values", "scale", *of_window]] * 5
    alone = ev.run(mechanism(name), COUNTS)
    assert [line["window_values"] for line in lines] == alone.window_values.tolist()
    assert [line["window_scale"] for line in lines] == alone.window_scale.tolist()
    read = read_line(json.dumps(lines[-1]).encode())
    assert read.window_values.tolist() == lines[-1]["window_values"]


@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
def test_files_are_long_with_a_statistic_of_its_own(tmp_path, out):
    publish(tmp_path / "store.db", [tmp_path / out], counts=COUNTS[:2])
    publish(tmp_path / "store.db", [tmp_path / out])
    table = (pa_csv.read_csv if out.endswith("csv") else pq.read_table)(tmp_path / out)
    assert table.column_names == COLUMNS
    assert windows_of(table.to_pylist()) == HISTOGRAMS
    assert [row["value"] for row in table.to_pylist() if row["statistic"] == "events"] == [v for c in COUNTS for v in c]


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind == "sqlite" else pytest.mark.slow) for kind in KINDS]
)
def test_tables_have_it_too_and_go_on_as_they_were_begun(tmp_path, monkeypatch, kind):
    pytest.importorskip(NEEDED[kind])
    if kind == "iceberg":
        from pyiceberg.utils.config import Config

        for name, value in catalog_settings(tmp_path).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    place = str(place_of(kind, tmp_path))
    publish(tmp_path / "store.db", [place], counts=COUNTS[:3])
    publish(tmp_path / "store.db", [place], counts=COUNTS[:4])
    uniform = ev.Uniform(epsilon=1, window=1, bins=BINS, noise=ev.noise.Zero())
    publish(tmp_path / "store.db", [place], made=uniform, new_epoch=True)  # which gives no histograms
    if kind == "sqlite":
        import sqlite3

        with closing(sqlite3.connect(place)) as opened:
            rows = opened.execute("SELECT value FROM statistics WHERE statistic = 'window:events' ORDER BY step, bin")
            found = [value for (value,) in rows]
            assert opened.execute("SELECT count(*), sum(value) FROM releases").fetchone() == (10, np.sum(COUNTS))
    else:
        found = [row[3] for row in rows_in(place) if row[2] == "window:events"]
        assert len(rows_in(place)) == 2 * len(COUNTS) * len(BINS)
    assert found == [*(value for pair in HISTOGRAMS[:4] for value in reversed(pair)), None, None]


@pytest.mark.parametrize("out", ["out.csv", "out.parquet", "out.sqlite"])
def test_what_was_begun_without_histograms_goes_on_without_them(tmp_path, out, monkeypatch):
    """As an older version began it: the same mechanism, whose lines had none."""
    with monkeypatch.context() as older:
        older.setattr(TimeUnitBaseline, "gives_windows", False)
        publish(tmp_path / "store.db", [tmp_path / out], counts=COUNTS[:2])
    before = (tmp_path / out).read_bytes()
    publish(tmp_path / "store.db", [tmp_path / out])
    if out.endswith("csv"):
        assert (tmp_path / out).read_bytes().startswith(before)
        rows = [f"{step},{start},{help}" for step, (start, help) in enumerate(COUNTS)]
        assert (tmp_path / out).read_text().splitlines() == ["step,start,help", *rows]
    elif out.endswith("parquet"):
        assert pq.read_table(tmp_path / out).column_names == ["step", *BINS]
    else:
        assert len(rows_in(str(tmp_path / out))) == len(COUNTS) * len(BINS)


def test_a_table_of_sqlite_that_has_no_statistics_goes_on_without(tmp_path):
    import sqlite3

    publish(tmp_path / "store.db", [tmp_path / "out.sqlite"], counts=COUNTS[:2])
    with closing(sqlite3.connect(tmp_path / "out.sqlite")) as opened:
        opened.execute("DROP TABLE statistics")
    publish(tmp_path / "store.db", [tmp_path / "out.sqlite"])
    assert len(rows_in(str(tmp_path / "out.sqlite"))) == len(COUNTS) * len(BINS)


def test_at_steps_that_measure_nothing_there_is_no_histogram(tmp_path):
    """A window that mixes other epochs would be that of other steps."""
    publish(tmp_path / "store.db", [tmp_path / "out.jsonl"], counts=COUNTS[:3])
    longer = ev.mechanism("rg-baseline", epsilon=1, window=3, bins=BINS, span=3, noise=ev.noise.Zero())
    publish(tmp_path / "store.db", [tmp_path / "out.jsonl"], made=longer, new_epoch=True, counts=COUNTS + COUNTS)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert ["window_values" in line for line in lines] == [True] * 3 + [False] * 2 + [True] * 5
    assert lines[5]["window_values"] == COUNTS[0]


@pytest.mark.parametrize("layout", [None, "wide", "long"])
def test_an_export_has_what_was_stored(tmp_path, layout):
    publish(tmp_path / "store.db", [tmp_path / "out.csv"])
    words = ["export", str(tmp_path / "store.db"), "--out", str(tmp_path / "exported.csv")]
    assert CliRunner().invoke(main, [*words, *(["--layout", layout] if layout else [])]).exit_code == 0
    exported = pa_csv.read_csv(tmp_path / "exported.csv")
    if layout == "wide":
        assert exported.column_names == ["step", *BINS]
    else:
        assert exported.equals(pa_csv.read_csv(tmp_path / "out.csv"))
    check = ["export", str(tmp_path / "store.db"), "--check", str(tmp_path / "out.csv")]
    assert "5 steps" in CliRunner().invoke(main, check).output


def test_epochs_of_other_bins_are_exported_together(tmp_path):
    publish(tmp_path / "store.db", counts=COUNTS[:2])
    more = ev.mechanism("rg-baseline", epsilon=1, window=1, bins=["new", "help"], span=3, noise=ev.noise.Zero())
    publish(tmp_path / "store.db", made=more, new_epoch=True)
    words = ["export", str(tmp_path / "store.db"), "--out", str(tmp_path / "exported.parquet")]
    assert CliRunner().invoke(main, words).exit_code == 0
    rows = pq.read_table(tmp_path / "exported.parquet").to_pylist()
    told = {(row["step"], row["bin"]): row["value"] for row in rows if row["statistic"] == "window:events"}
    assert told[1, "start"] == 8
    assert told[1, "new"] is None
    assert told[4, "start"] is None


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_the_command_says_that_a_wide_file_has_single_steps_only(tmp_path, layout):
    (tmp_path / "counts.csv").write_text("start,help\n" + "".join(f"{a},{b}\n" for a, b in COUNTS))
    words = ["publish", str(tmp_path / "counts.csv"), "--epsilon", "1", "--window", "1", "--mechanism", "rg"]
    words += ["--set", "span=3", "--layout", layout, "--out", str(tmp_path / "out.csv")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert ("no histograms of sliding windows" in result.output) == (layout == "wide")
    assert "the histograms of the last 3 steps together" in result.output


def test_frames_have_the_statistic(tmp_path):
    visits = {"at": ["2026-01-01T09:10", "2026-01-01T09:40", "2026-01-01T10:10"], "page": ["start", "help", "start"]}
    told = {"epsilon": 1, "window": 1, "step": "1h", "bins": BINS, "time": "at", "bin": "page"}
    releases = ev.publish(visits, mechanism="rg", parameters={"span": 2}, **told)
    table = releases.to_arrow()
    assert table.column_names == ["step", "start", "bin", "statistic", "value", "low", "high", "scale", "fresh"]
    assert table["statistic"].to_pylist() == (["events"] * 2 + ["window:events"] * 2) * 2
    assert "window:" not in releases._repr_html_()


def test_the_guarantee_says_what_a_histogram_is_covered_by(tmp_path):
    said = publish(tmp_path / "store.db")
    assert "This covers the counts of single steps and the histograms of the last 3 steps together" in said
    assert "is hidden in each single step of it, not in all of them" in said
    longer = ev.mechanism("rg", epsilon=1, window=3, bins=BINS, span=3)
    assert "not in all" not in str(longer.guarantee)


def test_the_page_to_sign_speaks_of_histograms(tmp_path):
    publish(tmp_path / "store.db")
    found = CliRunner().invoke(main, ["guarantee", str(tmp_path / "store.db"), "--out", str(tmp_path / "page.html")])
    assert found.exit_code == 0, found.output
    told = "at every step also histograms of the last 3 steps, which the same budget covers"
    assert told in (tmp_path / "page.html").read_text()


def test_a_dry_run_predicts_the_noise_of_a_histogram(tmp_path):
    (tmp_path / "counts.csv").write_text("start,help\n" + "".join(f"{a},{b}\n" for a, b in COUNTS))
    words = ["publish", str(tmp_path / "counts.csv"), "--epsilon", "1", "--window", "1", "--mechanism", "rg-baseline"]
    words += ["--set", "span=4", "--dry-run"]
    told = CliRunner().invoke(main, words)
    assert "Expected noise scale of a histogram of the last 4 steps: 2." in told.output
    said = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)
    assert (said["span"], said["smallest_scale_of_a_histogram"], said["largest_scale_of_a_histogram"]) == (4, 2, 2)


@pytest.mark.parametrize("name", ["rg", "rg-baseline", "rg-window-baseline"])
def test_the_predicted_range_holds_what_is_released(name):
    made = ev.mechanism(name, epsilon=1, window=1, bins=30, span=8, seed=5)
    run = ev.run(made, np.full((80, 30), 4))
    smallest, largest = made.window_noise_range()
    scales = run.window_scale[20:][~np.isnan(run.window_low[20:])]
    assert scales.size > 100
    assert smallest <= scales.min() * (1 + 1e-9)
    assert scales.max() <= largest * (1 + 1e-9)


def test_a_file_has_the_intervals_of_histograms(tmp_path):
    publish(tmp_path / "store.db", [tmp_path / "out.csv"])
    rows = csv.DictReader((tmp_path / "out.csv").read_text().splitlines())
    last = [row for row in rows if row["statistic"] == "window:events"][-1]
    with closing(open_store(tmp_path / "store.db", read_only=True)) as store:
        line = json.loads(list(store.releases())[-1][1])
    assert [float(last[name]) for name in ("low", "value", "high")] == [
        line[f"window_{name}"][-1] for name in ("low", "values", "high")
    ]
    assert line["window_low"][-1] < line["window_values"][-1] < line["window_high"][-1]


def test_another_mechanism_says_which_ones_have_a_span():
    with pytest.raises(InputError, match="takes no 'span', which is for rg, rg-baseline, rg-window-baseline; it takes"):
        build_mechanism("uniform", {"epsilon": 1, "window": 1, "bins": 2, "span": 15})


def test_sums_are_told_in_their_unit(tmp_path):
    rides = {"at": [f"2026-01-01T0{hour}:10" for hour in range(3)], "place": ["start"] * 3, "fare": [10, 20.5, 7]}
    told = {"epsilon": 1_000_000, "window": 1, "step": "1h", "bins": BINS, "time": "at", "bin": "place"}
    told |= {"statistic": "sum:fare", "between": "fare=0,120,0.5", "start": "2026-01-01", "until": "2026-01-01T03:00"}
    table = ev.publish(rides, mechanism="rg-baseline", parameters={"span": 2}, **told).to_arrow().to_pylist()
    own = [row["value"] for row in table if (row["bin"], row["statistic"]) == ("start", "window:sum:fare")]
    assert own == [10, 30.5, 27.5]


def test_a_file_of_something_else_is_still_refused(tmp_path):
    (tmp_path / "out.csv").write_text("step,start,other\n0,1,2\n")
    with pytest.raises(InputError, match="other columns"):
        publish(tmp_path / "store.db", [tmp_path / "out.csv"])
