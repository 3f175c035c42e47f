"""Releases that are kept for a while: then they are erased, and the proof of the ledger stays whole."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

import eventide as ev
from eventide.cli import main
from eventide.errors import StoreError
from eventide.live.publisher import publisher as publishing
from eventide.live.publisher.comparing import compare
from eventide.live.sinks.base import Sink
from eventide.live.stores.budget_report import budget_report
from eventide.live.stores.open_store import open_store

STEPS = 200
COUNTS = [[step % 7, step % 3, 5] for step in range(STEPS)]


@pytest.fixture(autouse=True)
def often(monkeypatch, tmp_path):
    monkeypatch.setattr(publishing, "SNAPSHOT_EVERY", 8)
    monkeypatch.chdir(tmp_path)


def publish(store, steps, sinks=(), **options):
    mechanism = ev.Sample(epsilon=1, window=6, bins=3, noise=ev.noise.Zero())
    opened = open_store(store, for_tests=True)
    with ev.Publisher(ev.MemoryFeed(COUNTS[:steps]), mechanism, opened, sinks, **options) as publisher:
        publisher.run()


def read(store):
    with closing(open_store(store, read_only=True)) as opened:
        opened.verify()
        return opened.kept_from(), dict(opened.releases()), list(opened.entries()), budget_report(opened)


def test_old_releases_are_erased_and_everything_else_is_as_if_they_were_not():
    for end in range(30, STEPS + 1, 34):  # and the process ends now and then
        publish("short.db", end, ["out.jsonl"], keep=20)
    publish("long.db", STEPS)
    kept_from, releases, entries, report = read("short.db")
    everything, all_entries, whole = read("long.db")[1:]
    assert STEPS - 60 < kept_from <= STEPS - 20
    assert releases == {step: line for step, line in everything.items() if step >= kept_from}
    assert entries == all_entries
    assert report.verification.holds
    assert (report.charged() == whole.charged()).all()
    with open("out.jsonl", "rb") as file:
        assert file.read().splitlines() == list(everything.values())
    with closing(open_store("short.db", read_only=True)) as store:
        assert compare(store, publishing.Path("out.jsonl")) == (STEPS - kept_from, None, ())
        assert store.release(kept_from - 1) is None


def test_a_table_with_times_is_compared_though_the_first_step_is_erased(tmp_path):
    (tmp_path / "events.csv").write_text("timestamp,bin\n2026-01-01T00:10:00Z,a\n2026-01-08T23:10:00Z,b\n")
    mechanism = ev.Sample(epsilon=1, window=6, bins=["a", "b"], noise=ev.noise.Zero())
    store, how = open_store("s.db", for_tests=True), {"step": "1h", "start": "2026-01-01T00:00:00Z", "keep": 20}
    with ev.Publisher(tmp_path / "events.csv", mechanism, store, [tmp_path / "out.csv"], **how) as publisher:
        publisher.run()
    with closing(open_store("s.db", read_only=True)) as store:
        assert store.kept_from() > 0
        assert compare(store, tmp_path / "out.csv") == (store.next_step() - store.kept_from(), None, ())


def test_a_sink_that_begins_later_gets_what_is_kept_and_epochs_still_wait():
    publish("store.db", STEPS - 20, keep=20)
    kept_from = read("store.db")[0]
    publish("store.db", STEPS, ["late.jsonl"], keep=20)
    with open("late.jsonl") as file:
        assert [json.loads(line)["step"] for line in file] == list(range(kept_from, STEPS))
    mechanism = ev.Uniform(epsilon=1, window=9, bins=3, noise=ev.noise.Zero())
    more = [*COUNTS, *COUNTS[:30]]
    with ev.Publisher(ev.MemoryFeed(more), mechanism, open_store("store.db", for_tests=True), new_epoch=True) as later:
        later.run()
    assert read("store.db")[3].verification.holds


class Stuck(Sink):
    """Takes a few steps, then nothing more for now."""

    name = "stuck"

    def send(self, step, release):
        if step > 10:
            raise OSError("not now")


def test_what_a_sink_lacks_is_kept():
    with pytest.raises(StoreError, match="up to step 10 only"):
        publish("store.db", STEPS, [Stuck()], keep=20, last_patience=0.0)
    assert read("store.db")[0] <= 11


@pytest.mark.parametrize("harm", ["UPDATE step SET entries = '[]' WHERE step = 6", "DELETE FROM step WHERE step = 7"])
def test_a_changed_charge_of_an_erased_step_is_found(harm):
    publish("store.db", STEPS, keep=20)
    with closing(sqlite3.connect("store.db")) as connection:
        assert connection.execute(harm).rowcount == 1
        connection.commit()
    with pytest.raises(StoreError, match="damaged"):
        read("store.db")


def test_an_erased_release_among_kept_ones_is_found():
    publish("store.db", STEPS, keep=20)
    with closing(open_store("store.db")) as store:
        charges = store._rows.one("SELECT step, epoch, entries, chain FROM step WHERE step = 195")
        with store._database.transaction():
            store._written.gone([charges])
    with pytest.raises(StoreError, match="damaged: step 195"):
        read("store.db")


def test_the_ledger_says_from_where_on_releases_are_kept(capsys):
    publish("store.db", STEPS, keep=20)
    with pytest.raises(SystemExit) as ended:
        main(["ledger", "store.db"])
    kept_from = read("store.db")[0]
    assert ended.value.code == 0
    assert f"releases are kept from step {kept_from} on" in capsys.readouterr().out


def test_how_long_is_said_in_days_or_steps():
    spec = {"epsilon": 1, "window": 3, "bins": ["a"]}
    assert ev.StreamSpec(**spec, step="1h", keep="400d").keep == 9600
    assert ev.StreamSpec(**spec, keep="50").keep == ev.StreamSpec(**spec, keep=50).keep == 50
    with pytest.raises(ev.InputError, match=r"keep.*needs the length of a step"):
        ev.StreamSpec(**spec, keep="400d")
