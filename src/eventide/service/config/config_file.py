"""Reads the configuration of a service: a TOML file, checked as a whole before anything starts.

`read_config` gives the configuration or one error; `examine` names every mistake with its line and a way out.
Streams that name the same population are about the same people: their steps and windows are the same, and their
epsilons add up to at most the population's. Where the population has an account, that sees to it, for any steps.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from eventide.errors import EventideError, InputError
from eventide.live.addresses import is_address
from eventide.live.client_settings import read_clients
from eventide.live.sinks.open_sink import open_sink
from eventide.service.config.settings import DEFAULTS, REQUIRED, TABLES, Access, Config, Limits, Server, StreamConfig
from eventide.toml_lines import TOP, Document, TomlTable

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
        if server.get("clients"):
            self._asked(TomlTable("server"), "clients", lambda: read_clients(self.folder / server["clients"]))
        populations = [self._population(entry, written) for entry, written in self._several("populations")]
        totals: dict[str, Any] = {str(values.get("name")): values.get("epsilon") for values in populations}
        accounts = {str(values.get("name")): values["account"] for values in populations if values["account"]}
        streams = [(entry, self._stream(entry, written)) for entry, written in self._several("streams")]
        if not streams:
            self._complain("there is no stream to serve; write a table [[streams]]", TOP, "streams")
        self._check_distinct(streams)
        self._check_populations(streams, totals, accounts)
        built = tuple(self._built(entry, values) for entry, values in streams if entry not in self.faulty)
        if self.mistakes:
            return None
        every = {stream.population: stream.epsilon for stream in built} | totals
        paths = {key: str(self.folder / server[key]) for key in ("certificate", "key", "clients") if server[key]}
        return Config(
            server=Server(**server | paths),
            access=Access(**access | {key: self.folder / access[key] for key in ("tokens", "log") if access[key]}),
            limits=Limits(**limits),
            populations={name: total for name, total in every.items() if name not in accounts},
            streams=built,
            accounts={name: place if is_address(place) else self.folder / place for name, place in accounts.items()},
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
        return [(TomlTable(table, number), values) for number, values in enumerate(written)]

    def _fields(self, entry: TomlTable, written: dict[str, Any]) -> dict[str, Any]:
        """The values of all keys that are right; those that are wrong or missing are complained about."""
        assert entry.table is not None
        known, values = TABLES[entry.table], dict(DEFAULTS[entry.table])
        self._check_keys(entry, written, [key for key in known if key not in values])
        for key in written.keys() & known.keys():
            try:
                values[key] = known[key].read(written[key])
            except (EventideError, TypeError, ValueError) as problem:
                self._complain(f"{key}: {problem}", entry, key)
        return values

    def _population(self, entry: TomlTable, written: dict[str, Any]) -> dict[str, Any]:
        """The same for a population, whose epsilon is that of its account where it has one."""
        if "account" not in written:
            return self._fields(entry, written)
        if "epsilon" in written:
            self._complain("the account says what epsilon is; leave one of the two out", entry, "epsilon")
        return self._fields(entry, written | {"epsilon": 1}) | {"epsilon": None}

    def _stream(self, entry: TomlTable, written: dict[str, Any]) -> dict[str, Any]:
        """The same for a stream, of which much can be read only with other keys at hand."""
        self._check_keys(entry, written, REQUIRED)
        known = {key: value for key, value in written.items() if key in TABLES["streams"]}
        values, mistakes = StreamConfig.examine(known, self.folder)
        for mistake in mistakes:
            self._complain(mistake.told(), entry, mistake.field)
        if "queries" in known and "queries_epsilon" not in known:
            self._complain("queries need a share of epsilon; write it, such as queries_epsilon = 0.3", entry, "queries")
        return values

    def _check_keys(self, entry: TomlTable, written: dict[str, Any], required: Iterable[str]) -> None:
        known = TABLES[entry.table or ""]
        for key in written.keys() - known.keys():
            self._note(self.document.unknown(f"key of {entry.table}", key, known, entry), entry, key)
        for key in required:
            if key not in written:
                self._complain(f"{key} is missing; write it, such as {key} = {known[key].example}", entry)

    def _check_distinct(self, streams: WrittenTables) -> None:
        for key in ("name", "store"):
            seen = set()
            for entry, values in streams:
                if values[key]:
                    if (same := os.path.normpath(values[key])) in seen:
                        self._complain(f"another stream has the {key} {values[key]!r}; each needs its own", entry, key)
                    seen.add(same)
        places = [(entry, place) for entry, values in streams for place in values.get("out", ())]
        for number, (entry, place) in enumerate(places):
            if place in [other for _, other in places[:number]]:
                self._complain(
                    f"releases are delivered to {place!r} already; each place takes one stream", entry, "out"
                )

    def _check_populations(self, streams: WrittenTables, totals: dict[str, Any], accounts: dict[str, Any]) -> None:
        for name in sorted({str(values["population"]) for _, values in streams if values.get("population")}):
            together = [(entry, values) for entry, values in streams if values.get("population") == name]
            if name not in totals:
                self._unknown("population", name, list(totals), together[0][0])
            elif name in accounts:
                self._check_people_known(together)
                continue
            else:
                self._check_shares(name, totals[name], together)
            if len(together) > 1:
                self._check_same_windows(together)
                self._check_people_known(together)

    def _check_shares(self, name: str, total: Fraction | None, together: WrittenTables) -> None:
        asked = sum(values["epsilon"] for _, values in together)
        if total is not None and asked > total:
            sentence = (
                f"the streams of {name} ask for epsilon {float(asked):g} together, of {float(total):g}; "
                f"give each {float(total) / len(together):g}, or other shares of it"
            )
            self._complain(sentence, together[-1][0], "epsilon")

    def _check_same_windows(self, together: WrittenTables) -> None:
        """Windows of the same steps: otherwise the epsilons would not add up."""
        first = together[0][1]
        for entry, values in together:
            for key in SHARED:
                if values.get(key) != first.get(key):
                    sentence = (
                        f"{key} differs from that of {first.get('name')!r}, which is about the same people; "
                        "make them equal, so that their windows are the same, or give the population an account"
                    )
                    self._complain(sentence, entry, key)

    def _check_people_known(self, together: WrittenTables) -> None:
        """People who can be told apart: otherwise nothing adds up."""
        for entry, values in together:
            if not values.get("user"):
                sentence = "streams about the same people need the field that holds the person; name it, as user"
                self._complain(sentence, entry, "user")

    def _built(self, entry: TomlTable, values: dict[str, Any]) -> StreamConfig:
        if "://" not in values["store"]:
            values["store"] = self.folder / values["store"]
        values["out"] = tuple(each if is_address(each) else str(self.folder / each) for each in values["out"])
        stream = StreamConfig.of(values)
        self._asked(entry, "out", lambda: [open_sink(each, stream.bins) for each in stream.out])
        mechanism = self._asked(entry, "mechanism", stream.build_mechanism)
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
