"""What one user can change: hashes, tallies, and the bound on every step's counts."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_bounding import bounded_counts, rank_message, siphash

from eventide.errors import StoreError
from eventide.events import bounding_kernels, siphash_kernels
from eventide.events.reader import EventReader
from eventide.events.tally import LEAST_CAP, EventTally, UserTally
from eventide.events.texts import buffers, texts
from eventide.events.timeline import Timeline
from eventide.live.feeds.base import Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.base import EventBatch

KEY = bytes(range(16))
SIZE = 4
STEPS = 5
LENGTH = 10_000_000  # microseconds of a step
# Published with the algorithm, for messages 00 01 02 ... of these lengths.
VECTORS = {
    0: "310e0edd47db6f72",
    1: "fd67dc93c539f874",
    7: "37d1018bf50002ab",
    8: "6224939a79f5f593",
    15: "e545be4961ca29a1",
    16: "db9bc2577fcc2a3f",
    63: "724506eb4c328a95",
}


@pytest.mark.parametrize("length", VECTORS)
def test_the_published_vectors_come_out(length):
    message = bytes(range(length))
    expected = int.from_bytes(bytes.fromhex(VECTORS[length]), "little")
    assert siphash(KEY, [message]).tolist() == [expected]
    data = np.frombuffer(message, np.uint8)
    assert siphash_kernels._hash_bytes(siphash_kernels.key_words(KEY), data, 0, length) == expected


@given(st.binary(min_size=16, max_size=16), st.lists(st.one_of(st.text(), st.binary()), max_size=30))
def test_texts_are_hashed_without_their_outer_blanks(key, values):
    array = texts(values)
    hashes, empty = siphash_kernels.hash_texts(siphash_kernels.key_words(key), *buffers(array))
    stripped = [text.strip(bytes(range(33))) for text in array.to_pylist()]
    assert hashes.tolist() == siphash(key, stripped).tolist()
    assert empty.tolist() == [text == b"" for text in stripped]


def test_a_slice_of_texts_is_hashed_as_such():
    array = texts(["a", "bc", "def", "ghij"])
    hashes, _ = siphash_kernels.hash_texts(siphash_kernels.key_words(KEY), *buffers(array[1:3]))
    assert hashes.tolist() == siphash(KEY, [b"bc", b"def"]).tolist()


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**62), st.integers(0, 2**31 - 1), st.integers(0, 2000))
def test_ranks_are_the_hash_of_their_message(user, step, bin_index, occurrence):
    rank = siphash_kernels.hash_four(
        siphash_kernels.key_words(KEY), np.uint64(user), step, np.int32(bin_index), occurrence
    )
    assert rank == siphash(KEY, [rank_message(user, step, bin_index, occurrence)])[0]


SAME_PERSON = [
    [17, "17", 17.0, " 17 ", b"17", np.int32(17), Decimal(17)],
    [True, "true"],
    [UUID(int=5), str(UUID(int=5))],
    ["Zoë", "Zoë".encode()],
]


@pytest.mark.parametrize("values", SAME_PERSON, ids=lambda values: repr(values[1]))
def test_a_person_is_the_same_in_whatever_type(values):
    hashes, _ = siphash_kernels.hash_texts(siphash_kernels.key_words(KEY), *buffers(texts(values)))
    assert len(set(hashes.tolist())) == 1


@pytest.mark.parametrize(
    "column",
    [
        pa.array([17, 4, None], pa.int16()),
        pa.array([17, 4, None], pa.uint64()),
        pa.array([17.0, 4.0, float("nan")]),
        pa.array(["17", "4", None], pa.large_string()),
        pa.array(["17", "4", None]).dictionary_encode(),
        pa.array([b"17", b"4", None], pa.binary()),
        pa.chunked_array([["17"], ["4", None]]),
        pa.array([Decimal(17), Decimal(4), None], pa.decimal128(9, 0)),
    ],
    ids=lambda column: str(column.type),
)
def test_a_person_is_the_same_in_whatever_column(column):
    assert texts(column).to_pylist() == [b"17", b"4", b""]


rows_of_tables = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, SIZE - 1), st.integers(1, 5)),
    max_size=12,
    unique_by=lambda row: row[:2],
)


@given(rows_of_tables, st.integers(1, 6), st.integers(0, 10**9))
def test_the_kernel_chooses_as_the_plain_rule_does(rows, most, step):
    rows = sorted(rows)
    users = np.array([row[0] for row in rows], np.uint64)
    bins = np.array([row[1] for row in rows], np.int32)
    occurrences = np.array([row[2] for row in rows], np.int64)
    words = siphash_kernels.key_words(KEY)
    rooms = np.full(len(np.unique(users)), most)
    compiled = bounding_kernels.bounded_counts(users, bins, occurrences, words, step, rooms, SIZE)
    assert compiled.tolist() == bounded_counts(users, bins, occurrences, KEY, step, most, SIZE).tolist()
    totals = np.bincount(users.astype(int), weights=occurrences) if rows else np.zeros(0)
    assert compiled.sum() == np.minimum(totals, most).sum()


def test_which_events_count_is_random_to_who_does_not_know_the_key():
    """A user in two bins is counted in either about equally often, over keys, steps and users alike."""

    def chosen(key: bytes, step: int, user: int) -> int:
        tally = UserTally(2, 1, key)
        tally.add(np.array([user, user], np.uint64), np.array([0, 1], np.int32))
        return int(np.argmax(tally.counts(step)))

    keys = [chosen(number.to_bytes(16, "little"), 0, 1) for number in range(400)]
    steps = [chosen(KEY, number, 1) for number in range(400)]
    users = [chosen(KEY, 0, number) for number in range(400)]
    assert all(100 < sum(choices) < 300 for choices in (keys, steps, users))


events_of_tables = st.lists(st.tuples(st.integers(0, 3), st.integers(0, SIZE - 1)), max_size=40)


def tally_of(events, most: int = 2) -> UserTally:
    tally = UserTally(SIZE, most, KEY)
    tally.add(np.array([user for user, _ in events], np.uint64), np.array([place for _, place in events], np.int32))
    return tally


@given(st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=6), st.integers(1, 3), st.integers(0, 9), st.data())
def test_all_that_somebody_did_in_a_step_moves_it_by_the_bound_and_a_part_by_twice_as_much(places, most, step, data):
    """As the guarantee says: a part of somebody's events is hidden with 2 epsilon, since others take their place."""
    kept = data.draw(st.lists(st.sampled_from(range(len(places))), unique=True))
    all_of_it = tally_of([(1, place) for place in places], most).counts(step)
    a_part = tally_of([(1, places[number]) for number in kept], most).counts(step)
    assert np.abs(all_of_it).sum() <= most
    assert np.abs(all_of_it - a_part).sum() <= 2 * most


def test_one_event_out_of_several_makes_room_for_another():
    both = tally_of([(1, 0), (1, 1)], most=1).counts(0)
    without = tally_of([(1, 1 - int(np.argmax(both)))], most=1).counts(0)
    assert np.abs(both - without).sum() == 2


@given(events_of_tables, events_of_tables, st.integers(1, 4))
def test_the_choice_is_the_same_from_a_joined_tally(some, others, most):
    whole = tally_of(some + others, most)
    joined = tally_of([], most)
    joined.join(tally_of(others, most).to_bytes())
    joined.join(tally_of(some, most).to_bytes())
    assert joined.counts(7).tolist() == whole.counts(7).tolist()
    assert joined.to_bytes() == whole.to_bytes()


def test_an_event_repeated_for_ever_takes_no_more_memory_and_joins_as_if_it_were_one():
    tally = UserTally(1, 3, KEY)
    many = 3 * LEAST_CAP
    tally.add(np.full(many, 9, np.uint64), np.zeros(many, np.int32))
    size = len(tally.to_bytes())
    tally.join(tally.to_bytes())
    assert len(tally.to_bytes()) == size
    assert tally.counts(0).tolist() == [3]


def test_a_bound_above_the_cap_still_lets_so_many_events_count():
    many = 2 * LEAST_CAP
    tally = UserTally(1, many, KEY)
    tally.add(np.full(many + 5, 9, np.uint64), np.zeros(many + 5, np.int32))
    assert tally.counts(0).tolist() == [many]


def test_a_tally_stays_small_while_the_same_people_come_again():
    tally = UserTally(1, 1, KEY)
    for _ in range(50):
        tally.add(np.arange(10_000, dtype=np.uint64), np.zeros(10_000, np.int32))
    assert tally._rows < 150_000
    assert tally.counts(0).tolist() == [10_000]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense",
        tally_of([(1, 1)]).to_bytes()[:-1],
        tally_of([(1, 1)]).to_bytes() + b"x",
        EventTally(SIZE).to_bytes(),
    ],
)
def test_damaged_or_foreign_tallies_are_refused(data):
    with pytest.raises(StoreError, match="kept for an open step"):
        UserTally(SIZE, 1, KEY).join(data)


def test_tallies_of_other_bins_are_refused():
    with pytest.raises(StoreError, match="do not fit the bins"):
        UserTally(2, 1, KEY).join(tally_of([(1, 3)]).to_bytes())
    with pytest.raises(StoreError, match="do not fit the bins"):
        EventTally(2).join(EventTally(3).to_bytes())


# Whole feeds: anybody's events, at any times, in any order of arrival.

people = st.one_of(
    st.integers(0, 5),
    st.sampled_from(["3", "ann", "bob", " ann"]),
    st.floats(0, 3),
    st.booleans(),
    st.just(UUID(int=1)),
)
times = st.integers(-2 * LENGTH, (STEPS + 2) * LENGTH)
an_event = st.fixed_dictionaries(
    {"user": people, "bin": st.integers(0, SIZE), "time": times, "arrival": times}
)  # one bin more than there is
looks = st.lists(times, max_size=6).map(sorted)


def counts_of(events, looks, most: int, late: str | None = None) -> list[list[int]]:
    """What comes out where the source looks at these moments: what arrived before a look is handed over at it."""
    reader = EventReader([str(number) for number in range(SIZE)], zone="UTC")
    reader.columns = reader.columns._replace(time="time")
    feed = EventFeed(
        None, Timeline("1970-01-01", "10s"), reader, max_per_step=most, late=late, until="1970-01-01T00:00:50"
    )
    feed.begin(Resume(0, None, KEY, []))
    closed, before = [], -(10**15)
    for look in [*looks, 10**15]:
        for arrival in sorted({event["arrival"] for event in events if before <= event["arrival"] < look}):
            rows = [event | {"time": f"{event['time'] / 1e6:.6f}"} for event in events if event["arrival"] == arrival]
            feed.take(EventBatch(feed.reader.read(rows, arrival=arrival), None, before))
        feed.take(EventBatch(feed.reader.read([], arrival=look), None, look))
        closed += [step.counts.tolist() for step in feed.closed()]
        before = look
    assert len(closed) == STEPS
    return closed


@given(
    st.lists(an_event, max_size=15),
    st.lists(an_event, max_size=15),
    people,
    looks,
    st.integers(1, 3),
    st.sampled_from([None, "3s", "25s"]),
)
def test_one_user_changes_a_step_by_at_most_the_bound(events, own, user, looks, most, late):
    who = texts([user])[0].as_py().strip()
    others = [event for event in events if texts([event["user"]])[0].as_py().strip() != who]
    own = [event | {"user": user} for event in own]
    with_user = np.array(counts_of(others + own, looks, most, late))
    without = np.array(counts_of(others, looks, most, late))
    assert (np.abs(with_user - without).sum(axis=1) <= most).all()
    assert (with_user >= without).all()


@given(st.lists(an_event, max_size=25), looks, looks, st.randoms(), st.integers(1, 3))
def test_another_order_and_other_batches_give_the_same_counts(events, looks, others, random, most):
    expected = counts_of(events, looks, most)
    random.shuffle(events)
    assert counts_of(events, others, most) == expected
