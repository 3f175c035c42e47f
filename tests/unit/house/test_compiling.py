"""Kernels run wherever they are: kept compiled where that is possible, compiled in memory elsewhere, never stale."""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from other_user import OtherUser

from eventide import cli, compiling
from eventide.bench.run.workers import in_processes
from eventide.cli import warm
from eventide.errors import StateError
from eventide.events.texts import buffers, texts

SAYS = "compiled code cannot be kept here"
STEPS = 50
PUBLISH = ("publish", "counts.csv", "--epsilon", "1e6", "--window", "3", "--mechanism", "rescuedp", "--out", "-")
CHEAP = "groups of RescueDP"  # compiles in a second
RUN_AND_COUNT = """
import json, sys
from eventide import cli, compiling
assert not cli.main(sys.argv[1:], standalone_mode=False)
print(json.dumps(compiling.counted()), file=sys.stderr)
"""
WARM = f"""
import sys
from eventide.cli import main, warm
warm.WORK = {{{CHEAP!r}: warm.WORK[{CHEAP!r}]}}
main(sys.argv[1:])
"""


@pytest.fixture
def other_user():
    user = OtherUser()
    (user.folder / "counts.csv").write_text("north,south\n" + "5,6\n" * STEPS)  # so few that they are grouped
    yield user
    user.delete()


def test_without_a_home_and_a_place_to_write_a_verb_compiles_in_memory_and_says_once_how_to_be_quicker(other_user):
    other_user.close()
    ended = other_user.run(other_user.command("-m", "eventide", *PUBLISH))
    assert ended.returncode == 0, ended.stderr
    assert len(ended.stdout.splitlines()) == STEPS
    (line,) = [line for line in ended.stderr.splitlines() if SAYS in line]
    assert "NUMBA_CACHE_DIR" in line
    assert "eventide warm DIR" in line


@pytest.mark.slow
def test_a_folder_that_was_warmed_is_used_by_others_who_can_only_read_it(other_user):
    folder = other_user.folder / "compiled"
    warmed = other_user.run([sys.executable, "-c", WARM, "warm", "compiled", "--json"])
    assert warmed.returncode == 0, warmed.stderr
    document = json.loads(warmed.stdout)
    assert document == {"folder": str(folder), "compiled": 1, "found": 0, "set": f"NUMBA_CACHE_DIR={folder}"}
    other_user.close()
    before = sorted(folder.rglob("*"))
    name, _, value = document["set"].partition("=")
    ended = other_user.run(other_user.command("-c", RUN_AND_COUNT, *PUBLISH), **{name: value})
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stderr.splitlines()[-1]) == {"compiled": 0, "found": 1}
    assert SAYS not in ended.stderr
    assert sorted(folder.rglob("*")) == before


def test_a_folder_that_cannot_be_made_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as ended:
        cli.main(["warm", str(tmp_path / "file" / "compiled")])
    assert ended.value.code == 2
    assert "cannot write" in capsys.readouterr().err


def test_a_folder_that_was_not_filled_to_the_end_is_not_called_warm(monkeypatch):
    monkeypatch.setattr(warm, "WORK", {"one": lambda: compiling.NOT_KEPT.append("a kernel")})
    monkeypatch.setattr(compiling, "NOT_KEPT", [])
    with pytest.raises(StateError, match="could not be written to the end"):
        warm.compiled("one")


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """Write two modules of kernels, the first of which calls the second; import them anew and call the first."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(compiling, "KERNELS", [])
    monkeypatch.setattr(compiling, "NOT_KEPT", [])
    outer = "from eventide.compiling import kernel\nfrom inner_kernels import inner\n"
    (tmp_path / "outer_kernels.py").write_text(f"{outer}@kernel()\ndef outer(x):\n    return inner(x)\n")

    def call(body, constant=1.0, between=lambda: None):
        inner = f"from eventide.compiling import kernel\nCONSTANT = {constant}\n@kernel()\ndef inner(x):\n"
        (tmp_path / "inner_kernels.py").write_text(f"{inner}    return {body}\n")
        importlib.invalidate_caches()
        for name in ("inner_kernels", "outer_kernels"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the same file, twice within a second
        compiling.KERNELS.clear()
        outer = importlib.import_module("outer_kernels").outer
        between()
        return outer(10.0), outer.stats.cache_hits.total()

    return call


def test_compiled_code_is_found_again_but_never_that_of_another_version(kernels):
    assert kernels("x + CONSTANT") == (11.0, 0)
    assert kernels("x + CONSTANT") == (11.0, 1)
    assert kernels("x - CONSTANT") == (9.0, 0)
    assert kernels("x - CONSTANT", constant=2.0) == (8.0, 0)


def test_damaged_files_are_compiled_anew_and_kept(kernels, tmp_path):
    assert kernels("x") == (10.0, 0)
    for path in tmp_path.rglob("*.nb?"):
        path.write_bytes(b"")
    assert kernels("x") == (10.0, 0)
    assert kernels("x") == (10.0, 1)


def test_a_place_that_is_lost_while_running_ends_nothing_and_is_said_once(kernels, tmp_path, caplog):
    def lose():
        os.rmdir(tmp_path / "__pycache__")
        (tmp_path / "__pycache__").write_text("")

    with caplog.at_level(logging.WARNING, "eventide"):
        assert kernels("x", between=lose) == (10.0, 0)
    assert compiling.NOT_KEPT == ["inner", "outer"]
    assert [record.getMessage().startswith(SAYS) for record in caplog.records] == [True]


@pytest.mark.slow
def test_of_several_processes_one_logs():
    asked = logging.getLogger("eventide.compiling").isEnabledFor
    assert dict(in_processes(asked, enumerate([logging.WARNING] * 2), 2)) == {0: True, 1: False}


def test_texts_of_any_origin_are_read_by_one_compiled_form():
    made = pc.utf8_upper(pa.array(["a", None, "bc"]))
    for column in (["a"], [], pa.array(["a"]), pa.array([b"a"])[1:], made, pa.chunked_array([made, made])):
        assert [part.flags.writeable for part in buffers(texts(column))] == [False, False]
