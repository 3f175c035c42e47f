"""People of slots: what counts of a person, and the bound on what one person changes, by exhaustive search."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np
import pytest

from eventide.errors import InputError, StoreError
from eventide.events.caps import blocks_met
from eventide.events.slot_tally import UserFirsts
from eventide.events.slot_times import SlotTimes
from eventide.events.slots import SlotPeople, slots_met
from eventide.events.statistic_names import parse_statistic
from eventide.events.timeline import Timeline

KEY = bytes(range(16))


def counted(rows, size, most, slot=0):
    """The numbers of a slot, of rows (user, bin, step)."""
    tally = UserFirsts(size, most, KEY)
    users, bins, steps = (np.array(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    tally.add(np.array(users, np.uint64), np.array(bins, np.int32), np.array(steps, np.int64))
    return tally.counts(slot)


@pytest.mark.parametrize(("bins", "most", "reached"), [(1, 1, 1), (2, 1, 2), (2, 2, 2), (3, 2, 3)])
def test_one_person_changes_the_slots_by_as_much_as_is_said_and_no_more(bins, most, reached):
    """All rows of one person in two slots of two steps; at steps of a window they are added or removed.

    steps   0 1 | 2 3
    window    1   2       meets two slots
    """
    kinds = [frozenset(some) for number in range(bins + 1) for some in itertools.combinations(range(bins), number)]

    @cache
    def slot(number, *steps):
        return counted([(7, bin_, step) for step, inside in enumerate(steps) for bin_ in inside], bins, most, number)

    worst = dict.fromkeys(itertools.product((1, 2, 3), (1, 2)), 0)  # by length of the window and slots that it meets
    for rows in itertools.product(kinds, repeat=4):
        for length in (1, 2, 3):
            for begin in range(5 - length):
                inside = range(begin, begin + length)
                ways = [[rows[at], *(kinds[1:] if not rows[at] else [kinds[0]])] for at in inside]
                for changed in itertools.product(*ways) if bins < 3 or length < 3 else ():
                    other = [*rows[:begin], *changed, *rows[begin + length :]]
                    apart = [
                        np.abs(slot(at, *rows[2 * at :][:2]) - slot(at, *other[2 * at :][:2])).sum() for at in (0, 1)
                    ]
                    met = sorted({at // 2 for at in inside})
                    assert not any(apart[at] for at in {0, 1} - set(met))
                    worst[length, len(met)] = max(worst[length, len(met)], sum(apart))
    most_of_all = SlotPeople("2h", "1h", bins).sensitivity(most)
    assert most_of_all == reached == worst[1, 1]
    assert all(apart <= met * most_of_all for (_, met), apart in worst.items())
    if bins < 3:
        assert worst[3, 2] == 2 * most_of_all == slots_met(3, "1h", "2h") * most_of_all


def test_the_bins_of_a_person_that_count_are_the_first_by_step():
    rows = [(7, 2, 1), (7, 0, 3), (7, 1, 2), (7, 0, 4), (8, 0, 9)]
    assert counted(rows, 3, 1).tolist() == [1, 0, 1]
    assert counted(rows, 3, 2).tolist() == [1, 1, 1]
    assert counted(rows, 3, 3).tolist() == [2, 1, 1]


def test_at_the_same_step_a_hash_chooses_and_every_bin_alike():
    rows = [(user, bin_, 5) for user in range(4_000) for bin_ in range(4)]
    found = counted(rows, 4, 1)
    assert found.sum() == 4_000
    assert np.abs(found - 1_000).max() < 6 * np.sqrt(4_000 * 3 / 16)
    assert counted(rows, 4, 1, slot=1).tolist() != found.tolist()


def test_order_batches_and_bytes_change_nothing():
    chance = random.Random(3)
    rows = [(chance.randrange(30), chance.randrange(5), chance.randrange(24)) for _ in range(400)]
    plain = UserFirsts(5, 2, KEY)
    for row in rows:
        plain.add(*(np.array([cell], kind) for cell, kind in zip(row, ("u8", "i4", "i8"), strict=True)))
    expected = counted(rows, 5, 2)
    assert plain.counts(0).tolist() == expected.tolist()
    assert plain.left_out(expected) == len({row[:2] for row in rows}) - expected.sum() > 0
    chance.shuffle(rows)
    joined = UserFirsts(5, 2, KEY)
    for part in (rows[:100], rows[100:]):
        other = UserFirsts(5, 2, KEY)
        other.add(
            *(np.array(column, kind) for column, kind in zip(zip(*part, strict=True), ("u8", "i4", "i8"), strict=True))
        )
        joined.join(other.to_bytes())
    assert joined.counts(0).tolist() == expected.tolist()
    with pytest.raises(StoreError, match="do not fit the bins"):
        UserFirsts(4, 2, KEY).join(plain.to_bytes())


def test_windows_meet_as_many_slots_as_blocks_without_an_offset():
    for window, slot in [*itertools.product(range(1, 60), (2, 3, 7)), *itertools.product((1, 2, 25, 26, 168), (24,))]:
        assert slots_met(window, "1h", f"{slot}h") == blocks_met(slot, window)
    assert [slots_met(days, "1d", "7d", zone="Europe/Berlin") for days in (1, 7, 8, 9)] == [1, 2, 2, 3]


@pytest.mark.parametrize(
    ("zone", "step"), [("Europe/Berlin", 60), ("Australia/Lord_Howe", 60), ("America/St_Johns", 30)]
)
@pytest.mark.parametrize("hours", [1, 2, 23, 24, 25, 26, 49, 167, 168, 169])
def test_days_of_a_zone_are_met_as_often_as_its_clocks_let_them_be(zone, step, hours):
    """Every window of a year, by hand."""
    window, start = hours * 60 // step, "2026-01-01"
    days = Timeline(start, "1d", zone)
    begins = days.start + np.arange(370 * 24 * 60 // step) * step * 60_000_000
    ends = begins + window * step * 60_000_000 - 1
    met = int((days.index(ends) - days.index(begins)).max()) + 1
    assert slots_met(window, f"{step}min", "1d", start, zone) == met


@pytest.mark.parametrize(
    ("zone", "step"), [("Europe/Berlin", 60), ("Australia/Lord_Howe", 60), ("America/St_Johns", 30)]
)
def test_steps_lie_in_the_day_in_which_they_begin(zone, step):
    """Every step of a year, by hand; a step may begin in one day and end in another where clocks change."""
    days, times = Timeline("2026-01-01", "1d", zone), SlotTimes("1d", f"{step}min", "2026-01-01", zone)
    steps = np.arange(370 * 24 * 60 // step)
    day_of = days.index(days.start + steps * step * 60_000_000)
    borders = np.flatnonzero(np.diff(day_of)).tolist()
    near = sorted({at + more for at in borders[60:330] for more in (-1, 0, 1, 2)})
    assert [times.slot_of(at) for at in near[::9]] == day_of[near[::9]].tolist()
    assert [at for at in near if times.ends(at)] == borders[60:330]
    assert [at - 1 for at in near if times.begins(at)] == borders[60:330]
    for window in (1, 2, 24, 25, 48, 49, 168):
        met = int((day_of[window - 1 :] - day_of[: len(day_of) - window + 1]).max()) + 1
        assert times.met(window) == met


def test_slots_of_equal_length_are_met_as_blocks_are():
    for window, slot in itertools.product(range(1, 30), (2, 5)):
        assert SlotTimes(f"{slot}s", "1s").met(window) == blocks_met(slot, window)
    assert SlotTimes("7d", "1d", zone="Europe/Berlin").met(8) == 2


def test_a_slot_is_several_steps():
    for slot in ("90min", "1h", "30min"):
        with pytest.raises(InputError, match="no whole number of steps of 1h, or only one"):
            slots_met(24, "1h", slot)


def test_its_step_and_sensitivity_have_to_be_known():
    with pytest.raises(InputError, match="people/1d needs the length of a step"):
        parse_statistic("people/1d")
    made = parse_statistic("people/1d/1h")
    assert (made.name, made.described()) == ("people/1d", {"statistic": "people/1d/1h"})
    assert [made.for_bins(bins).sensitivity(2) for bins in (1, 3, 9)] == [1, 3, 4]


def test_the_guarantee_says_how_many_bins_count():
    told = [SlotPeople("1d", "1h").assumptions(most)[-1].partition(", and ")[2] for most in (1, 4)]
    assert told == ["in one bin only: the first", "in at most 4 bins: the first 4"]


def test_events_know_their_step_whatever_the_clocks_do():
    days = Timeline("2024-03-31", "1d", "Europe/Berlin")  # of 23 hours
    moments = [datetime(2024, 3, 30, 23, tzinfo=UTC) + timedelta(hours=hour, minutes=5) for hour in range(25)]
    times = np.array([round(moment.timestamp() * 1e6) for moment in moments])
    assert SlotPeople("1d", "1h").values_of(times, None, days).tolist() == list(range(25))
    assert days.index(times).tolist() == [0] * 23 + [1] * 2
