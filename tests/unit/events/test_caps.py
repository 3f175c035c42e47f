"""The bound on what one person changes under a cap, against everything that such a person can do in small cases."""

from __future__ import annotations

import functools
import itertools

import pytest

from eventide.errors import InputError
from eventide.events.caps import blocks_met, window_sensitivity

CASES = [
    (cap, block, window, most)
    for cap, block, window, most in itertools.product(range(1, 5), range(1, 7), range(1, 10), range(1, 4))
    if most <= cap
]
NEIGHBOURS = ((1, 1), (1, 0), (0, 1))  # a row is there in both worlds, in one, in the other
ALL_OR_NOTHING = ((1, 0),)  # in one world the person did nothing at all


@functools.cache
def most_changed(cap, before, inside, behind, most, worlds=NEIGHBOURS):
    """The largest L1 change in one block, by trying every row at every step.

    `before`, `inside` and `behind` are its steps before, inside and behind the window.
    """
    reached = {(used, used): 0 for used in range(min(cap, most * before) + 1)}  # room used in each world: change so far
    for worlds_of_step in [worlds] * inside + [((1, 1),)] * behind:
        after = {}
        for ((one, other), changed), row, (here, there) in itertools.product(
            reached.items(), range(most + 1), worlds_of_step
        ):
            counted, counted_there = min(row * here, cap - one), min(row * there, cap - other)
            state = (one + counted, other + counted_there)
            after[state] = max(after.get(state, 0), changed + abs(counted - counted_there))
        reached = after
    return max(reached.values())


def largest_change(cap, block, window, most, worlds=NEIGHBOURS):
    """The same over all blocks that a window meets, wherever it begins; blocks have no memory of each other."""

    def change(first):
        starts = range(0, first + window, block)
        parts = [(begin, max(begin, first), min(begin + block, first + window)) for begin in starts]
        inside = [(enter - begin, leave - enter, begin + block - leave) for begin, enter, leave in parts]
        return sum(most_changed(cap, before, within, behind, most, worlds) for before, within, behind in inside)

    return max(change(first) for first in range(block))


def test_nobody_changes_more_than_the_bound():
    for case in CASES:
        found, bound = largest_change(*case), window_sensitivity(*case)
        assert found <= bound <= found + 2, case
        assert bound <= 2 * case[0] * blocks_met(case[1], case[2]), case


def test_where_blocks_are_long_the_bound_is_reached():
    for cap, most in itertools.product(range(1, 4), range(1, 3)):
        if most <= cap:
            assert largest_change(cap, 12, 12, most) == window_sensitivity(cap, 12, 12, most) == 4 * cap


def test_the_smaller_bound_is_right_only_against_nothing_at_all():
    smaller = {case: case[0] * (blocks_met(case[1], case[2]) + 1) for case in CASES}
    assert all(largest_change(*case, ALL_OR_NOTHING) <= smaller[case] for case in CASES)
    assert any(largest_change(*case) > smaller[case] for case in CASES)


@pytest.mark.parametrize(
    ("window", "block", "cap", "blocks", "bound"),
    [(168, 168, 2, 2, 8), (168, 24, 1, 8, 16), (168, 24, 3, 8, 48), (30, 30, 2, 2, 8), (30, 15, 1, 3, 6)],
)
def test_the_bounds_that_the_documentation_shows(window, block, cap, blocks, bound):
    assert (blocks_met(block, window), window_sensitivity(cap, block, window)) == (blocks, bound)


def test_more_in_a_step_than_in_a_block_is_refused():
    with pytest.raises(InputError, match="at most 3 events of a person count in a step, more than the 2 of a block"):
        window_sensitivity(2, 24, 168, max_per_step=3)
