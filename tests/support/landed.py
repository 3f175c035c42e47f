"""What landed versions wrote, kept in tests/fixtures: where it is, how it is copied, and commands run on a copy."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import shutil
import sys
from datetime import datetime
from pathlib import Path
from unittest import mock

from eventide.cli import main
from eventide.live.sources import open_source
from eventide.live.sources.standard_input import StandardInput

FIXTURES = Path(__file__).parents[1] / "fixtures"
SETS = sorted(FIXTURES.glob("landed-*"))


def kept(pattern):
    """What all sets have at places such as "stores/*", oldest first."""
    return [place for each in SETS for place in sorted(each.glob(pattern))]


def name_of(place):
    """A name for a test about a place in a set."""
    return "-".join(place.relative_to(FIXTURES).parts)


def copied(place, target):
    """A copy of a folder, to be written to: databases are unpacked, and nobody else may read them."""
    shutil.copytree(place, target, dirs_exist_ok=True)
    for packed in target.rglob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    for file in target.rglob("*"):
        file.chmod(0o700 if file.is_dir() else 0o600)
    return target


def described(folder):
    """What the writer said of a case."""
    return json.loads((folder / "case.json").read_text())


def eventide(folder, words, moments=(), store="store.db"):
    """Run the command line in a folder, with STORE for its store; give what it printed, which is an error unless 0.

    `moments` are what comes on standard input: pairs of a time and the lines that arrive then.
    """
    out, err = io.TextIOWrapper(io.BytesIO(), write_through=True), io.StringIO()
    given = [store if word == "STORE" else word for word in words]
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        _arriving(moments),
    ):
        code = main(given, standalone_mode=False)
    assert not code, f"eventide {' '.join(given)}: {err.getvalue()}"
    return out.buffer.getvalue().decode()


class _Sender:
    """A clock that shows when the lines came that were just read, and sends the next ones."""

    def __init__(self, pipe, moments):
        self._pipe, self._moments, self._shown = pipe, list(moments), 0
        self._send()

    def now(self):
        if self._moments:
            at, _ = self._moments.pop(0)
            self._shown = int(datetime.fromisoformat(at).timestamp() * 1_000_000)
            self._send()
        return self._shown

    def certain(self):
        return self._shown

    def _send(self):
        if self._moments:
            os.write(self._pipe, "".join(line + "\n" for line in self._moments[0][1]).encode())
        else:
            os.close(self._pipe)


@contextlib.contextmanager
def _arriving(moments):
    if not moments:
        yield
        return
    reading, writing = os.pipe()
    sender = _Sender(writing, moments)
    with (
        open(reading) as pipe,
        mock.patch.object(sys, "stdin", pipe),
        mock.patch.object(open_source, "StandardInput", return_value=StandardInput(reading, sender)),
    ):
        yield
