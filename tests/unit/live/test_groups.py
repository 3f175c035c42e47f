"""Steps at hand become durable in one commit: nothing leaves before it, and else it is as if each step were alone."""

from __future__ import annotations

import json
from contextlib import closing

import numpy as np
import pytest
from live_stores import SETTING, a_commit

import eventide as ev
from eventide.errors import InputError, StateError
from eventide.events.bins import with_spares
from eventide.live.feeds.base import ClosedStep
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.publisher import publisher
from eventide.live.sinks.base import Sink
from eventide.live.stores.base import PlanStep
from eventide.live.stores.database_store import DatabaseStore
from eventide.live.stores.open_store import open_store
from eventide.releases.lines import read_line

LONG = [pytest.param(name, marks=pytest.mark.slow) for name in ("uniform", "pegasus")]
COUNTS = np.random.default_rng(4).integers(0, 50, (150, 2))


@pytest.fixture
def groups(monkeypatch):
    """The steps of each commit."""
    made = []

    def commit(store, *commits):
        written(store, *commits)
        made.append([each.step for each in commits])

    written = DatabaseStore.commit
    monkeypatch.setattr(DatabaseStore, "commit", commit)
    return made


class Witness(Sink):
    """Knows whether what it is sent was durable."""

    name = "witness"

    def __init__(self, path):
        self.durable, self._path = [], path

    def send(self, step, release):
        with closing(open_store(self._path, read_only=True)) as stored:
            self.durable.append((step, stored.release(step) == release))


def uniform(**changed):
    made = {"epsilon": 1, "window": 7, "bins": ["north", "south"], "noise": ev.noise.Zero()}
    return ev.Uniform(**made | changed)


def publishing(path, feed, mechanism=None, sinks=(), **options):
    return ev.Publisher(feed, mechanism or uniform(), open_store(path, for_tests=True), sinks, **options)


def lines_of(path):
    with closing(open_store(path, read_only=True)) as stored:
        stored.verify()
        return [line for _, line in stored.releases()], list(stored.entries())


def sizes(groups):
    return [len(steps) for steps in groups]


def test_steps_at_hand_are_committed_together_and_leave_after_that(tmp_path, groups):
    witness = Witness(tmp_path / "store.db")
    with publishing(tmp_path / "store.db", MemoryFeed(COUNTS), sinks=[witness]) as live:
        assert live.run() == 150
    assert sizes(groups) == [64, 64, 22]
    assert witness.durable == [(step, True) for step in range(150)]


@pytest.mark.parametrize("name", ["ba", *LONG])
def test_what_comes_out_is_what_comes_out_alone(tmp_path, monkeypatch, name):
    for together in (1, 7, 64):
        monkeypatch.setattr(publisher, "TOGETHER", together)
        questions = ev.Questions((ev.Query(4, 2), ev.Query(9, 3)), 0.4)
        feed, out = MemoryFeed(COUNTS[:100]), tmp_path / f"{together}.jsonl"
        for until in (30, 100):
            mechanism = ev.mechanism(name, epsilon=1, window=7, bins=["north", "south"], noise=ev.noise.Zero())
            with publishing(tmp_path / f"{together}.db", feed, mechanism, [out], questions=questions) as live:
                live.run(until=until)
    alone, *others = ((lines_of(tmp_path / f"{n}.db"), (tmp_path / f"{n}.jsonl").read_bytes()) for n in (1, 7, 64))
    assert others == [alone] * 2


def test_a_group_of_many_bins_is_short(tmp_path, monkeypatch, groups):
    monkeypatch.setattr(publisher, "NUMBERS_TOGETHER", 7)
    with publishing(tmp_path / "store.db", MemoryFeed(COUNTS[:10])) as live:
        live.run()
    assert sizes(groups) == [3, 3, 3, 1]


def test_what_is_made_as_time_goes_by_is_committed_at_once(tmp_path):
    def rows():
        for step, row in enumerate(COUNTS[:5]):
            with closing(open_store(tmp_path / "store.db", read_only=True)) as stored:
                assert stored.next_step() == step
            yield row

    with publishing(tmp_path / "store.db", MemoryFeed(rows())) as live:
        assert live.run() == 5


def test_of_a_complete_source_what_waits_is_committed_when_a_look_closes_nothing(tmp_path):
    class Slow(MemoryFeed):
        def steps(self, resume):
            with closing(open_store(tmp_path / "store.db", read_only=True)) as stored:
                for step, row in enumerate(COUNTS[:4]):
                    yield ClosedStep(step, row, None, more=True)
                    yield None
                    assert stored.next_step() == 2 * (step // 2)  # what came with the look before is still waiting
                    if step % 2:
                        yield None
                        assert stored.next_step() == step + 1

    with publishing(tmp_path / "store.db", Slow(())) as live:
        assert live.run() == 4


def test_what_was_drawn_is_committed_where_the_next_row_is_wrong(tmp_path):
    rows = [",".join(map(str, row)) for row in COUNTS[:5]]
    (tmp_path / "counts.csv").write_text("\n".join(["north,south", *rows, "1,x"]) + "\n")
    with pytest.raises(InputError), publishing(tmp_path / "store.db", tmp_path / "counts.csv") as live:
        live.run()
    done = len(lines_of(tmp_path / "store.db")[0])
    assert done == live.published

    def failing():
        yield from COUNTS[:5]
        raise InputError("the source has failed")

    class AtHand(MemoryFeed):
        def steps(self, resume):
            return (closed._replace(more=True) for closed in super().steps(resume))

    with pytest.raises(InputError), publishing(tmp_path / "other.db", AtHand(failing())) as live:
        live.run()
    assert (live.published, len(lines_of(tmp_path / "other.db")[0])) == (5, 5)


def test_what_was_drawn_is_committed_where_the_next_draw_fails(tmp_path):
    class Failing(ev.Uniform):
        def perturbation(self, *asked):
            if self.step == 3:
                raise StateError("out of order")
            return super().perturbation(*asked)

    mechanism = Failing(epsilon=1, window=7, bins=["north", "south"], noise=ev.noise.Zero())
    live = publishing(tmp_path / "store.db", MemoryFeed(COUNTS), mechanism)
    with closing(live), pytest.raises(StateError, match="out of order"):
        live.run()
    assert live.worst_window() == pytest.approx(3 / 7, abs=1e-8)  # the charge of the step that failed is left out
    assert (live.published, len(lines_of(tmp_path / "store.db")[0])) == (3, 3)


def test_a_ledger_is_not_shown_while_something_waits_for_its_commit(tmp_path):
    refused = []

    def stop():
        try:
            _ = live.ledger
        except StateError as problem:
            refused.append(str(problem))
        return len(refused) == 3

    with publishing(tmp_path / "store.db", MemoryFeed(COUNTS)) as live:
        assert live.run(stop=stop) == 3
        assert live.ledger.worst_window() == live.worst_window()
    assert all("is not committed" in each for each in refused)


def test_bins_that_may_get_names_have_a_commit_for_each_step(tmp_path, groups):
    mechanism = uniform(bins=with_spares(["north"], 1))
    with publishing(tmp_path / "store.db", MemoryFeed([{"north": 3}] * 4), mechanism) as live:
        live.run()
    assert sizes(groups) == [1, 1, 1, 1]


def test_old_releases_are_erased_however_many_steps_come_together(tmp_path, monkeypatch):
    monkeypatch.setattr(publisher, "SNAPSHOT_EVERY", 8)
    with publishing(tmp_path / "store.db", MemoryFeed(COUNTS), keep=20) as live:
        live.run()
        assert 0 < live.store.kept_from() <= 130


def test_a_store_holds_after_a_group_what_it_holds_after_each(tmp_path):
    def commits():
        for step in range(6):
            plan = PlanStep(b"plan %d" % step, b"open %d" % step, whole=step in (0, 3))
            kept = (step + 2, b"used at %d" % step)
            snapshot = b"state %d" % step if step in (1, 4) else None
            line = b'{"step": %d, "values": [%s1]}' % (step, b"7, " * 100)
            yield a_commit(step, snapshot=snapshot)._replace(plan=plan, kept=kept, release=line, fresh=step == 0)

    states = []
    for name, alone in (("alone.db", True), ("together.db", False)):
        with closing(open_store(tmp_path / name)) as store:
            store.begin(SETTING)
            store.keep([(3, b"open"), (7, b"later")], "batch")
            for each in [(one,) for one in commits()] if alone else [tuple(commits())]:
                store.commit(*each)
            assert list(store.releases(4, 5)) == [(one.step, one.release) for one in commits()][4:]
        with closing(open_store(tmp_path / name)) as store:
            state = store.begin(SETTING)._replace(key=b"")
            states.append((tuple(state), store.kept(), *lines_of(tmp_path / name)))
    assert states[0] == states[1]
    assert [step for step, _ in states[0][1]] == [6, 7, 7]


def test_steps_that_do_not_follow_each_other_are_refused_together(tmp_path):
    with closing(open_store(tmp_path / "store.db")) as store:
        store.begin(SETTING)
        with pytest.raises(StateError, match="step 2 came to be committed where step 1 is next"):
            store.commit(a_commit(0), a_commit(2))
        assert (store.next_step(), list(store.releases())) == (0, [])
        store.commit(a_commit(0), a_commit(1))
        assert [json.loads(line)["step"] for _, line in store.releases()] == [0, 1]


def test_a_life_before_and_behind_an_epoch_comes_together(tmp_path, groups):
    for window, new_epoch in ((7, False), (9, True)):
        with publishing(tmp_path / "store.db", MemoryFeed(COUNTS), uniform(window=window), new_epoch=new_epoch) as live:
            live.run(until=20 if window == 7 else 60)
    assert sizes(groups) == [20, 40]
    assert [read_line(line).fresh for line in lines_of(tmp_path / "store.db")[0]] == [True] * 20 + [False] * 8 + [
        True
    ] * 32
