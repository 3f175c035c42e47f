"""What a reader relies on and no tool checks: nothing is unpickled, no file names a machine, importing is cheap.

Who may import whom is checked by import-linter, what may be imported at all by ruff; see pyproject.toml.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
UNPICKLES = re.compile(r"allow_pickle\s*=\s*(?!False)")
# Folders of the machine a file was written on.
MACHINE_PATH = re.compile(r"(?<![\w.:/])/(?:work|home|root|Users|opt|tmp)/\w")


def test_numpy_is_never_let_unpickle():
    assert [path.name for path in SOURCES if UNPICKLES.search(path.read_text("utf-8"))] == []
    assert UNPICKLES.search("np.load(file, allow_pickle=True)")
    assert not UNPICKLES.search("np.load(file, allow_pickle=False)")


def test_no_file_names_a_folder_of_the_machine_it_was_written_on():
    folders = [ROOT / name for name in (".ci", "src", "tests", "docs", "benchmarks")]
    files = [*ROOT.glob("*.*"), *(path for folder in folders for path in folder.rglob("*"))]
    texts = [path for path in files if path.suffix in {"", ".py", ".md", ".toml", ".html"} and path.is_file()]
    texts = [path for path in texts if path.name != ".git"]  # a file in a second work tree
    assert len(texts) > len(SOURCES)
    assert [path.name for path in texts if MACHINE_PATH.search(path.read_text("utf-8"))] == []


def test_a_machine_path_is_found_and_an_address_is_not():
    assert MACHINE_PATH.search("open('" + "/work" + "/main/README.md')")
    assert MACHINE_PATH.search("cd " + "/home" + "/somebody")
    assert not MACHINE_PATH.search("https://example.org/home/page and src/eventide/" + "work/x")


def test_importing_eventide_loads_no_numpy():
    code = "import sys, eventide; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert subprocess.run([sys.executable, "-c", f"import numpy; {code}"]).returncode == 1


def test_a_store_is_opened_without_arrow_and_compiled_code():
    code = "import sys, eventide.live.stores.open_store; sys.exit('pyarrow' in sys.modules or 'numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
