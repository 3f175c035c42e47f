"""Reads the configuration of a service: a TOML file, checked as a whole before anything starts.

`read_config` gives the configuration or one error; `examine` names every mistake with its line and a way out.
Streams that name the same population are about the same people: their steps and windows are the same, and their
epsilons add up to at most the population's.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from eventide.errors import EventideError, InputError
from eventide.events.bins import checked_names, parse_bins
from eventide.events.durations import steps_of_window
from eventide.events.timeline import Timeline
from eventide.events.zones import Zone
from eventide.filters import names as filter_names
from eventide.mechanisms.registry import mechanism_names
from eventide.privacy.amounts import NANO
from eventide.service.config.keys import text, whole_number
from eventide.service.config.settings import DEFAULTS, TABLES, Access, Config, Limits, Server, StreamConfig
from eventide.toml_lines import TOP, Document, TomlTable
from eventide.windows.query_files import read_queries

Value = TypeVar("Value")
WrittenTables = list[tuple[TomlTable, dict[str, Any]]]

SHARED = ("step", "start", "zone", "window")  # what streams of one population have in common


def read_config(path: str | Path) -> Config:
    """The configuration in a file, or an error that names all its mistakes."""
    config, mistakes = examine(path)
    if config is None:
        raise InputError("\n".join(mistakes))
    return config


def examine(path: str | Path) -> tuple[Config | None, list[str]]:
    """The configuration in a file, None where it has mistakes; and these, by their lines, each with a way out."""
    path = Path(path)
    try:
        document = Document(path.read_text(encoding="utf-8"), path.name)
    except (OSError, UnicodeDecodeError):
        return None, [f"{path} cannot be read as a text file; check the path, or make one with: eventide init"]
    except InputError as problem:
        return None, [str(problem)]
    reader = _Reader(document, path.parent)
    config = reader.config()
    mistakes = [str(problem) for _, problem in sorted(reader.mistakes, key=lambda mistake: mistake[0])]
    return (None if mistakes else config), mistakes


class _Reader:
    """Reads a document to its end, whatever it meets on the way."""

    def __init__(self, document: Document, folder: Path) -> None:
        self.document = document
        self.folder = folder
        self.mistakes: list[tuple[int, InputError]] = []
        self.faulty: set[TomlTable] = set()  # what the mistakes are in

    def config(self) -> Config | None:
        """The configuration; worth something only where no mistake was found."""
        for table in self.document.values.keys() - TABLES.keys():
            self._note(self.document.unknown("table", table, TABLES, TomlTable(table)), TomlTable(table), None)
        server, access, limits = (self._single(table) for table in ("server", "access", "limits"))
        self._check_tls(server)
        populations = {str(values.get("name")): values for _, values in self._several("populations")}
        streams = [(entry, self._stream(entry, values)) for entry, values in self._several("streams")]
        if not streams:
            self._complain("there is no stream to serve; write a table [[streams]]", TOP, "streams")
        self._check_distinct(streams)
        self._check_populations(streams, {name: values.get("epsilon") for name, values in populations.items()})
        built = tuple(self._built(entry, values) for entry, values in streams if entry not in self.faulty)
        if self.mistakes:
            return None
        totals = {stream.population: stream.epsilon for stream in built}
        totals |= {name: Fraction(values["epsilon"], NANO) for name, values in populations.items()}
        paths = {key: str(self.folder / server[key]) for key in ("certificate", "key") if server[key]}
        return Config(
            server=Server(**server | paths),
            access=Access(**access | {"tokens": self.folder / access["tokens"]}),
            limits=Limits(**limits),
            populations=totals,
            streams=built,
        )

    def _check_tls(self, server: dict[str, Any]) -> None:
        for one, other in (("certificate", "key"), ("key", "certificate")):
            if server.get(one) and not server.get(other):
                self._complain(f"{one} is given without {other}; TLS needs both", TomlTable("server"), one)
            elif server.get(one) and not (self.folder / server[one]).is_file():
                sentence = f"{one}: there is no file {server[one]!r}; check the path"
                self._complain(sentence, TomlTable("server"), one)

    def _single(self, table: str) -> dict[str, Any]:
        written = self.document.values.get(table, {})
        if not isinstance(written, dict):
            self._complain(f"{table} is one table; write [{table}]", TOP, table)
            written = {}
        return self._fields(TomlTable(table), written)

    def _several(self, table: str) -> WrittenTables:
        written = self.document.values.get(table, [])
        if not (isinstance(written, list) and all(isinstance(each, dict) for each in written)):
            self._complain(f"there can be several {table}; write each as [[{table}]]", TOP, table)
            return []
        entries = [TomlTable(table, number) for number in range(len(written))]
        return [(entry, self._fields(entry, written[entry.number])) for entry in entries]

    def _fields(self, entry: TomlTable, written: dict[str, Any]) -> dict[str, Any]:
        """The values of all fields that are right; those that are wrong or missing are complained about."""
        assert entry.table is not None
        fields, values = TABLES[entry.table], dict(DEFAULTS[entry.table])
        for key in written.keys() - fields.keys():
            self._note(self.document.unknown(f"key of {entry.table}", key, fields, entry), entry, key)
        for key, (read, example) in fields.items():
            if key in written:
                try:
                    values[key] = read(written[key])
                except (EventideError, TypeError, ValueError) as problem:
                    self._complain(f"{key}: {problem}", entry, key)
            elif key not in values:
                self._complain(f"{key} is missing; write it, such as {key} = {example}", entry)
        return values

    def _stream(self, entry: TomlTable, values: dict[str, Any]) -> dict[str, Any]:
        """The fields of a stream that can be read only with others at hand."""
        if {"window", "step"} <= values.keys():
            values["window"] = self._asked(entry, "window", lambda: _steps(values["window"], values["step"]))
        if "bins" in values:
            values["bins"] = self._asked(entry, "bins", lambda: self._bins(values["bins"], values.get("other")))
        zone = self._asked(entry, "zone", lambda: Zone(values["zone"])) if "zone" in values else None
        if zone is not None and {"step", "start"} <= values.keys():
            self._asked(entry, "start", lambda: Timeline(values["start"], values["step"], values["zone"]))
        if "mechanism" in values and values["mechanism"] not in mechanism_names():
            self._unknown("mechanism", values["mechanism"], mechanism_names(), entry)
        if "filter" in values and values["filter"] not in (known := [*filter_names(), "none"]):
            self._unknown("filter", values["filter"], known, entry)
        if values.get("max_per_step", 1) > 1 and not values.get("user"):
            self._complain(
                "max_per_step bounds the events of a person; name the field that holds the person, as user",
                entry,
                "max_per_step",
            )
        self._check_queries(entry, values)
        return values

    def _check_queries(self, entry: TomlTable, values: dict[str, Any]) -> None:
        """Window queries and their share of epsilon: both, or neither."""
        share = values.get("queries_epsilon", 0)
        if values["queries"] and not share:
            sentence = "queries need a share of epsilon; write it, such as queries_epsilon = 0.3"
            self._complain(sentence, entry, "queries")
        elif share and not values["queries"]:
            sentence = 'queries_epsilon is for queries; name their file, such as queries = "queries.toml"'
            self._complain(sentence, entry, "queries_epsilon")
        elif share and share >= values.get("epsilon", share + 1):
            sentence = f"window queries would get {share / NANO:g} of epsilon and releases nothing; give them less"
            self._complain(sentence, entry, "queries_epsilon")
        if values["queries"] and "step" in values:
            file = self.folder / values["queries"]
            values["queries"] = self._asked(entry, "queries", lambda: tuple(read_queries(file, values["step"])))

    def _bins(self, written: Any, other: str | None) -> tuple[str, ...]:
        if isinstance(written, list):
            names = checked_names([text(each) for each in written], "bins", "bin")
        elif isinstance(written, int) and not isinstance(written, bool):
            names = parse_bins(str(written))
        else:
            path = self.folder / text(written)
            names = parse_bins(str(path) if path.is_file() else written)
        return names if other is None or other in names else (*names, other)

    def _check_distinct(self, streams: WrittenTables) -> None:
        for key in ("name", "store"):
            seen = set()
            for entry, values in streams:
                if key in values:
                    if (same := os.path.normpath(values[key])) in seen:
                        self._complain(f"another stream has the {key} {values[key]!r}; each needs its own", entry, key)
                    seen.add(same)

    def _check_populations(self, streams: WrittenTables, totals: dict[str, int | None]) -> None:
        for name in sorted({str(values["population"]) for _, values in streams if values.get("population")}):
            together = [(entry, values) for entry, values in streams if values.get("population") == name]
            if name not in totals:
                self._unknown("population", name, list(totals), together[0][0])
            else:
                self._check_shares(name, totals[name], together)
            if len(together) > 1:
                self._check_same_people(together)

    def _check_shares(self, name: str, total: int | None, together: WrittenTables) -> None:
        asked = sum(values.get("epsilon", 0) for _, values in together)
        if total is not None and asked > total:
            sentence = (
                f"the streams of {name} ask for epsilon {asked / NANO:g} together, of {total / NANO:g}; "
                f"give each {total / NANO / len(together):g}, or other shares of it"
            )
            self._complain(sentence, together[-1][0], "epsilon")

    def _check_same_people(self, together: WrittenTables) -> None:
        """Windows of the same steps, and people who can be told apart: otherwise the epsilons would not add up."""
        first = together[0][1]
        for entry, values in together:
            for key in SHARED:
                if values.get(key) != first.get(key):
                    sentence = (
                        f"{key} differs from that of {first.get('name')!r}, which is about the same people; "
                        "make them equal, so that their windows are the same"
                    )
                    self._complain(sentence, entry, key)
            if not values.get("user"):
                sentence = "streams about the same people need the field that holds the person; name it, as user"
                self._complain(sentence, entry, "user")

    def _built(self, entry: TomlTable, values: dict[str, Any]) -> StreamConfig:
        own = {
            "population": values["population"] or values["name"],
            "epsilon": Fraction(values["epsilon"], NANO),
            "queries_epsilon": Fraction(values["queries_epsilon"], NANO),
            "store": values["store"] if "://" in values["store"] else self.folder / values["store"],
        }
        stream = StreamConfig(**values | own)
        mechanism = self._asked(entry, "mechanism", stream.build)
        if mechanism is not None:
            self._asked(entry, "queries", lambda: (asked := stream.questions()) and asked.start(mechanism))
        return stream

    def _unknown(self, what: str, given: str, known: list[str], entry: TomlTable) -> None:
        if not known:
            self._complain(f"there is no {what} {given!r}; write one as a table [[{what}s]]", entry, what)
        else:
            self._note(self.document.unknown(what, given, known, entry, what), entry, what)

    def _asked(self, entry: TomlTable, key: str, read: Callable[[], Value]) -> Value | None:
        try:
            return read()
        except (EventideError, TypeError, ValueError) as problem:
            self._complain(f"{key}: {problem}", entry, key)
            return None

    def _complain(self, sentence: str, entry: TomlTable, key: str | None = None) -> None:
        self._note(self.document.complaint(sentence, entry, key), entry, key)

    def _note(self, problem: InputError, entry: TomlTable, key: str | None) -> None:
        self.mistakes.append((self.document.line(entry, key), problem))
        self.faulty.add(entry)


def _steps(window: Any, step: str) -> int:
    """A window in steps, from a number of them or from a duration, rounded up."""
    if isinstance(window, str):
        return steps_of_window(window, step)
    return whole_number(1, 10**9)(window)
