"""Levels through the publisher: stored, added up in every release, rebuilt after a stop, written by every sink."""

from __future__ import annotations

import csv
import json
import shutil
from contextlib import closing

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import eventide as ev
from eventide.cli import main
from eventide.errors import InputError
from eventide.events.levels import Levels
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.publisher import publisher as publishing
from eventide.live.publisher.comparing import compare
from eventide.live.publisher.releases import KeptReleases
from eventide.live.stores.open_store import open_store

BINS = ("a", "b", "c", "d")
GROUPS = {"ward": ["W1", "W1", "W2", "W2"], "kind": ["x", "y", "x", "y"]}
LEVELS = Levels(GROUPS, BINS)
COUNTS = np.random.default_rng(3).poisson([0.3, 4, 30, 200], (40, 4))
HEADER = ["step", "level", "bin", "value", "low", "high", "scale", "fresh"]


@pytest.fixture(autouse=True)
def snapshots_often(monkeypatch):
    monkeypatch.setattr(publishing, "SNAPSHOT_EVERY", 4)


def publisher(path, sinks=(), *, levels=GROUPS, name="ba", **options):
    mechanism = ev.mechanism(
        name, epsilon=1, window=5, bins=BINS, levels=levels, filter="truncate", noise=ev.noise.Zero()
    )
    store = None if path is None else open_store(path, for_tests=True)
    return ev.Publisher(MemoryFeed(COUNTS), mechanism, store, sinks, **options)


def lines(path):
    with closing(open_store(path, read_only=True)) as store:
        store.verify()
        return [line for _, line in store.releases()]


def assert_adds_up(line):
    said = json.loads(line)
    assert list(said["levels"]) == ["ward", "kind", "total"]
    values = np.array(said["values"])
    for level, told in said["levels"].items():
        assert told["values"] == np.bincount(LEVELS.labels[level], values).tolist()


@pytest.mark.parametrize("name", ["ba", "uniform", "hybrid"])
def test_stopped_after_any_step_it_goes_on_as_if_nothing_had_happened(tmp_path, name):
    with publisher(tmp_path / "whole.db", name=name) as whole:
        whole.run()
    chance, step = np.random.default_rng(9), 0
    while step < len(COUNTS):
        with publisher(tmp_path / "parts.db", [tmp_path / "out.csv"], name=name) as part:
            part.run(until=min(len(COUNTS), step + int(chance.integers(1, 13))))
            step = part.next_step
    assert lines(tmp_path / "parts.db") == lines(tmp_path / "whole.db")
    assert part.worst_window() == whole.worst_window() <= 1
    for line in lines(tmp_path / "parts.db"):
        assert_adds_up(line)
    rows = list(csv.reader((tmp_path / "out.csv").read_text().splitlines()))
    assert rows[0] == HEADER
    assert [row[:3] for row in rows[1:10]] == [
        *(["0", "bin", name] for name in BINS),
        *(["0", "ward", "W1"], ["0", "ward", "W2"], ["0", "kind", "x"], ["0", "kind", "y"], ["0", "total", "total"]),
    ]
    assert len(rows) == 1 + 9 * len(COUNTS)


def test_a_parquet_file_is_gone_on_with(tmp_path):
    for until in (10, 20):
        with publisher(tmp_path / "s.db", [tmp_path / "out.parquet"]) as part:
            part.run(until=until)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == HEADER
    totals = table.filter((np.array(table["level"]) == "total").tolist())["value"].to_pylist()
    stored = [json.loads(line)["levels"]["total"]["values"][0] for line in lines(tmp_path / "s.db")]
    assert totals == stored
    assert len(totals) == 20


def test_what_a_backup_has_lost_stays_in_a_parquet_file(tmp_path):
    for until in (3, 6):
        with publisher(tmp_path / "s.db", [tmp_path / "out.parquet"]) as part:
            part.run(until=until)
        if until == 3:
            shutil.copy(tmp_path / "s.db", tmp_path / "backup.db")
    before = pq.read_table(tmp_path / "out.parquet")
    shutil.copy(tmp_path / "backup.db", tmp_path / "s.db")
    with publisher(tmp_path / "s.db", [tmp_path / "out.parquet"], after_restore=True) as part:
        part.run(until=8)
    assert pq.read_table(tmp_path / "out.parquet").slice(0, len(before)).equals(before)


def test_a_store_gets_levels_with_a_new_epoch_and_an_export_shows_both(tmp_path):
    with publisher(tmp_path / "s.db", levels=None) as part:
        part.run(until=4)
    with pytest.raises(InputError, match="new"):
        publisher(tmp_path / "s.db")
    with publisher(tmp_path / "s.db", new_epoch=True) as part:
        part.run(until=12)
    for line in lines(tmp_path / "s.db")[4:]:  # also those that repeat, since nothing may be measured for a window
        assert_adds_up(line)
    for name in ("out.csv", "out.jsonl"):
        asked = ["export", str(tmp_path / "s.db"), "--out", str(tmp_path / name)]
        done = CliRunner().invoke(main, asked, catch_exceptions=False)
        assert done.exit_code == 0
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    totals = [row["value"] for row in rows if row["level"] == "total"]
    assert totals[:4] == [""] * 4
    assert all(totals[4:])
    assert_adds_up((tmp_path / "out.jsonl").read_text().splitlines()[-1])


def test_a_wide_table_is_refused(tmp_path):
    from eventide.live.sinks.open_sink import open_sink

    with pytest.raises(InputError, match="leave --layout wide out"):
        open_sink(tmp_path / "out.csv", BINS, layout="wide", groups=LEVELS.groups)


def test_frames_have_a_row_for_each_group():
    frame = {name: COUNTS[:, place].tolist() for place, name in enumerate(BINS)}
    releases = ev.publish(frame, epsilon=1, window=5, mechanism="uniform", levels=GROUPS)
    table = releases.to_arrow()
    assert table.column_names == ["step", "level", "bin", "value", "scale", "fresh"]
    rows = table.to_pylist()
    for step in range(len(COUNTS)):
        of = [row for row in rows if row["step"] == step]
        bins = sum(row["value"] for row in of if row["level"] == "bin")
        assert [row["value"] for row in of if row["level"] == "total"] == [bins]
        assert sum(row["value"] for row in of if row["level"] == "ward") == bins
    assert "ward, kind, total and bins together" in str(releases.guarantee)
    assert len(releases._repr_html_()) > 100


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "levels.csv").write_text("page,section\na,s\nb,s\nc,t\nd,t\n")
    (tmp_path / "visits.csv").write_text(
        "timestamp,user,bin\n" + "".join(f"2026-01-01T0{n % 4}:10:00,u{n},{BINS[n % 3]}\n" for n in range(60))
    )
    (tmp_path / "counts.csv").write_text("a,b,c,d\n" + "1,2,3,4\n" * 6)
    return tmp_path


def command(*words):
    return CliRunner().invoke(main, ["publish", *words, "--epsilon", "1", "--levels", "levels.csv"])


def test_the_command_takes_a_file_whose_bins_are_those_of_events(files):
    words = ["visits.csv", "--step", "1h", "--window", "2", "--bin", "bin", "--mechanism", "uniform"]
    done = command(*words, "--out", "out.jsonl")
    assert done.exit_code == 0, done.output
    said = [json.loads(line) for line in (files / "out.jsonl").read_text().splitlines()]
    assert all(line["levels"]["total"]["values"] == [sum(line["values"])] for line in said)
    assert all(len(line["levels"]["section"]["values"]) == 2 for line in said)


def test_the_command_takes_levels_of_ready_made_counts(files):
    done = command("counts.csv", "--window", "2", "--mechanism", "ba", "--out", "out.csv")
    assert done.exit_code == 0, done.output
    assert (files / "out.csv").read_text().startswith("step,level,bin,value")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["counts.csv", "--window", "2", "--mechanism", "fast"], "cannot have levels"),
        (["counts.csv", "--window", "2", "--mechanism", "ba", "--bins", "3"], "is in no group of level"),
    ],
)
def test_what_levels_cannot_be_is_said(files, words, sentence):
    done = command(*words, "--out", "out.csv")
    assert done.exit_code == 2
    assert sentence in done.output


def test_totals_after_the_fact_read_the_same_file(tmp_path):
    with publisher(tmp_path / "s.db", levels=None) as part:
        part.run(until=3)
    (tmp_path / "levels.csv").write_text("bin,ward\na,W1\nb,W1\nc,W2\nd,W2\n")
    words = ["export", tmp_path / "s.db", "--out", tmp_path / "t.jsonl", "--totals", tmp_path / "levels.csv"]
    assert CliRunner().invoke(main, list(map(str, words))).exit_code == 0
    for line, stored in zip((tmp_path / "t.jsonl").read_text().splitlines(), lines(tmp_path / "s.db"), strict=True):
        values = json.loads(stored)["values"]
        assert json.loads(line)["totals"] == {
            "ward/W1": values[0] + values[1],
            "ward/W2": values[2] + values[3],
            "total": sum(values),
        }


OTHERS = {"kind": ["x", "y", "x", "y"], "part": ["left", "right", "right", "right"]}  # as many rows, of other names
MORE = {"ward": ["W1", "W2", "W3", "W3"], "kind": ["x", "y", "x", "y"]}


@pytest.mark.parametrize("levels", [OTHERS, MORE, {}])
def test_releases_of_other_groups_are_not_shown_under_the_names_of_now(tmp_path, levels):
    with publisher(tmp_path / "s.db", name="uniform") as part:
        part.run(until=3)
    groups = Levels(levels, BINS).groups
    kept = KeptReleases(BINS, groups)
    places = [tmp_path / "new.csv", tmp_path / "new.parquet"]
    with publisher(tmp_path / "s.db", [kept, *places], name="uniform", levels=levels, new_epoch=True) as part:
        part.run(until=10)
    assert [line.step for line in kept.lines] == list(range(3, 10))
    stored = [json.loads(line)["levels"] for line in lines(tmp_path / "s.db")]
    expected = [
        (step, level, group, value)
        for step in range(3, 10)
        for level, names in groups.items()
        for group, value in zip(names, stored[step][level]["values"], strict=True)
    ]
    for rows in (list(csv.DictReader(places[0].read_text().splitlines())), pq.read_table(places[1]).to_pylist()):
        of_groups = [row for row in rows if row["level"] != "bin"]
        assert [(int(r["step"]), r["level"], r["bin"], float(r["value"])) for r in of_groups] == expected


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("levels", [OTHERS, MORE, {}])
def test_a_file_of_other_groups_is_refused_and_stays_whole(tmp_path, levels, ending):
    out = tmp_path / f"out.{ending}"
    with publisher(tmp_path / "s.db", [out], name="uniform") as part:
        part.run(until=1)
    before = out.read_bytes()
    with pytest.raises(InputError, match="other bins or groups"):
        publisher(tmp_path / "s.db", [out], name="uniform", levels=levels, new_epoch=True)
    assert out.read_bytes() == before


def test_a_file_is_compared_with_the_groups_it_was_written_with(tmp_path):
    for levels, until in ((GROUPS, 3), (MORE, 12)):
        out = tmp_path / f"{until}.csv"
        with publisher(tmp_path / "s.db", [out], name="uniform", levels=levels, new_epoch=True) as part:
            part.run(until=until)
    with closing(open_store(tmp_path / "s.db", read_only=True)) as store:
        assert compare(store, tmp_path / "3.csv") == (3, None, ())
        assert compare(store, tmp_path / "12.csv") == (9, None, ())


@pytest.mark.parametrize("noise", [ev.noise.Zero(), "secure"])
def test_an_export_adds_up_levels_after_the_fact(tmp_path, noise):
    (tmp_path / "levels.csv").write_text("bin,ward\na,W1\nb,W1\nc,W2\nd,W2\n")
    store = open_store(tmp_path / "s.db", for_tests=noise != "secure")
    mechanism = ev.Uniform(epsilon=1, window=5, bins=BINS, filter="truncate", noise=noise)
    with ev.Publisher(MemoryFeed(COUNTS[:6]), mechanism, store) as part:
        part.run()
    words = ["export", str(tmp_path / "s.db"), "--levels", str(tmp_path / "levels.csv"), "--out"]
    told = CliRunner().invoke(main, [*words, str(tmp_path / "out.csv")])
    assert told.exit_code == 0, told.stderr
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert list(rows[0]) == HEADER
    assert [(row["level"], row["bin"]) for row in rows[4:7]] == [("ward", "W1"), ("ward", "W2"), ("total", "total")]
    for step, line in enumerate(lines(tmp_path / "s.db")):
        here = {row["bin"]: row for row in rows if row["step"] == str(step)}
        values = json.loads(line)["values"]
        assert float(here["W2"]["value"]) == values[2] + values[3]
        assert float(here["total"]["value"]) == sum(values)
        reach = 1.645 * np.sqrt(4 * 2 * 5**2)
        assert float(here["total"]["high"]) == pytest.approx(sum(values) + reach)
    assert CliRunner().invoke(main, [*words, str(tmp_path / "out.jsonl")]).exit_code == 0
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])["levels"]
    assert list(first) == ["ward", "total"]
    both = CliRunner().invoke(main, [*words, "x.csv", "--totals", str(tmp_path / "levels.csv")])
    assert both.exit_code == 2
    assert "choose one of them" in both.stderr
