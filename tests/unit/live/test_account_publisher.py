"""Publishers that draw from one account: what each is refused, when it waits, and that nothing is seen unsettled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from command_words import with_last

import eventide as ev
from eventide.cli import main
from eventide.errors import EventideError, InputError, StoreError
from eventide.live.accounts.account import Account, AccountFull
from eventide.live.accounts.account_report import AccountReport, account_report
from eventide.live.accounts.open_account import create_account, open_account
from eventide.live.publisher.publisher import Publisher

HOURS = 60
EVENTS = "timestamp,user,bin\n" + "".join(
    f"2024-03-{1 + hour // 24:02}T{hour % 24:02}:10,user {hour % 5},north\n" for hour in range(HOURS)
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "events.csv").write_text(EVENTS)
    create_account(tmp_path / "people.account", "patients", 1, "6h")
    return tmp_path


def publisher(
    place: Path, store: str, epsilon: float = 0.5, window: int = 7, until: str = "02", **how: object
) -> Publisher:
    options = {"step": "1h", "account": place / "people.account", "population": "patients"} | how
    bound = options.pop("window_sensitivity", None)
    mechanism = ev.Uniform(epsilon=epsilon, window=window, bins=["north", "south"], window_sensitivity=bound)
    return ev.Publisher(
        place / "events.csv",
        mechanism,
        place / store,
        [place / f"{store}.jsonl"],
        user="user",
        start="2024-03-01",
        until=f"2024-03-{until}",
        **options,
    )


def report(place: Path) -> AccountReport:
    with open_account(place / "people.account", read_only=True) as account:
        return account_report(account)


def first_fresh(place: Path, store: str) -> int:
    lines = map(json.loads, (place / f"{store}.jsonl").read_text().splitlines())
    return next(line["step"] for line in lines if line["fresh"])


def test_publications_with_different_steps_share_and_a_third_is_refused_before_anything(place: Path) -> None:
    with publisher(place, "hourly.db") as hourly, publisher(place, "long.db", window=4, step="2h") as longer:
        assert "Together with everything else" in str(hourly.guarantee)
        hourly.run()
        longer.run()
        with pytest.raises(AccountFull):
            publisher(place, "third.db", epsilon=0.1)
    found = report(place)
    assert (found.problems, found.worst, len(found.tenures)) == ([], 10**9, 2)
    assert all(tenure.settled for tenure in found.tenures)
    assert not (place / "third.db.jsonl").exists()


def test_a_publication_that_ended_is_waited_for(place: Path) -> None:
    with publisher(place, "first.db", epsilon=1) as first:
        first.run(until=3)
    ended = CliRunner().invoke(main, ["account", "end", str(place / "people.account"), str(place / "first.db")])
    assert "2024-03-01T08:59:59.999999" in ended.output
    with publisher(place, "second.db", epsilon=1) as second:
        second.run()
    assert first_fresh(place, "second.db") == 3 + 6
    assert report(place).problems == []


def test_a_capped_publication_waits_for_its_block_as_well(place: Path) -> None:
    with publisher(place, "first.db", epsilon=1) as first:
        first.run(until=3)
    with open_account(place / "people.account") as account:
        account.end(account.tenures()[0].publication)
    bound = 2 * 3  # 2 kappa n, n = ceil((7 - 1) / 4) + 1
    with publisher(place, "second.db", epsilon=1, cap="1/4", window_sensitivity=bound) as second:
        second.run()
    assert first_fresh(place, "second.db") == 3 + 6 + 4 - 1


def test_a_store_that_forgot_what_was_settled_is_refused_and_goes_on_after_a_window(place: Path) -> None:
    with publisher(place, "hourly.db") as hourly:
        hourly.run(until=3)
    backup = (place / "hourly.db").read_bytes()
    with publisher(place, "hourly.db") as hourly:
        hourly.run(until=5)
    for name in ("hourly.db.lock", "hourly.db.jsonl"):
        (place / name).unlink()
    (place / "hourly.db").write_bytes(backup)
    with pytest.raises(StoreError, match="--after-restore"):
        publisher(place, "hourly.db")
    with publisher(place, "hourly.db", after_restore=True) as hourly:
        hourly.run()
    found = report(place)
    assert found.problems == []
    assert [tenure.ended for tenure in found.tenures] == [True, False]


def test_an_account_that_is_a_backup_is_noticed_and_its_last_window_waited_for(place: Path) -> None:
    with publisher(place, "hourly.db") as hourly:
        hourly.run(until=2)
    backup = (place / "people.account").read_bytes()
    with publisher(place, "hourly.db") as hourly:
        hourly.run(until=4)
    (place / "people.account").write_bytes(backup)
    with pytest.raises(StoreError, match=r"account restored .* --until 2024-03-01T04:00"):
        publisher(place, "hourly.db")
    command = ["account", "restored", str(place / "people.account"), "--until", "2024-03-01T04:00Z"]
    assert CliRunner().invoke(main, command).exit_code == 0
    with pytest.raises(InputError, match="--new-epoch"):
        publisher(place, "hourly.db")
    with publisher(place, "hourly.db", new_epoch=True) as hourly:
        hourly.run()
    lines = map(json.loads, (place / "hourly.db.jsonl").read_text().splitlines())
    assert [line["step"] for line in lines if not line["fresh"]] == [*range(4, 10)]  # 6 hours
    assert report(place).problems == []


def test_a_second_process_is_refused_and_the_first_one_goes_on(place: Path) -> None:
    with publisher(place, "hourly.db") as hourly:
        hourly.run(until=2)
        with pytest.raises(StoreError, match="being written"):
            publisher(place, "hourly.db")
        hourly.run(until=4)
        with publisher(place, "hourly.db", take_over=True) as other:
            with pytest.raises(StoreError, match="not charge"):
                hourly.run(until=5)
            other.run(until=6)
            hourly.close_sinks()
    assert report(place).problems == []


def test_nobody_sees_a_step_that_is_not_settled(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Account, seat: object, until: int) -> None:
        raise StoreError("away")

    with publisher(place, "hourly.db") as hourly:
        hourly.run(until=2)
    seen = (place / "hourly.db.jsonl").read_text()
    with monkeypatch.context() as changed:
        changed.setattr(Account, "settle", refuse)
        with pytest.raises(StoreError, match="away"), publisher(place, "hourly.db") as hourly:
            hourly.run(until=3)
    assert (place / "hourly.db.jsonl").read_text() == seen
    with publisher(place, "hourly.db") as hourly:
        hourly.run(until=3)
    assert (place / "hourly.db.jsonl").read_text().count("\n") == 3
    assert report(place).problems == []


def test_a_store_draws_from_one_account_for_ever(place: Path) -> None:
    with publisher(place, "hourly.db") as hourly:
        hourly.run(until=2)
    with publisher(place, "alone.db", account=None) as alone:
        alone.run(until=2)
    with pytest.raises(InputError, match="account"):
        publisher(place, "hourly.db", account=None, new_epoch=True)
    with pytest.raises(StoreError, match="used without it"):
        publisher(place, "alone.db", new_epoch=True)
    with open_account(place / "people.account") as account:
        account.restored(account.tenures()[0].charged_until or 0)  # which does not help it
    with pytest.raises(InputError, match="account"):
        publisher(place, "alone.db", new_epoch=True)


def test_rows_that_are_refused_give_the_part_back(place: Path) -> None:
    (place / "events.csv").write_text("timestamp,user,bin\n" + "never,user 1,north\n" * 9)
    with pytest.raises(EventideError), publisher(place, "hourly.db", epsilon=1) as hourly:
        hourly.run()
    assert report(place).free == 10**9


@pytest.mark.parametrize("words", [[], ["--dry-run"]])
def test_the_command_line_says_what_is_promised_together(
    place: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(place)
    (place / "bins.txt").write_text("north\nsouth\n")
    line = (
        "publish events.csv --step 1h --user user --bins bins.txt --mechanism uniform --start 2024-03-01 --out o.jsonl"
    )
    rest = "--epsilon 1 --account people.account --window 7 --population patients --store a.db --until 2024-03-02"
    result = CliRunner().invoke(main, with_last(*line.split(), *rest.split(), *words))
    assert result.exit_code == 0
    assert "account of patients, it is at most epsilon 1 inside any 6 hours" in result.stderr
    assert bool(report(place).entries) == (not words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--store", "a.db"], "give --population 'patients'"),
        (["--population", "patients"], "--store"),
        (
            ["--population", "patients", "--store", "a.db", "--window", "6"],
            "A window of 7 steps is held once. Choose that window or a smaller epsilon\n",
        ),
    ],
)
def test_the_command_line_refuses_before_anything_is_made(
    place: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    monkeypatch.chdir(place)
    line = (
        "publish events.csv --step 1h --user user --bins bins.txt --mechanism uniform --start 2024-03-01 --out o.jsonl"
    )
    (place / "bins.txt").write_text("north\nsouth\n")
    rest = ["--epsilon", "1", "--account", "people.account", "--window", "7"]
    result = CliRunner().invoke(main, with_last(*line.split(), *rest, *words))
    assert (result.exit_code in (2, 3), sentence in result.stderr) == (True, True), result.stderr
    assert not (place / "a.db").exists()
    assert report(place).entries == 0
