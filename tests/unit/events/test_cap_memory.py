"""A cap on people's events: what counts, against the rule written to be read, and what one person changes by it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_bounding import rank_message, siphash

from eventide.errors import InputError, StoreError
from eventide.events.cap_memory import CapMemory, is_memory
from eventide.events.caps import Cap, parse_cap, window_sensitivity
from eventide.events.tally import UserTally

KEY = bytes(range(16))
SIZE, STEPS = 3, 14


def ranked(user, step, bins):
    """The bins of a user's events at a step in the order in which they would count."""
    seen, messages = {}, []
    for place in sorted(bins):
        messages.append(rank_message(user, step, place, seen.get(place, 0)))
        seen[place] = seen.get(place, 0) + 1
    return [sorted(bins)[number] for number in np.argsort(siphash(KEY, messages), kind="stable")] if bins else []


def plainly(events, cap, most):
    """The counts of all steps by the rule: person by person, block by block, event by event."""
    counts = np.zeros((STEPS, SIZE), np.int64)
    for user in {user for _, user, _ in events}:
        offset = int(siphash(KEY, [rank_message(user, -1, 0, 0)])[0]) % cap.block
        used = {}
        for step in range(STEPS):
            block = (step + offset) // cap.block
            room = min(most, cap.events - used.get(block, 0))
            chosen = ranked(user, step, [place for at, who, place in events if (at, who) == (step, user)])[:room]
            used[block] = used.get(block, 0) + len(chosen)
            np.add.at(counts, (step, chosen), 1)
    return counts


def counted(events, cap, most, born_again=()):
    """The counts of all steps; at steps of `born_again` the memory is built from what was kept of the last ones."""
    memory, kept, counts = CapMemory(cap, KEY), [], []
    for step in range(STEPS):
        if step in born_again:
            memory = CapMemory(cap, KEY)
            for last, data in kept:
                if last >= step:
                    memory.take_again(data)
        tally = UserTally(SIZE, most, KEY)
        rows = [(user, place) for at, user, place in events if at == step]
        tally.add(np.array([user for user, _ in rows], np.uint64), np.array([place for _, place in rows], np.int32))
        counts_of_step, data = tally.capped_counts(step, memory)
        assert is_memory(data)
        assert not is_memory(tally.to_bytes())
        kept.append(memory.to_keep(step, data) or (step, data))
        counts.append(counts_of_step)
    return np.array(counts)


everything = st.lists(st.tuples(st.integers(0, STEPS - 1), st.integers(0, 4), st.integers(0, SIZE - 1)), max_size=60)
caps = st.builds(Cap, st.integers(2, 4), st.integers(1, 6))


@given(everything, caps, st.integers(1, 2), st.sets(st.integers(0, STEPS), max_size=4))
def test_what_counts_is_what_the_rule_says_also_when_it_is_born_again(events, cap, most, born_again):
    expected = plainly(events, cap, most).tolist()
    assert counted(events, cap, most).tolist() == expected
    assert counted(events, cap, most, born_again).tolist() == expected


@given(everything, caps, st.integers(1, 2), st.integers(1, 6), st.integers(0, STEPS), st.data())
def test_one_person_changes_no_more_than_the_bound(events, cap, most, window, begin, data):
    """Rows of one person, all events of a step together, are there in both worlds or in one."""
    inside = range(begin, begin + window)
    worlds = [
        data.draw(st.sampled_from(["both", "first", "second"])) if step in inside else "both" for step in range(STEPS)
    ]
    first, second = (
        counted([one for one in events if one[1] or worlds[one[0]] in ("both", world)], cap, most)
        for world in ("first", "second")
    )
    apart = np.abs(first - second).sum(axis=1)
    assert apart.max() <= most
    assert apart.sum() <= window_sensitivity(cap.events, cap.block, window, most)
    assert not apart[:begin].any()
    assert not apart[begin + window + cap.block - 1 :].any()


def test_blocks_of_people_begin_everywhere():
    memory, users = CapMemory(Cap(1, 7), KEY), np.arange(7000, dtype=np.uint64)
    memory.take(100, users, np.ones(7000, np.int64))
    free = [int((memory.rooms(100 + later, users) > 0).sum()) for later in range(8)]
    assert free[0] == 0
    assert free[-1] == 7000
    assert min(np.diff(free)) > 850  # a seventh of them each, 1000


def test_damage_is_found():
    memory = CapMemory(Cap(1, 7), KEY)
    data = memory.take(3, np.arange(4, dtype=np.uint64), np.ones(4, np.int64))
    with pytest.raises(StoreError, match="what a store kept of people who counted is damaged"):
        CapMemory(Cap(1, 7), KEY).take_again(data[:-9])


@pytest.mark.parametrize(
    ("text", "says"),
    [("2", "write how many"), ("0/7d", "write how many"), ("x/7d", "write how many"), ("2/90min", "no whole number"),
     ("2/week", "is no duration"), ("2/0", "at least 1")],
)  # fmt: skip
def test_caps_that_mean_nothing_are_refused(text, says):
    with pytest.raises(InputError, match=says):
        parse_cap(text, "1h")
