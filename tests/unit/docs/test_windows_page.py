"""The page about window queries keeps its word: its code and commands run, and give what it says they give."""

import re

from documents import ROOT, Reader

from eventide.windows.planners.registry import PLANNERS
from eventide.windows.query_files import read_queries

PAGE = (ROOT / "docs" / "how-to" / "windows.md").read_text(encoding="utf-8")


def test_its_blocks_give_what_it_says(tmp_path, capsys):
    Reader(tmp_path).follow(PAGE)
    printed = capsys.readouterr().out
    assert "plan by 'best': 3 queries" in printed
    assert "quarter 0 15" in printed
    assert "NOT PRIVATE" not in printed
    assert [query.window for query in read_queries(tmp_path / "queries.toml", "5min")] == [3, 12]
    header = (tmp_path / "answers.csv").read_text().splitlines()[0]
    assert header == "query,begin,end,cardiology,maternity,emergency,neurology,variance"


def test_it_names_every_planner():
    assert set(re.findall(r"^\| `([a-z-]+)` \| ", PAGE, re.MULTILINE)) >= set(PLANNERS)
