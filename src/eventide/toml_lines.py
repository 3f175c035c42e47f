"""A TOML document that knows where its keys stand, so that a complaint can name the line.

The standard library's parser gives values without positions; the line of a key is found again in the text.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from typing import Any, NamedTuple

from eventide.errors import InputError, unknown


class TomlTable(NamedTuple):
    """One `[[table]]` of a document, by its number; the top level is the entry without a table."""

    table: str | None = None
    number: int = 0


TOP = TomlTable()


class Document:
    """The values of a TOML text, and complaints about them that begin with `place`, the name of its file."""

    def __init__(self, text: str, place: str, added: str = "") -> None:
        """`added` stands behind the text, and in no file."""
        self.own_lines = len(text.splitlines()) if added else sys.maxsize
        self.text = text = f"{text}\n{added}" if added else text
        self.place = place
        try:
            self.values: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            raise InputError(
                f"{place} is not TOML: {problem}. Texts and durations stand in quotation marks, such as step = "
                '"10min"; a time has seconds, such as 2026-01-01T00:00:00Z'
            ) from None

    def complaint(self, sentence: str, entry: TomlTable = TOP, key: str | None = None) -> InputError:
        """The sentence, with the line where the key of that entry stands."""
        line = self.line(entry, key)
        return InputError(f"{self.place}, line {line}: {sentence}" if line <= self.own_lines else f"--with: {sentence}")

    def unknown(
        self, what: str, given: str, known: Iterable[str], entry: TomlTable, key: str | None = None, owner: str = ""
    ) -> InputError:
        """There is no such thing; perhaps a similar one was meant."""
        return self.complaint(unknown(what, given, known, owner), entry, key or given)

    def line(self, entry: TomlTable, key: str | None) -> int:
        """The line of the key, or else of the entry's heading or of its inline table, or else the first."""
        heading = re.compile(rf"\s*\[\[?\s*{re.escape(entry.table)}\s*\]") if entry.table else None
        any_heading = re.compile(r"\s*\[")
        this_key = re.compile(rf"(?:^|[\s,{{.\"']){re.escape(key)}[\"']?\s*[=.]") if key else None
        found, seen, inside = 1, -1, heading is None
        for number, line in enumerate(self.text.splitlines(), start=1):
            if any_heading.match(line):
                if entry == TOP and key and re.match(rf"\s*\[\[?\s*{re.escape(key)}\s*\]", line):
                    return number
                seen += bool(heading and heading.match(line))
                inside = heading is not None and bool(heading.match(line)) and seen == entry.number
                found = number if inside else found
            elif inside and this_key and this_key.search(line.split("#")[0]):
                return number
        written_inline = entry.table is not None and seen < 0
        return self.line(TOP, entry.table) if written_inline else found
