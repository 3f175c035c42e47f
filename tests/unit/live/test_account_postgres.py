"""An account in a real PostgreSQL server: the same promises, also when the server is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from account_lives import RACER, live_through, row_of
from click.testing import CliRunner
from postgres_server import PostgresServer

from eventide.cli import main
from eventide.live.accounts.account import Account
from eventide.live.accounts.account_report import account_report
from eventide.live.accounts.open_account import create_account, open_account
from eventide.live.accounts.postgres_account import PostgresAccount
from eventide.live.accounts.windows import Terms

pytestmark = pytest.mark.database

HOUR = 3_600_000_000


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    running = PostgresServer().start()
    yield running
    running.kill()


@pytest.mark.parametrize("seed", range(4))
def test_no_window_is_over_epsilon_whatever_happens_in_any_order(server: PostgresServer, seed: int) -> None:
    with Account(PostgresAccount(f"{server.address}#lives{seed}", made_with=row_of(seed))) as account:
        assert live_through(account, seed)[0]


def test_processes_with_different_steps_share_it(server: PostgresServer) -> None:
    address = f"{server.address}#racers"
    create_account(address, "patients", 1, "1d")
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER, address, name, minutes], stdout=subprocess.PIPE, text=True)
        for name, minutes in (("a", "1"), ("b", "7"), ("c", "60"), ("d", "1440"))
    ]
    said = sorted(racer.communicate(timeout=120)[0].strip() for racer in racers)
    assert said == ["published", "published", "refused", "refused"]
    with open_account(address, read_only=True) as account:
        found = account_report(account)
    assert (found.problems, found.entries) == ([], 2 * (2 + 2 * 25))


def test_a_server_that_is_killed_is_waited_for(server: PostgresServer) -> None:
    address = f"{server.address}#killed"
    create_account(address, "patients", 1, "1d")
    with open_account(address) as account:
        seat = account.join("a", Terms(10**9, window=25, length=HOUR), 0)
        account.charge(seat, 0, HOUR)
        server.kill()
        server.start()
        account.settle(seat, HOUR)
        account.charge(seat, HOUR, 2 * HOUR)
        assert account_report(account).problems == []


def test_the_command_line_makes_and_shows_one(server: PostgresServer) -> None:
    address = f"{server.address}#shown"
    made = ["account", "create", address, "--population", "patients", "--epsilon", "1", "--window", "7d"]
    run = CliRunner().invoke
    assert (run(main, made).exit_code, run(main, made).exit_code) == (0, 2)
    assert "held by nobody" in run(main, ["account", "show", address]).output
    assert run(main, ["account", "show", f"{server.address}#nowhere"]).exit_code == 2
