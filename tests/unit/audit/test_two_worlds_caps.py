"""Two worlds under a cap: leaving an event out lets another one count, but no more than the bound says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from worlds import WINDOW as WORLDS_WINDOW
from worlds import Setup, check

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


def first_of_a_block_to_arrive(steps):
    """Decides about an event when it comes, and not in the order of steps."""
    return {next(step for step in steps if step // BLOCK == block) for block in {step // BLOCK for step in steps}}


def test_a_cap_that_is_decided_on_arrival_is_found():
    arriving = [OnlyA(8), 7, 15]  # what happened at step 7 comes late, behind what is in question
    found = ev.check_two_worlds(published(first_of_a_block), arriving, window=range(8, 18), most_in_all=BOUND)
    assert not found.changed
    with pytest.raises(WorldsDiffer, match="step 7"):
        ev.check_two_worlds(published(first_of_a_block_to_arrive), arriving, window=range(8, 18), most_in_all=BOUND)


def counted_by(order_of_a_cap):
    """Of a person's rows (a step, and bins in their order) at most 2 bins of a step count, and 3 of all."""

    def run(world):
        room, counted = 3, {}
        for step, bins in world.events:
            counted[step] = [*bins][:2] if room >= 2 else order_of_a_cap([*bins])[:room]
            room -= len(counted[step])
        mechanism = ev.Uniform(epsilon=1, window=8, bins=4, sensitivity=2, window_sensitivity=12)
        for step in range(9):
            counts = [5 + (bin_ in counted.get(step, ())) for bin_ in range(4)]
            world.show("release", str(mechanism.release(counts).values))

    return run


def test_two_orders_of_one_persons_events_are_found():
    """With room for one event the other order counts one of those that nobody would count with more room."""
    rows = [OnlyA((1, (0, 1))), (3, (0, 1, 2)), (6, (0, 1, 2))]
    ev.check_two_worlds(counted_by(list), rows, window=range(1, 9), most=2, most_in_all=12)
    with pytest.raises(WorldsDiffer, match="step 3: sealed counts are 3 apart, where one person adds 2 at the most"):
        ev.check_two_worlds(counted_by(lambda bins: bins[::-1]), rows, window=range(1, 9), most=2, most_in_all=12)


# The whole system with a cap on events: what a person used of it is kept in the store, and read again.

LIVED = [
    Setup(source="csv", mechanism="uniform", person="is let in later", life="dies once", most=1, cap="1/6"),
    Setup(source="pipe", mechanism="dsat", person="is let in later", life="dies at a snapshot", most=1, cap="1/6"),
    Setup(source="growing", mechanism="pegasus", person="does too much", life="dies before the commit", cap="2/8"),
    Setup(source="csv", mechanism="sample", person="is let in later", life="begins an epoch", most=1, cap="1/4"),
    Setup(source="jsonl", mechanism="uniform", person="comes and goes", life="is restored", most=1, cap="1/6"),
    pytest.param(
        Setup(source="http", mechanism="uniform", person="is let in later", life="dies once", most=1, cap="1/6"),
        marks=pytest.mark.slow,
    ),
    Setup(store=None, source="parquet", mechanism="spas", person="is let in later", most=1, cap="1/6", queries=True),
]


@pytest.mark.parametrize("setup", LIVED, ids=str)
def test_a_cap_is_kept_through_lives(setup):
    changed = check(setup).changed
    assert bool(changed) == (setup.life != "begins an epoch")  # which waits for the rest of the stream


@pytest.mark.slow
def test_a_service_that_tells_readers_what_was_left_out_is_found(monkeypatch):
    monkeypatch.setattr("eventide.service.pushed_feed.PushedFeed.lag", lambda feed: float(feed.left_out))
    setup = Setup(source="http", mechanism="uniform", person="does too much", cap="2/8")
    with pytest.raises(WorldsDiffer, match="GET /v1/streams"):
        check(setup)
    monkeypatch.undo()
    assert check(setup).changed


def test_a_person_who_is_let_in_later_shows_behind_the_window():
    found = check(replace(LIVED[0], life="to its end"))
    assert set(found.changed) - set(WORLDS_WINDOW)
