"""The sweep over windows against a dense oracle: every window, every moment, one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from eventide.events.timeline import Timeline
from eventide.events.zones import DAY
from eventide.live.accounts.store_place import MOST_SHIFT
from eventide.live.accounts.windows import Holding, Terms, free_from, fullest, load

HORIZON = range(-40, 80)  # holdings lie well inside, so that every window that meets one begins here


def dense(holdings: list[Holding], window: int, begin: int) -> int:
    """What one window holds, moment by moment."""
    moments = range(begin, begin + window)
    return sum(
        weight
        for first, end, weight in holdings
        if any(first <= moment and (end is None or moment < end) for moment in moments)
    )


def some_holdings(chance: random.Random) -> list[Holding]:
    holdings = []
    for _ in range(chance.randint(0, 5)):
        begin = chance.randint(0, 30)
        end = None if chance.random() < 0.2 else begin + chance.randint(1, 12)
        holdings.append(Holding(begin, end, chance.randint(1, 5)))
    return holdings


@pytest.mark.parametrize("seed", range(40))
def test_every_window_holds_what_a_dense_count_finds(seed: int) -> None:
    chance = random.Random(seed)
    holdings, window = some_holdings(chance), chance.randint(1, 9)
    found = load(holdings, window)
    for begin in HORIZON:
        swept = next((weight for first, weight in reversed(found) if first <= begin), 0)
        assert swept == dense(holdings, window, begin)
    assert fullest(holdings, window) == max(dense(holdings, window, begin) for begin in HORIZON)


@pytest.mark.parametrize("seed", range(40))
def test_the_first_free_moment_is_the_first(seed: int) -> None:
    chance = random.Random(seed)
    holdings, window = some_holdings(chance), chance.randint(1, 9)
    weight, epsilon, wanted = chance.randint(1, 6), 10, chance.randint(0, 20)

    def fits(begin: int) -> bool:
        new = Holding(begin, None, weight)
        met = [first for first in HORIZON if first + window > begin]
        return all(dense([*holdings, new], window, first) <= epsilon for first in met)

    slow = next((begin for begin in range(wanted, 60) if fits(begin)), None)
    assert free_from(holdings, window, epsilon - weight, wanted) == slow


@pytest.mark.parametrize(("window", "length"), [(7, 1), (7, 2), (6, 2), (5, 7), (1, 1), (1, 5)])
def test_no_window_meets_more_steps_than_the_terms_say(window: int, length: int) -> None:
    met = [
        sum(step * length < begin + window and begin < (step + 1) * length for step in range(-20, 40))
        for begin in range(length)
    ]
    assert max(met) <= Terms(1, 1, length).steps_met(window)


def test_a_window_of_one_step_more_counts_its_part_once() -> None:
    hour, week = 3_600, 7 * 24 * 3_600
    assert Terms(10, window=169, length=hour).weight(week) == 10
    assert Terms(10, window=168, length=hour).weight(week) == 20
    assert Terms(10, window=24, length=hour).weight(week) == 80


@pytest.mark.parametrize(
    ("start", "zone"), [("2024-03-25", "Europe/Berlin"), ("2011-12-24", "Pacific/Apia"), ("2024-10-20", "UTC")]
)
def test_days_of_a_calendar_are_met_no_more_often_either(start: str, zone: str) -> None:
    days, week = Timeline(start, "1d", zone), 7 * DAY
    terms = Terms(1, 1, days.length, shift=0 if zone == "UTC" else MOST_SHIFT)
    begins = [days.begin(step) + shift for step in range(12) for shift in (-1, 0, 1)]
    first, last = (days.index(np.array(moments)) for moments in (begins, [begin + week - 1 for begin in begins]))
    assert 8 <= (last - first + 1).max() <= terms.steps_met(week)
