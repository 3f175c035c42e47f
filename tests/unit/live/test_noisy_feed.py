"""Pan-private publishers of files and pipes: which events count, what is stored, read again and refused."""

import os
import sqlite3

import pytest
from click.testing import CliRunner
from noisy_lives import BINS, Life, line, mechanism_of, moment, spec_of

import eventide as ev
from eventide.cli import main
from eventide.errors import InputError
from eventide.live.sources.line_by_line import PipeLines
from eventide.live.stores.open_store import open_store
from eventide.privacy.noisy_cells import NoisyCells


@pytest.fixture
def always(monkeypatch):
    """Every decision is to look, if there is budget for it."""
    monkeypatch.setattr(NoisyCells, "distance", lambda self, *_: self.decision_budget * 0 + 2**61)


def test_events_of_a_followed_file_are_counted_one_by_one(tmp_path, always):
    life = Life(tmp_path)
    life.write((0.1, "a"), (0.2, "b"), (0.3, "a"))
    life.go_to(0.5)
    life.write((0.6, "b"), (1.2, "b"))  # the second is read before its minute, and counts at its arrival
    life.go_to(2.1)
    assert life.values() == [[2, 2], [0, 1]]


def test_events_are_late_or_in_the_future_as_ever(tmp_path, always):
    life = Life(tmp_path, late="1min")
    life.go_to(1.5)
    life.write((0.4, "a"), (1.2, "b"), (60, "b"))
    life.go_to(2.5)
    life.write((0.4, "a"), (1.3, "b"))
    life.go_to(4.1)
    assert life.values() == [[1, 0], [0, 2], [0, 0]]


def test_a_pipe_closes_a_step_before_it_reads_on(tmp_path, always):
    read, write = os.pipe()
    life = Life(tmp_path, source=lambda clock: PipeLines(read, clock))
    os.write(write, b"".join([line(0.1, "a"), line(0.2, "a")]) + line(0.3, "b")[:10])
    for _ in range(6):
        life.turn()
    life.clock.set(moment(1.2))
    os.write(write, line(0.3, "b")[10:] + line(1.1, "b"))
    os.close(write)
    life.publisher.run()
    assert life.values() == [[2, 0]], "the line that was whole after the end of its step is late"
    os.close(read)


def test_a_store_holds_no_position_no_event_and_no_cell(tmp_path):
    life = Life(tmp_path, tmp_path / "s.db", noise=ev.noise.Seeded(3), late="1min")
    life.write(*[(0.1, "a")] * 5, *[(1.2, "b")] * 7)
    life.go_to(1.5)
    life.write(*[(1.6, "b")] * 7)
    life.go_to(2.5)
    assert life.publisher.next_step == 1
    with sqlite3.connect(tmp_path / "s.db") as reader:
        assert reader.execute("SELECT position FROM head").fetchone() == ("null",)
        assert reader.execute("SELECT COUNT(*) FROM kept").fetchone() == (0,)
        assert reader.execute("SELECT COUNT(*) FROM batch").fetchone() == (0,)
        (state,) = reader.execute("SELECT state FROM snapshot").fetchone()
    saved = ev.load(state)
    assert saved._open._cells == []
    assert len(saved._open.planned) >= 1, "plans of open steps are there, and nothing else of them"
    life.close()


def test_a_file_is_read_again_from_the_oldest_open_step(tmp_path, always):
    first = Life(tmp_path, tmp_path / "s.db")
    first.write((0.1, "a"), (1.2, "b"))
    first.go_to(1.5)
    first.close()
    again = Life(tmp_path, tmp_path / "s.db", now=1.6)
    again.write((1.7, "b"))
    again.go_to(2.5)
    assert again.values() == [[1, 0], [0, 2]]
    again.close()


def test_a_rotated_file_is_followed_and_read_again(tmp_path, always):
    first = Life(tmp_path, tmp_path / "s.db", late="5min")
    first.write((0.1, "a"))
    first.go_to(0.2)
    first.path.rename(tmp_path / "log.jsonl.1")
    first.path.touch()
    first.write((0.3, "b"))
    with (tmp_path / "log.jsonl.1").open("ab") as old:
        old.write(line(0.3, "b"))
    first.go_to(0.4)
    assert first.publisher.mechanism._open._cells[0]._look.tolist() == [[1, 2]]
    first.close()
    for name in ("log.jsonl", "log.jsonl.1"):
        os.utime(tmp_path / name, (moment(1) // 10**6,) * 2)
    again = Life(tmp_path, tmp_path / "s.db", now=0.5, late="5min")
    again.go_to(6.1)
    assert again.values() == [[1, 2]]
    again.close()


def test_a_bound_is_trusted_and_the_guarantee_says_so(tmp_path):
    one, three = Life(tmp_path), Life(tmp_path, max_per_step=3, mode="single")
    assert "every event is taken for a person of its own" in str(one.publisher.guarantee)
    assert "It is taken on trust that one person has at most 3 events in a step." in str(three.publisher.guarantee)
    assert "store and logs) once, between two events, even if nobody notices" in str(three.publisher.guarantee)
    assert three.publisher.mechanism.sensitivity == 3


def test_the_page_says_that_a_bound_is_trusted(tmp_path):
    Life(tmp_path, tmp_path / "s.db", max_per_step=3).close()
    found = CliRunner().invoke(main, ["guarantee", str(tmp_path / "s.db"), "--out", str(tmp_path / "page.html")])
    assert found.exit_code == 0, found.output
    assert "trusted to be at most 3 of one person in a step" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"user": "who"}, "remembers nobody"),
        ({"user": "who", "cap": "2/7d"}, "remembers nobody"),
        ({"statistic": "people", "user": "who"}, "counts events and nothing else"),
        ({"bins": ("a", "b", "c"), "levels": {"half": ["x", "x", "y"]}}, "bins alone"),
    ],
)
def test_what_needs_memory_is_refused_with_the_reason(given, says):
    _, mistakes = type(spec_of()).examine(
        {"bins": BINS, "step": "1min", "parameters": {"pan_private": "single"}, "epsilon": 1, "window": 9} | given
    )
    assert any(says in mistake.sentence for mistake in mistakes)


def test_what_holds_many_events_at_once_is_refused(tmp_path):
    with pytest.raises(InputError, match="handed over one by one"):
        ev.Publisher(ev.MemoryFeed([[1, 2]]), mechanism_of())
    with pytest.raises(InputError, match="hands over events one by one"):
        ev.publish(
            {"timestamp": [1.0], "bin": ["a"]},
            epsilon=1,
            window=8,
            step="1min",
            bins=BINS,
            mechanism="ba",
            parameters={"pan_private": "single"},
        )
    log = tmp_path / "log.csv"
    log.write_text("timestamp,bin\n")
    with pytest.raises(InputError, match="one by one"):
        ev.Publisher(log, mechanism_of(), step="1min", start="2026-01-01")
    with pytest.raises(InputError, match="window is too short"):
        ev.Publisher(log, mechanism_of("single", window=2), step="1min", start="2026-01-01", follow=True)
    with pytest.raises(InputError, match="need noisy cells"):
        Life(tmp_path).feed and ev.Publisher(Life(tmp_path).feed, ev.mechanism("ba", epsilon=1, window=8, bins=BINS))


def test_the_ledger_of_a_store_holds_what_is_kept_free(tmp_path):
    life = Life(tmp_path, tmp_path / "s.db", mode="single")
    life.go_to(3.1)
    kept_free = [entry for entry in life.publisher.store.entries() if entry.lane == "intrusion"]
    assert [(entry.step, entry.kind) for entry in kept_free] == [(0, "open")]
    life.close()
    found = CliRunner().invoke(main, ["ledger", str(tmp_path / "s.db"), "--json"])
    assert found.exit_code == 0, found.output
    again = Life(tmp_path, tmp_path / "s.db", mode="single", now=3.2)
    again.go_to(6)
    assert len([entry for entry in again.publisher.store.entries() if entry.lane == "intrusion"]) == 1
    again.close()


def test_a_new_epoch_behind_a_pan_private_one_waits_for_steps_that_may_have_been_seen(tmp_path):
    first = Life(tmp_path, tmp_path / "s.db", late="3min")
    first.go_to(5.5)  # steps 2 to 5 are open, and nothing of them is charged
    first.close()
    store = open_store(tmp_path / "s.db", for_tests=True)
    later = Life(tmp_path, store, late="3min", now=5.6, mode="single", begin={"new_epoch": True})
    assert later.publisher.measured_from >= 5 + 8
    later.close()


def test_the_command_takes_the_mode_and_refuses_people(tmp_path):
    bins, log = tmp_path / "bins.txt", tmp_path / "log.csv"
    bins.write_text("a\nb\n")
    log.write_text("timestamp,bin\n")
    how = ["--mechanism", "ba", "--set", "pan_private=single", "--epsilon", "1", "--window", "8", "--step", "1h"]
    found = CliRunner().invoke(
        main,
        [
            "publish",
            str(log),
            "--follow",
            "--bins",
            str(bins),
            "--time",
            "timestamp",
            "--bin",
            "bin",
            *how,
            "--dry-run",
        ],
    )
    assert found.exit_code == 0, found.output
    assert "once, between two events, even if nobody notices" in found.output
    refused = CliRunner().invoke(main, ["publish", "-", "--bins", str(bins), "--user", "who", *how], input=b"")
    assert refused.exit_code == 2
    assert "--user" in refused.output
    assert "remembers nobody" in refused.output
