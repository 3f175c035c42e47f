"""Two worlds: what the harness compares, what it lets pass, and how it tells of a difference."""

from __future__ import annotations

import contextlib
import logging

import numpy as np
import pytest
from worlds import PERSONS, STEPS, WINDOW, Setup, check, command, events, run

import eventide as ev
from eventide.audit.two_worlds import OnlyA, OnlyB, Unseen, WorldsDiffer, check_two_worlds
from eventide.audit.two_worlds.view import UNSEEN, PublicView
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.mechanisms.base import Mechanism

# The short form: every source, store, life and person is met, and hardly two cases have the same mechanism.
SHORT = [
    Setup(),
    Setup(store=None, source="jsonl", mechanism="uniform", person="breaks lines"),
    Setup(source="parquet", mechanism="rescuedp", person="does too much", life="dies at emitting", most=1),
    Setup(source="growing", mechanism="bd", person="is in another bin", life="dies before the commit"),
    Setup(source="rotated", mechanism="uniform", person="comes and goes", life="dies before the commit"),
    Setup(source="rotated", mechanism="fast", person="does too much", life="dies once"),
    Setup(source="copied", mechanism="ba", person="breaks lines", life="dies at emitting"),
    Setup(source="csv", mechanism="ba", person="comes and goes", life="dies inside a group", queries=True),
    Setup(source="pipe", mechanism="pegasus", person="comes and goes", life="dies at a snapshot"),
    Setup(source="command", mechanism="rg", person="writes nonsense", life="needs an epoch"),
    Setup(source="command", mechanism="dsat", person="is there", life="is restored"),
    Setup(source="csv", mechanism="spas", person="has no name", life="begins an epoch", queries=True),
    Setup(source="http", mechanism="adapub", person="is early and late", life="dies once", queries=True),
    Setup(source="http", mechanism="ba", person="repeats it", life="is busy"),
    Setup(source="frame", mechanism="hybrid", person="does too much", life="dies once"),
    Setup(source="sorted stream", mechanism="sample", person="is early and late", life="begins an epoch"),
    Setup(source="sorted stream", store=None, mechanism="fast", person="comes and goes"),
]


@pytest.mark.parametrize("setup", SHORT, ids=str)
def test_two_worlds_look_the_same(setup):
    verdict = check(setup)
    assert verdict.steps >= STEPS
    assert set(verdict.changed) <= set(WINDOW)
    never_counted = ["writes nonsense", "breaks lines", *(["is early and late"] if setup.source == "http" else [])]
    assert bool(verdict.changed) == (setup.person not in never_counted)
    assert verdict.seen["log of eventide-city" if setup.source == "http" else "log"] > 1


@pytest.mark.parametrize("asked", [["--mechanism", "ba"], ["--queries", "queries.toml"]], ids=["releases", "answers"])
def test_counts_that_somebody_else_has_made(asked):
    """Releases go through the publisher, answers alone do not; both at once are among the cases above."""

    def run(world):
        rows = "".join(f"{world.events.count(step)},7\n" for step in range(12))
        (world.folder / "counts.csv").write_text(f"north,south\n{rows}")
        (world.folder / "queries.toml").write_text("[[query]]\nwindow = 4\nstep = 2\n")
        words = ["publish", "counts.csv", "--epsilon", 1, "--window", 3, "--out", "seen/out.csv", "--json"]
        with contextlib.chdir(world.folder):
            command(world, [*words, *asked])

    others = [step for step in range(12) for _ in range(step)]
    verdict = check_two_worlds(run, [*others, OnlyA(5), OnlyB(6)], window=range(4, 7))
    assert verdict.changed == [5, 6]
    assert verdict.seen["file out.csv"] > 5


def test_a_verdict_says_what_was_compared():
    verdict = check(Setup(source="command"))
    said = str(verdict)
    assert said.startswith("The two worlds look the same: 8 steps with ")
    assert "the sealed counts differ at steps 3, 5." in said
    channels = {
        "log",
        "stdout",
        "stderr",
        "exit codes",
        "file out.jsonl",
        "file exported out.csv",
        "store store.db, step",
    }
    assert channels <= verdict.seen.keys()


def counted(world, bins=1, steps=4):
    """Counts of events that are numbers of steps."""
    return [[world.events.count(step)] * bins for step in range(steps)]


def released(world, mechanism=None, rows=None):
    """Publish counts without a publisher, and show the releases."""
    mechanism = mechanism or ev.BudgetAbsorption(epsilon=1, window=2, bins=1)
    for row in counted(world) if rows is None else rows:
        world.show("releases", str(mechanism.release(row).values))


DIFFERING = [0, 0, OnlyA(1), 1, 2, OnlyB(2), 3]


def test_a_mechanism_alone_can_be_checked():
    assert check_two_worlds(released, DIFFERING, window=range(1, 3)).changed == [1, 2]


@pytest.mark.parametrize(
    ("window", "most", "sentence"),
    [
        (range(2, 3), 1, "step 1: sealed counts are 1 apart, outside the window of step 2"),
        (range(1, 3), 0, "step 1: sealed counts are 1 apart, where one person adds 0 at the most"),
    ],
)
def test_counts_that_are_too_far_apart_are_found(window, most, sentence):
    with pytest.raises(WorldsDiffer, match=sentence):
        check_two_worlds(released, DIFFERING, window=window, most=most)


class Peeping(Mechanism):
    """Asks the meter for something that depends on a true count, which a run hands over behind the meter's back."""

    true = 0
    asks = "amount"

    def is_sampling_point(self, step):
        if self.asks == "kind" and self.true:
            self.meter.distance(step, np.zeros((1, 1)), self._amount)
        if self.asks == "reference":
            self.meter.distance(step, np.full((1, 1), self.true), self._amount)
        return np.ones((1, 1), dtype=bool)

    @property
    def _amount(self):
        return np.array([[self.nano_epsilon // self.window // 2]])

    def budget_allocation(self):
        return self._amount - (self.true if self.asks == "amount" else 0)


@pytest.mark.parametrize(
    ("asks", "sentence"),
    [
        ("amount", "'counts' was asked for with another amount: .249999999. in A, .250000000. in B"),
        ("reference", "'distance' was asked for with another reference: .1. in A, .0. in B"),
        ("kind", "'distance' was asked for in world A, 'counts' in world B"),
    ],
)
def test_another_question_to_the_meter_is_found(asks, sentence):
    def run(world):
        mechanism = Peeping(epsilon=1, window=2, bins=1)
        mechanism.asks = asks
        for row in counted(world):
            mechanism.true = row[0]
            mechanism.release(row)

    with pytest.raises(WorldsDiffer, match=f"step 1: {sentence}"):
        check_two_worlds(run, [OnlyA(1)], window=range(1, 2))


def test_a_question_too_few_is_found():
    def run(world):
        mechanism = ev.Uniform(epsilon=1, window=2, bins=1)
        for row in counted(world)[: 3 + len(world.own)]:
            mechanism.release(row)

    with pytest.raises(WorldsDiffer, match="step 3 was worked on in world A only"):
        check_two_worlds(run, [OnlyA(1)], window=range(1, 2))


def test_the_published_spas_asks_for_a_distance_to_true_counts():
    with pytest.raises(WorldsDiffer, match=r"step 4 .*'test' was asked for with another reference"):
        check(Setup(mechanism="spas", parameters=(("as_published", True),)))


def test_noise_that_is_drawn_beside_the_meter_shows():
    def run(world):
        mechanism = ev.Uniform(epsilon=1, window=2, bins=1)
        mechanism.release([3])
        world.show("drawn", str(mechanism.source.laplace(10**9, np.array([[1]]), (1, 1))))

    with pytest.raises(WorldsDiffer, match="drawn, line 1"):
        check_two_worlds(run, [], window=range(1))


def test_a_difference_is_shown_with_its_place_and_what_else_differs():
    def run(world):
        released(world)
        world.show("page", "first line\n" + 100 * "x" + f"<b>{world.name}</b>")
        world.show("other page", world.name)

    with pytest.raises(WorldsDiffer) as found:
        check_two_worlds(run, DIFFERING, window=range(1, 3))
    lines = str(found.value).splitlines()
    assert lines[:2] == ["The two worlds can be told apart.", "page, line 2"]
    assert lines[2] == f"  A: {57 * 'x'}<b>A</b>"
    assert lines[2][lines[4].index("^")] == "A"
    assert lines[3][lines[4].index("^")] == "B"
    assert lines[5:] == ["Also different:", "- other page, line 1"]


def test_a_line_too_many_is_found():
    def run(world):
        released(world)
        for _ in world.own:
            world.show("page", "hello")

    with pytest.raises(WorldsDiffer, match="page, line 1"):
        check_two_worlds(run, [OnlyA(0)], window=range(1))


def test_log_lines_of_every_level_are_compared():
    def run(world):
        released(world)
        logging.getLogger("eventide.live").debug("events so far", extra={"fields": {"events": len(world.events)}})

    with pytest.raises(WorldsDiffer, match=r'log, line 1\n.*"events": 5'):
        check_two_worlds(run, [0, 1, 2, 3, OnlyA(1)], window=range(1, 2))


def test_what_is_left_in_a_folder_is_compared():
    def run(world):
        released(world)
        (world.seen / "report.txt").write_text(f"{len(world.events)} events")
        (world.folder / "inputs.txt").write_text(f"{len(world.events)} events")

    with pytest.raises(WorldsDiffer, match=r"file report\.txt, line 1") as found:
        check_two_worlds(run, [0, OnlyA(1)], window=range(1, 2))
    assert "inputs" not in str(found.value)


def test_error_texts_are_compared():
    def run(world):
        released(world)

        def refuse():
            raise ev.InputError(f"there are {len(world.events)} events")

        world.live(refuse)

    with pytest.raises(WorldsDiffer, match="InputError: there are 2 events\n  B: InputError: there are 1 events"):
        check_two_worlds(run, [0, OnlyA(1)], window=range(1, 2))


def test_a_failure_of_the_run_itself_is_told_as_it_is():
    def run(world):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        check_two_worlds(run, [], window=range(1))


def test_a_failure_in_one_world_only_is_a_difference():
    def run(world):
        released(world)
        world.events.index(1)

    with pytest.raises(WorldsDiffer, match="failed in world B: ValueError"):
        check_two_worlds(run, [OnlyA(1)], window=range(1, 2))


def test_a_run_that_asks_nothing_shows_nothing():
    with pytest.raises(AssertionError, match="the meter was asked nothing"):
        check_two_worlds(lambda world: world.show("page", "hello"), [], window=range(1))


def test_a_life_that_does_not_end_where_it_should_is_told():
    with pytest.raises(ValueError, match="half-line:99 was never passed"):
        check_two_worlds(lambda world: world.live(lambda: released(world), "half-line:99"), [], window=range(1))
    with pytest.raises(ValueError, match="there is no point 'nowhere'"):
        check_two_worlds(lambda world: world.live(lambda: released(world), "nowhere"), [], window=range(1))


@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("how", ["bd", "ba", "uniform", "pegasus"])
def test_what_was_never_committed_is_answered_otherwise(how, together, monkeypatch):
    """Somebody who sees the draws of steps that crashed sees something else in the other world, whatever was drawn."""
    monkeypatch.setattr("eventide.live.publisher.publisher.TOGETHER", together)

    def run(world):
        def publish():
            mechanism = ev.mechanism(how, epsilon=1, window=2, bins=1)
            release = mechanism.release
            mechanism.__dict__["release"] = lambda counts: seen(release(counts))
            with ev.Publisher(MemoryFeed(counted(world)), mechanism, world.folder / "store.db") as publisher:
                publisher.run()

        def seen(release):
            world.show("drawn", f"{release.fresh} {release.values}")
            return release

        world.live(publish, "before-commit:2")
        world.live(publish)

    with pytest.raises(WorldsDiffer, match=f"drawn, line {together + 1}"):
        check_two_worlds(run, DIFFERING, window=range(1, 3))


def test_the_usual_exemptions_are_named_and_have_reasons():
    assert all(rule.reason and rule.channel for rule in UNSEEN)
    view = PublicView()
    view.show("log", '{"fields": {"step": 3, "lag": 27576715.302}}')
    view.show("stderr", '{"time": "2026-01-01T00:00:00.000+00:00", "lag": null}\nFor operators only, since: 3 taken.')
    view.show(
        "stdout", '{"steps": 8, "operators_only": {"accepted": 3, "refused": {"late": 1}, "each": {}}, "out": null}'
    )
    view.show("own reply", "accepted: 1")
    view.show("operators: GET /metrics", "events 3")
    assert {channel: view.lines(channel, UNSEEN) for channel in view} == {
        "log": [b'{"fields": {"step": 3, }}'],
        "stderr": [b"{, }"],
        "stdout": [b'{"steps": 8, , "out": null}'],
        "own reply": [],
        "operators: GET /metrics": [],
    }


@pytest.mark.parametrize("source", ["csv", "command"])
def test_input_that_is_mostly_unreadable_may_be_refused_before_the_first_release(source):
    nonsense = [OnlyA((0, f"nonsense {number}")) for number in range(200)]
    setup = Setup(source=source)
    verdict = check_two_worlds(
        lambda world: run(world, setup), [*nonsense, *events("is there")], window=WINDOW, most=setup.most
    )
    assert "came to no release, which is allowed: the refusal of input" in str(verdict)


def test_an_exemption_of_ones_own_has_a_reason():
    def run(world):
        released(world)
        world.show("page", f"{len(world.events)} events, 3 bins")

    rule = Unseen("page", r"\d+ events", "in this test it is not seen")
    assert check_two_worlds(run, DIFFERING, window=range(1, 3), unseen=[rule]).seen["page"] == 1


def test_worlds_can_be_left_behind(tmp_path):
    setup = Setup()
    made = events(setup.person)
    check_two_worlds(lambda world: run(world, setup), made, window=WINDOW, most=2, folder=tmp_path)
    ours, theirs = ((tmp_path / name / "events.csv").read_text().splitlines() for name in "AB")
    assert len(ours) - len(theirs) == len(PERSONS[setup.person])
    assert (tmp_path / "A" / "seen" / "out.jsonl").read_bytes() == (tmp_path / "B" / "seen" / "out.jsonl").read_bytes()


def test_everything_is_as_it_was_afterwards():
    from eventide.live import faults
    from eventide.live.publisher.publisher import Publisher
    from eventide.privacy.meter import Meter

    before = [Meter._answered, Meter.seal, Publisher._draw, faults.passing, logging.getLogger().handlers[:]]
    check(Setup(store=None))
    assert [Meter._answered, Meter.seal, Publisher._draw, faults.passing, logging.getLogger().handlers] == before
