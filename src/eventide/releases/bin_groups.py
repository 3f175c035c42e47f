"""Named groups of bins, read from a file, such as the roads of each district.

A TOML file has a line `name = ["bin", "bin"]` for each group, a CSV file the columns group and bin. Groups may share
bins.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eventide.errors import InputError

Groups = dict[str, list[str]]


def read_groups(path: Path, bins: Sequence[str]) -> Groups:
    """The groups in a file, each with at least one of `bins`, and with no other."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        groups = _from_csv(text) if path.suffix.lower() == ".csv" else _from_toml(tomllib.loads(text))
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"cannot read {path}: {problem}; give a TOML or CSV file of groups") from None
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        raise InputError(
            f'{path} holds no groups of bins; write lines such as north = ["a", "b"], or a CSV with the columns '
            "group and bin"
        ) from None
    known = set(bins)
    for name, members in groups.items():
        if not members:
            raise InputError(f"group {name!r} of {path} has no bins; give it some or leave it out")
        if unknown := [member for member in members if member not in known]:
            raise InputError(f"group {name!r} of {path} names {unknown[0]!r}, which is none of the {len(bins):,} bins")
        if len(set(members)) < len(members):
            raise InputError(f"group {name!r} of {path} names a bin twice; a total counts it once")
    if not groups:
        raise InputError(f"{path} names no group")
    return groups


def _from_toml(document: dict[str, Any]) -> Groups:
    if not all(isinstance(members, list) for members in document.values()):
        raise TypeError
    return {name: [str(member) for member in members] for name, members in document.items()}


def _from_csv(text: str) -> Groups:
    groups: Groups = {}
    for row in csv.DictReader(text.splitlines()):
        if not (row["group"] and row["bin"]):
            raise KeyError
        groups.setdefault(row["group"].strip(), []).append(row["bin"].strip())
    return groups
