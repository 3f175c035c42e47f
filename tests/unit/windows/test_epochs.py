"""Replanning: slots end at the boundary, windows reach back through what was released, the ledger goes on; saving."""

import itertools

import numpy as np
import pytest
from window_oracles import best_linear, released_slots, rows, truth

from eventide import windows
from eventide.bench.study.workloads import general
from eventide.errors import BudgetExceeded, InputError, StateError
from eventide.privacy.amounts import NANO
from eventide.privacy.archive import pack, unpack
from eventide.privacy.noise import Unit, Zero
from eventide.windows import Query
from eventide.windows.answering import estimates
from eventide.windows.workload import Workload

OLD = [Query(15, 5), Query(20, 10), Query(60, 30)]
NEW = [Query(12, 4), Query(20, 10), Query(70, 35)]


def counts_of(ticks, seed=0):
    return np.random.default_rng(seed).integers(0, 1_000, ticks)


def windows_of(due, query):
    return {(answer.begin, answer.end) for answer in due if answer.query == query and not answer.refined}


def all_windows(query, after, until):
    begins = range(0, until - query.window + 1, query.step)
    return {(begin, begin + query.window) for begin in begins if begin + query.window > after}


@pytest.mark.parametrize("planner", ["base", "binary", "sample-dp", "emd", "best"])
@pytest.mark.parametrize("boundaries", [(30, 47), (35, 36), (60,), (61, 61, 200), (7, 11, 13)])
@pytest.mark.parametrize("horizon", [None, 37])
def test_without_noise_answers_across_boundaries_are_true_sums(planner, boundaries, horizon):
    """Also a plan that ends is replanned, wherever it does."""
    counts = counts_of(280)
    queries = itertools.cycle(
        [[Query(15, 5), Query(80, 40)], [Query(8, 4), Query(160, 80)], [Query(20, 10), Query(80, 80)]]
    )
    answers, tick = windows.plan(next(queries), planner=planner, horizon=horizon).start(noise=Zero()), 0
    for boundary in (*boundaries, 280):
        while tick < boundary:
            more = int(min(boundary - tick, answers._epoch.ticks_left))
            due = answers.push_many(counts[tick : tick + more])
            tick += more
            np.testing.assert_allclose(due.value, truth(counts, due), atol=1e-6)
            assert np.isfinite(due.variance).all()
            if tick < boundary:
                assert len(answers.replan(horizon=horizon)) == 0
        answers.replan(next(queries))
    assert answers.tick == 280
    assert answers.ledger.worst_window() <= 1


@pytest.mark.parametrize("planner", ["base", "emd", "best"])
@pytest.mark.parametrize("boundary", [60, 65, 67, 120, 121])
def test_an_unchanged_query_is_answered_without_a_gap(planner, boundary):
    """Query (20, 10) stays: each of its windows is answered, those across the boundary in two parts."""
    counts = counts_of(300)
    answers = windows.plan(OLD, planner=planner).start(noise=Zero())
    before = answers.push_many(counts[:boundary])
    answers.replan(NEW)
    after = answers.push_many(counts[boundary:])
    assert windows_of(before, NEW[1]) == all_windows(NEW[1], 0, boundary)
    assert windows_of(after, NEW[1]) == all_windows(NEW[1], boundary, 300)
    assert not windows_of(after, OLD[0])
    np.testing.assert_allclose(after.value, truth(counts, after), atol=1e-6)


def test_a_plan_with_a_horizon_goes_on_epoch_after_epoch_with_true_phases():
    queries = general(0, 20)
    counts = counts_of(3_000)
    answers = windows.plan(queries, horizon=1_500).start(noise=Zero())
    first = answers.push_many(counts[:1_500])
    answers.replan(horizon=1_500)
    second = answers.push_many(counts[1_500:])
    np.testing.assert_allclose(second.value, truth(counts, second), atol=1e-6)
    for query in set(queries):
        if 2 * query.window <= 1_500:
            assert windows_of(first, query) == all_windows(query, 0, 1_500)
            assert windows_of(second, query) == all_windows(query, 1_500, 3_000)


@pytest.mark.parametrize("boundaries", [(67, 143), (60, 150), (64, 66), (61, 122)])
def test_answers_across_boundaries_are_the_best_linear_ones_of_truncated_slots(boundaries):
    """Ticks 0          67        143         199
    epochs   [---------)[---------)[---------)     open slots are released at a boundary, new ones begin there
    """
    counts = counts_of(199)
    one, other = [Query(20, 5), *[Query(120, 60)] * 3], [Query(12, 4), *[Query(96, 48)] * 2]
    answers, epochs, found, tick = windows.plan(one).start(noise=Unit(), refine=True), [], [], 0
    for boundary, queries in zip((*boundaries, 199), (other, one, one), strict=True):
        assert len(np.unique(answers.plan.slots.level)) > 1
        epochs.append((answers.plan, tick))
        found += list(answers.push_many(counts[tick:boundary]))
        found += list(answers.replan(queries))
        tick = boundary
    ends = [first for _, first in epochs[1:]] + [199]
    slots = [released_slots(plan, counts, first, end) for (plan, first), end in zip(epochs, ends, strict=True)]
    across = [a for a in found if any(a.begin < boundary < a.end for boundary in boundaries)]
    assert {answer.refined for answer in across} == {True, False}
    for answer in [*across, *found[::25]]:
        known = np.concatenate(slots)
        if not answer.refined:  # a slot that was truncated at a boundary ended there
            known = known[known[:, 1] <= answer.end]
        value, variance = best_linear(known, answer.begin, answer.end)
        assert answer.value == pytest.approx(value, rel=1e-9)
        assert answer.variance == pytest.approx(variance, rel=1e-6)
    assert len([a for a in found if a.refined]) == len([a for a in found if not a.refined])


def test_a_query_registered_later_reaches_back_only_through_released_slots():
    """Slots begin at multiples of 6: windows of (20, 10) from 0 and 30 can be answered, those from 10 and 20 cannot."""
    counts = counts_of(100)
    answers = windows.plan([Query(36, 6)]).start(noise=Zero())
    answers.push_many(counts[:37])
    answers.replan([Query(20, 10)])
    due = answers.push_many(counts[37:])
    np.testing.assert_allclose(due.value, truth(counts, due), atol=1e-6)
    assert windows_of(due, Query(20, 10)) == all_windows(Query(20, 10), 37, 100) - {(20, 40)}


def test_a_longer_window_reaches_back_as_far_as_is_held(monkeypatch):
    monkeypatch.setattr(estimates, "SHORTEST_BLOCK", 1)
    counts = counts_of(200)
    answers = windows.plan([Query(10, 5)]).start(noise=Zero())
    answers.push_many(counts[:100])
    answers.replan([Query(60, 10)])
    due = answers.push_many(counts[100:])
    np.testing.assert_allclose(due.value, truth(counts, due), atol=1e-6)
    begins = sorted(begin for begin, _ in windows_of(due, Query(60, 10)))
    assert begins[0] in (80, 90)  # two blocks of ten ticks at the most, one at the least
    assert begins == list(range(begins[0], 150, 10))


def test_replanning_charges_nothing_and_the_ledger_carries_on():
    answers = windows.plan(OLD, epsilon=0.6).start(seed=1, window=50)
    answers.push_many(counts_of(47))
    left = answers.ledger.left()
    assert answers.holds_raw
    answers.replan(NEW)
    assert not answers.holds_raw
    assert (answers.tick, answers.ledger.left()) == (47, left)
    answers.push_many(counts_of(500))
    assert 0.59 < answers.ledger.worst_window() <= 0.6
    assert answers.plan.epsilon == 0.6


@pytest.mark.parametrize(
    "bad",
    [{"queries": []}, {"queries": ["x"]}, {"planner": "magic"}, {"horizon": 0}, {"horizon": 3}, {"planner": "base"}],
)
def test_a_bad_workload_changes_nothing(bad):
    counts = counts_of(120)
    answers, twin = (windows.plan(OLD).start(seed=3, refine=True) for _ in range(2))
    answers.push_many(counts[:50])
    with pytest.raises(InputError):
        answers.replan(**bad)
    answers.push_many(counts[50:])
    twin.push_many(counts)
    assert answers.save() == twin.save()


@pytest.mark.parametrize("start", [0, 7, 1_000, 12_345])
@pytest.mark.parametrize("planner", ["base", "sample-dp", "emd", "best"])
def test_a_workload_that_begins_later_has_its_windows_at_multiples_of_all_steps(start, planner):
    queries = [Query(8, 4), Query(24, 8), Query(48, 16)]
    workload = (
        Workload.of(queries, horizon=100 if start % 2 else 15, start=start) if start else Workload.of(queries, 15)
    )
    assert ((workload.begin + workload.start) % workload.step[workload.owner] == 0).all()
    assert workload.begin.min() >= 0
    if not workload.periodic:
        assert workload.end.max() <= workload.length
        assert workload.start == start
    plan = windows.plans.Plan(workload, 1, planner)
    assert plan.slots.largest_sum() <= NANO
    assert np.isfinite(plan.workload_error)


@pytest.mark.parametrize("planner", ["base", "binary", "emd", "best"])
@pytest.mark.parametrize("settings", [{}, {"bins": ["a", "b"], "replicas": 2, "window": 3, "sensitivity": 2}])
def test_saved_at_any_tick_it_goes_on_the_same(planner, settings, monkeypatch):
    monkeypatch.setattr(estimates, "SHORTEST_BLOCK", 8)
    counts = np.random.default_rng(1).integers(0, 50, (300, 2) if settings else 300)
    settings = settings | {"refine": planner == "best", "seed": 9}
    plan = windows.plan(OLD, 0.7, planner)
    whole = plan.start(**settings)
    cut, last = (60, 100) if planner == "binary" else (180, 300)  # with that planner plans end
    counts = counts[:last]
    expected = rows(whole.push_many(counts[:cut])) + rows(whole.replan(NEW)) + rows(whole.push_many(counts[cut:]))
    for tick in np.random.default_rng(2).integers(0, cut, 6):
        answers = plan.start(**settings)
        found = rows(answers.push_many(counts[:tick]))
        answers = windows.load(answers.save())
        assert answers.tick == tick
        found += rows(answers.push_many(counts[tick:cut])) + rows(answers.replan(NEW))
        answers = windows.load(answers.save())
        middle = (cut + last) // 2
        found += rows(answers.push_many(counts[cut:middle]))
        answers = windows.load(answers.save())
        assert found + rows(answers.push_many(counts[middle:])) == expected
        assert str(answers.guarantee) == str(whole.guarantee)
        assert answers.save() == whole.save()


@pytest.mark.parametrize("planner", ["base", "binary", "sample-dp", "emd", "best"])
def test_a_saved_plan_is_the_same_plan(planner):
    plan = windows.plan([Query(15, 5, name="ä"), Query(20, 10), Query(350, 350)], 0.3, planner, horizon=100)
    again = windows.load(plan.save())
    assert again.explain() == plan.explain()
    assert (again.queries, again.budget, again.planner) == (plan.queries, plan.budget, plan.planner)
    counts = counts_of(90)
    assert rows(again.start(seed=1).push_many(counts)) == rows(plan.start(seed=1).push_many(counts))


def test_bytes_hold_raw_sums_only_while_slots_are_open():
    """The true count of a closed slot is nowhere in the bytes, that of an open one is; the noise hides the former."""
    answers = windows.plan([Query(4, 4)], epsilon=0.01).start(seed=11)
    answers.push_many([770_123_456, 0])
    secret = np.int64(770_123_456)

    def held(value):
        if isinstance(value, dict):
            return any(map(held, value.values()))
        return (
            held({str(i): item for i, item in enumerate(value)}) if isinstance(value, list) else np.any(value == secret)
        )

    assert answers.holds_raw
    assert held(unpack(answers.save()))
    answers.push_many([0, 0])
    assert not answers.holds_raw
    assert not held(unpack(answers.save()))


@pytest.mark.parametrize("where", range(0, 2_000, 97))
def test_damaged_bytes_are_refused_or_harmless(where):
    intact = windows.plan(OLD).start(seed=1).save()
    data = bytearray(intact)
    data[where % len(data)] ^= 255
    try:
        loaded = windows.load(bytes(data))
    except (StateError, InputError, BudgetExceeded):
        return
    assert loaded.save() == intact  # the damage hit a byte that carries nothing


@pytest.mark.parametrize("data", [b"", b"PK", b"no archive", pack({}), pack({"format": "eventide plan", "version": 9})])
def test_other_bytes_are_refused(data):
    with pytest.raises(StateError):
        windows.load(data)


def test_bytes_of_a_plan_that_overspends_are_refused():
    plan = windows.plan(OLD, planner="base")
    document = unpack(plan.save())
    document["plan"]["scheme"]["slots"]["budget"] += 5
    with pytest.raises(BudgetExceeded):
        windows.load(pack(document))
