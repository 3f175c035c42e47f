"""Runs a page of the documentation as a reader would: block after block, in the order in which they are read.

In a folder of its own that has `docs/examples`, blocks with a title become files, blocks of Python share their names,
and blocks of `sh` or `sql` are commands. A command that never ends goes on beside what follows and is asked to stop at
the end of the page; what pip is asked to install must be an extra of ours. Addresses are replaced by those of servers
that a test has started.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from eventide.cli import main
from eventide.errors import EventideError
from eventide.live.stores.open_store import open_store

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
FENCE = re.compile(r'^( *)```(\w*)(?: title="([^"]+)")?\n(.*?)^\1```$', re.DOTALL | re.MULTILINE)
NEVER_ENDS = re.compile(
    r"^(?!timeout ).*(?:--follow(?!.* --until 20)|nats-server -js|tail -F|eventide serve|--serve"
    r"|publish \S*(?:nats|kafka)://)"
)
INSTALLS = re.compile(r"^(?:\S*/)?pip install (.*)$", re.MULTILINE)
COMMAND = re.compile(r"^(?:\$ )?(?:\S+/)?(?:eventide|pip|python3?|curl|pytest|mkdocs) \S", re.MULTILINE)
PATIENCE = 300  # seconds; enough for a slow machine that also compiles

# Blocks that are not run, by how they begin, and why. Keep it short.
NOT_RUN = {
    "python3 -m venv .venv && .venv/bin/pip install . ": "the demo from nothing; .ci/run runs it from the README",
    "python3 -m venv .venv-test && ": "the tests from nothing; .ci/run runs them from the README",
    "python3 -m venv .venv && .venv/bin/pip install -e": "sets up a copy to work in, and runs the tests",
    "python3 -m venv .venv && . .venv/bin/activate": "the environment of the tests stands for it",
    ".venv/bin/mkdocs serve": "needs the extra docs; tests/browser/test_site.py and .ci/run build the site",
    ".venv/bin/python docs/generate_": "writes into the project; test_mechanisms_page.py makes the same and compares",
    "apt-get update\napt-get install": "makes a machine; test_containerfile.py does the same in a root of its own",
    "eventide warm ": "compiles for a minute; test_warm.py does it, and looks at what came of it",
    "PYTHONPATH=src:tests/support .venv/bin/python tests/fixtures/write.py": "writes into the project",
    "python benchmarks/": "measures for minutes, and writes nothing that a reader needs",
    "bin=$(python -c 'import pathlib, pyspark": "a cluster of machines; test_spark_cluster.py starts one alike",
}


@functools.cache
def generator(name: str):
    """A module of the folder `docs` that makes pages."""
    with _importing_from(ROOT / "docs", keep=True):
        return importlib.import_module(name)


@functools.cache
def site_pages() -> dict[str, str]:
    """The pages that are made when the site is built, by their place in `docs`."""
    return generator("generate_site").pages()


class Block(NamedTuple):
    """A block of code: its language, the file it is to be, if any, and its text."""

    language: str
    title: str
    code: str


def blocks(text: str) -> list[Block]:
    """All blocks of a page."""
    return [Block(language, title, textwrap.dedent(code)) for _, language, title, code in FENCE.findall(text)]


def lines_of(code: str) -> list[str]:
    """The commands of a block, each on one line; comments and empty lines left out."""
    joined = code.replace("\\\n", " ").splitlines()
    return [line for line in joined if line.strip() and not line.lstrip().startswith("#")]


def hidden_commands(text: str) -> list[str]:
    """What looks like a command and stands in a block that nobody runs."""
    unrun = [block.code for block in blocks(text) if block.language in ("", "text", "console", "bash", "shell")]
    return [found for code in unrun for found in COMMAND.findall(code)]


class Reader:
    """Somebody who follows a page in `folder`; `replaced` maps what is written to what is there."""

    def __init__(self, folder: Path, replaced: dict[str, str] | None = None, **environment: str) -> None:
        self.folder = folder
        self.replaced = replaced or {}
        programs = str(Path(sys.executable).parent)
        self.environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", **environment}
        self.names = {"__name__": "documented"}
        self.running: list[subprocess.Popen[str]] = []
        shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples", dirs_exist_ok=True)
        (folder / ".venv").mkdir(exist_ok=True)
        (folder / ".venv" / "bin").symlink_to(programs)

    def follow(self, text: str) -> int:
        """Do everything a page says; give how many of its blocks were done."""
        done = 0
        try:
            with contextlib.chdir(self.folder), _importing_from(self.folder):
                for block in blocks(text):
                    if not block.code.startswith(tuple(NOT_RUN)):
                        self._do(block._replace(code=self._here(block.code)))
                        done += 1
        finally:
            self._stop()
        return done

    def _here(self, code: str) -> str:
        for written, here in self.replaced.items():
            code = code.replace(written, here)
        return code

    def _do(self, block: Block) -> None:
        if block.title:
            (path := Path(block.title)).parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.code, encoding="utf-8")
        elif block.language == "python":
            exec(compile(block.code, "a block of Python", "exec"), self.names)
        elif block.language == "sh":
            self._run(block.code)
        elif block.language == "sql":
            self._shell(f"psql -v ON_ERROR_STOP=1 <<'SQL'\n{block.code}SQL")
        elif block.language == "toml":
            tomllib.loads(block.code)
        elif block.language == "json":
            json.loads(block.code)

    def _run(self, code: str) -> None:
        commands = [line for line in lines_of(code) if not _installed(line)]
        for endless in [line for line in commands if NEVER_ENDS.search(line)]:
            self._start(endless)
            commands.remove(endless)
        if all(re.match(r"(?:\.venv/bin/)?eventide [^|&;<>$`]*$", line) for line in commands):
            for line in commands:
                _eventide(shlex.split(line, comments=True)[1:])
        else:
            self._shell("\n".join(commands))

    def _shell(self, code: str) -> None:
        done = subprocess.run(
            ["bash", "-euc", code], env=self.environment, capture_output=True, text=True, timeout=10 * PATIENCE
        )
        assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"

    def _start(self, line: str) -> None:
        """Start what never ends, and wait until it has said something or has begun to use its store."""
        said = Path(f"said-{len(self.running)}.txt")
        store = Path(asked[1] if (asked := re.search(r"--store (\S+)", line)) else said)
        with said.open("w") as output:
            process = subprocess.Popen(
                ["bash", "-c", line if "|" in line else f"exec {line}"],
                **{"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output},
                **{"env": self.environment, "start_new_session": True, "text": True},
            )
        self.running.append(process)
        until = time.monotonic() + PATIENCE
        while process.poll() is None and not said.stat().st_size and not _begun(store):
            assert time.monotonic() < until, f"nothing is heard of: {line}"
            time.sleep(0.1)
        assert process.poll() is None, f"{line}\n{said.read_text()}"

    def _stop(self) -> None:
        for number, process in reversed(list(enumerate(self.running))):  # a server after those who use it
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(PATIENCE)
            said = (self.folder / f"said-{number}.txt").read_text()
            assert process.returncode in (0, -signal.SIGTERM), said  # a shell with a pipe dies of the signal itself
            assert "Error" not in said, said


def _begun(store: Path) -> bool:
    """Whether a publisher has written into a store what it is going to publish."""
    with contextlib.suppress(EventideError), contextlib.closing(open_store(store, read_only=True)) as opened:
        return bool(opened.epochs())
    return False


def _installed(line: str) -> bool:
    """Whether a line installs something, which the tests' environment has; its extras must exist."""
    asked = INSTALLS.match(line)
    if asked:
        extras = {name for listed in re.findall(r"\[([\w,-]+)\]", asked[1]) for name in listed.split(",")}
        assert extras <= EXTRAS, f"{line}: there is no extra {extras - EXTRAS}"
    return asked is not None


def _eventide(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0, f"eventide {shlex.join(words)} ends with {ended.value.code}"


@contextlib.contextmanager
def _importing_from(folder: Path, *, keep: bool = False):
    """Let modules of a folder be imported, and forget them afterwards unless they are to be kept."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name, module in [] if keep else list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(str(folder)):
                del sys.modules[name]
