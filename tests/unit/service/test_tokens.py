"""Tokens: made once, kept as digests, taken away by deleting a line, and useless where the file cannot be trusted."""

from __future__ import annotations

import os

import pytest

from eventide.errors import InputError
from eventide.service.http.tokens import Tokens, add_token


@pytest.fixture
def file(tmp_path):
    return tmp_path / "tokens"


def test_a_token_proves_its_role_and_nothing_else(file):
    made = {role: add_token(file, role, role) for role in ("ingest", "read", "operate")}
    tokens = Tokens(file)
    for role, secret in made.items():
        found = tokens.find(secret)
        allowed = {asked for asked in made if found.may(asked)}
        assert allowed == ({"operate", "read"} if role == "operate" else {role})
    for wrong in ("", "eventide-read-", made["read"][:-1], made["read"] + "x", made["read"].upper()):
        assert tokens.find(wrong) is None


def test_without_a_file_nobody_is_known(file):
    assert Tokens(file).find("anything") is None


def test_tokens_come_and_go_while_the_file_is_watched(file):
    tokens = Tokens(file)
    first = add_token(file, "read", "first")
    assert tokens.find(first).name == "first"
    second = add_token(file, "read", "second")
    assert tokens.find(second).name == "second"
    kept = [line for line in file.read_text().splitlines(keepends=True) if " first " not in line]
    file.write_text("".join(kept))
    assert tokens.find(first) is None
    assert tokens.find(second) is not None
    file.unlink()
    assert tokens.find(second) is None


def test_a_file_that_others_may_read_closes_every_door(file):
    secret = add_token(file, "read", "reader")
    tokens = Tokens(file)
    assert tokens.find(secret)
    os.chmod(file, 0o640)
    assert tokens.find(secret) is None
    with pytest.raises(InputError, match="chmod 600"):
        tokens.check()


def test_why_every_door_is_closed_is_logged_once(file, caplog):
    secret = add_token(file, "read", "reader")
    tokens = Tokens(file)
    for mode in (0o644, 0o644, 0o600, 0o640):
        os.chmod(file, mode)
        assert (tokens.find(secret) is None) == (mode != 0o600)
        tokens.find(secret)
    file.unlink()
    assert tokens.all() == []
    told = [f"may be read or written by others (mode {mode})" for mode in (644, 640)] + ["cannot be read (No such file"]
    assert len(caplog.messages) == len(told)
    for message, reason in zip(caplog.messages, told, strict=True):
        assert message.startswith(f"no token is accepted: {file} {reason}")
        assert secret not in message


def test_a_damaged_line_closes_every_door(file):
    secret = add_token(file, "read", "reader")
    with file.open("a") as more:
        more.write("operate everybody *\n")
    assert Tokens(file).find(secret) is None
    with pytest.raises(InputError, match="line 2 is no token"):
        Tokens(file).check()


@pytest.mark.parametrize(("role", "name"), [("admin", "x"), ("read", "two words"), ("read", ""), ("read", "a\nb")])
def test_what_would_spoil_the_file_is_refused(file, role, name):
    with pytest.raises(InputError):
        add_token(file, role, name)
    assert not file.exists()


def test_a_name_stands_for_one_token(file):
    add_token(file, "read", "reader")
    with pytest.raises(InputError, match="has a token named"):
        add_token(file, "operate", "reader")
