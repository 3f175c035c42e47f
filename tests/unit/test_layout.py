"""The house rules that a reader relies on, checked on every file: who imports whom, and what is nowhere to be found."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

# Each package may import what stands in a row above its own, and nothing beside it.
ORDER = [
    {"errors", "arrays"},
    {"display", "toml_lines"},
    {"privacy", "streams"},
    {"filters"},
    {"mechanisms"},
    {"windows"},
    {"bench", "live"},
    {"audit"},
    {"engines", "service"},
    {"eventide"},  # the public names themselves, which reach everything above
    {"cli"},
    {"__main__"},
]
RANK = {package: rank for rank, packages in enumerate(ORDER) for package in packages}
PICKLES = {"pickle", "cloudpickle", "dill", "shelve", "marshal", "joblib"}
# Whether a promise is true nobody can check here; that it is said, and which imports are named, can be.
FEWEST_WORDS = 10
UNSAID = {"errors", "arrays", "eventide", "numpy", *sys.stdlib_module_names}  # what any module may import
SAYS_IMPORTS = re.compile(r"\bimport(s|ed)?\b|\bnumba\b|\bnumpy only\b", re.IGNORECASE)
SAYING = '"""A module for tests that keeps every rule but perhaps one. Imports what its next line says."""'
# Folders of the machine a file was written on.
MACHINE_PATH = re.compile(r"(?<![\w.:/])/(?:work|home|root|Users|opt|tmp)/\w")


def module_name(path: Path) -> str:
    """Name a source file as Python imports it: eventide.streams for src/eventide/streams/__init__.py."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(name: str) -> str:
    """Give the package a name lives in; a public name such as eventide.Uniform lives in eventide itself."""
    package = name.removeprefix("eventide.").split(".")[0]
    return package if package in RANK else "eventide"


def imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def complaints(module: str, source: str) -> list[str]:
    """Say what in a module's source breaks the rules."""
    tree = ast.parse(source)
    found = []
    docstring = ast.get_docstring(tree) or ""
    if len(docstring.split()) < FEWEST_WORDS:
        found.append("has no docstring that says what it is for and what it promises")
    elif not SAYS_IMPORTS.search(docstring):
        found.append("has a docstring that does not say what it may import")
    for name in imports(tree):
        found += wrong_import(module, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
            found.append("lets numpy unpickle")
    return found


def unsaid_imports(module: str, source: str) -> set[str]:
    """Give the packages, ours and others', that a module imports and its docstring's words about imports leave out."""
    tree = ast.parse(source)
    sentences = re.split(r"(?<=\.)\s", ast.get_docstring(tree) or "")
    said = " ".join(sentence for sentence in sentences if SAYS_IMPORTS.search(sentence)).lower()
    ours = {package_of(name) for name in imports(tree) if name.startswith("eventide")} - {package_of(module)}
    others = {name.split(".")[0] for name in imports(tree)} - {"eventide"}
    unnamed = {name for name in ours if not re.search(rf"(`|\beventide\.){name}\b", said)}
    return (unnamed | {name for name in others if name.replace("_", "-") not in said}) - UNSAID


def wrong_import(module: str, name: str) -> list[str]:
    own, top = package_of(module), name.split(".")[0]
    if top in PICKLES:
        return [f"imports {top}"]
    if top == "numba" and (own == "privacy" or not module.endswith("_kernels")):
        return ["imports numba outside a *_kernels module, or inside privacy"]
    if top == "":
        return ["imports by a relative name, which hides the package it reaches into"]
    if top != "eventide":
        return []
    target = package_of(name)
    return [f"imports {target}"] if target != own and RANK[target] >= RANK[own] else []


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_every_module_keeps_the_rules(path):
    assert complaints(module_name(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_every_docstring_names_what_its_module_imports(path):
    assert unsaid_imports(module_name(path), path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize(
    ("docstring", "unsaid"),
    [
        ("What it does with `privacy`. Imports `streams`.", {"privacy", "pyarrow"}),
        ("What it does. Imports pyarrow and `streams`.", {"privacy"}),
        ("What it does with privacy. Imports pyarrow, `streams` and privacy.", {"privacy"}),
        ("What it does. Imports pyarrow and `streams`; `privacy` when it is asked for.", set()),
        ("What it does. Imports pyarrow, eventide.privacy and eventide.streams.", set()),
    ],
)
def test_an_import_that_no_sentence_names_is_found(docstring, unsaid):
    body = "import math\nimport numpy\nimport pyarrow.csv\nfrom eventide.live import feed\nimport eventide.errors"
    lazy = "from eventide.streams import bins\ndef f():\n    from eventide.privacy.ledger import Entry"
    assert unsaid_imports("eventide.live.clock", f'"""{docstring}"""\n{body}\n{lazy}\n') == unsaid


def test_every_package_has_its_place_in_the_order():
    names = [module_name(path) for path in SOURCES if path.name == "__init__.py"]
    assert {name.split(".")[1] for name in names if "." in name} <= set(RANK)


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("eventide.errors", "import eventide.arrays"),
        ("eventide.privacy.ledger", "from eventide.streams import files"),
        ("eventide.streams.city", "from eventide.privacy.ledger import WindowLedger"),
        ("eventide.filters", "from eventide import mechanisms"),
        ("eventide.mechanisms.uniform", "import eventide.cli"),
        ("eventide.mechanisms.uniform", "import eventide as ev"),
        ("eventide.mechanisms.uniform", "from eventide import Uniform"),
        ("eventide.bench.runner", "def f():\n    import eventide.live.clock"),
        ("eventide.mechanisms.uniform", "from . import frame"),
        ("eventide.engines.spark", "from eventide.service import access"),
        ("eventide", "import eventide.cli"),
        ("eventide.mechanisms.uniform", "from numba import njit"),
        ("eventide.privacy.noise_kernels", "import numba"),
        ("eventide.live.store", "import pickle"),
        ("eventide.live.store", "from pickle import loads"),
        ("eventide.live.store", "numpy.load(file, allow_pickle=True)"),
    ],
)
def test_a_bad_line_is_found(module, line):
    assert len(complaints(module, f"{SAYING}\n{line}\n")) == 1


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("eventide.privacy.ledger", "from eventide.privacy import amounts\nfrom eventide.errors import InputError"),
        ("eventide.mechanisms.uniform", "import numpy\nimport eventide.privacy.meter\nfrom eventide import filters"),
        ("eventide.live.bounding_kernels", "import numba"),
        ("eventide.cli.demo", "import eventide as ev\nfrom eventide import __version__"),
        ("eventide.live.store", "numpy.load(file, allow_pickle=False)"),
    ],
)
def test_a_good_line_is_let_through(module, line):
    assert complaints(module, f"{SAYING}\n{line}\n") == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import math", "says what it is for"),
        ('"""."""', "says what it is for"),
        ('"""Imports numpy."""', "says what it is for"),
        ('"""A module that says at length what it is for and what it promises."""', "what it may import"),
    ],
)
def test_a_module_that_does_not_say_what_it_is_for_is_found(source, words):
    (complaint,) = complaints("eventide.errors", source)
    assert words in complaint


def test_no_file_names_a_folder_of_the_machine_it_was_written_on():
    folders = [ROOT / name for name in (".ci", "src", "tests", "docs", "benchmarks")]
    files = [*ROOT.glob("*.*"), *(path for folder in folders for path in folder.rglob("*"))]
    texts = [path for path in files if path.suffix in {"", ".py", ".md", ".toml", ".html"} and path.is_file()]
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
