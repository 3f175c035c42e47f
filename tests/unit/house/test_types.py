"""What a type checker sees of eventide: a user's program with mistakes is told each of them, one without none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import ROOT, blocks

RIGHT = """
import eventide as ev

mechanism = ev.Tide(epsilon=1.0, window=120, bins=["north", "south"], seed=7)
release: ev.Release = mechanism.release([3, 5])
plan: ev.windows.Plan = ev.windows.plan([ev.Query(window=15, step=5)], epsilon=1.0)
again: ev.Tide = mechanism.clone()
by_name: ev.Mechanism = ev.mechanism("ba", epsilon=1.0, window=120, bins=10, shift_budget=True)
with ev.Publisher(ev.MemoryFeed([[3, 5]]), again, "counts.store") as publisher:
    guarantee: ev.Guarantee = publisher.guarantee
"""
WRONG = """
import eventide as ev

mechanism = ev.Tide(epsilon=1.0, window="a day", bins=10)
mechanism.releese([3])
ev.mechanism("ba", epsilon=1.0, window=120, bins=10, shift=True)
ev.Tyde(epsilon=1.0, window=10, bins=10)
ev.windows.Qery(15, 5)
ev.filters.Kallman()
"""


def told_by_mypy(folder: Path, *options: str) -> str:
    files = sorted(path.name for path in folder.glob("*.py"))
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent", *options, *files],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.slow
def test_every_mistake_of_a_program_is_told_and_nothing_else(tmp_path):
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    told = told_by_mypy(tmp_path, "--strict")
    mistakes = re.findall(r"^(\w+)\.py:(\d+): error: (.*)$", told, re.MULTILINE)
    lines = [number for number, line in enumerate(WRONG.splitlines(), 1) if number > 2 and line]
    assert [(file, int(line)) for file, line, _ in mistakes] == [("wrong", line) for line in lines], told


@pytest.mark.slow
def test_the_code_of_the_page_about_building_has_no_mistake(tmp_path):
    code = {}
    for block in blocks((ROOT / "docs" / "how-to" / "build-on-eventide.md").read_text("utf-8")):
        if block.language == "python":
            name = block.title or "program.py"
            code[name] = code.get(name, "") + block.code
    assert len(code) == 4
    for name, text in code.items():
        (tmp_path / name).write_text(text)
    assert "no issues found in 4 source files" in told_by_mypy(tmp_path)
