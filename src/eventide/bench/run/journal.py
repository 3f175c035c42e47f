"""What is finished of a study, on disk: a line of JSON for each batch, safe against a crash at any moment.

A line that was cut short is dropped when the journal is opened again, so that a batch is either finished or was never
begun. One run writes it at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from eventide.bench.run.results import CellFigures
from eventide.errors import InputError, StoreError


class Journal:
    """The batches of the study with the mark `fingerprint`; `finished` holds the figures of each, by number."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self.finished: dict[int, list[CellFigures]] = {}

    def __enter__(self) -> Self:
        try:
            self._file = self.path.open("ab")
        except OSError as problem:
            raise InputError(f"cannot write {self.path}: {problem.strerror}; choose another --out") from None
        try:
            self._lock()
            whole = self._read()
        except BaseException:
            self._file.close()
            raise
        self._file.truncate(whole)
        if not whole:
            self._write({"study": self.fingerprint})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, number: int, figures: list[CellFigures]) -> None:
        """Write down a batch for good."""
        self._write({"batch": number, "figures": figures})
        self.finished[number] = figures

    def remove(self) -> None:
        """Forget everything: the results are written."""
        self.path.unlink()
        self._file.close()  # only now may another run begin

    def _write(self, line: dict[str, object]) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            busy = True
        else:
            busy = os.fstat(self._file.fileno()).st_nlink == 0  # the other run ended between opening and locking
        if busy:
            raise StoreError(f"another run is writing {self.path}; wait until it is done, or choose another --out")

    def _read(self) -> int:
        """Take over what the file holds; the length of its whole lines."""
        text = self.path.read_bytes()
        whole = text.rfind(b"\n") + 1
        try:
            lines = [json.loads(line) for line in text[:whole].splitlines()]
            finished = {entry["batch"]: entry["figures"] for entry in lines[1:]}
        except (ValueError, TypeError, KeyError):
            raise InputError(f"{self.path} is damaged, or no journal; remove it, or choose another --out") from None
        if lines and lines[0] != {"study": self.fingerprint}:
            raise InputError(
                f"{self.path} was left by another study, or by another version or other data; "
                "finish that one as it was, remove the file, or choose another --out"
            )
        self.finished = finished
        return whole
