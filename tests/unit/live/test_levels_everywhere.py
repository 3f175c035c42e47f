"""Whatever the groups are and whatever bins come and go: on every way out, sums are exact at every step."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import eventide as ev
from eventide.cli import main
from eventide.events.bins import with_spares
from eventide.events.levels import Levels
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.publisher import publisher as publishing
from eventide.live.publisher.releases import KeptReleases
from eventide.live.stores.open_store import open_store

STEPS = 14


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(publishing, "LOOK_FOR_NAMES", 0.0)
    monkeypatch.setattr(publishing, "SNAPSHOT_EVERY", 3)


def made_up(chance):
    """Some bins, spare ones among them, in groups of one to three levels that say something new."""
    while True:
        bins = with_spares(tuple(f"b{number}" for number in range(chance.integers(3, 14))), int(chance.integers(1, 4)))
        groups = {
            f"level {number}": [f"g{chance.integers(0, size)}" for _ in bins]
            for number, size in enumerate(chance.integers(2, len(bins), chance.integers(1, 4)))
        }
        try:
            return bins, Levels(groups, bins)
        except ev.InputError:
            continue


def counts(chance, folder, bins):
    """Large and small counts; meanwhile a spare bin gets its name, and another bin is closed."""
    level = 10 ** chance.uniform(-1, 4, len(bins))
    for step in range(STEPS):
        if step in (4, 8):
            with closing(open_store(folder / "s.db")) as store:
                if step == 4:
                    store.rename(lambda names, next_step: names.given("new", next_step + 1))
                else:
                    store.rename(lambda names, next_step: names.closed("b0", next_step + 1))
        yield chance.poisson(level)


def assert_adds_up(rows, levels, steps=STEPS):
    """Rows of (step, level, bin, value): of each step the bins in their order, then the groups."""
    by_step = {}
    for step, level, name, value in rows:
        by_step.setdefault(int(step), {}).setdefault(level, {})[name] = float(value)
    assert sorted(by_step) == list(range(steps))
    for told in by_step.values():
        values = np.array(list(told["bin"].values()))
        for level, labels in levels.labels.items():
            expected = np.bincount(labels, values, minlength=len(levels.groups[level]))
            assert told[level] == dict(zip(levels.groups[level], expected.tolist(), strict=True))


def long_rows(rows):
    return [(row["step"], row["level"], row["bin"], row["value"]) for row in rows]


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 12))])
def test_sums_are_exact_everywhere(tmp_path, seed):
    chance = np.random.default_rng(seed)
    bins, levels = made_up(chance)
    name = ("uniform", "ba", "hybrid", "sample")[seed % 4]
    mechanism = ev.mechanism(
        name, epsilon=1, window=4, bins=bins, levels=levels, filter=None if seed % 3 == 0 else "truncate"
    )
    kept = KeptReleases(bins, levels.groups)
    sinks = [tmp_path / f"out.{ending}" for ending in ("jsonl", "csv", "parquet", "sqlite")]
    with ev.Publisher(MemoryFeed(counts(chance, tmp_path, bins)), mechanism, tmp_path / "s.db", [*sinks, kept]) as part:
        part.run()
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len(lines) == STEPS
    for line in lines:
        for level, told in line["levels"].items():
            assert told["values"] == np.bincount(levels.labels[level], line["values"]).tolist()
    assert not any(line["values"][0] for line in lines if line["step"] >= 10)
    assert_adds_up(long_rows(csv.DictReader((tmp_path / "out.csv").read_text().splitlines())), levels)
    assert_adds_up(long_rows(pq.read_table(tmp_path / "out.parquet").to_pylist()), levels)
    with closing(sqlite3.connect(tmp_path / "out.sqlite")) as reader:
        bins_and_groups = (
            "SELECT step, 'bin', bin, value FROM releases UNION SELECT step, level, bin, value FROM levels"
        )
        found = reader.execute(bins_and_groups).fetchall()
        order = {name: place for names in (bins, part.names.names) for place, name in enumerate(names)}
        assert_adds_up(sorted(found, key=lambda row: (row[0], order.get(row[2], -1))), levels)
    told = CliRunner().invoke(main, ["export", str(tmp_path / "s.db"), "--out", str(tmp_path / "export.csv")])
    assert told.exit_code == 0, told.stderr
    rows = long_rows(csv.DictReader((tmp_path / "export.csv").read_text().splitlines()))
    totals = {row[0]: float(row[3]) for row in rows if row[1] == "total"}
    assert len(totals) == STEPS
    for step, total in totals.items():  # spare bins are left out, and 0
        assert total == sum(float(row[3]) for row in rows if row[:2] == (step, "bin"))
