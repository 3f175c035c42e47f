"""An account on paper: an export that is checked without the database, and what was changed when and why."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from account_lives import forge_weight
from click.testing import CliRunner

from eventide.cli import main
from eventide.live.accounts.account import Account, Seat
from eventide.live.accounts.account_report import account_report
from eventide.live.accounts.open_account import create_account, open_account
from eventide.live.accounts.windows import Terms

HOUR = 3_600_000_000
HALF = Terms(500_000_000, window=25, length=HOUR)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    create_account("people.account", "patients", 1, "1d")
    with open_account("people.account") as account:
        publish(account, account.join("hourly", HALF, 0), 0)
    key = tmp_path / "audit.key"
    key.write_text("0123456789abcdef" * 2)
    key.chmod(0o600)
    return tmp_path


def publish(account: Account, seat: Seat, step: int) -> None:
    account.charge(seat, step * HOUR, (step + 1) * HOUR)
    account.settle(seat, (step + 1) * HOUR)


def run(line: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["account", *line.split()])
    return result.exit_code, result.output


EXPORT = "export people.account --key audit.key --out people.audit"
VERIFY = "verify people.audit --key audit.key"


def test_an_export_says_what_the_account_says_without_it(place: Path) -> None:
    code, text = run(EXPORT)
    assert (code, "4 entries" in text) == (0, True)
    shown = json.loads(run("show people.account --json")[1])
    (place / "people.account").unlink()
    verified = json.loads(run(f"{VERIFY} --json")[1])
    assert verified | {"seal": ""} == shown | {"seal": ""}
    assert (place / "people.audit").stat().st_mode & 0o777 == 0o600


def test_an_export_is_extended_and_the_noted_code_stays_in_it(place: Path) -> None:
    noted = run(EXPORT)[1].split()[-1]
    with open_account("people.account") as account:
        publish(account, account.join("hourly", HALF, 0, reached=HOUR), 1)
    assert "7 entries" in run(EXPORT)[1]
    assert run(f"{VERIFY} --noted {noted}")[0] == 0
    lines = (place / "people.audit").read_text().splitlines(keepends=True)
    (place / "people.audit").write_text("".join(lines[:3]))  # cut off at the end: only a note tells
    assert run(VERIFY)[0] == 0
    assert run(f"{VERIFY} --noted {noted}")[0] == 4


@pytest.mark.parametrize("change", ["left out", "changed", "in another order", "added"])
def test_a_line_that_was_touched_is_exit_code_four(place: Path, change: str) -> None:
    run(EXPORT)
    lines = (place / "people.audit").read_text().splitlines(keepends=True)
    touched = {
        "left out": [*lines[:2], *lines[3:]],
        "changed": [line.replace("3600000000", "3600000001") for line in lines],
        "in another order": [*lines[:2], lines[3], lines[2], *lines[4:]],
        "added": [*lines, lines[-1]],
    }
    (place / "people.audit").write_text("".join(touched[change]))
    code, text = run(VERIFY)
    assert (code, "not what was exported with this key" in text) == (4, True)
    assert run(EXPORT)[0] == 4  # and it is not extended


def test_another_key_and_a_short_one_are_refused(place: Path) -> None:
    run(EXPORT)
    (place / "other.key").write_text("f" * 40)
    (place / "other.key").chmod(0o600)
    assert run("verify people.audit --key other.key")[0] == 4
    (place / "other.key").write_text("short")
    assert run("verify people.audit --key other.key")[0] == 2
    (place / "audit.key").chmod(0o644)
    assert run(VERIFY)[0] == 2


def test_a_database_that_was_rewritten_with_good_seals_is_noticed(place: Path) -> None:
    run(EXPORT)
    forge_weight(place / "people.account", 600_000_000)
    assert run("show people.account")[0] == 0  # its own seals say nothing
    code, text = run(EXPORT)
    assert (code, "does not hold all entries" in text) == (4, True)


def test_an_export_of_an_account_that_is_over_is_exit_code_four(place: Path) -> None:
    forge_weight(place / "people.account", 2 * 10**9)
    run(EXPORT)
    code, text = run(VERIFY)
    assert (code, "held 2, more than epsilon 1" in text) == (4, True)


def test_what_is_no_export_is_bad_input(place: Path) -> None:
    (place / "people.audit").write_text("people\n")
    assert run(VERIFY)[0] == 2
    assert run("verify nowhere --key audit.key")[0] == 2
    assert run("export people.account --key audit.key --out audit.key")[0] == 2


def test_every_change_says_from_when_on_and_why(place: Path) -> None:
    with open_account("people.account") as account:
        publish(account, account.join("daily", HALF, 0), 0)
        account.pause("daily")
        account.resume("daily")
        account.end("daily")
        account.join("hourly", HALF._replace(part=600_000_000), HOUR, reached=HOUR)
        account.join("hourly", HALF, 0, after_restore=True)
        account.restored(9 * HOUR)
        account.join("hourly", HALF, 9 * HOUR, reached=9 * HOUR)
        told = [(one.publication, one.moment // HOUR, one.what) for one in account_report(account).history]
    assert told[:5] == [
        ("hourly", 0, "begins with part 0.5 in 25 steps of 1 hour"),
        ("daily", 0, "begins with part 0.5 in 25 steps of 1 hour"),
        ("daily", 1, "paused; it keeps its part"),
        ("daily", 1, "may go on"),
        ("daily", 1, "ended by the operator"),
    ]
    assert told[5][2].startswith(
        "part 0.5 in 25 steps of 1 hour becomes part 0.6 in 25 steps of 1 hour; asked for from 1970-01-01T01:00"
    )
    assert told[6][2].startswith("goes on after its store was restored")
    assert told[7][2] == "ended, since the account was restored from a backup"
    assert told[8] == ("", 9, "entries of the account were lost: the window before counts as fully spent")
    assert told[9][:2] == ("hourly", 32)
    assert told[9][2].startswith("joins again with part 0.5")
    code, text = run("show people.account")
    assert (code, "1970-01-01T01:00:00+00:00  daily: paused; it keeps its part" in text) == (0, True)


def test_the_command_line_pauses_and_draws(place: Path) -> None:
    assert run("pause people.account hourly")[0] == 0
    code, text = run("show people.account --out people.html")
    assert (code, ", paused" in text) == (0, True)
    page = (place / "people.html").read_text()
    assert ('<path class="line"' in page, "hourly: paused; it keeps its part" in page, "<script" in page) == (
        True,
        True,
        False,
    )
    assert run("resume people.account hourly")[0] == 0
    assert run("resume people.account hourly")[0] == 2
    assert run("pause people.account nobody")[0] == 2
    assert run("show people.account --out people.account")[0] == 2


def test_entries_of_before_there_were_reasons_are_read(place: Path) -> None:
    """Begins without what was wanted, and ends without why."""
    with open_account("people.account") as account:
        account.end("hourly")
        entries = account.database.all("SELECT number, event FROM entry ORDER BY number")
        texts = [
            json.dumps({k: v for k, v in json.loads(text).items() if k not in ("wanted", "why")}) for _, text in entries
        ]
        tenures = account.tenures()
    with closing(sqlite3.connect("people.account")) as connection:
        from eventide.live.accounts.account import sealed

        name, seal = connection.execute("SELECT name FROM account").fetchone()[0], b""
        for number, text in enumerate(texts):
            seal = sealed(name, seal, number, text)
            connection.execute("UPDATE entry SET event = ?, seal = ? WHERE number = ?", (text, seal, number))
        connection.commit()
    with open_account("people.account", read_only=True) as account:
        found = account_report(account)
    assert (found.problems, list(found.tenures)) == ([], tenures)
    assert [one.what for one in found.history] == ["begins with part 0.5 in 25 steps of 1 hour", "ended"]
