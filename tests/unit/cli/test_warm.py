"""A folder that `eventide warm` filled holds every kernel, in the form in which every verb calls it."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest
from other_user import OtherUser

import eventide
from eventide import compiling

pytestmark = pytest.mark.slow

EVENTS = ("--step", "1h", "--time", "at", "--bin", "page", "--bins", "pages.txt", "--start", "2024-03-01")
COMMON = ("--epsilon", "1", "--window", "6", "--out", "-")
COMMANDS = [
    ("publish", "visits.csv", *EVENTS, "--until", "2024-03-02", "--user", "visitor", *COMMON),
    ("publish", "visits.jsonl", *EVENTS, "--until", "2024-03-02", *COMMON),
    ("publish", "counts.csv", "--queries", "queries.toml", *COMMON),
    ("publish", "counts.csv", "--mechanism", "rescuedp", *COMMON),
    ("plan", "queries.toml", "--epsilon", "1"),
    ("choose", "counts.csv", "--epsilon", "1", "--window", "6", "--repetitions", "2"),
]
RUN_AND_COUNT = """
import json, sys
from eventide import cli, compiling
for words in json.loads(sys.argv[1]):
    assert not cli.main(words, standalone_mode=False), words
found = [made.py_func.__name__ for made in compiling.KERNELS if made.stats.cache_hits]
print(json.dumps({**compiling.counted(), "found": found}), file=sys.stderr)
"""


@pytest.fixture
def other_user():
    user = OtherUser()
    files = {
        "pages.txt": "home\nsearch\n",
        "visits.csv": "at,visitor,page\n" + '2024-03-01T00:11,"somebody, or other",home\n' * 3,
        "visits.jsonl": '{"at": "2024-03-01T00:11", "page": "home"}\n' * 3,
        "counts.csv": "north,south\n" + "5,6\n" * 40,
        "queries.toml": "[[query]]\nwindow = 4\nstep = 2\n[[query]]\nwindow = 12\nstep = 4\n",
    }
    for name, text in files.items():
        (user.folder / name).write_text(text)
    yield user
    user.delete()


def kernels():
    """All kernels that are compiled by themselves, by the names that numba gives their files."""
    package = Path(eventide.__file__).parent
    for path in package.rglob("*_kernels.py"):
        importlib.import_module(".".join(path.relative_to(package.parent).with_suffix("").parts))
    for made in compiling.KERNELS:
        if made.py_func.__module__.startswith("eventide.") and made.targetoptions.get("inline") != "always":
            yield f"{made.py_func.__module__.split('.')[-1]}.{made.py_func.__name__}"


def test_nothing_is_compiled_after_warming(other_user):
    warmed = other_user.run([sys.executable, "-m", "eventide", "warm", "compiled", "--json"])
    assert warmed.returncode == 0, warmed.stderr
    folder = other_user.folder / "compiled"
    assert {path.name.partition("-")[0] for path in folder.rglob("*.nbi")} == set(kernels())
    other_user.close()
    command = other_user.command("-c", RUN_AND_COUNT, json.dumps(COMMANDS))
    ended = other_user.run(command, NUMBA_CACHE_DIR=str(folder))
    assert ended.returncode == 0, ended.stderr
    counted = json.loads(ended.stderr.splitlines()[-1])
    assert counted["compiled"] == 0
    assert {"take_looks", "best_level", "fused_answers", "scan", "bounded_counts", "read"} <= set(counted["found"])
    assert "cannot be kept" not in ended.stderr
