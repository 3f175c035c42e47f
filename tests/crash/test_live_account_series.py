"""Six publishers at once, on an account in PostgreSQL and one in a file, killed again and again at any moment.

The long series: pytest -m "database and nightly" tests/crash/test_live_account_series.py
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from publisher_lives import KILLED, check, lives_of_a_process, new_life

from eventide.live.accounts.account_report import account_report
from eventide.live.accounts.open_account import create_account, open_account

pytestmark = pytest.mark.database

IN_POSTGRESQL, IN_A_FILE = (
    (6, 10, 15, 20),
    (5, 12),
)  # minutes of a step; half an hour meets at most 7

ON_THE_WAY = ("after-charge", "after-draw", "inside-transaction", "after-commit", "after-settle", "half-line")


class Series(NamedTuple):
    """How often publishers are killed, and how much there is for them to publish."""

    kills: int
    days: int


def killed_often(life, killed, kills, seed):
    """Live until all publishers together were killed so often, then to the end; `killed` gets a note of each time."""
    chance = random.Random(seed)
    with lives_of_a_process() as lives:
        while len(killed) < kills:
            at_a_point = {"fault": f"{chance.choice(ON_THE_WAY)}:{chance.randint(1, 3)}"}
            death = chance.choice([at_a_point, {"kill_after": chance.uniform(0.01, 0.3)}])
            code = lives(life, **death)
            if code == 0:
                return
            assert code == KILLED
            killed.append(death)
        assert lives(life) == 0


def lives_in(folder, account, minutes, days):
    """Publishers of the same events with steps of so many minutes, with epsilon 1 each of an account."""
    create_account(account, "everybody", len(minutes), "30min")
    cut = {"start": "2024-03-01T00:00:00+00:00", "until": f"2024-03-{1 + days:02}T00:00:00+00:00", "user": "user"}
    for length in minutes:
        life, _ = new_life(
            folder / str(length), folder / "events.csv", mechanism="uniform", noise="secure", step=f"{length}min", **cut
        )
        yield life | {"account": str(account)}


@pytest.mark.parametrize(
    "series",
    [
        pytest.param(Series(kills=20, days=1), id="20 kills", marks=pytest.mark.slow),
        pytest.param(Series(kills=500, days=8), id="500 kills", marks=pytest.mark.nightly),
    ],
)
def test_no_window_is_over_no_step_is_out_twice_and_nobody_is_stuck(postgres, tmp_path, series):
    hours = [(day, hour) for day in range(series.days) for hour in range(24)]
    rows = [f"2024-03-{1 + day:02}T{hour:02}:{hour:02}:00+00:00,user {hour % 5},north" for day, hour in hours]
    (tmp_path / "events.csv").write_text("\n".join(["timestamp,user,bin", *rows]) + "\n")
    accounts = {f"{postgres.address}#people": IN_POSTGRESQL, str(tmp_path / "people.account"): IN_A_FILE}
    lives = [
        life for account, minutes in accounts.items() for life in lives_in(tmp_path, account, minutes, series.days)
    ]
    killed = []
    with ThreadPoolExecutor(len(lives)) as together:
        ends = [together.submit(killed_often, life, killed, series.kills, seed) for seed, life in enumerate(lives)]
    for end in ends:
        end.result()
    assert len(killed) >= series.kills
    for life, minutes in zip(lives, (*IN_POSTGRESQL, *IN_A_FILE), strict=True):
        check(life, series.days * 24 * 60 // minutes, tmp_path / str(minutes))
    for account, minutes in accounts.items():
        with open_account(account, read_only=True) as opened:
            found = account_report(opened)
        assert found.problems == []
        assert found.worst == len(minutes) * 10**9
        assert [tenure.settled for tenure in found.tenures] == [True] * len(minutes)
