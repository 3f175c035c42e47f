"""The documents keep their word: code blocks run, commands work, links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def dead_links(text: str, folder: Path) -> list[str]:
    local = [link for link in LINK.findall(text) if not link.startswith("https://")]
    return [link for link in local if not (folder / link.split("#")[0]).exists()]


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_python_blocks_run_in_the_order_they_are_read(document, capsys):
    code = blocks(document, "python")
    assert code
    namespace = {"__name__": "documented"}
    for block in code:
        exec(compile(block, document, "exec"), namespace)


def test_the_readmes_library_example_shows_a_guarantee_and_a_kept_budget(capsys):
    namespace = {}
    exec(blocks("README.md", "python")[0], namespace)
    printed = capsys.readouterr().out
    assert "epsilon 1" in printed
    assert "NOT PRIVATE" not in printed
    assert 0 < namespace["mechanism"].ledger.worst_window() <= 1


def test_the_readmes_publish_command_works(tmp_path):
    (command,) = [line for block in blocks("README.md", "sh") for line in block.splitlines() if " publish " in line]
    arguments = shlex.split(command)[1:]
    arguments[1] = str(ROOT / arguments[1])
    subprocess.run([sys.executable, "-m", "eventide", *arguments], cwd=tmp_path, check=True)
    published = (tmp_path / "private.csv").read_text().splitlines()
    assert len(published) == len(Path(arguments[1]).read_text().splitlines())


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_resolve(path):
    assert dead_links(path.read_text(encoding="utf-8"), path.parent) == []


def test_a_dead_link_is_found():
    assert dead_links("[here](README.md) and [there](docs/nowhere.md#part)", ROOT) == ["docs/nowhere.md#part"]
