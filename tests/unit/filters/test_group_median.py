"""Smoothers of groups against obvious ones, and the sorted groups under the median."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import StateError
from eventide.filters.group_median import SMOOTHERS, Grouped, GroupMedian
from eventide.privacy.measured import Measured
from eventide.privacy.sorted_groups import SortedGroups

SHAPE = (2, 3)

small = st.integers(-5, 5)
edges = st.sampled_from([2**15 - 1, 2**15 - 2, -(2**15), 2**31 - 1, -(2**31), 2**53, -(2**60), 2**60])
whole = st.lists(st.one_of(small, edges), min_size=6, max_size=6)
broken = st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=6)
joins = st.lists(st.booleans(), min_size=6, max_size=6)


def grouped(values, joins):
    return Grouped(np.reshape(values, SHAPE), np.ones((1, 1)), np.ones((1, 1), bool), np.reshape(joins, SHAPE))


def obvious(smoother, group):
    if smoother == "median":
        return np.median(group)
    average = np.mean(group)
    return average if smoother == "average" else average + (group[-1] - average) / len(group)


@pytest.mark.parametrize("smoother", SMOOTHERS)
@given(st.lists(st.tuples(st.one_of(whole, broken), joins), min_size=1, max_size=12))
def test_smoothers_agree_with_obvious_ones(smoother, steps):
    filter = SMOOTHERS[smoother]().started(*SHAPE)
    groups = [[] for _ in range(6)]
    for values, joining in steps:
        groups = [
            [*(group if joins else []), value] for group, joins, value in zip(groups, joining, values, strict=True)
        ]
        expected = [obvious(smoother, np.array(group, dtype=float)) for group in groups]
        found = filter.step(grouped(values, joining))
        largest = max(1, max(np.abs(group).max() for group in groups))
        assert found.ravel() == pytest.approx(expected, rel=1e-12, abs=1e-12 * largest)


def test_by_hand():
    """Bins:  left       right
    values   3 9 1 7    5 5 8 2
    groups   [-----     [-)[--
    """
    rows = [(3, 5), (9, 5), (1, 8), (7, 2)]
    joins = [(False, False), (True, True), (True, False), (True, True)]
    expected = {
        "median": [(3, 5), (6, 5), (3, 8), (5, 5)],
        "average": [(3, 5), (6, 5), (13 / 3, 8), (5, 5)],
        "james-stein": [(3, 5), (7.5, 5), (13 / 3 - 10 / 9, 8), (5.5, 3.5)],
    }
    for name, values in expected.items():
        filter = SMOOTHERS[name]().started(1, 2)
        for row, joining, smoothed in zip(rows, joins, values, strict=True):
            one = np.ones((1, 1))
            measured = Grouped(np.array([row]), one, one > 0, np.array([joining]))
            assert filter.step(measured)[0] == pytest.approx(smoothed)


def test_a_smoother_needs_groups():
    filter = GroupMedian().started(1, 1)
    one = np.ones((1, 1))
    for ungrouped in (None, Measured(one, one, one > 0)):
        with pytest.raises(StateError, match="mechanism that groups"):
            filter.step(ungrouped)


@given(st.lists(whole, min_size=2, max_size=10), joins)
def test_beginning_is_inserting_into_an_empty_group(steps, where):
    begun, inserted = SortedGroups(SHAPE), SortedGroups(SHAPE)
    where = np.reshape(where, SHAPE)
    for groups, first in ((begun, begun.begin), (inserted, inserted.insert)):
        first(np.reshape(steps[0], SHAPE), where)
        for values in steps[1:]:
            groups.insert(np.reshape(values, SHAPE), where)
    assert np.array_equal(begun.snapshot()["_rows"], inserted.snapshot()["_rows"])
    assert np.array_equal(begun.sizes, np.where(where, len(steps), 0))


def test_nothing_of_an_erased_group_is_left():
    """Neither its values nor how large they were, and the group beside it is whole."""
    groups, left = SortedGroups((1, 2)), np.array([[True, False]])
    fresh = groups.snapshot()
    for value in (7, 10**6, 3):
        groups.insert(np.array([[value, 20]]), np.ones((1, 2), bool))
    groups.erase(left)
    rows = groups.snapshot()["_rows"]
    assert len(np.unique(rows[:, 0, 0])) == 1
    assert rows[0, 0, 0] > 2**30
    assert rows[:, 0, 1].tolist() == [20, 20, 20]
    groups.erase(~left)
    assert groups.snapshot()["_rows"].dtype == fresh["_rows"].dtype
    assert np.array_equal(groups.snapshot()["_rows"], fresh["_rows"])
