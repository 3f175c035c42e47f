"""What one person changes in sums, by trying all rows of small cases; and sums of people who try to be many."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from eventide.errors import StoreError
from eventide.events.cap_memory import CapMemory
from eventide.events.caps import Cap
from eventide.events.statistic_names import parse_statistic
from eventide.events.statistics import EVENTS

SUMS = parse_statistic("sum:fare", "fare=1,4,1")
KEYS = [bytes([number]) * 16 for number in range(8)]
BINS, LOW, HIGH = 2, 1, 4
CELLS = [(bin_, value) for bin_ in range(BINS) for value in (LOW, 2, HIGH)]
ROWS = [row for length in range(4) for row in itertools.combinations_with_replacement(CELLS, length)]
ANNA, BEN = np.uint64(11), np.uint64(2**63 + 5)


def tally_of(rows, most, key, statistic=SUMS):
    """A tally of (user, events), each event a bin and a value."""
    tally = statistic.tally(BINS, most, key, users=True)
    for user, events in rows:
        columns = [np.array([event[place] for event in events], kind) for place, kind in ((0, np.int32), (1, np.int64))]
        tally.add(np.full(len(events), user), *columns[: 1 + (statistic is SUMS)])
    return tally


def sums_of(rows, most, key):
    return tally_of(rows, most, key).counts(7)


@pytest.mark.parametrize("most", [1, 2])
def test_rows_and_values_move_sums_by_no_more_than_is_claimed(most):
    of_rows = of_values = of_one = 0
    for key in KEYS:
        sums = {row: sums_of([(ANNA, row)], most, key) for row in ROWS}
        of_rows = max(of_rows, *(found.sum() for found in sums.values()))
        alike = {}
        for row in ROWS:
            alike.setdefault(tuple(bin_ for bin_, _ in row), []).append(row)
        for one, other in (pair for rows in alike.values() for pair in itertools.combinations(rows, 2)):
            apart = np.abs(sums[one] - sums[other]).sum()
            of_values = max(of_values, apart)
            changed = list((Counter(one) - Counter(other)).elements()), list((Counter(other) - Counter(one)).elements())
            if len(changed[0]) == 1:
                of_one = max(of_one, apart)
                assert apart <= abs(changed[0][0][1] - changed[1][0][1])
    assert of_rows == SUMS.sensitivity(most) == most * HIGH
    assert of_values == most * (HIGH - LOW)
    assert of_one == HIGH - LOW


def test_the_same_events_count_as_where_events_are_counted():
    for key, row in itertools.product(KEYS, ROWS):
        ones = tuple((bin_, LOW) for bin_, _ in row)
        counted = tally_of([(ANNA, row)], 1, key, EVENTS).counts(7)
        assert sums_of([(ANNA, ones)], 1, key).tolist() == counted.tolist()


def test_batches_orders_and_bytes_come_to_the_same():
    rows = [(ANNA, ((0, 4),)), (BEN, ((1, 2),)), (ANNA, ((0, 1), (1, 4))), (BEN, ((1, 2), (0, 3)))]
    wanted = tally_of(rows, 2, KEYS[0])
    for order in itertools.permutations(rows):
        joined = tally_of(order[:2], 2, KEYS[0])
        joined.join(tally_of(order[2:], 2, KEYS[0]).to_bytes())
        assert joined.to_bytes() == wanted.to_bytes()
        assert joined.counts(3).tolist() == wanted.counts(3).tolist()
        assert joined.left_out(joined.counts(3)) == 2


def test_very_many_rows_of_one_person_add_what_one_may():
    many = 100_000
    found = []
    for key in KEYS:
        tally = tally_of([(BEN, ((0, 2),))], 1, key)
        values = np.arange(many) % 3 + 2
        tally.add(np.full(many, ANNA), np.zeros(many, np.int32), values)
        found.append(int(tally.counts(7)[0]) - 2)
        assert len(tally.to_bytes()) < 2000
    assert set(found) == {2, 3, 4}  # any of them, not the smallest alone


def test_events_without_users_are_added_up():
    tally = SUMS.tally(BINS, 1, KEYS[0], users=False)
    tally.add(None, np.array([0, 1, 0]), np.array([4, 2, 1]))
    assert tally.counts(0).tolist() == [5, 2]


def test_values_that_cannot_be_are_no_tally_of_these():
    other = parse_statistic("sum:fare", "fare=1,9,1").tally(BINS, 1, KEYS[0], users=True)
    other.add(np.array([ANNA]), np.zeros(1, np.int32), np.array([9]))
    with pytest.raises(StoreError, match="do not fit"):
        tally_of([], 1, KEYS[0]).join(other.to_bytes())
    with pytest.raises(StoreError):
        tally_of([], 1, KEYS[0]).join(tally_of([(ANNA, ((0, 1),))], 1, KEYS[0], EVENTS).to_bytes())


@pytest.mark.parametrize(("most", "cap"), [(1, 1), (1, 2), (2, 2)])
def test_under_a_cap_nobody_changes_more_than_the_window_sensitivity(most, cap):
    """Every stream of four steps, and all neighbours of it inside a window of two: some rows here, some there."""
    block, window, steps = 3, 2, 4
    rows = [(), ((0, HIGH), (0, HIGH)), ((1, HIGH),), ((0, LOW), (1, HIGH), (1, 2))]
    limit, largest = Cap(cap, block), 0
    for key in KEYS[:2]:
        streams = {}
        for stream in itertools.product(rows, repeat=steps):
            memory = CapMemory(limit, key)
            tallies = [tally_of([(ANNA, row)], most, key) for row in stream]
            streams[stream] = np.array([tally.capped_counts(step, memory)[0] for step, tally in enumerate(tallies)])
        for stream, begin, sides in itertools.product(
            streams, range(steps - window + 1), itertools.product("=+-", repeat=window)
        ):
            here, there = list(stream), list(stream)
            for step, side in enumerate(sides, begin):
                if side != "=":
                    (here if side == "-" else there)[step] = ()
            apart = np.abs(streams[tuple(here)] - streams[tuple(there)])
            assert apart.sum(axis=1).max() <= SUMS.sensitivity(most)
            largest = max(largest, int(apart.sum()))
    bound = SUMS.window_sensitivity(limit, window, most)
    assert bound - HIGH <= largest <= bound
