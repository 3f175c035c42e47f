"""What a terminal shows of long work, and that nothing is shown elsewhere."""

from __future__ import annotations

import sys

import pytest

from eventide.cli.progress import counting, naming


@pytest.fixture
def terminal(capsys, monkeypatch):
    """What is captured stands for a terminal; ask it what was shown there."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    return lambda: capsys.readouterr().err


def test_a_total_may_be_told_late(terminal):
    with counting("Running") as tell:
        tell(3, 8)
    shown = terminal()
    assert "Running" in shown
    assert "3/8" in shown


def test_a_stage_is_named(terminal):
    with naming("reading") as tell:
        tell("drawing")
    assert "drawing" in terminal()


def test_elsewhere_nothing_is_shown(capsys):
    with counting("Running") as count, naming("reading") as tell:
        count(3)
        count(4, 8)
        tell("drawing")
    assert capsys.readouterr() == ("", "")
