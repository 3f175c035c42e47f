"""The rules of tests/conftest.py, on a small project of their own: what is left out, and when a skip is a failure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

def test_quick(): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.browser
def test_needs_a_browser(): pass

@pytest.mark.nightly
def test_takes_an_hour(): pass

@pytest.mark.xfail(strict=True)
def test_expected_to_fail(): assert False
"""


@pytest.fixture
def outcome(tmp_path):
    """Run the small project where no program can be found, and give pytest's last line."""
    shutil.copy(Path(__file__).parents[2] / "conftest.py", tmp_path)
    (tmp_path / "test_small.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    browser\n    nightly\n")

    def run(*arguments, **environment):
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("EVENTIDE", "PYTEST"))}
        clean |= {"PATH": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment}
        result = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
        return result.stdout.splitlines()[-1]

    return run


def test_plain_run_leaves_out_whatever_is_marked(outcome):
    assert "1 passed, 3 deselected, 1 xfailed" in outcome()


@pytest.mark.slow
def test_marked_tests_run_by_mark(outcome):
    assert "1 passed, 4 deselected" in outcome("-m", "slow")
    assert "1 passed, 4 deselected" in outcome("-m", "nightly")


def test_what_needs_a_missing_program_is_skipped_or_fails_where_everything_is_required(outcome):
    assert "1 skipped, 4 deselected" in outcome("-m", "browser")
    assert "4 deselected, 1 error" in outcome("-m", "browser", EVENTIDE_REQUIRE_ALL="1")


@pytest.mark.slow
def test_a_skipped_file_fails_where_everything_is_required(outcome, tmp_path):
    (tmp_path / "test_file.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    assert "1 error" in outcome("test_file.py", EVENTIDE_REQUIRE_ALL="1")
    assert "1 skipped" in outcome("test_file.py")
