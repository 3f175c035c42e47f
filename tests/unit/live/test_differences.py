"""Releases that are much like an earlier one: stored as what differs, read byte for byte as they were."""

from __future__ import annotations

import json
from contextlib import closing

import numpy as np
import pytest
from live_stores import SETTING, a_commit

import eventide as ev
from eventide.errors import StoreError
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.stores.differences import difference, restored
from eventide.live.stores.open_store import open_store
from eventide.releases.lines import read_line

BINS = 1000


def line(step, values, **further):
    return json.dumps({"step": step, "fresh": False, "values": list(values), **further}).encode()


VALUES = np.random.default_rng(3).poisson(200, 300).tolist()
ALIKE = {
    "repeated": line(9, VALUES),
    "one number": line(9, [7, *VALUES[1:]]),
    "the last number, which is longer": line(9, [*VALUES[:-1], 10_000.5]),
    "a number that is not known": line(9, [*VALUES[:5], None, *VALUES[6:]]),
    "names with cuts": line(9, VALUES, answers=[{"query": 'a, "b": [1, 2], "c', "values": [3]}]),
}
BASE = {name: line(8, VALUES) for name in ALIKE} | {
    "names with cuts": line(8, VALUES, answers=[{"query": 'a, "b": [1, 2], "c', "values": [4]}])
}


@pytest.mark.parametrize("name", ALIKE)
def test_a_line_comes_back_from_what_differs(name):
    told = difference(ALIKE[name], BASE[name])
    assert len(told) < 60
    assert restored(told, BASE[name]) == ALIKE[name]


@pytest.mark.parametrize(
    "other",
    [line(9, VALUES[1:]), line(9, VALUES[::-1]), line(9, VALUES, answers=[]), b'{"step": 9}', b""],
    ids=["fewer", "others", "more said", "nothing", "empty"],
)
def test_where_much_differs_the_line_is_told_whole(other):
    assert difference(other, line(8, VALUES)) is None


def some_lines(steps, seed=5):
    """Releases that repeat an earlier one, change a little or are new."""
    rng = np.random.default_rng(seed)
    values = rng.poisson(200, BINS)
    for step in range(steps):
        fresh = step % 7 == 0
        if fresh:
            values = rng.poisson(200, BINS)
        elif step % 3 == 0:
            values = values + (rng.random(BINS) < 0.05)
        yield fresh, line(step, values.tolist(), scale=[66.66666666666667] * BINS)


def commit_all(store, lines):
    store.begin(SETTING)
    for step, (fresh, release) in enumerate(lines):
        store.commit(a_commit(step)._replace(release=release, fresh=fresh))


def check_stored(store, lines, bases_query):
    """Every line is there as it was, read in order and one by one; and many have a base."""
    expected = [(step, release) for step, (_, release) in enumerate(lines)]
    assert list(store.releases()) == expected
    assert [(step, store.release(step)) for step, _ in expected] == expected
    store.verify()
    bases = [base for (base,) in store._database.all(bases_query)]
    assert sum(base is not None for base in bases) > len(lines) / 2
    assert bases[::7] == [None] * len(bases[::7])  # what is fresh stands for itself


def test_lines_are_read_as_they_were_also_by_others(tmp_path):
    lines = list(some_lines(60))
    with closing(open_store(tmp_path / "city.db")) as store:
        commit_all(store, lines)
        check_stored(store, lines, "SELECT base FROM step ORDER BY step")
    with closing(open_store(tmp_path / "city.db", read_only=True)) as reader:
        check_stored(reader, lines, "SELECT base FROM step ORDER BY step")


def test_a_step_takes_little_room(tmp_path):
    lines = list(some_lines(100))
    with closing(open_store(tmp_path / "city.db")) as store:
        commit_all(store, lines)
    assert (tmp_path / "city.db").stat().st_size < 100 * 2_000 < sum(len(release) for _, release in lines) / 10


def test_a_commit_that_failed_is_no_base(tmp_path):
    (_, first), (_, second) = some_lines(2)
    with closing(open_store(tmp_path / "city.db")) as store:
        store.begin(SETTING)
        with pytest.raises(StoreError):
            store.commit(a_commit(0)._replace(release=first, recorded=None))
        store.commit(a_commit(0)._replace(release=first, fresh=False))
        store.commit(a_commit(1)._replace(release=second, fresh=False))
        assert store._database.all("SELECT base FROM step ORDER BY step") == [(None,), (0,)]
        store.verify()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE step SET release = (SELECT release FROM step WHERE step = 7) WHERE step = 0",  # a base
        "UPDATE step SET base = 7 WHERE step = 2",
        "UPDATE step SET base = 1000 WHERE step = 2",
        "UPDATE step SET base = 'x' WHERE step = 2",
        "UPDATE step SET base = NULL WHERE step = 2",
        "UPDATE step SET release = x'7801ff' WHERE step = 2",
        "UPDATE step SET release = '1000000 7' WHERE step = 2",
        "UPDATE step SET release = x'78' WHERE step = 0",
    ],
)
def test_a_damaged_base_or_difference_is_found(tmp_path, damage):
    with closing(open_store(tmp_path / "city.db")) as store:
        commit_all(store, some_lines(10))
        store._database._connection.execute(damage)
        with pytest.raises(StoreError, match="is damaged: step"):
            list(store.releases(0, 2))
        with pytest.raises(StoreError, match="is damaged"):
            store.verify()


def test_a_publisher_that_goes_on_gives_the_lines_of_before_to_its_sinks(tmp_path):
    counts = np.random.default_rng(7).poisson(50, (12, 40))
    for until in (5, 12):
        mechanism = ev.Sample(epsilon=1, window=4, bins=40, noise=ev.noise.Zero())
        store, feed = open_store(tmp_path / "city.db", for_tests=True), MemoryFeed(counts[:until])
        with ev.Publisher(feed, mechanism, store, [tmp_path / "out.jsonl"]) as publisher:
            publisher.run()
    with closing(open_store(tmp_path / "city.db", read_only=True)) as store:
        stored = [release for _, release in store.releases()]
        bases = [base for (base,) in store._database.all("SELECT base FROM step ORDER BY step")]
    assert (tmp_path / "out.jsonl").read_bytes().splitlines() == stored
    assert [read_line(release).values.tolist() for release in stored] == np.repeat(counts[::4], 4, axis=0).tolist()
    assert bases == [None, 0, 0, 0, None, None, 5, 5, None, 8, 8, 8]  # whoever goes on writes its first one whole
