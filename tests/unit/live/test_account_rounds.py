"""Publications with different steps and clocks on their accounts, round after round, whatever goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from account_rounds import live_rounds, row_of
from postgres_server import PostgresServer

from eventide.live.accounts.account import Account
from eventide.live.accounts.open_account import open_account
from eventide.live.accounts.postgres_account import PostgresAccount
from eventide.live.accounts.sqlite_account import create_file

FOUR, TWO = "abcd", "xy"


def in_a_file(path: Path, window: int) -> Account:
    """An account that is not made durable, since nobody cuts the power."""
    create_file(path, row_of(window))
    account = open_account(path)
    account.database.all("PRAGMA synchronous = OFF")
    return account


@pytest.mark.parametrize("seed", range(3))
def test_no_window_is_over_whatever_goes_wrong(tmp_path: Path, seed: int) -> None:
    with in_a_file(tmp_path / "four", 12) as four, in_a_file(tmp_path / "two", 7) as two:
        counted = live_rounds([(four, FOUR), (two, TWO)], 400, seed)
    assert min(counted["let in"], counted["refused"], counted["older store"]) > 5


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    running = PostgresServer().start()
    yield running
    running.kill()


@pytest.mark.database
@pytest.mark.parametrize(
    "rounds",
    [pytest.param(500, id="five hundred"), pytest.param(10_000, id="ten thousand", marks=pytest.mark.nightly)],
)
def test_four_publications_in_postgresql_and_two_in_a_file(server: PostgresServer, tmp_path: Path, rounds: int) -> None:
    with ExitStack() as stack:
        four = Account(PostgresAccount(f"{server.address}#four", made_with=row_of(12)))
        four.database.all("SELECT set_config('synchronous_commit', 'off', false)")
        stack.enter_context(closing(four))
        two = stack.enter_context(in_a_file(tmp_path / "two", 7))
        counted = live_rounds([(four, FOUR), (two, TWO)], rounds, seed=rounds)
    assert counted.total() > rounds
