"""Settings of clients: how brokers, databases and receivers are logged in to, from a file that only its owner may read.

A TOML file with a table for each kind of client (`kafka`, `nats`, `postgres`, `webhook`), or for one address, such as
["nats://127.0.0.1:4222"], whose table is then used instead of that of its kind: so a secret goes to no other server. A
value is given literally, or as `{ env = "NAME" }` or `{ file = "path" }`, which are read when a client connects. What
would break a promise of eventide, or is not known, is refused. Nothing here shows a value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eventide.errors import InputError
from eventide.live.private_files import read_private
from eventide.live.tls import TLS
from eventide.toml_lines import Document, TomlTable

VARIABLE = "EVENTIDE_CLIENTS"
_REFERENCES = ("env", "file")
_AS_WRITTEN = ("system", "probe")  # what stands for a path in settings of PostgreSQL and Kafka, and is none
_LOGINS = ("credentials", "nkey", "user", "token")


class Kind(NamedTuple):
    """The settings of a kind of client: the `known` ones, any where empty; patterns of those that are `ours` to set,
    and of those that are `paths`."""

    known: tuple[str, ...]
    ours: str
    paths: str


KINDS = {
    "kafka": Kind(
        (),
        r"bootstrap\.servers|metadata\.broker\.list|group\..*|partition\.assignment\.strategy|session\.timeout\.ms|"
        r"(enable\.)?auto\..*|offset\.store\..*|isolation\.level|enable\.partition\.eof|allow\.auto\.create\.topics|"
        r"acks|request\.required\.acks|enable\.idempotence|transaction.*|message\.max\.bytes|default\.topic.*|"
        r"debug|logger|test\..*|.*_cb|on_.*",
        r".*\.location",
    ),
    "nats": Kind((*_LOGINS, "password", *TLS), "", "ca|certificate|key"),
    "postgres": Kind(
        (
            *("user", "password", "passfile", "require_auth", "channel_binding", "requirepeer"),
            *("sslmode", "sslnegotiation", "sslcert", "sslkey", "sslpassword", "sslcertmode", "sslrootcert", "sslcrl"),
            *("sslcrldir", "sslsni", "ssl_min_protocol_version", "ssl_max_protocol_version"),
            *("gssencmode", "krbsrvname", "gsslib", "gssdelegation", "application_name", "target_session_attrs"),
            *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"),
        ),
        "host|hostaddr|port|dbname|options|service|servicefile|connect_timeout|client_encoding|replication",
        "passfile|sslcert|sslkey|sslrootcert|sslcrl|sslcrldir",
    ),
    "webhook": Kind(("headers", *TLS[1:]), "", "ca|certificate|key"),
}
OUR_HEADERS = ("content-type", "content-length", "idempotency-key", "host", "transfer-encoding", "connection")

_SCHEMES = {  # the kind of client, and the port where an address names none
    "kafka": ("kafka", "9092"),
    "nats": ("nats", "4222"),
    "postgresql": ("postgres", "5432"),
    "http": ("webhook", "80"),
    "https": ("webhook", "443"),
}
_HOST = re.compile(r"(\[[^]]*\]|[^:]*):?(\d*)")


class SecretSettings(dict[str, Any]):
    """The settings of one client, ready to be used; they show their names, never a value."""

    def __repr__(self) -> str:
        return f"<settings: {', '.join(sorted(self)) or 'none'}>"


def settings_of(address: str, clients: str | Path | None = None) -> SecretSettings:
    """The settings for an address, from a file or else from the one that EVENTIDE_CLIENTS names; none without both."""
    path = clients or os.environ.get(VARIABLE)
    return read_clients(path).settings(address) if path else SecretSettings()


def read_clients(path: str | Path) -> Clients:
    """The settings in a file, checked; values that it refers to are not looked at."""
    path = Path(path)
    return Clients(Document(read_private(path, "a file of client settings"), path.name), path.parent)


class Clients:
    """The tables of a document, checked as a whole; paths in them are relative to `folder`."""

    def __init__(self, document: Document, folder: Path) -> None:
        self._document, self._folder = document, folder
        self._tables: dict[object, tuple[str, dict[str, Any]]] = {}  # by kind or place: kind, settings
        for name, written in document.values.items():
            entry = TomlTable(f'"{name}"' if "://" in name else name)
            kind, place = self._meant(name, entry)
            if not isinstance(written, dict):
                raise document.complaint(f"{name} is a table; write [{name}]", key=name)
            settings = dict(_flat(written) if kind == "kafka" else written.items())
            self._check(kind, settings, entry)
            self._tables[place] = (kind, settings)

    def settings(self, address: str) -> SecretSettings:
        """The settings for an address, with everything they refer to."""
        place = _place(address)
        kind, settings = self._tables.get(place) or self._tables.get(_kind(address)) or ("", {})
        found = SecretSettings()
        for key, written in settings.items():
            if key == "headers":
                found[key] = SecretSettings({name: self._header(name, value) for name, value in written.items()})
            elif re.fullmatch(KINDS[kind].paths, key) and written not in _AS_WRITTEN:
                found[key] = str(self._folder / str(self._value(key, written)))
            else:
                found[key] = self._value(key, written)
        return found

    def _meant(self, name: str, entry: TomlTable) -> tuple[str, object]:
        """The kind of client that a table is for, and by what it is found."""
        if name in KINDS:
            return name, name
        place = _place(name) if "://" in name else None
        if place is None:
            raise self._document.unknown("kind of client", name, KINDS, entry)
        if "@" in name or re.search(r"://[^/]*/.", name):
            raise self._document.complaint("the address of a table is a scheme, a host and perhaps a port", entry)
        return _kind(name), place

    def _check(self, kind: str, settings: dict[str, Any], entry: TomlTable) -> None:
        for key, value in settings.items():
            if re.fullmatch(KINDS[kind].ours, key):
                sentence = f"{key} is said by the address or set by eventide, whose promises depend on it; leave it out"
                raise self._document.complaint(sentence, entry, key)
            if KINDS[kind].known and key not in KINDS[kind].known:
                raise self._document.unknown(f"setting of {kind}", key, KINDS[kind].known, entry)
            if key == "headers":
                self._check_headers(value, entry)
            elif not _is_value(value):
                sentence = f'{key} is no value; write a text, a number, {{ env = "NAME" }} or {{ file = "path" }}'
                raise self._document.complaint(sentence, entry, key)
        if ("certificate" in settings) != ("key" in settings):
            raise self._document.complaint("certificate and key belong together; give both", entry)
        if kind == "nats":
            if not isinstance(settings.get("tls", True), bool):
                raise self._document.complaint("tls is true or false, without quotation marks", entry, "tls")
            if ("user" in settings) != ("password" in settings):
                raise self._document.complaint("user and password belong together; give both", entry)
            if len(given := [key for key in _LOGINS if key in settings]) > 1:
                sentence = f"{' and '.join(given)} are different ways to log in; choose one"
                raise self._document.complaint(sentence, entry)

    def _check_headers(self, headers: Any, entry: TomlTable) -> None:
        if not isinstance(headers, dict) or not all(map(_is_value, headers.values())):
            sentence = 'headers is a table of values, such as headers = { Authorization = { env = "TOKEN" } }'
            raise self._document.complaint(sentence, entry, "headers")
        for name in headers:
            if name.lower() in OUR_HEADERS or not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII):
                raise self._document.complaint(f"{name!r} is no header to add; leave it out", entry, "headers")

    def _header(self, name: str, written: Any) -> str:
        value = str(self._value(name, written))
        if not (value.isascii() and value.isprintable()):  # or the client's error would show it
            raise InputError(f"{self._document.place}: the header {name} must be one line of plain letters; correct it")
        return value

    def _value(self, key: str, written: Any) -> str | bool:
        match written:
            case {"env": name}:
                if name not in os.environ:
                    raise InputError(
                        f"{self._document.place}: {key} is to be in a variable of the environment that is not set"
                    )
                return os.environ[name]
            case {"file": path}:
                return read_private(self._folder / path, f"a secret ({key})").rstrip("\r\n")
        return written if isinstance(written, bool) else str(written)


def _flat(written: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Properties with dots in their names, which TOML reads as tables of tables."""
    for key, value in written.items():
        if isinstance(value, dict) and not _is_value(value):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value


def _is_value(written: Any) -> bool:
    if isinstance(written, dict):
        return len(written) == 1 and all(key in _REFERENCES and isinstance(written[key], str) for key in written)
    return isinstance(written, str | int | float)


def _scheme(address: str) -> str:
    scheme = address.partition("://")[0]
    return "postgresql" if scheme == "postgres" else scheme


def _kind(address: str) -> str:
    return _SCHEMES.get(_scheme(address), ("", ""))[0]


def _place(address: str) -> tuple[str, frozenset[tuple[str, str]]] | None:
    """By what an address is known: its scheme, and its hosts with their ports; None where no client is for it."""
    scheme = _scheme(address)
    if scheme not in _SCHEMES:
        return None
    hosts = re.split("[/?#]", address.partition("://")[2])[0].rpartition("@")[2].lower().split(",")
    found = [_HOST.fullmatch(host) for host in hosts]
    return scheme, frozenset((host[1], host[2] or _SCHEMES[scheme][1]) for host in found if host)
