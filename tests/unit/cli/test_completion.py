"""Completion in bash, as the page about the command line sets it up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete

from eventide.cli import _complete_values

pytestmark = pytest.mark.skipif(
    shutil.which("bash") is None, reason="needs bash: install it with the system's package manager"
)

SCRIPT = """
compopt() { :; }  # there is no line to complete
eval "$(_EVENTIDE_COMPLETE=bash_source eventide)"
COMP_WORDS=(LINE)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_eventide_completion eventide
echo "${COMPREPLY[@]}"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "completed"),
    [("eventide pub", "publish"), ("eventide publish --mech", "--mechanism"), ("eventide audit ti", "tide")],
)
def test_bash_completes(line, completed, tmp_path):
    program = tmp_path / "eventide"
    program.write_text(f"#!{sys.executable}\nfrom eventide.cli import main\nmain(prog_name='eventide')\n")
    program.chmod(0o700)
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if Path(path).is_dir())
    done = subprocess.run(
        ["bash", "-c", SCRIPT.replace("LINE", line)], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [completed]


def test_files_are_completed_wherever_a_text_may_be_one():
    command = click.Command("verb", params=[click.Argument(["store"]), click.Option(["--bins"], type=int)])
    _complete_values(command)
    group = click.Group("all", {"verb": command})
    found = BashComplete(group, {}, "all", "_ALL_COMPLETE").get_completions(["verb"], "ci")
    assert [(each.type, each.value) for each in found] == [("file", "ci")]
    assert command.params[1].type is click.INT
