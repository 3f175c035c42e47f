"""Counts with names are released under these names, whatever order they stand in, or refused with a list."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.live.feeds.count_feed import MemoryFeed

BINS = ("north", "south", "harbour")
COUNTS = np.array([[1, 20, 300], [4, 50, 600]])  # in the order of the bins
MIXED = ("harbour", "north", "south")


class Frame:
    """A data frame as polars has it: names in a list, and the values as an array."""

    def __init__(self, columns, values):
        self.columns, self._values = list(columns), np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self._values


def mixed(counts=COUNTS):
    """The same counts with the columns in another order."""
    return counts[..., [BINS.index(name) for name in MIXED]]


COLUMNS = dict(zip(MIXED, mixed().T, strict=True))
FRAMES = {
    "polars": lambda: Frame(MIXED, mixed()),
    "pandas": lambda: pytest.importorskip("pandas").DataFrame(COLUMNS),
    "rows of pandas": lambda: [row for _, row in pytest.importorskip("pandas").DataFrame(COLUMNS).iterrows()],
    "arrow": lambda: pa.table(COLUMNS),
    "a batch of arrow": lambda: pa.table(COLUMNS).to_batches()[0],
    "arrays": lambda: COLUMNS,
    "lists": lambda: {name: column.tolist() for name, column in COLUMNS.items()},
    "dicts": lambda: [dict(zip(MIXED, row.tolist(), strict=True)) for row in mixed()],
}


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow if "pandas" in name else ()) for name in FRAMES])
def frame(request):
    """The counts with names, in another order."""
    return FRAMES[request.param]()


def exact(bins=BINS, **keywords):
    return ev.Uniform(epsilon=1, window=2, bins=bins, noise=ev.noise.Zero(), **keywords)


def test_columns_of_a_run_are_matched_by_name(frame):
    run = ev.run(exact(), frame)
    assert run.bins == BINS
    assert np.array_equal(run.values, COUNTS)


def test_columns_are_matched_for_every_replica(frame):
    run = ev.run(exact(replicas=2), frame)
    assert np.array_equal(run.values, [COUNTS, COUNTS])
    run = ev.run(exact(replicas=2), [frame, Frame(BINS, COUNTS + 1)])
    assert np.array_equal(run.values, [COUNTS, COUNTS + 1])
    run = ev.run(exact(replicas=2), [COUNTS + 1, frame])
    assert np.array_equal(run.values, [COUNTS + 1, COUNTS])


ROWS = {
    "dict": lambda row: row,
    "series": lambda row: pytest.importorskip("pandas").Series(row),
    "row of pandas": lambda row: pytest.importorskip("pandas").DataFrame([row]).iloc[0],
}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "dict" else pytest.mark.slow) for kind in ROWS]
)
def test_a_release_is_matched_by_name(kind):
    named = ROWS[kind](dict(zip(MIXED, mixed()[0].tolist(), strict=True)))
    assert exact().release(named).values.tolist() == COUNTS[0].tolist()
    assert exact(replicas=2).release([named, named]).values.tolist() == [COUNTS[0].tolist()] * 2


def test_a_publisher_is_handed_counts_by_name():
    with ev.Publisher(MemoryFeed([]), exact()) as publisher:
        release = publisher.publish(0, dict(zip(MIXED, mixed()[0].tolist(), strict=True)))
    assert b'"values": [1, 20, 300]' in release


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("north", "south", "harbor"), r"missing: 'harbour'; unknown: 'harbor'\)"),
        (("t", *BINS), r"\(unknown: 't'\)"),
        (BINS[:2], r"\(missing: 'harbour'\)"),
        (("north", "south", "south"), r"\(missing: 'harbour'; twice: 'south'\)"),
        (("a", "b", "c", "d", "e", "f", "g"), r"unknown: 'a', 'b', 'c', 'd', 'e' and 2 more\)"),
    ],
)
def test_names_that_do_not_fit_are_listed_and_nothing_is_charged(names, says):
    mechanism = exact()
    values = np.zeros((2, len(names)), int)
    with pytest.raises(ev.InputError, match=says):
        ev.run(mechanism, Frame(names, values))
    with pytest.raises(ev.InputError, match=says.replace("; twice: 'south'", "")):
        mechanism.release(dict.fromkeys(names, 0))
    assert mechanism.step == 0


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ev.InputError, match="different numbers of counts"):
        ev.run(exact(), {"north": [1], "south": [2, 3], "harbour": [4]})


def test_without_names_the_order_counts():
    for plain in (COUNTS, COUNTS.tolist()):
        assert np.array_equal(ev.run(exact(), plain).values, COUNTS)


@pytest.mark.slow
def test_without_names_the_order_counts_in_pandas_too():
    pandas = pytest.importorskip("pandas")
    for plain in (pandas.DataFrame(COUNTS), pandas.DataFrame(COUNTS).iloc[:1]):
        assert np.array_equal(ev.run(exact(), plain).values, np.asarray(plain))
    assert exact().release(pandas.Series(COUNTS[0])).values.tolist() == COUNTS[0].tolist()


def test_numbered_bins_take_the_columns_in_their_order_unless_these_are_the_numbers():
    assert np.array_equal(ev.run(exact(bins=3), Frame(MIXED, COUNTS)).values, COUNTS)
    assert np.array_equal(ev.run(exact(bins=3), Frame((2, 0, 1), COUNTS)).values, COUNTS[:, [1, 2, 0]])
    with pytest.raises(ev.InputError, match="missing: '0', '1', '2'; unknown: 'harbour', 'north', 'south'"):
        exact(bins=3).release(dict.fromkeys(MIXED, 0))


@pytest.mark.slow
def test_numbered_bins_take_the_columns_of_pandas_in_their_order():
    backwards = pytest.importorskip("pandas").DataFrame(COUNTS).iloc[:, ::-1]  # its columns are a range from 2 down
    assert np.array_equal(ev.run(exact(bins=3), backwards).values, COUNTS)


@pytest.mark.slow
def test_a_series_of_steps_is_no_matrix():
    steps = pytest.importorskip("pandas").Series([1, 2], index=["monday", "tuesday"])
    with pytest.raises(ev.InputError, match="a run takes a matrix"):
        ev.run(exact(bins=["north"]), steps)
