"""The account: what it refuses, what it remembers, and that no window is over epsilon whatever happens in any order."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from account_lives import RACER, forge_weight, live_through, row_of
from click.testing import CliRunner

from eventide.cli import main
from eventide.errors import InputError, StateError, StoreError
from eventide.live.accounts.account import Account, AccountFull, Seat
from eventide.live.accounts.account_report import account_report
from eventide.live.accounts.open_account import create_account, open_account
from eventide.live.accounts.sqlite_account import create_file
from eventide.live.accounts.windows import Terms

HOUR = 3_600_000_000
HALF = Terms(500_000_000, window=25, length=HOUR)  # a day of hours, and one step more


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create_account(tmp_path / "people.account", "patients", 1, "1d")
    return tmp_path / "people.account"


def publish(account: Account, seat: Seat, step: int, length: int = HOUR) -> None:
    account.charge(seat, step * length, (step + 1) * length)
    account.settle(seat, (step + 1) * length)


def test_two_halves_fit_and_a_third_never_does(path: Path) -> None:
    with open_account(path) as account:
        seats = [account.join(name, HALF, 0) for name in "ab"]
        with pytest.raises(AccountFull, match=r"this one needs 0\.5"):
            account.join("c", HALF, 0)
        for step in range(30):
            for seat in seats:
                publish(account, seat, step)
        found = account_report(account)
        assert (found.problems, found.worst, found.free) == ([], 10**9, 0)


def test_a_window_that_is_too_short_counts_several_times_and_the_refusal_says_so(path: Path) -> None:
    with open_account(path) as account, pytest.raises(AccountFull, match=r"then touches 25 .* A window of 25 steps"):
        account.join("a", Terms(600_000_000, window=24, length=HOUR), 0)


def test_whoever_holds_more_than_their_epsilon_is_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "eventide.live.notices")
    with open_account(path) as account:
        account.join("a", Terms(400_000_000, window=24, length=HOUR), 0)
        assert "this publication holds 0.8: a stretch of 1 day can begin in the middle of a step" in caplog.text
        caplog.clear()
        account.join("b", Terms(100_000_000, window=25, length=HOUR), 0)
        assert not caplog.text


def test_what_has_ended_is_in_the_way_for_a_window(path: Path) -> None:
    with open_account(path) as account:
        seat = account.join("a", Terms(10**9, window=25, length=HOUR), 0)
        publish(account, seat, 0)
        account.end("a")
        with pytest.raises(StoreError, match="not charge"):
            publish(account, seat, 1)
        later = account.join("b", HALF, 0)
        assert later.since == 25 * HOUR - 1  # the first window that begins behind the charge begins at 1 h
        with pytest.raises(StateError, match="may be charged"):
            publish(account, later, 24)
        publish(account, later, 25)
        assert account_report(account).problems == []


def test_removing_one_and_raising_another_waits(path: Path) -> None:
    """Shares that change over time: what was found about populations."""
    with open_account(path) as account:
        first, second = (account.join(name, HALF, 0) for name in "ab")
        for step in range(3):
            publish(account, first, step)
            publish(account, second, step)
        account.end("a")
        raised = account.join("b", HALF._replace(part=10**9), 3 * HOUR, reached=3 * HOUR)
        assert raised.since == 27 * HOUR - 1
        assert [one.ended for one in account.tenures()] == [True, True, False]


def test_a_publication_that_is_paused_keeps_its_part_and_charges_nothing(path: Path) -> None:
    with open_account(path) as account:
        seat = account.join("a", HALF, 0)
        account.charge(seat, 0, HOUR)
        account.pause("a")
        for forbidden in (lambda: account.settle(seat, HOUR), lambda: account.charge(seat, HOUR, 2 * HOUR)):
            with pytest.raises(StoreError, match="paused"):
                forbidden()
        with pytest.raises(InputError, match="account resume"):
            account.join("a", HALF, 0)
        assert account_report(account).free == 10**9 // 2
        account.resume("a")
        with pytest.raises(InputError, match="not paused"):
            account.resume("a")
        publish(account, account.join("a", HALF, 0), 0)
        assert account_report(account).problems == []


def test_an_unsettled_charge_is_used_again_and_a_settled_one_never(path: Path) -> None:
    with open_account(path) as account:
        seat = account.join("a", HALF, 0)
        account.charge(seat, 0, HOUR)
        with pytest.raises(StateError, match="settled before"):
            account.charge(seat, HOUR, 2 * HOUR)
        seat = account.join("a", HALF, 0)  # the process died before its store had the step
        publish(account, seat, 0)
        with pytest.raises(StoreError, match="older than the account"):
            account.charge(seat, 0, HOUR)
        with pytest.raises(StoreError, match="--after-restore"):
            account.join("a", HALF, 0)
        seat = account.join("a", HALF, 0, after_restore=True)
        assert seat.since == HOUR  # both halves of a window: the old tenure's and the new one's
        assert account_report(account).problems == []


def test_a_store_that_waits_after_a_restore_may_be_started_again(path: Path) -> None:
    """Nothing was published since then, so that nothing more was lost."""
    with open_account(path) as account:
        publish(account, account.join("a", HALF, 0), 0)
        begun = account.join("a", HALF, 0, after_restore=True)
        again = account.join("a", HALF, 0)
        assert (again.tenure, again.since) == (begun.tenure, HOUR)
        publish(account, again, 1)
        with pytest.raises(StoreError, match="--after-restore"):
            account.join("a", HALF, 0)
        account.join("a", HALF._replace(part=10**8), 2 * HOUR, reached=2 * HOUR)
        with pytest.raises(StoreError, match="--after-restore"):  # another backup, though nothing was published since
            account.join("a", HALF._replace(part=10**8), 0, reached=HOUR)


def test_a_committed_step_is_settled_by_the_next_process(path: Path) -> None:
    with open_account(path) as account:
        before = account.join("a", HALF, 0)
        account.charge(before, 0, HOUR)
        account.join("a", HALF, 0, reached=HOUR)
        assert account.tenures()[0].settled_until == HOUR
        with pytest.raises(StoreError, match="taken its place"):
            account.settle(before, HOUR)


def test_a_store_that_the_account_does_not_know_is_refused(path: Path) -> None:
    with open_account(path) as account, pytest.raises(StoreError, match=r"does not know.*account restored"):
        account.join("a", HALF, 0, reached=HOUR)


def test_after_a_restore_the_last_window_is_fully_spent(path: Path) -> None:
    with open_account(path) as account:
        seat = account.join("a", HALF, 0)
        publish(account, seat, 0)
        account.restored(10 * HOUR)
        with pytest.raises(StoreError, match="not charge"):
            publish(account, seat, 1)
        again = account.join("a", HALF, 10 * HOUR, reached=10 * HOUR)
        assert again.since == 34 * HOUR - 1
        publish(account, again, 34)
        assert account_report(account).problems == []


def in_a_file(path: Path, seed: int) -> tuple[int, int]:
    create_file(path, row_of(seed))
    with open_account(path) as account:
        account.database.all("PRAGMA synchronous = OFF")
        return live_through(account, seed)


def test_no_window_is_over_epsilon_whatever_happens_in_any_order(tmp_path: Path) -> None:
    drawn, refused = map(sum, zip(*(in_a_file(tmp_path / str(seed), seed) for seed in range(6)), strict=True))
    assert drawn > 100
    assert refused > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 60))
def test_no_window_is_over_epsilon_in_many_lives(tmp_path: Path, seed: int) -> None:
    assert in_a_file(tmp_path / "people.account", seed)[0]


def test_processes_with_different_steps_share_it(path: Path) -> None:
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER, path, name, minutes], stdout=subprocess.PIPE, text=True)
        for name, minutes in (("a", "1"), ("b", "7"), ("c", "60"))
    ]
    said = sorted(racer.communicate(timeout=120)[0].strip() for racer in racers)
    assert said == ["published", "published", "refused"]
    with open_account(path, read_only=True) as account:
        found = account_report(account)
    assert (found.problems, found.entries) == ([], 2 * (2 + 2 * 25))
    assert found.worst == 800_000_000


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["account", *map(str, words)])
    return result.exit_code, result.output


def test_the_command_line_makes_shows_ends_and_refuses(tmp_path: Path) -> None:
    path = tmp_path / "people.account"
    made = ("create", path, "--population", "patients", "--epsilon", "1", "--window", "1d")
    assert run(*made)[0] == 0
    assert run(*made)[0] == 2
    with open_account(path) as account:
        publish(account, account.join("hourly", HALF, 0), 0)
    code, text = run("show", path)
    assert (code, "hourly, part 0.5 in 25 steps" in text, "no window was over epsilon" in text) == (0, True, True)
    assert "1970-01-02T00:59" in run("end", path, "hourly")[1]
    assert run("end", path, "hourly")[0] == 2
    assert run("restored", path, "--until", "1970-01-02T00:00Z")[0] == 0
    code, text = run("show", path, "--json")
    document = json.loads(text)
    assert (code, document["verified"], document["worst"]) == (0, True, 0.5)
    assert document["publications"][0]["comes_back"].startswith("1970-01-02T00:59")
    assert run("show", tmp_path / "nowhere")[0] == 2
    assert run("create", "mysql://host/people", *made[2:])[0] == 2


def test_a_window_over_epsilon_is_exit_code_four(path: Path) -> None:
    with open_account(path) as account:
        publish(account, account.join("a", HALF, 0), 0)
    forge_weight(path, 2 * 10**9)
    code, text = run("show", path)
    assert (code, "NOT KEPT" in text, "held 2, more than epsilon 1" in text) == (4, True, True)


@pytest.mark.parametrize(
    "damage",
    ["DELETE FROM entry WHERE number = 1", "UPDATE tenure SET weight = 1", "UPDATE account SET epsilon = 9000000000"],
)
def test_a_damaged_account_is_exit_code_five(path: Path, damage: str) -> None:
    with open_account(path) as account:
        publish(account, account.join("a", HALF, 0), 0)
    connection = sqlite3.connect(path)
    connection.execute(damage)
    connection.commit()
    connection.close()
    code, text = run("show", path)
    assert (code, "damaged" in text) == (5, True)


def test_no_account_is_made_beside_the_log_of_one_that_is_missing(path: Path) -> None:
    """SQLite would write the old charges into the new file, which is damaged then, and the charges are lost."""
    with open_account(path) as account:
        publish(account, account.join("a", HALF, 0), 0)
        path.rename(path.with_name("moved"))
        code, text = run("create", path, "--population", "patients", "--epsilon", "1", "--window", "1d")
        assert (code, "its log people.account-wal is there; put the account back" in text) == (5, True)
        path.with_name("moved").rename(path)
    assert "Verified from" in run("show", path)[1]


def test_an_account_that_is_replaced_is_noticed_before_anything_is_drawn(path: Path) -> None:
    with open_account(path) as account:
        seat = account.join("a", HALF, 0)
        create_account(path.with_name("new"), "patients", 1, "1d")
        path.with_name("new").replace(path)
        with pytest.raises(StoreError, match="replaced"):
            account.charge(seat, 0, HOUR)


def test_a_store_is_no_account_and_nobody_has_none(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("people")
    with pytest.raises(StoreError):
        open_account(tmp_path / "text")
    with pytest.raises(InputError, match="population"):
        create_account(tmp_path / "new", "", 1, "1d")
