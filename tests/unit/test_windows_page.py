"""The page about windows keeps its word: its code runs, its queries can be read, its commands exist."""

import re
from pathlib import Path

import pytest

from eventide.cli import main
from eventide.windows.query_files import read_queries
from eventide.windows.registry import PLANNERS

PAGE = (Path(__file__).parents[2] / "docs" / "windows.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_its_code_runs_in_the_order_it_is_read(capsys):
    namespace = {}
    for block in blocks("python"):
        exec(compile(block, "windows.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert "plan by 'best': 3 queries" in printed
    assert "quarter 0 15" in printed
    assert "whose epsilons add up: ward 0.6, age 0.4" in printed
    assert "NOT PRIVATE" not in printed


def test_its_commands_work_on_its_queries(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (queries,) = blocks("toml")
    Path("queries.toml").write_text(queries)
    Path("counts.csv").write_text("north,south\n" + "3,4\n" * 40)
    assert [query.window for query in read_queries("queries.toml", "5min")] == [3, 12]
    commands = [line.split()[1:] for block in blocks("sh") for line in block.splitlines()]
    assert [words[0] for words in commands] == ["plan", "publish"]
    for words in commands:
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0, capsys.readouterr().err
    assert Path("answers.csv").read_text().startswith("query,begin,end,north,south,variance\n")


def test_it_names_every_planner():
    assert set(re.findall(r"^\| `([a-z-]+)` \| ", PAGE, re.MULTILINE)) >= set(PLANNERS)
