"""Files of releases, which appear only when they are complete.

A file is written under another name in the same folder and takes its own name at `commit`; without that nothing stays
behind, and a file that was there before stays as it was.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.errors import InputError, StoreError
from eventide.releases.formats import FORMATS, Format, Formats


class ReleaseFile:
    """Takes releases; `commit` makes them appear."""

    def __init__(
        self, content: Format, unfinished: Path | None, path: Path | None, *, replaces_any: bool = True
    ) -> None:
        self._content = content
        self._unfinished = unfinished
        self.path = path
        self._replaces_any = replaces_any

    def write(self, release: Any) -> None:
        """Take a release."""
        with _failures(self.path):
            self._content.add(release)

    def commit(self) -> None:
        """Write what is still held back and give the file its name; nothing may be written after."""
        with _failures(self.path):
            self._content.close()
            self._content.stream.flush()
            if self.path and self._unfinished:
                os.fsync(self._content.stream.fileno())
                self._content.stream.close()
                if not self._replaces_any:
                    _refuse_foreign(self.path, self._unfinished)
                self._unfinished.replace(self.path)


@contextmanager
def open_releases(
    out: str | None,
    bins: Sequence[str],
    layout: str | None = None,
    source: Path | None = None,
    formats: Formats = FORMATS,
    *,
    replaces_any: bool = True,
) -> Iterator[ReleaseFile]:
    """Open a `.jsonl`, `.csv` or `.parquet` file for releases; None or "-" is standard output, in JSON lines.

    What cannot be written is refused now rather than after the work; `source`, the file being read, is never replaced.
    Other `formats` of the same endings write something else, such as answers. With `replaces_any` False a file that is
    there is replaced only if it has the same columns, as an earlier output of the same kind has.
    """
    if out is None or out == "-":
        yield ReleaseFile(formats[".jsonl"](sys.stdout.buffer, bins, layout), None, None)
        return
    path = Path(out)
    refuse_path(path, [] if source is None else [source])
    with _refusals(path):
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        stream = unfinished.open("xb")
    with ExitStack() as undone:
        undone.callback(unfinished.unlink, missing_ok=True)
        undone.callback(_close, stream)
        with _refusals(path):
            content = formats[path.suffix.lower()](stream, bins, layout)
        undone.callback(content.abandon)
        yield ReleaseFile(content, unfinished, path, replaces_any=replaces_any)


def _refuse_foreign(path: Path, made: Path) -> None:
    """Refuse to replace a file that has other columns than what was made."""
    if not path.is_file() or not path.stat().st_size:
        return
    found = _columns(path, path.suffix.lower())
    if found is None or found != _columns(made, path.suffix.lower()):
        raise InputError(
            f"--out {path} exists, and is no earlier output with the same columns; choose another file, or remove this "
            "one"
        )


def _columns(path: Path, ending: str) -> Any:
    """What the columns of a file are; None where it is none of its kind."""
    with path.open("rb") as file:
        if ending == ".parquet":
            try:
                return pq.read_schema(file).names
            except pa.ArrowException:
                return None
        first = file.readline()
    if ending != ".jsonl":
        return first.strip()
    try:
        keys = set(json.loads(first or b"null"))
    except (ValueError, TypeError):
        return None
    return "releases" if {"step", "values"} <= keys else keys


def refuse_path(path: Path, sources: Sequence[Path], endings: Sequence[str] = tuple(FORMATS)) -> None:
    """Refuse a path that cannot be that of releases: by its ending, a folder, or one that is read."""
    with _refusals(path):
        if path.suffix.lower() not in endings:
            raise InputError(f"--out {path} ends in none of {', '.join(endings)}; choose one of them")
        if path.is_dir():
            raise InputError(f"--out {path} is a folder; give the name of a file")
        refuse_read(path, sources, "--out")


def refuse_read(path: Path, sources: Sequence[Path], option: str) -> None:
    """Refuse a path at which files are read: one of them, in a folder of them, or named like a pattern of them."""
    for source in sources:  # "-" and addresses are no files
        if path.exists() and source.exists() and path.samefile(source):
            raise InputError(f"{option} {path} is the file that is read; choose another name")
        inside = source.is_dir() and path.resolve().is_relative_to(source.resolve())
        if inside or (not source.exists() and path.absolute().match(str(source.absolute()))):
            raise InputError(f"{option} {path} would be read as one of the files of {source}; choose another folder")


def _close(stream: BinaryIO) -> None:
    with suppress(OSError):  # a full disk was reported when it was met
        stream.close()


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    """Say in one sentence that a file cannot be begun."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror}; choose a folder that exists, may be written to and has room"
        ) from None


@contextmanager
def _failures(path: Path | None) -> Iterator[None]:
    """Say in one sentence that what was begun cannot be ended: nothing that was handed in is to blame."""
    try:
        yield
    except BrokenPipeError:  # whoever read standard output has enough
        raise
    except OSError as error:
        place = f"file {path}" if path else "standard output"
        raise StoreError(
            f"{place} cannot be made durable: {error.strerror}; look at its disk, then give the same command again"
        ) from None
