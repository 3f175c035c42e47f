"""What one person changes in each statistic, by trying everything that somebody can do in small cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from eventide.errors import InputError
from eventide.events.cap_memory import CapMemory
from eventide.events.caps import Cap
from eventide.events.statistic_names import STATISTICS, parse_statistic

PEOPLE = parse_statistic("people")
KEYS = [bytes([number]) * 16 for number in range(12)]
BINS = 3
ROWS = [row for length in range(5) for row in itertools.combinations_with_replacement(range(BINS), length)]
ANNA, BEN = np.uint64(11), np.uint64(2**63 + 5)


def tally_of(rows, most, key, statistic=PEOPLE):
    """A tally of (user, bins of their events)."""
    tally = statistic.tally(BINS, most, key, users=True)
    for user, bins in rows:
        tally.add(np.full(len(bins), user), np.array(bins, np.int32))
    return tally


def counts_of(rows, most, key, step=7):
    return tally_of(rows, most, key).counts(step)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_row_that_is_added_moves_people_by_its_bins_up_to_the_sensitivity(most):
    largest = 0
    for key in KEYS[:4]:
        for ours, theirs in itertools.product(ROWS, [(), (0,), (1, 1, 2)]):
            without = counts_of([(BEN, theirs)], most, key)
            change = counts_of([(BEN, theirs), (ANNA, ours)], most, key) - without
            assert change.min() >= 0
            assert change.max() <= 1
            assert set(np.flatnonzero(change)) <= set(ours)
            assert change.sum() == min(len(set(ours)), most)
            largest = max(largest, change.sum())
    assert largest == PEOPLE.sensitivity(most) == most


def test_repeating_an_event_changes_nothing_but_the_bin_that_counts_is_left_to_chance():
    chosen = set()
    for key in KEYS:
        once = counts_of([(ANNA, (0, 1))], 1, key)
        assert once.tolist() == counts_of([(ANNA, (0,) * 5000 + (1,))], 1, key).tolist()
        chosen.add(tuple(once))
    assert chosen == {(1, 0, 0), (0, 1, 0)}


def test_batches_orders_and_bytes_come_to_the_same():
    rows = [(ANNA, (0,)), (BEN, (1,)), (ANNA, (2, 0)), (BEN, (1, 2)), (ANNA, (0,))]
    wanted = tally_of(rows, 2, KEYS[0])
    for order in itertools.permutations(rows):
        joined = tally_of(order[:2], 2, KEYS[0])
        joined.join(tally_of(order[2:], 2, KEYS[0]).to_bytes())
        assert joined.to_bytes() == wanted.to_bytes()
        assert joined.counts(3).tolist() == wanted.counts(3).tolist() == [1, 1, 2]


def test_only_bins_beyond_the_bound_are_left_out():
    tally = tally_of([(ANNA, (0, 0, 0)), (BEN, (0, 1, 1, 2))], 2, KEYS[0])
    assert tally.left_out(tally.counts(0)) == 1


@pytest.mark.parametrize(("most", "cap"), [(1, 1), (1, 2), (2, 2), (2, 3)])
def test_under_a_cap_nobody_changes_more_than_the_window_sensitivity(most, cap):
    """Every stream of four steps, and all neighbours of it inside a window of two: some rows here, some there."""
    block, window, steps = 3, 2, 4
    rows = [(), (0, 0), (1,), (0, 1, 1)]
    limit = Cap(cap, block)
    largest = 0
    for key in KEYS[:2]:  # of which each shifts the blocks of a person in another way
        streams = {}
        for stream in itertools.product(rows, repeat=steps):
            memory = CapMemory(limit, key)
            tallies = [tally_of([(ANNA, row)], most, key) for row in stream]
            streams[stream] = np.array([tally.capped_counts(step, memory)[0] for step, tally in enumerate(tallies)])
        for stream, begin in itertools.product(streams, range(steps - window + 1)):
            inside = range(begin, begin + window)
            for sides in itertools.product("=+-", repeat=window):
                here, there = list(stream), list(stream)
                for step, side in zip(inside, sides, strict=True):
                    if side != "=":
                        (here if side == "-" else there)[step] = ()
                apart = np.abs(streams[tuple(here)] - streams[tuple(there)])
                assert apart.sum(axis=1).max() <= most
                largest = max(largest, int(apart.sum()))
    bound = limit.window_sensitivity(window, most)
    assert largest <= bound
    assert largest >= bound - 1


def test_people_of_bins_add_up_only_where_a_person_is_in_one():
    assert PEOPLE.adds_up(1)
    assert not PEOPLE.adds_up(2)
    assert STATISTICS["events"].adds_up(2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mean:fare", "mean:fare needs the range of fare"),
        ("persons", "'persons' is no statistic; choose events, people, people/DURATION, sum:COLUMN, mean:COLUMN or"),
        ("median:fare", "'median:fare' is no statistic; did you mean quantiles:fare?"),
        ("avg:fare", "'avg:fare' is no statistic; did you mean mean:fare?"),
    ],
)
def test_what_is_not_there_is_refused(text, says):
    with pytest.raises(InputError, match=says):
        parse_statistic(text)


@pytest.mark.parametrize("text", ["median:fare", "mean:"])
def test_an_unknown_name_is_named_before_its_range(text):
    with pytest.raises(InputError, match=f"'{text}' is no statistic"):
        parse_statistic(text, "fare=0,9")
