"""Two worlds under a cap: leaving an event out lets another one count, but no more than the bound says."""

from __future__ import annotations

import pytest

import eventide as ev
from eventide.audit.two_worlds import OnlyA, OnlyB, WorldsDiffer
from eventide.events.caps import window_sensitivity

STEPS, BLOCK, WINDOW = 30, 6, 6
BOUND = window_sensitivity(1, BLOCK, WINDOW)
FOR_BLOCKS = [OnlyA(3), 5, OnlyA(6), OnlyB(8), 9, 13, 20, 27]  # of one person, in order
FOR_GREED = [OnlyA(3), 5, 9, 11, 15, 17, 21, 23, 27, 29]


def first_of_a_block(steps):
    return {min(step for step in steps if step // BLOCK == block) for block in {step // BLOCK for step in steps}}


def greedy(steps):
    """Counts whatever lies a block behind the last that counted: one event decides about all that follow."""
    counted = [-BLOCK]
    for step in steps:
        counted += [step] if step - counted[-1] >= BLOCK else []
    return set(counted[1:])


def published(capped):
    def run(world):
        counted = capped(world.events)
        mechanism = ev.Uniform(epsilon=1, window=WINDOW, bins=1, window_sensitivity=BOUND)
        for step in range(STEPS):
            world.show("release", str(mechanism.release([7 + (step in counted)]).values))

    return run


def test_blocks_change_by_no_more_than_the_bound():
    reached = range(3, 12)  # with the rest of the block in which steps 3 to 8 end
    found = ev.check_two_worlds(published(first_of_a_block), FOR_BLOCKS, window=reached, most_in_all=BOUND)
    assert len(found.changed) == BOUND == 4
    ev.check_two_worlds(published(first_of_a_block), FOR_GREED, window=reached, most_in_all=2)


def test_a_greedy_cap_is_found():
    with pytest.raises(
        WorldsDiffer, match=r"the sealed counts of all steps together are \d+ apart.*changes 4 at the most"
    ):
        ev.check_two_worlds(published(greedy), FOR_GREED, window=range(3, STEPS), most_in_all=BOUND)
