"""kill -9 of publishers that draw from one account: no window is over, no step is out twice, and nobody is stuck."""

from __future__ import annotations

import random

import pytest
from publisher_lives import KILLED, check, new_life

from eventide.live.accounts.account_report import account_report
from eventide.live.accounts.open_account import create_account, open_account
from eventide.live.faults import POINTS

DAYS = 4
FILE = {"start": "2024-03-01T00:00:00+00:00", "until": f"2024-03-{1 + DAYS:02}T00:00:00+00:00", "user": "user"}
ELSEWHERE = ("keep", "migrati", "spark", "forgetting", "naming", "group")  # other feeds, stores and verbs
ON_THE_WAY = [point for point in POINTS if not any(word in point for word in ELSEWHERE)]


@pytest.fixture
def two_lives(tmp_path):
    """Publishers of the same events with different steps, each with half of an account."""
    chance = random.Random(1)
    minutes = [(day, hour, chance.randrange(60)) for day in range(DAYS) for hour in range(24)]
    rows = [f"2024-03-{1 + day:02}T{hour:02}:{minute:02}:00+00:00,user 1,north" for day, hour, minute in minutes]
    (tmp_path / "events.csv").write_text("\n".join(["timestamp,user,bin", *rows]) + "\n")
    create_account(tmp_path / "people.account", "everybody", 2, "6h")
    made = []
    for step in ("1h", "2h"):
        life, _ = new_life(tmp_path / step, tmp_path / "events.csv", noise="secure", step=step, **FILE)
        made.append(life | {"account": str(tmp_path / "people.account")})
    return made


def check_both(two_lives, folder):
    for life, step, steps in zip(two_lives, ("1h", "2h"), (DAYS * 24, DAYS * 12), strict=True):
        check(life, steps, folder / step)
    with open_account(folder / "people.account", read_only=True) as account:
        found = account_report(account)
    assert found.problems == []
    assert found.worst == 2 * 10**9
    assert [tenure.settled for tenure in found.tenures] == [True, True]
    assert len({tenure.charged_until for tenure in found.tenures}) == 1


def test_killed_at_every_point_by_turns(lives, two_lives, tmp_path):
    for number, point in enumerate(ON_THE_WAY):
        life = two_lives[number % 2]
        assert lives(life, fault=point) == KILLED, point
    assert [lives(life) for life in two_lives] == [0, 0]
    check_both(two_lives, tmp_path)


@pytest.mark.slow
def test_killed_again_and_again_between_charge_and_settle(lives, two_lives, tmp_path):
    for point in ("after-charge", "after-charge", "after-draw", "after-commit", "after-commit", "after-settle"):
        assert lives(two_lives[0], fault=point) == KILLED
    assert [lives(life) for life in two_lives] == [0, 0]
    check_both(two_lives, tmp_path)


@pytest.mark.slow
def test_killed_at_any_moment(lives, two_lives, tmp_path):
    chance = random.Random(7)
    moments = [0.3 * chance.random() ** 4 for _ in range(20)]  # many early ones: a quick machine is done in no time
    assert KILLED in [lives(chance.choice(two_lives), kill_after=moment) for moment in moments]
    assert [lives(life) for life in two_lives] == [0, 0]
    check_both(two_lives, tmp_path)
