"""Counts with names are taken under these names, whatever order they stand in, or refused with a list."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.releases.lines import read_line
from eventide.streams.frames import CELLS

BINS = ("north", "south", "harbour")
COUNTS = np.array([[1, 20, 300], [4, 50, 600]])  # in the order of the bins
MIXED = ("harbour", "north", "south")


def mixed(counts=COUNTS):
    """The same counts with the columns in another order."""
    return counts[..., [BINS.index(name) for name in MIXED]]


def columns(names=MIXED, counts=None):
    return dict(zip(names, (mixed() if counts is None else np.asarray(counts)).T.copy(), strict=True))


def pandas():
    return pytest.importorskip("pandas")


def polars():
    return pytest.importorskip("polars")


def relation(named):
    connection = pytest.importorskip("duckdb").connect()
    return connection.from_arrow(pa.table(named))


def struct(named):
    return pa.StructArray.from_arrays([pa.array(column) for column in named.values()], list(named))


MATRICES = {  # named columns of two steps
    "arrow": pa.table,
    "a batch of arrow": pa.record_batch,
    "a struct of arrow": struct,
    "a stream of arrow": lambda named: pa.table(named).to_reader(),
    "arrays": dict,
    "lists": lambda named: {name: column.tolist() for name, column in named.items()},
    "pandas": lambda named: pandas().DataFrame(named),
    "polars": lambda named: polars().DataFrame(named),
    "lazy polars": lambda named: polars().LazyFrame(named),
    "duckdb": relation,
}
ROWS = {  # one step
    "dict": dict,
    "struct of arrow": lambda row: pa.scalar(row),
    "table of arrow": lambda row: pa.Table.from_pylist([row]),
    "series of pandas": lambda row: pandas().Series(row),
    "row of pandas": lambda row: pandas().DataFrame([row]).iloc[0],
    "frame of pandas": lambda row: pandas().DataFrame([row]),
    "frame of polars": lambda row: polars().DataFrame([row]),
    "row of polars": lambda row: polars().DataFrame([row]).row(0, named=True),
}
SLOW = ("pandas", "polars", "duckdb")


def cheap_and_slow(kinds):
    return [pytest.param(kind, marks=pytest.mark.slow if any(word in kind for word in SLOW) else ()) for kind in kinds]


@pytest.fixture(params=cheap_and_slow(MATRICES))
def matrix(request):
    """What makes named counts of some steps."""
    return MATRICES[request.param]


@pytest.fixture(params=cheap_and_slow(ROWS))
def row(request):
    """What makes named counts of one step."""
    return ROWS[request.param]


def exact(bins=BINS, **keywords):
    return ev.Uniform(epsilon=1, window=2, bins=bins, noise=ev.noise.Zero(), **keywords)


def answering(bins=BINS):
    return ev.windows.plan([ev.Query(1, 1)]).start(bins=bins, noise=ev.noise.Zero())


def released(counts):
    """What a plan that asks for every tick answers."""
    return [answer.value.tolist() for answer in counts]


def step(number=0, names=MIXED):
    return dict(zip(names, mixed()[number].tolist(), strict=True))


ONE_STEP = {
    "release": lambda counts: [exact().release(counts).values.tolist()],
    "push": lambda counts: released(answering().push(counts)),
    "publisher": lambda counts: published(lambda publisher: publisher.publish(0, counts)),
    "feed": lambda counts: published(lambda publisher: publisher.run(), [counts]),
}
MANY_STEPS = {
    "run": lambda counts: ev.run(exact(), counts).values.tolist(),
    "push_many": lambda counts: released(answering().push_many(counts)),
    "publish": lambda counts: published_frame(counts),
}


def published_frame(counts, bins=BINS):
    noise = {"noise": ev.noise.Zero()}
    releases = ev.publish(counts, epsilon=1, window=2, bins=bins, mechanism="uniform", parameters=noise)
    return np.array(releases.to_arrow()["value"]).reshape(-1, len(bins)).tolist()


def published(do, rows=()):
    with ev.Publisher(MemoryFeed(rows), exact()) as publisher:
        do(publisher)
        return [read_line(publisher.store.release(0)).values.tolist()]


@pytest.mark.parametrize("way", ONE_STEP)
def test_the_counts_of_a_step_are_matched_by_name(way, row):
    assert ONE_STEP[way](row(step())) == [COUNTS[0].tolist()]


@pytest.mark.parametrize("way", MANY_STEPS)
def test_the_counts_of_many_steps_are_matched_by_name(way, matrix):
    assert MANY_STEPS[way](matrix(columns())) == COUNTS.tolist()


@pytest.mark.parametrize("way", ONE_STEP)
def test_names_of_a_step_that_do_not_fit_are_listed(way, row):
    with pytest.raises(ev.InputError, match=r"\(missing: 'south'; unknown: 'sauth'\)"):
        ONE_STEP[way](row(step(names=("harbour", "north", "sauth"))))


@pytest.mark.parametrize("way", MANY_STEPS)
def test_names_of_many_steps_that_do_not_fit_are_listed(way, matrix):
    with pytest.raises(ev.InputError, match=r"\(missing: 'south'; unknown: 'sauth'\)"):
        MANY_STEPS[way](matrix(columns(("harbour", "north", "sauth"))))


@pytest.mark.parametrize("way", ["run", "push_many"])
def test_rows_with_names_are_matched_one_by_one(way):
    assert MANY_STEPS[way]([step(0), step(1)]) == COUNTS.tolist()


def test_columns_are_matched_for_every_replica(matrix):
    assert np.array_equal(ev.run(exact(replicas=2), matrix(columns())).values, [COUNTS, COUNTS])
    both = [matrix(columns()), pa.table(columns(BINS, COUNTS + 1))]
    assert np.array_equal(ev.run(exact(replicas=2), both).values, [COUNTS, COUNTS + 1])
    assert np.array_equal(ev.run(exact(replicas=2), [COUNTS + 1, pa.table(columns())]).values, [COUNTS + 1, COUNTS])
    one_step_each = [pa.table(columns(MIXED, mixed()[:1])), COUNTS[1:]]
    assert np.array_equal(ev.run(exact(replicas=2), one_step_each).values, [COUNTS[:1], COUNTS[1:]])


def test_a_release_is_matched_for_every_replica(row):
    assert exact(replicas=2).release([row(step()), row(step())]).values.tolist() == [COUNTS[0].tolist()] * 2


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("t", *BINS), r"\(unknown: 't'\)"),
        (BINS[:2], r"\(missing: 'harbour'\)"),
        (("a", "b", "c", "d", "e", "f", "g"), r"unknown: 'a', 'b', 'c', 'd', 'e' and 2 more\)"),
    ],
)
def test_nothing_is_charged_for_names_that_do_not_fit(names, says):
    mechanism, answers = exact(), answering()
    named = columns(names, np.zeros((2, len(names)), int))
    for refused in (lambda: ev.run(mechanism, pa.table(named)), lambda: answers.push_many(named)):
        with pytest.raises(ev.InputError, match=says):
            refused()
    with pytest.raises(ev.InputError, match=says):
        mechanism.release(dict.fromkeys(names, 0))
    assert (mechanism.step, answers.tick) == (0, 0)


def test_a_name_given_twice_is_refused():
    twice = pa.table([[1], [2], [3]], names=["north", "south", "south"])
    with pytest.raises(ev.InputError, match="two columns of the same name"):
        ev.run(exact(), twice)


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ev.InputError, match="different numbers of counts"):
        ev.run(exact(), {"north": [1], "south": [2, 3], "harbour": [4]})


def test_without_names_the_order_counts():
    for plain in (COUNTS, COUNTS.tolist()):
        assert np.array_equal(ev.run(exact(), plain).values, COUNTS)
        assert released(answering().push_many(plain)) == COUNTS.tolist()


def test_bins_without_names_take_no_names_but_their_numbers():
    assert np.array_equal(ev.run(exact(bins=3), pa.table(columns("201", COUNTS))).values, COUNTS[:, [1, 2, 0]])
    for refused in (lambda: ev.run(exact(bins=3), pa.table(columns())), lambda: exact(bins=3).release(step())):
        with pytest.raises(ev.InputError, match="missing: '0', '1', '2'; unknown: 'harbour', 'north', 'south'"):
            refused()
    alone = ev.windows.plan([ev.Query(1, 1)]).start(noise=ev.noise.Zero())
    with pytest.raises(ev.InputError, match="name it with bins"):
        alone.push_many({"north": [1, 2]})


@pytest.mark.slow
def test_without_names_the_order_counts_in_pandas_too():
    for plain in (pandas().DataFrame(COUNTS), pandas().DataFrame(COUNTS).iloc[:1]):
        assert np.array_equal(ev.run(exact(), plain).values, np.asarray(plain))
    assert exact().release(pandas().Series(COUNTS[0])).values.tolist() == COUNTS[0].tolist()
    backwards = pandas().DataFrame(COUNTS).iloc[:, ::-1]  # its columns are a range from 2 down
    assert np.array_equal(ev.run(exact(bins=3), backwards).values, COUNTS)


@pytest.mark.slow
@pytest.mark.parametrize("library", [pandas, polars])
def test_a_series_of_steps_is_the_column_of_the_bin_it_is_named_after(library):
    series = library().Series
    named = series(name="north", data=[1, 2]) if library is pandas else series("north", [1, 2])
    assert ev.run(exact(bins=["north"]), named).values.tolist() == [[1], [2]]
    assert released(answering(["north"]).push_many(named)) == [[1], [2]]
    assert published_frame(named, ["north"]) == [[1], [2]]
    with pytest.raises(ev.InputError, match="missing: 'south'; unknown: 'north'"):
        ev.run(exact(bins=["south"]), named)
    with pytest.raises(ev.InputError, match="a run takes a matrix"):
        ev.run(exact(bins=["north"]), series([1, 2]))


def test_counts_without_names_load_no_library_of_frames():
    code = (
        "import sys, eventide as ev; mechanism = ev.Uniform(epsilon=1, window=2, bins=2); ev.run(mechanism, [[1, 2]]);"
        "mechanism.release({'0': 1, '1': 2}); sys.exit('pyarrow' in sys.modules or 'narwhals' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_frame_of_many_batches_is_read_to_its_end():
    long = np.arange(CELLS // 3 * 3 + 6).reshape(-1, 3)
    assert np.array_equal(exact().in_order(pa.table(columns(MIXED, mixed(long)))), long)
