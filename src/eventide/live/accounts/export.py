"""The entries of an account in a file that can be checked without the database: each line has a code, made with a key
of the operator's from the line and the code before it.

Whoever has the key can tell that no line was changed, left out before the last or added by somebody without the key.
An export that goes on from an earlier one first sees that the account still says what it said then: so a database that
is changed afterwards is noticed, however well its own seals are forged. Who has the key can write any file; a line that
is cut off at the end is missed only by who has noted a later code; and publications that never joined are in no file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eventide.errors import InputError
from eventide.live.accounts.account import Account
from eventide.live.accounts.account_report import AccountReport, account_report, report_of
from eventide.live.private_files import read_private

SHORTEST_KEY = 32  # characters


class NotAsExported(Exception):
    """An export, or an account, is not what was exported with the key."""


class Exported(NamedTuple):
    """What a file says, in the order of its lines: first what the account is, then its entries."""

    lines: Sequence[str]
    codes: Sequence[str]

    @property
    def entries(self) -> Sequence[str]:
        """The entries."""
        return self.lines[1:]

    def report(self) -> AccountReport:
        """What the entries come to, verified."""
        told = json.loads(self.lines[0])
        return report_of(told["population"], told["epsilon"], told["length"], self.entries, self.codes[-1])


def read_key(path: Path) -> bytes:
    """The operator's key, from a file that nobody else may read."""
    key = read_private(path, "a key").strip()
    if len(key) < SHORTEST_KEY:
        raise InputError(f"{path} is too short for a key; write at least {SHORTEST_KEY} random characters")
    return key.encode()


def export_account(account: Account, path: Path, key: bytes) -> Exported:
    """Write all entries to a file, or go on with one that was written before; give what is in it now."""
    account_report(account)  # refuses what is damaged
    told = {
        "account": account.name,
        "population": account.population,
        "epsilon": account.epsilon,
        "length": account.window,
    }
    rows = account.database.all("SELECT event FROM entry ORDER BY number")
    lines = [json.dumps(told), *(text for (text,) in rows)]
    before = read_export(path, key).lines if path.exists() else []
    if lines[: len(before)] != list(before):
        raise NotAsExported(
            f"{account.database.place} does not hold all entries of {path}: some were changed or removed"
        )
    whole = Exported(lines, _codes(lines, key))
    written = [_written(line, code) for line, code in zip(lines, whole.codes, strict=True)][len(before) :]
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("".join(written))
            file.flush()
            os.fsync(descriptor)
    except OSError as problem:
        raise InputError(f"cannot write {path}: {problem.strerror}; choose another place with --out") from None
    return whole


def read_export(path: Path, key: bytes) -> Exported:
    """What a file says, every code checked."""
    try:
        documents = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        lines, codes = [str(one["line"]) for one in documents], [str(one["code"]) for one in documents]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path} is no export of an account; make one with `eventide account export`") from None
    expected = _codes(lines, key)
    for number, (found, code) in enumerate(zip(codes, expected, strict=True), start=1):
        if not hmac.compare_digest(found.encode(), code.encode()):
            raise NotAsExported(f"line {number} of {path} is not what was exported with this key")
    if not lines:
        raise InputError(f"{path} is empty; make an export with `eventide account export`")
    return Exported(lines, codes)


def _codes(lines: Sequence[str], key: bytes) -> list[str]:
    codes: list[str] = []
    for line in lines:
        before = codes[-1] if codes else ""
        codes.append(hmac.new(key, f"{before}\n{line}".encode(), hashlib.sha256).hexdigest())
    return codes


def _written(line: str, code: str) -> str:
    document: dict[str, Any] = {"line": line, "code": code}
    return json.dumps(document) + "\n"
