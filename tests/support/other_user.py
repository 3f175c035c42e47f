"""A user who has no home and may write nowhere, with a copy of the package: numba finds no place for compiled code.

Root may write everywhere, so root becomes `nobody`, or where nobody may read this Python gives up all powers; anybody
else is kept out by the modes of the folders.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import eventide

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


class OtherUser:
    """Runs Python in `folder`, which holds the package; whoever runs the tests may write there until `close`."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="eventide-"))  # not in the tests' own, which only they may read
        source = Path(eventide.__file__).parent
        shutil.copytree(source, self.folder / "eventide", ignore=shutil.ignore_patterns("*.nbi", "*.nbc"))

    def command(self, *words: str) -> list[str]:
        """Python with these words, as that user."""
        return [*_becoming_nobody(), sys.executable, *words]

    def run(self, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder, with the copy of the package and without a home."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG"))}
        here = {"HOME": str(self.folder / "no home"), "PYTHONPATH": str(self.folder), **environment}
        return subprocess.run(command, cwd=self.folder, env=kept | here, capture_output=True, text=True)

    def close(self) -> None:
        """Let nobody write in the folder any more."""
        self._set_modes(0o555, 0o444)

    def delete(self) -> None:
        """Delete the folder."""
        self._set_modes(0o755, 0o644)
        shutil.rmtree(self.folder)

    def _set_modes(self, folder: int, file: int) -> None:
        self.folder.chmod(folder)
        for path in self.folder.rglob("*"):
            path.chmod(folder if path.is_dir() else file)


@functools.cache
def _becoming_nobody() -> tuple[str, ...]:
    if os.geteuid() != 0:
        return ()
    for prefix in (NOBODY, POWERLESS):
        command = [*prefix, sys.executable, "-c", "import numpy"]
        if shutil.which(prefix[0]) and subprocess.run(command, capture_output=True).returncode == 0:
            return prefix
    pytest.skip("needs setpriv, of util-linux")
