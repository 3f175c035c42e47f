"""Who may do what: tokens, kept as digests in a file that is read again whenever it changes.

A token is 32 random bytes, so a plain SHA-256 of it cannot be turned back and needs no salt. The file holds one line
for each: its role, its name, its digest and, where it is not good for all streams, the names of those it is good for; a
line taken out is a right taken away, without a restart. If the file
cannot be read, or others may read it, nobody may do anything; the log says so and why, once.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eventide.errors import InputError
from eventide.live.private_files import read_private

LOG = logging.getLogger("eventide.live.service")
ROLES = ("ingest", "read", "operate")
STREAMS = r"[a-z0-9_-]{1,63}(?:,[a-z0-9_-]{1,63})*"
_LINE = re.compile(rf"({'|'.join(ROLES)}) ([\w.-]{{1,63}}) ([0-9a-f]{{64}})(?: ({STREAMS}))?")


class Token(NamedTuple):
    """A right, without what proves it."""

    role: str
    name: str
    digest: str
    streams: tuple[str, ...] = ()  # that it is good for; none: all

    def sees(self, stream: str) -> bool:
        """Whether it is good for a stream; of others it learns nothing."""
        return not self.streams or stream in self.streams

    def may(self, role: str) -> bool:
        """Whether this token is enough; who operates may also read."""
        return self.role == role or (self.role == "operate" and role == "read")


def add_token(path: Path, role: str, name: str, streams: Sequence[str] = ()) -> str:
    """Make a token, add it to the file and give it out: this is the only moment it is known.

    With `streams` it is good for these alone.
    """
    if role not in ROLES:
        raise InputError(f"there is no role {role!r}; choose one of {', '.join(ROLES)}")
    secret = f"eventide-{role}-{secrets.token_urlsafe(32)}"
    line = " ".join([role, name, _digest(secret), *([",".join(streams)] if streams else [])])
    if not _LINE.fullmatch(line):
        raise InputError(f"{name!r} is no name for a token; use letters, digits, dots and dashes")
    if path.exists() and any(token.name == name for token in _parsed(path)):
        raise InputError(f"{path.name} has a token named {name!r}; choose another name, or take its line out first")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(line + "\n")
    except OSError as problem:
        raise InputError(f"cannot write {path}: {problem.strerror}; choose another place for tokens") from None
    return secret


class Tokens:
    """The tokens of a file, as they are at this moment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, ...] | None = None
        self._tokens: list[Token] = []
        self._trouble: str | None = None

    def check(self) -> None:
        """Refuse a file that cannot be used; one that is not there yet only means that nobody may do anything."""
        if self.path.exists():
            _parsed(self.path)

    def all(self) -> list[Token]:
        """All of them, by their lines."""
        self._refresh()
        return list(self._tokens)

    def find(self, secret: str) -> Token | None:
        """The token that this text proves, if any; every one is compared, each in constant time."""
        self._refresh()
        digest, found = _digest(secret), None
        for token in self._tokens:
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found

    def hold(self, token: Token) -> bool:
        """Whether the file still has this token."""
        self._refresh()
        return token in self._tokens

    def _refresh(self) -> None:
        try:
            status = self.path.stat()
            seen = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            if seen != self._seen:
                self._tokens = _parsed(self.path)
                self._seen, self._trouble = seen, None
        except OSError as problem:
            self._shut(f"{self.path} cannot be read ({problem.strerror}); make tokens with `eventide config token`")
        except InputError as problem:
            self._shut(str(problem))

    def _shut(self, trouble: str) -> None:
        """Know nobody from now on, and say why unless it was said."""
        self._tokens, self._seen = [], None
        if trouble != self._trouble:
            LOG.warning("no token is accepted: %s", trouble)
        self._trouble = trouble


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _parsed(path: Path) -> list[Token]:
    tokens = []
    for number, line in enumerate(read_private(path, "a file of tokens").splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            found = _LINE.fullmatch(line.strip())
            if not found:
                raise InputError(f"{path.name}, line {number} is no token; it reads: role name digest")
            role, name, digest, streams = found.groups()
            tokens.append(Token(role, name, digest, tuple(streams.split(",")) if streams else ()))
    return tokens
