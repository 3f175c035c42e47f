"""The page for people who must sign: what it says of a store and of an account, and that it is verified."""

from __future__ import annotations

from pathlib import Path

from account_lives import forge_weight
from click.testing import CliRunner

import eventide as ev
from eventide.cli import main
from eventide.live.accounts.account import create_account, open_account
from eventide.live.accounts.windows import Terms


def written(place: Path, out: Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["guarantee", str(place), "--out", str(out)])
    return result.exit_code, out.read_text(encoding="utf-8") if out.exists() else result.stderr


def test_a_store_is_described_and_its_promise_is_the_stored_one(tmp_path: Path) -> None:
    mechanism = ev.Uniform(epsilon=1, window=3, bins=["<north>", "south"])
    with ev.Publisher(
        ev.MemoryFeed([[3, 5]] * 4), mechanism, tmp_path / "city.db", population="<visitors>"
    ) as publisher:
        publisher.run()
        sentence = str(publisher.guarantee)
    code, page = written(tmp_path / "city.db", tmp_path / "page.html")
    assert code == 0
    assert sentence in page
    assert "in 2 bins, by the mechanism uniform" in page
    assert "the fullest held 1" in page
    assert "<visitors>" not in page


def test_an_account_is_described_and_one_that_is_over_says_so(tmp_path: Path) -> None:
    path, hour = tmp_path / "people.account", 3_600_000_000
    create_account(path, "patients", 1, "1d")
    with open_account(path) as account:
        seat = account.join("hourly", Terms(5 * 10**8, window=25, length=hour), 0)
        account.charge(seat, 0, hour)
    code, page = written(path, tmp_path / "page.html")
    assert (code, "Inside any 1 day, everything" in page, "hourly holds 0.5" in page) == (0, True, True)
    forge_weight(path, 2 * 10**9)
    code, page = written(path, tmp_path / "page.html")
    assert (code, "NOT KEPT" in page) == (4, True)


def test_nothing_there_is_bad_input(tmp_path: Path) -> None:
    assert written(tmp_path / "nowhere", tmp_path / "page.html")[0] == 2
    assert not (tmp_path / "page.html").exists()
