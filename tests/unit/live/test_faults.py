"""The list of points at which tests may let a process die is that of the points it passes."""

import ast
from collections import Counter
from pathlib import Path

import eventide
from eventide.live.faults import POINTS

HAND_ON_A_POINT = {"passing", "pieces", "_transaction", "_settled"}


def points_passed(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in HAND_ON_A_POINT:
            yield from (word.value for word in node.args if isinstance(word, ast.Constant))


def test_every_point_is_listed_once_and_passed():
    sources = Path(eventide.__file__).parent.rglob("*.py")
    passed = {point for path in sources for point in points_passed(path.read_text(encoding="utf-8"))}
    assert Counter(POINTS) == Counter(passed)
