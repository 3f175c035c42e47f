"""A dry run: what a publisher would refuse is refused, where it would go on is said, and nothing is left behind."""

from __future__ import annotations

import json

import numpy as np
import pytest

import eventide as ev
from eventide.errors import InputError, StoreError
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.sinks.open_sink import open_sink

BINS = ["north", "south"]
COUNTS = [[3, 5], [4, 4], [1, 0]]
QUERY = ev.Query(window=2, step=1)


def mechanism(**changed):
    return ev.Uniform(**{"epsilon": 1, "window": 3, "bins": BINS} | changed)


def held(folder):
    """Everything in a folder, but for what SQLite keeps of a log for its readers."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(("-shm", "-wal"))}


def check(folder, mech=None, sinks=("out.jsonl",), **options):
    """Check, and see that nothing was made, written or charged, whatever came of it."""
    mech, before = mech or mechanism(), held(folder)
    try:
        places = [sink if "://" in sink else folder / sink for sink in sinks]
        return ev.Publisher.check(MemoryFeed(COUNTS), mech, folder / "store.db", places, **options)
    finally:
        assert held(folder) == before
        assert (mech.step, np.max(mech.ledger.worst_window())) == (0, 0)


@pytest.fixture
def published(tmp_path):
    """A folder with a store of two steps and its files."""
    places = [tmp_path / name for name in ("out.jsonl", "out.csv", "out.parquet")]
    with ev.Publisher(MemoryFeed(COUNTS), mechanism(), tmp_path / "store.db", places) as live:
        live.run(until=2)
    return tmp_path


def test_of_a_new_store_it_says_that_all_is_to_come(tmp_path):
    found = check(tmp_path, sinks=("out.jsonl", "out.csv", "out.parquet", "https://example.org/hook"))
    assert (found.next_step, found.before, found.epoch.number, found.epoch.measured_from) == (0, None, 0, 0)
    assert "for this run only" not in str(found.guarantee)
    alone = ev.Publisher.check(MemoryFeed(COUNTS), mechanism())
    assert "for this run only" in str(alone.guarantee)


def test_of_a_store_it_says_where_a_publisher_would_go_on(published):
    found = check(published, sinks=("out.jsonl", "out.csv", "out.parquet"))
    assert (found.next_step, found.before, found.epoch.number) == (2, None, 0)
    with ev.Publisher(MemoryFeed(COUNTS), mechanism(), published / "store.db") as live:
        assert (live.next_step, live.guarantee) == (found.next_step, found.guarantee)


def test_an_epoch_that_would_begin_is_told(published):
    with pytest.raises(InputError, match="another setting: epsilon"):
        check(published, mechanism(epsilon=2))
    found = check(published, mechanism(epsilon=2), new_epoch=True)
    assert (found.epoch.number, found.epoch.first_step, found.epoch.measured_from) == (1, 2, 4)
    assert found.before is not None
    assert (found.before.epsilon, found.epoch.setting.epsilon) == (10**9, 2 * 10**9)
    assert check(published, new_epoch=True, not_before=9).epoch.measured_from == 9


def test_a_half_written_line_is_seen_and_left(published):
    with (published / "out.jsonl").open("ab") as file:
        file.write(b'{"step": 2, "fr')
    assert check(published).next_step == 2


@pytest.mark.parametrize(
    ("changed", "options", "says"),
    [
        ({"replicas": 2}, {}, "several replicas"),
        ({"noise": ev.noise.Zero()}, {}, "private noise only"),
        ({}, {"questions": ev.Questions((QUERY, QUERY), 1)}, "two queries are the same"),
        ({}, {"sinks": ["absent/out.csv"]}, "cannot write"),
        ({}, {"sinks": ["absent/out.parquet"]}, "cannot write"),
        ({}, {"sinks": ["out.xlsx"]}, "ends in none of"),
        ({}, {"sinks": ["https://"]}, "webhook"),
        ({"bins": ["n"]}, {"sinks": ["out.csv"], "new_epoch": True}, "other columns"),
        ({"bins": ["n"]}, {"sinks": ["out.parquet"], "new_epoch": True}, "other columns"),
        ({}, {"sinks": ["store.jsonl"]}, "something else than releases"),
    ],
)
def test_what_a_publisher_would_refuse_is_refused(published, changed, options, says):
    (published / "store.jsonl").write_text('{"who": "alice"}\n')
    with pytest.raises(InputError, match=says):
        check(published, mechanism(**changed), **options)


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.parquet"])
def test_a_sink_that_is_ahead_of_its_store_is_refused(published, name):
    (published / "store.db").unlink()
    with pytest.raises(StoreError, match="holds releases up to step 1, and the store holds none"):
        check(published, sinks=(name,))
    assert check(published, sinks=(name,), after_restore=True).next_step == 0


def test_a_sink_of_another_store_is_refused(published):
    lines = (published / "out.jsonl").read_text().splitlines()
    other = json.loads(lines[-1]) | {"values": [7, 7]}
    (published / "out.jsonl").write_text("\n".join([*lines[:-1], json.dumps(other)]) + "\n")
    with pytest.raises(StoreError, match="another release of step 1"):
        check(published)


def test_the_file_that_is_read_is_never_replaced(tmp_path):
    (tmp_path / "counts.csv").write_text("north,south\n3,5\n")
    with pytest.raises(InputError, match="is the file that is read"):
        open_sink(tmp_path / "counts.csv", BINS, sources=[str(tmp_path / "counts.csv")])


def test_what_it_opens_itself_it_closes(tmp_path, monkeypatch):
    closed = []
    monkeypatch.setattr("eventide.live.feeds.count_feed.CountFeed.close", lambda self: closed.append(True))
    (tmp_path / "counts.csv").write_text("north,south\n3,5\n")
    assert ev.Publisher.check(tmp_path / "counts.csv", mechanism()).next_step == 0
    assert closed == [True]


def test_printed_it_says_which_errors_to_expect_as_the_command_does(tmp_path):
    found = check(tmp_path, sinks=())
    said = str(found)
    assert "Checked 2 bins; nothing was published or charged. Expected error of one measurement: 3." in said
    assert "With this setting the expected error of a count is about 2.9" in said
    assert "5,000: " in said
    assert said.endswith(str(found.guarantee))
    assert found.expected_error().errors[0].steady == pytest.approx((2.95, 2.95, 2.95, 2.95), abs=0.01)
    asked = check(tmp_path, sinks=(), questions=ev.Questions((QUERY,), epsilon=0.3))
    assert "Expected standard error of the answers to window queries: 2 every 1: " in str(asked)
    assert asked.known()["worst_window_spent_at_most"] == 1.3
