"""Which files a source of several means: a folder with all that is below it, a pattern such as logs/*.csv, or a list.

They are read in the order of their names, which are public. What other programs leave beside data (names that begin
with . or _) is passed over in a folder; every other file must be one of events, since leaving one out without a word
would publish too little.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from eventide.errors import InputError
from eventide.events.files.open_file import EventFile, open_file, refuse_ending
from eventide.events.files.partitions import PartitionedFile, columns_of_folders

Paths = str | Path | Sequence[str | Path]
"""A path, a folder, a pattern, or several of them."""


class SourceFile(NamedTuple):
    """A file by its name below the folder that all files of a source have in common; `columns` are those of folders."""

    path: Path
    name: str
    columns: dict[str, str | None]

    def open(self) -> EventFile:
        """Open the file."""
        file = open_file(self.path, self.name)
        return PartitionedFile(file, self.columns) if self.columns else file


def is_several(source: Paths) -> bool:
    """Whether a source may be more than one file."""
    if not isinstance(source, str | Path):
        return len(source) != 1 or is_several(source[0])
    return os.path.isdir(source) or _is_pattern(source)  # noqa: PTH112 - False also where it cannot be looked at


def one_path(source: Paths) -> str | Path:
    """The path of a source that can only be one file, such as counts."""
    if is_several(source):
        raise InputError("several files, folders and patterns are for events; counts are one file, so name it")
    return source if isinstance(source, str | Path) else source[0]


def find_members(source: Paths) -> list[SourceFile]:
    """The files of a source, by name; each is opened once, so that one that cannot be read is refused now."""
    places = [source] if isinstance(source, str | Path) else source
    paths = sorted({path for place in places for path in _files_at(place)})
    if not paths:
        raise InputError("there is no file to read; name at least one")
    common = os.path.commonpath([os.path.abspath(path.parent) for path in paths])  # noqa: PTH100 - links stay as named
    members = [
        SourceFile(path, Path(os.path.abspath(path)).relative_to(common).as_posix(), columns_of_folders(path))  # noqa: PTH100
        for path in paths
    ]
    _refuse_repeated(members)
    for member in members:
        member.open()
    return members


def _is_pattern(place: str | Path) -> bool:
    """Whether a text is a pattern; a file that has such a name is itself."""
    return glob.has_magic(str(place)) and not os.path.lexists(place)


def _files_at(place: str | Path) -> Iterator[Path]:
    if _is_pattern(place):
        found = [Path(path) for path in glob.glob(str(place), recursive=True)]  # noqa: PTH207 - takes any pattern
        if not found:
            raise InputError(f"no file is named like {place}; check the pattern")
        for path in found:
            yield from _files_below(path) if path.is_dir() else [path]
    elif os.path.isdir(place):  # noqa: PTH112
        below = list(_files_below(Path(place)))
        if not below:
            raise InputError(f"the folder {place} holds no file of events; check the path")
        yield from below
    elif os.path.isfile(place):  # noqa: PTH113 - False also where it cannot be looked at
        yield Path(place)
    else:
        raise InputError(f"{place} is not a file or folder; check the path")


def _files_below(folder: Path) -> Iterator[Path]:
    """All files below a folder that are no by-products."""
    if (folder / "_delta_log").exists():
        raise InputError(
            f"{folder} is a Delta table, whose files also hold rows that were removed from it; write its rows to a "
            "folder of Parquet files"
        )
    try:
        within = sorted(folder.iterdir())
    except OSError:
        raise InputError(f"the folder {folder} cannot be read; check its permissions") from None
    for path in within:
        if path.name.startswith(".") or (path.name.startswith("_") and "=" not in path.name):
            continue
        if path.is_dir():
            yield from _files_below(path)
        else:
            refuse_ending(path, f"move it away, or give a pattern such as '{folder}/*.csv'")
            yield path


def _refuse_repeated(members: Sequence[SourceFile]) -> None:
    """Refuse a file that has two names, such as a link to the latest one: each of its events would count twice."""
    known: dict[tuple[int, int], str] = {}
    for member in members:
        try:
            with member.path.open("rb") as file:
                found = os.fstat(file.fileno())
        except OSError:
            raise InputError(f"{member.name} cannot be opened; check the file and its permissions") from None
        other = known.setdefault((found.st_dev, found.st_ino), member.name)
        if other != member.name:
            raise InputError(f"{member.name} and {other} are one file, which would count twice; name it once")
