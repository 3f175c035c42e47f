"""What a terminal shows of long work, and that nothing is shown elsewhere."""

from __future__ import annotations

import sys

from eventide.cli.progress import counting, naming


def pretend_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def test_a_total_may_be_told_late(capsys, monkeypatch):
    pretend_terminal(monkeypatch)
    with counting("Running") as tell:
        tell(3, 8)
    shown = capsys.readouterr().err
    assert "Running" in shown
    assert "3 of 8 steps" in shown


def test_a_bar_begins_at_once_and_has_a_unit(capsys, monkeypatch):
    pretend_terminal(monkeypatch)
    with counting("Trying", unit="trials"):
        pass
    assert "0 trials" in capsys.readouterr().err


def test_work_without_a_unit_is_told_in_percent(capsys, monkeypatch):
    pretend_terminal(monkeypatch)
    with counting("Running", unit=None) as tell:
        tell(1, 4)
    assert "25%" in capsys.readouterr().err


def test_counted_work_may_say_what_it_is_at(capsys, monkeypatch):
    pretend_terminal(monkeypatch)
    with counting("Running") as tell:
        tell(3, 8, "measuring")
    assert "measuring" in capsys.readouterr().err


def test_a_stage_is_named(capsys, monkeypatch):
    pretend_terminal(monkeypatch)
    with naming("reading") as tell:
        tell("drawing")
    assert "drawing" in capsys.readouterr().err


def test_elsewhere_nothing_is_shown(capsys):
    with counting("Running") as count, naming("reading") as tell:
        count(3)
        count(4, 8)
        count(5, 8, "measuring")
        tell("drawing")
    assert capsys.readouterr() == ("", "")
