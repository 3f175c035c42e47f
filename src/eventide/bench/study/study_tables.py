"""The tables of a study document: every combination of what varies, values that are checked as they are taken.

What is wrong is refused with its line.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from eventide.bench.study.study import Setting, StudiedMechanism, StudiedStream
from eventide.errors import EventideError
from eventide.privacy.ledger import positive_integer
from eventide.toml_lines import Document, TomlTable

NUMBER, TEXT = (int | float, "a number"), (str, "a text")
KINDS: dict[type, tuple[Any, str]] = {int: NUMBER, float: NUMBER, str: TEXT}  # of parameters, by that of their default
Value = TypeVar("Value")
Part = TypeVar("Part", Setting, StudiedMechanism, StudiedStream)


class StudyTables:
    """A study's document, table by table."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def entries(self, table: str) -> Iterator[tuple[TomlTable, dict[str, Any]]]:
        """Every combination of the varied values of each entry of a table."""
        written = self.document.values.get(table)
        if not (isinstance(written, list) and written and all(isinstance(each, dict) for each in written)):
            brackets = "; two brackets, since there may be several" if isinstance(written, dict) else ""
            raise self.document.complaint(f"the study needs at least one [[{table}]]{brackets}", key=table)
        for number, values in enumerate(written):
            entry = TomlTable(table, number)
            varied = values.get("vary", {})
            if not (isinstance(varied, dict) and all(isinstance(each, list) and each for each in varied.values())):
                raise self.document.complaint("vary holds lists, such as vary.window = [40, 80]", entry, "vary")
            plain = {key: value for key, value in values.items() if key != "vary"}
            for chosen in itertools.product(*varied.values()):
                yield entry, plain | dict(zip(varied, chosen, strict=True))

    def distinct(self, parts: Iterator[tuple[TomlTable, Part]], what: str) -> list[tuple[TomlTable, Part]]:
        """The parts, each of which must have a label of its own."""
        seen: dict[str, tuple[TomlTable, Part]] = {}
        for entry, part in parts:
            if part.label in seen:
                raise self.document.complaint(f"the {what} {part.label!r} stands here twice", entry)
            seen[part.label] = entry, part
        return list(seen.values())

    def experiments(self, entry: TomlTable, values: dict[str, Any], known: list[str]) -> tuple[str, ...] | None:
        """The experiments that an entry is confined to, if it is."""
        named = self.texts(entry, values, "experiments")
        for name in named or ():
            if name not in known:
                raise self.document.unknown("experiment", name, dict.fromkeys(known), entry, "experiments")
        return named

    def texts(self, entry: TomlTable, values: dict[str, Any], key: str) -> tuple[str, ...] | None:
        """A list of names, if it is given."""
        texts = values.pop(key, None)
        if texts is not None and not (isinstance(texts, list) and texts):
            raise self.document.complaint(f"{key} is a list of names", entry, key)
        return None if texts is None else tuple(map(str, texts))

    def one_name(self, entry: TomlTable, values: dict[str, Any], key: str) -> str:
        """A text; several stand in `vary`."""
        name = values.pop(key, "")
        if isinstance(name, list | dict):
            raise self.document.complaint(f"{key} holds one name; for several write vary.{key} = [...]", entry, key)
        return str(name)

    def positive(self, entry: TomlTable, values: dict[str, Any], key: str, default: Value) -> int | Value:
        """A whole number of at least 1, or the default where none is given."""
        return self.asked(entry, key, positive_integer, values.pop(key), key) if key in values else default

    def switch(self, entry: TomlTable, values: dict[str, Any], key: str, default: bool) -> bool:
        """True or false."""
        value = values.pop(key, default)
        if not isinstance(value, bool):
            raise self.document.complaint(f"{key} is {value!r}; it must be true or false, without quotes", entry, key)
        return value

    def check_keys(
        self, values: Iterable[str], known: Iterable[str], entry: TomlTable, what: str, owner: str = ""
    ) -> None:
        """Refuse a key that is not known."""
        for key in values:
            if key not in known:
                raise self.document.unknown(what, key, known, entry, owner=owner)

    def check_parameters(
        self, given: dict[str, Any], known: Mapping[str, inspect.Parameter], entry: TomlTable, name: str
    ) -> None:
        """Refuse parameters that are not known, are missing, or are of another kind than their default."""
        self.check_keys(given, known, entry, "parameter", name)
        for key, parameter in known.items():
            if parameter.default is parameter.empty and key not in given:
                raise self.document.complaint(f"{name} needs {key}; say what it is", entry)
            kinds, otherwise = KINDS.get(type(parameter.default), (object, ""))
            if key in given and (isinstance(given[key], bool) or not isinstance(given[key], kinds)):
                raise self.document.complaint(f"{key} is {given[key]!r}; it must be {otherwise}", entry, key)

    def asked(self, entry: TomlTable, key: str, function: Callable[..., Value], *arguments: Any) -> Value:
        """What the function gives; what it refuses is refused with the line of the key it was asked for."""
        try:
            return function(*arguments)
        except (EventideError, TypeError, ValueError, MemoryError) as problem:
            several = (
                f"; for several write vary.{key} = [...]" if any(isinstance(each, list) for each in arguments) else ""
            )
            raise self.document.complaint(f"{problem}{several}", entry, key) from None
