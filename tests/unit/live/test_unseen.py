"""Nothing about a step is seen before its commit: of two draws that a full disk refused, nobody tells which was which.

One draw measures anew, the other repeats: what they were charged, what is left and whether they are fresh differ.
"""

from __future__ import annotations

import json
import logging
from contextlib import closing

import numpy as np
import pytest
from click.testing import CliRunner
from running_service import MINUTE, configuration, event, running, stream, wait_until

import eventide as ev
from eventide.cli import main
from eventide.errors import StateError, StoreError
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.stores import database_store
from eventide.live.stores.open_store import open_store
from eventide.service.http.prometheus import exposition

BINS = 3
CALM, JUMP = np.full((2, BINS), 50), np.array([np.full(BINS, 50), np.full(BINS, 9000)])
FRESH = [[True, False], [True, True]]  # of both steps, calm and with a jump


def mechanism():
    return ev.BudgetAbsorption(epsilon=1, window=3, bins=BINS, noise=ev.noise.Zero())


def fill_the_disk(store):
    """No step finds room any more, however small it is: with each come some pages more."""
    connection = store._database._connection
    connection.execute("CREATE TABLE more (bytes BLOB)")
    connection.execute(
        "CREATE TEMP TRIGGER with_more AFTER INSERT ON step BEGIN INSERT INTO more VALUES (zeroblob(100000)); END"
    )
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")


def told(caplog):
    """What the log says, but for the moment at which it says so."""
    return [(record.getMessage(), getattr(record, "fields", {}) | {"lag": None}) for record in caplog.records]


def test_both_draws_differ_where_they_are_committed(tmp_path, caplog):
    for counts, fresh in zip((CALM, JUMP), FRESH, strict=True):
        caplog.clear()
        store = open_store(tmp_path / f"{fresh[1]}.db", for_tests=True)
        with (
            caplog.at_level(logging.INFO, "eventide.live"),
            ev.Publisher(MemoryFeed(counts), mechanism(), store) as live,
        ):
            live.run()
        assert [fields["fresh"] for _, fields in told(caplog)] == fresh
        assert live.fresh_looks == sum(fresh)
        assert live.worst_window() == live.ledger.worst_window()


def test_a_draw_that_a_full_disk_refused_is_told_to_nobody(tmp_path, caplog):
    seen = []
    for number, counts in enumerate((CALM, JUMP)):
        caplog.clear()
        store = open_store(tmp_path / f"{number}.db", for_tests=True)
        live = ev.Publisher(MemoryFeed(counts), mechanism(), store, [tmp_path / f"{number}.jsonl"])
        with closing(live), caplog.at_level(logging.DEBUG):
            live.run(until=1)
            fill_the_disk(store)
            with pytest.raises(StoreError, match="no room left") as refusal:
                live.run()
            sentence = str(refusal.value).replace(f"{number}.db", "")
            figures = (live.next_step, live.published, live.fresh_looks, live.worst_window(), live.epsilon)
            seen.append((told(caplog), sentence, figures, str(live.guarantee), list(store.entries())))
        assert len((tmp_path / f"{number}.jsonl").read_text().splitlines()) == 1
    assert seen[0] == seen[1]
    assert [fields["step"] for _, fields in seen[0][0]] == [0]


def test_a_ledger_with_charges_that_are_not_committed_is_not_shown(tmp_path, second_step_finds_no_room):
    live = ev.Publisher(MemoryFeed(JUMP), mechanism(), open_store(tmp_path / "store.db", for_tests=True))
    with closing(live):
        live.run(until=1)
        assert live.ledger.worst_window() == live.worst_window()
        with pytest.raises(StoreError):
            live.run()
        with pytest.raises(StateError, match="drawn and is not committed"):
            _ = live.ledger


@pytest.fixture
def second_step_finds_no_room(monkeypatch):
    def full(store, head, commits):
        if commits[-1].step >= 1:
            raise StoreError("the store has no room left on its disk")
        return written(store, head, commits)

    written = database_store.DatabaseStore._write_steps
    monkeypatch.setattr(database_store.DatabaseStore, "_write_steps", full)


@pytest.mark.parametrize(("together", "left"), [(1, [0]), (64, [])])
def test_the_command_line_tells_nothing_of_it(tmp_path, monkeypatch, second_step_finds_no_room, together, left):
    """Nor of steps before it that were to become durable together with it."""
    monkeypatch.setattr("eventide.live.publisher.publisher.TOGETHER", together)
    seen = []
    for number, second in enumerate((50, 9000)):
        counts, store, out = (tmp_path / f"{number}{suffix}" for suffix in (".csv", ".db", ".jsonl"))
        counts.write_text(f"t,a\n0,50\n1,{second}\n")
        arguments = [
            str(counts),
            "--epsilon",
            "1000000",
            "--window",
            "3",
            "--mechanism",
            "ba",
            "--log",
            "json",
            "--json",
        ]
        arguments += ["--store", str(store), "--out", str(out)]
        done = CliRunner().invoke(main, ["publish", *arguments])
        assert done.exit_code == 5
        *lines, error = done.output.splitlines()
        seen.append(([json.loads(line) | {"time": None} for line in lines], error, out.read_text().count("\n")))
    assert seen[0] == seen[1]
    assert [line["step"] for line in seen[0][0]] == left


def test_the_service_tells_nothing_of_it(tmp_path, second_step_finds_no_room, caplog):
    seen = []
    for crowd in (1, 40):
        caplog.clear()
        folder = tmp_path / str(crowd)
        folder.mkdir()
        with (
            caplog.at_level(logging.INFO, "eventide"),
            running(configuration(folder, [stream(folder, mechanism="ba")])) as up,
        ):
            city = up.service.streams["city"]
            up.post([event("north", "somebody")])
            up.pass_steps(1)
            batch = [event("north", f"user {number}", minute=1) for number in range(crowd)]
            up.post(batch)
            up.clock.set(city.feed.timeline.end(1) + MINUTE)
            wait_until(lambda: up.service.streams["city"].failed)
            reader = up.client("read")
            paths = ["/v1/streams/city", *(f"/v1/streams/city/{what}" for what in ("ledger", "releases", "guarantee"))]
            answers = [reader.get(path).text for path in paths]
            seen.append((answers, exposition([city], with_raw=False), city.notices.last, told(caplog)))
    assert seen[0] == seen[1]
    assert [fields["step"] for _, fields in seen[0][3] if "step" in fields] == [0]
