"""Intrusions that are announced through the store: fresh noise before the next event, charges, and who is told."""

import functools
import json
import os
import select

import numpy as np
import pytest
from click.testing import CliRunner
from noisy_lives import Life, moment
from postgres_server import PostgresServer

from eventide.cli import main
from eventide.events.clock import SystemClock
from eventide.live.sources.line_by_line import PipeLines
from eventide.live.stores.open_store import open_store
from eventide.live.stores.postgres_database import PostgresDatabase
from eventide.privacy.noisy_cells import NoisyCells


@pytest.fixture
def calm(monkeypatch):
    """No decision is to look."""
    monkeypatch.setattr(NoisyCells, "distance", lambda self, *_: self.decision_budget * 0 - 2**61)


def invoke(*words):
    found = CliRunner().invoke(main, [*map(str, words)])
    assert found.exit_code == 0, found.output
    return found.output


def looks(life):
    return [json.loads(line)["fresh"] for _, line in life.publisher.store.releases()]


def until_told(life):
    """The message of a server takes its time; a file tells at once."""
    database = life.publisher.store._database
    if isinstance(database, PostgresDatabase):
        assert select.select([database._connection.pgconn.socket], [], [], 60)[0]


def check_announced(tmp_path, store, place):
    """Announce while a publisher runs; it looks before the next event, and the ledger and the page tell."""
    life = Life(tmp_path, store, late="1min")
    life.go_to(2.5)
    cells = life.publisher.mechanism._open._cells
    assert not any(each.intruded for each in cells)
    refreshed = []
    add = type(life.publisher.mechanism).add

    def noticing(self, bin, step=None):
        refreshed.append([each.intruded for each in self._open._cells])
        add(self, bin, step)

    life.publisher.mechanism.add = noticing.__get__(life.publisher.mechanism)
    invoke("intrusion", place)
    until_told(life)
    life.write((2.6, "a"))
    life.go_to(2.7)
    assert refreshed == [[True] * len(cells)]
    life.go_to(7.1)
    assert looks(life) == [True, True, True, False, False, False]
    assert life.values()[2] == [1, 0]
    told = json.loads(invoke("ledger", place, "--json"))["intrusions"]
    assert "steps 1 to 2 were open" in told[0]
    assert "steps 1 to 2 were open" in invoke("ledger", place)
    invoke("guarantee", place, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "steps 1 to 2 were open" in page
    assert "each event goes into noisy cells as it comes" in page
    life.close()


def test_an_intrusion_is_announced_to_a_running_publisher(tmp_path, calm):
    check_announced(tmp_path, tmp_path / "s.db", tmp_path / "s.db")


@pytest.mark.database
def test_an_intrusion_is_announced_through_postgresql(tmp_path, calm):
    server = PostgresServer().start()
    try:
        address = f"{server.address}#wards"
        check_announced(tmp_path, open_store(address, for_tests=True), address)
    finally:
        server.kill()


def test_steps_that_were_seen_and_are_gone_are_lost_and_charged(tmp_path, calm, monkeypatch):
    first = Life(tmp_path, tmp_path / "s.db", late="1min")
    first.write((0.1, "a"), (1.2, "b"), (2.1, "b"))
    first.go_to(2.5)
    planned = first.publisher.mechanism._open.planned
    decision = int(first.publisher.mechanism.decision_budget().item())
    first.close()
    monkeypatch.setattr(SystemClock, "now", lambda self: first.clock.now())
    invoke("intrusion", tmp_path / "s.db")
    again = Life(tmp_path, tmp_path / "s.db", late="1min", now=2.6)
    again.go_to(6.1)
    assert looks(again) == [True, False, False, False, False]
    assert again.values() == [[1, 0]] * 5
    charges = {entry.step: entry.amount for entry in again.publisher.store.entries() if entry.kind == "point"}
    assert [charges[1], charges[2]] == (planned[:2] + decision).tolist()
    assert charges[3] == decision
    again.close()
    third = Life(tmp_path, tmp_path / "s.db", late="1min", now=6.2)
    third.write((6.3, "b"))
    third.go_to(6.4)
    assert third.publisher.mechanism._open.lost_until <= third.publisher.next_step
    assert np.concatenate([cells._look for cells in third.publisher.mechanism._open._cells]).sum() == 1
    third.close()


def test_a_step_that_was_refreshed_and_lost_by_a_crash_is_not_measured_again(tmp_path, calm):
    first = Life(tmp_path, tmp_path / "s.db", late="1min")
    first.go_to(2.5)
    invoke("intrusion", tmp_path / "s.db")
    first.go_to(2.6)
    assert first.publisher.store.intrusions()[0].last == 2
    first.close()
    again = Life(tmp_path, tmp_path / "s.db", late="1min", now=2.7)
    again.go_to(5.1)
    assert looks(again) == [True, False, False, False]
    again.close()


def test_of_an_old_stream_only_steps_that_were_open_are_lost(tmp_path, calm):
    """The stream is of January, and what is announced is announced now: steps since then had no cells yet."""
    read, write = os.pipe()
    piped = {"late": "1min", "source": functools.partial(PipeLines, read)}
    first = Life(tmp_path, tmp_path / "s.db", **piped)
    first.clock.set(moment(2.5))
    for _ in range(3):
        first.turn()
    assert first.publisher.next_step == 1
    first.close()
    invoke("intrusion", tmp_path / "s.db")
    again = Life(tmp_path, tmp_path / "s.db", now=2.6, **piped)
    again.turn()
    (told,) = again.publisher.store.intrusions()
    assert (told.first, told.last) == (1, 2)
    assert again.publisher.mechanism._open.lost_until == 3
    again.close()
    os.close(read)
    os.close(write)


def test_only_announced_streams_take_announcements(tmp_path):
    life = Life(tmp_path, tmp_path / "s.db", mode="single")
    life.close()
    found = CliRunner().invoke(main, ["intrusion", str(tmp_path / "s.db")])
    assert found.exit_code == 2
    assert "publish with --set pan_private=announced and --new-epoch" in found.output
    missing = CliRunner().invoke(main, ["intrusion", str(tmp_path / "no.db")])
    assert missing.exit_code == 2
    assert not (tmp_path / "no.db").exists()


@pytest.mark.parametrize("name", ["bd", pytest.param("ba", marks=pytest.mark.slow)])
def test_an_intrusion_is_noticed_at_the_end_of_a_step_though_no_event_follows(tmp_path, calm, name):
    """
    step     3         │ 4         │ 5
    poll        x      │           │  x         the pipe is silent, and is not asked in between
    seen          ^                              what was planned for step 3 is charged to it
    """
    end, other = os.pipe()
    life = Life(tmp_path, tmp_path / "store.db", source=functools.partial(PipeLines, end), given={"name": name})
    life.clock.set(moment(3.5))
    for _ in range(8):
        life.turn()
    planned = int(life.publisher.mechanism._open.planned.sum())
    invoke("intrusion", tmp_path / "store.db")
    life.clock.set(moment(5.5))
    for _ in range(6):
        life.turn()
    charged = sum(each.amount for each in life.publisher.store.entries() if each.kind == "point" and each.step == 3)
    (seen,) = life.publisher.store.intrusions()
    life.close()
    os.close(end)
    os.close(other)
    assert planned > 0
    assert (seen.first, seen.last) == (3, 3)
    assert charged > planned
