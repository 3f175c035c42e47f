"""The publisher: charge, draw, commit, emit; what is committed is never drawn again, and sinks get what is stored."""

from __future__ import annotations

import itertools
import json
import logging
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import eventide as ev
from eventide.errors import InputError, StateError, StoreError
from eventide.live.feeds.base import ClosedStep, Promise
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.publisher import delivery
from eventide.live.sinks.appending_file import AppendingFile
from eventide.live.sinks.base import Sink
from eventide.live.stores.open_store import open_store
from eventide.live.stores.verification import verify
from eventide.mechanisms.tide_waits import Waits
from eventide.releases import formats as release_formats

BINS = ["north", "south", "harbour"]
COUNTS = np.random.default_rng(3).integers(0, 50, (150, 3)) + 100 * (np.arange(150)[:, None] // 20)
WINDOW = 7


def mechanism(name="ba", **changed):
    return ev.mechanism(name, **{"epsilon": 1, "window": WINDOW, "bins": BINS, "noise": ev.noise.Zero()} | changed)


def publisher(path, counts=COUNTS, mech=None, sinks=(), **options):
    store = None if path is None else open_store(path, for_tests=True)
    return ev.Publisher(MemoryFeed(counts), mech or mechanism(), store, sinks, **options)


def released(path):
    store = open_store(path, read_only=True)
    lines = [json.loads(release) for _, release in store.releases()]
    store.close()
    return lines


class Collecting(Sink):
    """Keeps what it is sent; fails where told to."""

    def __init__(self, name="collecting", failures=()):
        self.name, self.sent, self.failures = name, [], list(failures)

    def send(self, step, release):
        if self.failures and self.failures.pop(0):
            raise OSError("out of order")
        self.sent.append((step, release))


LONG = [pytest.param(name, marks=pytest.mark.slow) for name in ("ba", "pegasus", "fast")]


@pytest.mark.parametrize("name", ["uniform", "rg", "dsat", *LONG])
def test_stopped_after_any_step_it_goes_on_as_if_nothing_had_happened(tmp_path, name):
    with publisher(tmp_path / "whole.db", mech=mechanism(name)) as whole:
        assert whole.run() == len(COUNTS)
    chance = np.random.default_rng(9)
    step = 0
    while step < len(COUNTS):
        with publisher(tmp_path / "parts.db", mech=mechanism(name)) as part:
            assert part.next_step == step
            part.run(until=min(len(COUNTS), step + int(chance.integers(1, 90))))
            step = part.next_step
    assert released(tmp_path / "parts.db") == released(tmp_path / "whole.db")
    assert part.ledger.worst_window() == whole.ledger.worst_window()
    stores = [open_store(tmp_path / name, read_only=True) for name in ("parts.db", "whole.db")]
    assert list(stores[0].entries()) == list(stores[1].entries()) != []
    for store in stores:
        store.close()


def test_what_is_published_is_what_the_mechanism_releases(tmp_path):
    with publisher(tmp_path / "store.db") as live:
        live.run()
    run = ev.run(mechanism(), COUNTS)
    np.testing.assert_array_equal([line["values"] for line in released(tmp_path / "store.db")], run.values)
    assert live.fresh_looks == run.fresh.sum()


def test_a_step_is_published_once_and_in_turn(tmp_path):
    with publisher(tmp_path / "store.db", mech=mechanism("uniform")) as live:
        first = live.publish(0, COUNTS[0])
        assert live.publish(0, COUNTS[1]) == first  # of a step that was published before, what was stored then
        with pytest.raises(StateError, match="before step 1"):
            live.publish(2, COUNTS[2])
        live.publish(1, COUNTS[1])
    with publisher(tmp_path / "store.db", mech=mechanism("uniform")) as live:
        assert live.publish(0, COUNTS[1]) == first


def test_nothing_leaves_before_it_is_committed(tmp_path, monkeypatch):
    sink = Collecting()
    live = publisher(tmp_path / "store.db", mech=mechanism("uniform"), sinks=[sink])
    live.publish(0, COUNTS[0])

    def full(commit):
        raise StoreError("the disk is full")

    monkeypatch.setattr(live.store, "commit", full)
    with pytest.raises(StoreError):
        live.publish(1, COUNTS[1])
    monkeypatch.undo()
    with pytest.raises(StateError, match="drawn and is not committed"):  # it is gone, and is not drawn again from here
        live.publish(1, COUNTS[1])
    assert [step for step, _ in sink.sent] == [0]
    live.close()
    with publisher(tmp_path / "store.db", mech=mechanism("uniform"), sinks=[sink]) as live:
        live.run(until=3)
    assert [step for step, _ in sink.sent][-2:] == [1, 2]


def test_every_sink_gets_every_stored_release_in_order(tmp_path):
    for until in (5, 90, None):
        collecting, failing = Collecting(), Collecting("failing", failures=[True] * 3)
        places = [tmp_path / name for name in ("out.jsonl", "out.csv", "out.parquet")]
        with publisher(tmp_path / "store.db", sinks=[*places, collecting, failing]) as live:
            begun = live.next_step
            live.run(until=until)
            live._deliveries._each[-1]._pause = 0.001
        stored = list(open_reading(tmp_path / "store.db").releases())
        assert collecting.sent == failing.sent == stored[begun:]
        assert places[0].read_bytes() == b"".join(release + b"\n" for _, release in stored)


def open_reading(path):
    return open_store(path, read_only=True)


def test_a_sink_that_fails_is_told_of_and_gets_the_rest_in_the_next_run(tmp_path):
    sink = Collecting(failures=[False] * 4 + [True] * 1000)
    with (
        pytest.raises(StoreError, match="up to step 3 only"),
        publisher(tmp_path / "store.db", sinks=[sink], last_patience=0) as live,
    ):
        assert live.run() == len(COUNTS)  # publishing goes on
    sink.failures.clear()
    with publisher(tmp_path / "store.db", sinks=[sink]):
        pass
    steps = [step for step, _ in sink.sent]
    assert sorted(set(steps)) == list(range(len(COUNTS)))
    assert steps[4:] == sorted(steps[4:])


def test_a_file_without_room_stops_nothing_and_is_told_of(tmp_path, monkeypatch):
    def full(sink, data):
        raise OSError(28, "No space left on device")

    out = tmp_path / "out.jsonl"
    with monkeypatch.context() as patched:
        patched.setattr(AppendingFile, "_write", full)
        with (
            pytest.raises(StoreError, match="No space left"),
            publisher(tmp_path / "store.db", sinks=[out], last_patience=0) as live,
        ):
            assert live.run() == len(COUNTS)
    assert out.read_bytes() == b""
    with publisher(tmp_path / "store.db", sinks=[out]):
        pass
    assert [json.loads(line) for line in out.read_text().splitlines()] == released(tmp_path / "store.db")


def test_a_slow_sink_gets_half_of_the_time_at_most(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(delivery.time, "monotonic", lambda: now[0])

    class Slow(Collecting):
        def send(self, step, release):
            now[0] += 5
            super().send(step, release)

    sink = Slow()
    with publisher(tmp_path / "store.db", sinks=[sink]) as live:
        for step in range(20):
            now[0] += 1
            live.publish(step, COUNTS[step])
        assert now[0] <= 2 * 20 + 5
        assert sink.sent == list(live.store.releases(0, len(sink.sent) - 1))
    assert len(sink.sent) == 20


def test_a_sink_that_is_ahead_of_its_store_is_refused_until_the_loss_is_admitted(tmp_path):
    out, store = restored(tmp_path, "out.jsonl")
    before = out.read_bytes()
    with pytest.raises(StoreError, match=r"29.*19.*--after-restore"):
        publisher(store, sinks=[out])
    assert out.read_bytes() == before
    with publisher(store, sinks=[out], after_restore=True) as live:
        assert live.next_step == 30
        live.run(until=50)
    lines = released(store)
    assert [line["step"] for line in lines] == [*range(20), *range(30, 50)]
    silent = 30 - 1 + WINDOW  # the window before counts as fully spent
    assert all(line["values"] == lines[19]["values"] for line in lines if 30 <= line["step"] < silent)
    assert not any(line["fresh"] for line in lines if 30 <= line["step"] < silent)
    assert lines[20 + WINDOW - 1]["fresh"]
    assert out.read_bytes().startswith(before)
    assert [json.loads(line)["step"] for line in out.read_text().splitlines()] == list(range(50))


def test_a_new_epoch_repeats_by_name_until_no_window_mixes(tmp_path):
    with publisher(tmp_path / "store.db", mech=mechanism("uniform")) as live:
        live.run(until=10)
    wider = mechanism("uniform", window=12, bins=["harbour", "west", "north"])
    with pytest.raises(InputError, match="new-epoch"):
        publisher(tmp_path / "store.db", mech=wider)
    with publisher(tmp_path / "store.db", mech=wider, new_epoch=True) as live:
        live.run(until=15)
    with publisher(tmp_path / "store.db", mech=mechanism("uniform", window=12, bins=wider.bins)) as live:
        live.run(until=40)
        north, _, harbour = COUNTS[9].tolist()
        lines = released(tmp_path / "store.db")
        first = 9 + 12
        assert [line["values"] for line in lines[10:first]] == [[harbour, 0, north]] * (first - 10)
        assert not any(line["fresh"] for line in lines[10:first])
        assert all(line["fresh"] for line in lines[first:])
        assert lines[10]["scale"][1] is None
    store = open_reading(tmp_path / "store.db")
    assert verify(store.entries(), store.epochs(), store.next_step()).holds
    store.close()


def test_a_file_written_from_another_store_is_refused(tmp_path):
    for name in ("one.db", "two.db"):
        with publisher(tmp_path / name, mech=mechanism("uniform"), counts=COUNTS + (name == "two.db")) as live:
            live.run(until=5)
    with publisher(tmp_path / "one.db", mech=mechanism("uniform"), sinks=[tmp_path / "out.csv"]):
        pass
    with pytest.raises(StoreError, match="Either it belongs to another store, or the store was restored from a backup"):
        publisher(tmp_path / "two.db", mech=mechanism("uniform"), sinks=[tmp_path / "out.csv"])


class Refusing(Collecting):
    """Cannot be written, or is ahead."""

    def __init__(self, last=None):
        super().__init__()
        self._last = last

    def open(self):
        if self._last is None:
            raise InputError("cannot write here")

    def last_step(self):
        return self._last


@pytest.mark.parametrize("sink", [Refusing(), Refusing(last=99)], ids=["closed", "ahead"])
def test_a_new_epoch_is_not_begun_where_a_sink_refuses(tmp_path, sink):
    with publisher(tmp_path / "store.db") as live:
        live.run(until=10)
    before = open_reading(tmp_path / "store.db").epochs()
    with pytest.raises((InputError, StoreError), match=r"cannot write|up to step 99"):
        publisher(tmp_path / "store.db", mech=mechanism(window=12), sinks=[sink], new_epoch=True)
    assert open_reading(tmp_path / "store.db").epochs() == before
    with publisher(tmp_path / "store.db") as live:  # the old setting is not refused
        live.run(until=11)
    assert released(tmp_path / "store.db")[10]["fresh"]


@pytest.mark.parametrize("name", ["out.parquet", "out.csv"])
def test_a_table_shows_no_release_of_other_bins(tmp_path, name):
    with publisher(tmp_path / "store.db", mech=mechanism("uniform")) as live:
        live.run(until=10)
    turned = mechanism("uniform", bins=BINS[::-1])
    with publisher(tmp_path / "store.db", mech=turned, sinks=[tmp_path / name], new_epoch=True) as live:
        live.run(until=30)
    table = pq.read_table(tmp_path / name) if name == "out.parquet" else pa_csv.read_csv(tmp_path / name)
    assert table["step"].to_pylist() == list(range(10, 30))
    assert table["harbour"].to_pylist() == [line["values"][0] for line in released(tmp_path / "store.db")[10:]]


def restored(tmp_path, name="out.parquet"):
    """An output with 30 steps, and a backup of its store with 20, of which nothing else can tell that it is one."""
    out, store = tmp_path / name, tmp_path / "store.db"
    with publisher(store, sinks=[out]) as live:
        live.run(until=20)
    backup = store.read_bytes()
    with publisher(store, sinks=[out]) as live:
        live.run(until=30)
    store.write_bytes(backup)
    (tmp_path / "store.db.lock").unlink()
    return out, store


@pytest.mark.parametrize("long", [False, True])
def test_a_parquet_file_keeps_what_was_published_and_lost_by_the_store(tmp_path, long, monkeypatch):
    monkeypatch.setattr(release_formats, "WIDEST", 1 if long else 1000)
    out, store = restored(tmp_path)
    before = pq.read_table(out)
    with pytest.raises(StoreError, match=r"29.*19.*--after-restore"):
        publisher(store, sinks=[out])
    assert pq.read_table(out).equals(before)
    with publisher(store, sinks=[out], after_restore=True) as live:
        assert live.next_step == 30
    assert pq.read_table(out).equals(before)
    for until in (40, 50):
        with publisher(store, sinks=[out]) as live:
            live.run(until=until)
        after = pq.read_table(out)
        assert after[: len(before)].equals(before)
        assert np.unique(after["step"]).tolist() == list(range(until))


def test_a_parquet_file_of_another_store_or_of_other_columns_is_refused_and_kept(tmp_path):
    out, _ = restored(tmp_path)
    with publisher(tmp_path / "other.db", counts=COUNTS + 1) as live:
        live.run(until=40)
    before = out.read_bytes()
    with pytest.raises(StoreError, match="another store"):
        publisher(tmp_path / "other.db", counts=COUNTS + 1, sinks=[out])
    with pytest.raises(InputError, match="other columns"):
        publisher(tmp_path / "store.db", mech=mechanism(bins=BINS[::-1]), sinks=[out], new_epoch=True)
    assert out.read_bytes() == before


def test_a_sink_that_cannot_be_made_durable_ends_the_run_and_is_not_believed(tmp_path, monkeypatch):
    class Full(Collecting):
        def flush(self):
            raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="No space left on device; look at its disk"):  # noqa: SIM117
        with publisher(tmp_path / "store.db", sinks=[Full()]) as live:
            live.run(until=5)
    store = open_reading(tmp_path / "store.db")
    assert (store.next_step(), store.delivered("collecting")) == (5, -1)


def test_a_writer_that_was_taken_over_sends_nothing_any_more(tmp_path):
    late, out = Collecting(), tmp_path / "out.jsonl"
    first = publisher(tmp_path / "store.db", sinks=[late, out])
    first.run(until=3)
    deliveries, first._deliveries = first._deliveries, delivery.Deliveries(first.store)
    first.run(until=6)  # committed, and about to be sent when it is paused
    first._deliveries = deliveries
    with publisher(tmp_path / "store.db", sinks=[out], take_over=True) as second:
        with pytest.raises(StoreError, match="taken over"):
            first.deliver()
        second.run(until=9)
        for step, release in second.store.releases(3, 5):
            first._deliveries._opened[1].send(step, release)  # and also one that looked a moment before
    first.close()
    assert [step for step, _ in late.sent] == [0, 1, 2]
    assert [json.loads(line)["step"] for line in out.read_text().splitlines()] == list(range(9))


@pytest.mark.parametrize(
    ("name", "changed", "says"),
    [
        ("ba", {"pan_private": "single"}, "pan_private"),
        ("ba", {"replicas": 2}, "replicas=1"),
        ("fast", {"accounting": "fixed-bin"}, "moving"),
        ("uniform", {"epsilon": 1e-6, "window": 10_000}, "larger epsilon"),
        ("ba", {"epsilon": 1e-6, "window": 10_000}, "larger epsilon"),
        ("rg-baseline", {"epsilon": 1e-6, "window": 10_000}, "larger epsilon"),
    ],
)
def test_a_mechanism_that_does_not_fit_is_refused(tmp_path, name, changed, says):
    with pytest.raises(InputError, match=says):
        publisher(tmp_path / "store.db", mech=mechanism(name, **changed))


def test_a_mechanism_that_was_used_before_is_refused(tmp_path):
    used = mechanism()
    used.release(COUNTS[0])
    with pytest.raises(InputError, match="give a new one"):
        publisher(tmp_path / "store.db", mech=used)


class Bounded(MemoryFeed):
    """Counts that were bounded."""

    def promise(self):
        return Promise("one person", 2, ("the start was taken from the data",))


def test_a_bound_that_is_not_the_sensitivity_is_refused():
    with pytest.raises(InputError, match="make both the same"):
        ev.Publisher(Bounded(COUNTS), mechanism())
    ev.Publisher(Bounded(COUNTS), mechanism(sensitivity=2)).close()


def test_noise_that_is_not_private_needs_a_store_for_tests(tmp_path):
    with pytest.raises(InputError, match="NOT PRIVATE"):
        ev.Publisher(MemoryFeed(COUNTS), mechanism(), tmp_path / "store.db")


def test_the_guarantee_says_what_it_rests_on(tmp_path):
    private = mechanism(noise="secure")
    with ev.Publisher(MemoryFeed(COUNTS), private) as live:
        assert "for this run only" in str(live.guarantee)
        assert "trusted" in str(live.guarantee)
    with ev.Publisher(Bounded(COUNTS), mechanism(noise="secure", sensitivity=2), tmp_path / "store.db") as live:
        assert "for this run only" not in str(live.guarantee)
        assert "trusted" not in str(live.guarantee)
        assert "The start was taken from the data." in str(live.guarantee)
        assert "at most 2" in str(live.guarantee)
        assert live.store.epochs()[-1].guarantee == str(live.guarantee)
    with publisher(tmp_path / "tests.db") as live:
        assert str(live.guarantee).startswith("NOT PRIVATE")


def test_the_log_tells_of_each_step_and_of_no_count(tmp_path, caplog):
    raw = COUNTS + 7_700_000
    with caplog.at_level(logging.INFO, "eventide.live"), publisher(None, counts=raw) as live:
        live.run(until=30)
    fields = [record.fields for record in caplog.records]
    assert [record["step"] for record in fields] == list(range(30))
    assert set(fields[0]) == {"step", "fresh", "spent", "left", "lag"}
    assert all(value is None or value <= 1000 for record in fields for value in record.values())


def test_a_run_without_a_store_keeps_little(tmp_path):
    sink = Collecting()
    with publisher(None, mech=mechanism("uniform"), sinks=[sink]) as live:
        live.run()
        assert len(list(live.store.releases())) < 100
    assert [step for step, _ in sink.sent] == list(range(len(COUNTS)))


def test_a_run_without_a_store_stops_at_once_when_its_sink_fails():
    with (
        pytest.raises(StoreError, match="what was published is lost"),
        publisher(None, sinks=[Collecting(failures=[False, True])]) as live,
    ):
        live.run()
    assert live.next_step == 2


def test_the_step_in_hand_is_finished_when_it_is_told_to_stop(tmp_path):
    asked = itertools.count(1)
    with publisher(tmp_path / "store.db") as live:
        assert live.run(stop=lambda: next(asked) >= 3) == 3
    assert len(list(open_store(tmp_path / "store.db", read_only=True).releases())) == 3


def test_the_position_is_stored_with_the_step(tmp_path):
    class Positioned(MemoryFeed):
        def steps(self, resume):
            self.resume = resume
            for closed in super().steps(resume):
                yield None
                yield ClosedStep(closed.index, closed.counts, {"row": closed.index})

    for until in (4, 9):
        feed = Positioned(COUNTS)
        with ev.Publisher(feed, mechanism(), open_store(tmp_path / "store.db", for_tests=True)) as live:
            live.run(until=until)
        assert feed.resume.position == ({"row": 3} if until == 9 else None)
        assert feed.resume.next_step == (4 if until == 9 else 0)


def test_paths_are_opened(tmp_path):
    lines = ["t,a,b", *(f"{step},{step},{step}" for step in range(20))]
    (tmp_path / "counts.csv").write_text("\n".join(lines) + "\n")
    out = tmp_path / "out.jsonl"
    private = ev.Uniform(epsilon=1e6, window=1, bins=["a", "b"])
    with ev.Publisher(tmp_path / "counts.csv", private, tmp_path / "store.db", [out]) as live:
        assert live.run() == 20
    assert [json.loads(line)["values"] for line in Path(out).read_text().splitlines()] == [[n, n] for n in range(20)]


@pytest.mark.parametrize("questions", [None, ev.Questions((ev.Query(window=2, step=1),), epsilon=0.2)])
def test_a_record_that_does_not_lead_to_the_stored_charges_is_refused(tmp_path, monkeypatch, questions):
    def live():
        return publisher(tmp_path / "store.db", mech=mechanism("uniform"), questions=questions)

    with live() as first:
        first.run(until=5)
    with live() as again:
        again.run(until=6)
    monkeypatch.setattr(ev.Uniform, "budget_allocation", lambda self: np.full((1, 1), self.nano_epsilon // 20))
    with pytest.raises(
        StoreError, match=r"the record of step 0 does not lead to the charges that the store has for it"
    ):
        live()


@pytest.mark.parametrize("rounded", ["waits longer", "spends less"])
@pytest.mark.parametrize("questions", [None, ev.Questions((ev.Query(window=2, step=1),), epsilon=0.2)])
def test_tide_that_rounds_otherwise_goes_on_with_an_epoch_apart_from_all_charges(
    tmp_path, monkeypatch, caplog, rounded, questions
):
    path, steps = tmp_path / "store.db", 40

    def live(until):
        with publisher(path, mech=mechanism("tide"), questions=questions) as again:
            again.run(until=until)

    live(steps)
    before = released(path)
    with monkeypatch.context() as other:
        if rounded == "waits longer":
            other.setattr(Waits, "wait", lambda self: np.full_like(self.length, WINDOW))
        else:
            spent = ev.Tide.budget_allocation
            other.setattr(ev.Tide, "budget_allocation", lambda self: spent(self) * 9 // 10)
        with caplog.at_level(logging.WARNING):
            live(steps + 30)
    assert "goes on with a new epoch" in caplog.text
    after = released(path)
    assert after[:steps] == before
    with closing(open_store(path, read_only=True)) as store:
        first, second = store.epochs()
        charged = {entry.step for entry in store.entries()}
        found = verify(store.entries(), store.epochs(), store.next_step())
        assert found.holds
        assert found.worst <= first.setting.epsilon
    assert (second.first_step, second.setting) == (steps, first.setting)
    gap = set(range(max(step for step in charged if step < steps) + 1, second.measured_from))
    assert len(gap) == WINDOW - 1
    assert not gap & charged
    assert second.measured_from in charged
    assert all(release["values"] == before[-1]["values"] for release in after[steps : second.measured_from])
    live(steps + 40)  # and back again
    assert len(released(path)) == steps + 40
