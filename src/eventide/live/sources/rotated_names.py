"""Which files are the predecessors of a log, oldest first: those beside it that have a name as rotation gives it.

A number (log.jsonl.1 or log.1.jsonl) is larger the older the file is, a date (log.jsonl-20260131 or
log-2026-01-31.jsonl) is smaller; either may be compressed. A file that stands beside its compressed form is still being
compressed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from eventide.errors import InputError

_TAG = r"(?:(?P<number>\d{1,5})|(?P<date>\d{4}[-_.]?\d\d[-_.]?\d\d(?:[-_.T:]?\d+)*))"
_PACKED = r"(?P<packed>\.(?:gz|bz2|xz|zst|Z))?"


class Rotation(NamedTuple):
    """What the name of a predecessor says: its age, in numbers that grow from the oldest on, and how it is packed."""

    age: tuple[int, ...]
    dated: bool
    packed: str


def rotation_of(name: str, log: str) -> Rotation | None:
    """What a name says of the predecessor of a log; None where it is no such name.

    >>> rotation_of("log.jsonl.2.gz", "log.jsonl")
    Rotation(age=(-2,), dated=False, packed='.gz')
    >>> rotation_of("log-2026-01-31.jsonl", "log.jsonl")
    Rotation(age=(2026, 1, 31), dated=True, packed='')
    >>> rotation_of("log.jsonl.old", "log.jsonl")
    """
    stem, ending = Path(log).stem, Path(log).suffix
    forms = f"{re.escape(log)}[-_.]{_TAG}{_PACKED}", f"{re.escape(stem)}[-_.]{_TAG}{re.escape(ending)}{_PACKED}"
    found = next((match for form in forms if (match := re.fullmatch(form, name))), None)
    if found is None:
        return None
    if found["number"]:
        return Rotation((-int(found["number"]),), dated=False, packed=found["packed"] or "")
    return Rotation(tuple(map(int, re.findall(r"\d+", found["date"]))), dated=True, packed=found["packed"] or "")


def files_of_log(log: Path) -> list[Path]:
    """The predecessors of a log, oldest first, and in the end the log itself where it is there."""
    names = {path.name: path for path in log.parent.iterdir()}
    found = {name: rotation for name in names if (rotation := rotation_of(name, log.name))}
    found = {
        name: rotation
        for name, rotation in found.items()
        if not rotation.packed or name.removesuffix(rotation.packed) not in found
    }
    if len({rotation.dated for rotation in found.values()}) > 1:
        raise InputError(
            f"some predecessors of {log.name} have a number and some a date in their names, so nobody can say in which "
            "order they were written; move those that were read long ago to another folder"
        )
    ordered = sorted(found, key=lambda name: found[name].age)
    return [names[name] for name in ordered] + ([log] if log.name in names else [])
