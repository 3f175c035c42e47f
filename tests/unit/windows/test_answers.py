"""Plans at work: true sums without noise, the best linear answer from what was released, on time, charged exactly."""

import functools
import itertools

import numpy as np
import pytest
from pairwise import pairwise
from window_oracles import best_linear, random_plan, released_slots, rows, truth

from eventide import windows
from eventide.bench.study.workloads import general, special
from eventide.errors import BudgetExceeded
from eventide.privacy.amounts import NANO
from eventide.privacy.ledger import WindowLedger
from eventide.privacy.noise import Unit, Zero
from eventide.windows import Query
from eventide.windows.answering import estimates
from eventide.windows.answering.estimates import Fused
from eventide.windows.answering.timetable import Timetable

# name: queries, horizon, ticks
WORKLOADS = {
    "one query": ([Query(4, 2)], None, 23),
    "every tick": ([Query(60, 1), Query(7, 1), Query(1, 1)], None, 1_500),
    "whole window a step": ([Query(5, 5)], None, 40),
    "nested steps": ([Query(15, 5), Query(20, 10), Query(350, 350), Query(15, 5, name="again")], None, 1_800),
    "coprime steps": ([Query(6, 3), Query(8, 4), Query(21, 7)], None, 700),
    "windows over cycles": ([Query(100, 2), Query(99, 3)], None, 1_000),
    "special": (special(1, 30), None, 22_000),
    "general": (general(1, 40), 1_500, 1_500),
    "a horizon between windows": ([Query(6, 3), Query(8, 4), Query(15, 15)], 11, 11),
}
PLANNERS = ["base", "binary", "sample-dp", "emd", "best"]
CASES = [
    (planner, name)
    for planner, name in itertools.product(PLANNERS, WORKLOADS)
    if planner != "sample-dp" or name in ("one query", "every tick", "whole window a step", "nested steps", "special")
]


@functools.cache
def planned(name, planner="best", epsilon=1.0):
    queries, horizon, ticks = WORKLOADS[name]
    plan = windows.plan(queries, epsilon, planner, horizon)
    return plan, ticks if plan.scheme.periodic else min(ticks, max(plan.scheme.length, plan.workload.length))


def counts_of(ticks, seed=0, bins=None):
    return np.random.default_rng(seed).integers(0, 1_000, ticks if bins is None else (ticks, bins))


@pytest.mark.parametrize(("planner", "name"), CASES)
def test_without_noise_every_answer_is_the_true_sum_of_its_window(planner, name):
    plan, ticks = planned(name, planner)
    counts = counts_of(ticks)
    due = plan.start(noise=Zero()).push_many(counts)
    np.testing.assert_allclose(due.value, truth(counts, due), rtol=0, atol=1e-6)
    assert len(due) > 0


@pytest.mark.parametrize(("planner", "name"), CASES)
def test_every_window_that_ends_is_answered_once_for_each_query_in_order(planner, name):
    plan, ticks = planned(name, planner)
    due = plan.start(noise=Zero()).push_many(counts_of(ticks))
    queries, horizon, _ = WORKLOADS[name]
    if horizon:
        ticks = min(ticks, plan.workload.length)
    expected = [
        (begin + query.window, position, begin)
        for position, query in enumerate(queries)
        for begin in range(0, ticks - query.window + 1, query.step)
    ]
    if planner == "binary":  # it ends with the last window of the first cycle
        expected = [window for window in expected if window[2] < plan.workload.length]
    found = list(zip(due.end.tolist(), due.query.tolist(), due.begin.tolist(), strict=True))
    if planner == "binary":  # and may happen to have slots for some windows of the second
        found = [window for window in found if window[2] < plan.workload.length]
    assert found == sorted(expected)
    assert [answer.query for answer in due][:50] == [queries[i] for i in due.query[:50]]


@pytest.mark.parametrize(
    "name",
    [
        "nested steps",
        "general",
        *(pytest.param(long, marks=pytest.mark.slow) for long in ("coprime steps", "windows over cycles")),
    ],
)
@pytest.mark.parametrize(("parts", "sensitivity"), [(1, 1), (4, 3)])
def test_answers_are_the_best_linear_ones_on_time_and_refined(name, parts, sensitivity):
    plan, ticks = planned(name)
    ticks = min(ticks, 400)
    counts = counts_of(ticks)
    answers = plan.start(noise=Unit(), window=parts, sensitivity=sensitivity, refine=True)
    due = answers.push_many(counts)
    slots = released_slots(plan, counts, parts=parts, sensitivity=sensitivity)
    chosen = np.random.default_rng(1).permutation(len(due))[:60]
    assert {bool(due.refined[i]) for i in chosen} == {True, False}
    for answer in (due[i] for i in chosen):
        known = slots if answer.refined else slots[slots[:, 1] <= answer.end]
        value, variance = best_linear(known, answer.begin, answer.end)
        assert answer.value == pytest.approx(value, rel=1e-9)
        assert answer.variance == pytest.approx(variance, rel=1e-6)


@pytest.mark.parametrize("seed", range(15))
def test_estimates_of_any_nested_plan_are_the_best_linear_ones(seed):
    """Levels of any shape, some slots without a budget: every window, on time and refined, against the dense oracle."""
    random = np.random.default_rng(seed)
    plan = random_plan(random)
    timetable, counted = Timetable(plan, plan.length), random.normal(0, 10, 100)
    fused = Fused(timetable, 1, cells=1, reach=plan.length, start=0, refine=True)
    slots = []
    for level, lane in enumerate(timetable.lanes):
        values = counted[: len(lane.budget)] * (level + 1)
        fused.release(level, lane.nodes[:-1], values[:, None])
        noise = timetable.variance(1, 1)[level, lane.nodes[:-1]]
        slots.append(np.column_stack([lane.ticks[:-1], lane.ticks[1:], values, noise])[lane.budget > 0])
    slots = np.concatenate(slots)
    fused.close(timetable.count)
    begin, end = np.triu_indices(len(plan.nodes), 1)
    on_time, refined = fused.answer(begin, end, begin), fused.refined(begin, end)
    for i in random.permutation(len(begin))[:25]:
        window = plan.nodes[begin[i]], plan.nodes[end[i]]
        expected = best_linear(slots[slots[:, 1] <= window[1]], *window)
        assert (on_time[0][i, 0], on_time[1][i]) == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert (refined[0][i, 0], refined[1][i]) == pytest.approx(best_linear(slots, *window), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("planner", "name"), [(p, n) for p, n in CASES if p != "best"])
def test_variances_of_chains_are_the_plans(planner, name):
    """The plan's figure is that of continuous noise, a little above: at a small epsilon they agree."""
    plan, ticks = planned(name, planner, epsilon=0.001)
    due = plan.start(noise=Zero()).push_many(counts_of(ticks))
    step = np.array([query.step for query in plan.queries])[due.query]
    within = (due.begin < plan.workload.length) | plan.scheme.periodic
    expected = plan.scheme.variance(due.begin[within], due.end[within], step[within])
    np.testing.assert_allclose(due.variance[within], expected, rtol=1e-4)


def test_every_window_is_refined_once_when_its_last_slot_ends_and_no_worse():
    plan, ticks = planned("special")
    answers = plan.start(seed=1, refine=True)
    due = answers.push_many(counts_of(ticks))
    keys = list(zip(due.query.tolist(), due.begin.tolist(), due.end.tolist(), strict=True))
    on_time, refined = (
        {keys[i]: due.variance[i] for i in np.flatnonzero(due.refined == late)} for late in (False, True)
    )
    settled = ticks // plan.scheme.length * plan.scheme.length
    assert {window for window in on_time if window[2] <= settled} <= set(refined) <= set(on_time)
    ratios = [variance / on_time[window] for window, variance in refined.items()]
    assert max(ratios) <= 1 + 1e-9
    assert np.mean(ratios) < 0.95
    assert len(refined) == due.refined.sum()


PUSHED = pairwise(
    {
        "name": ["every tick", "nested steps", "coprime steps", "general"],
        "planner": ["base", "emd", "best"],
        "settings": ["plain", "wide", "window"],
    },
    fits=lambda case: True,
)
SETTINGS = {"plain": {}, "wide": {"bins": 2, "replicas": 3}, "window": {"window": 5}}


@pytest.mark.parametrize("case", PUSHED, ids=lambda case: ", ".join(case.values()))
def test_pushing_many_ticks_is_pushing_each(case, monkeypatch):
    name, planner, settings = case["name"], case["planner"], SETTINGS[case["settings"]]
    monkeypatch.setattr(estimates, "SHORTEST_BLOCK", 16)  # so that several blocks are met
    plan, ticks = planned(name, planner)
    ticks = min(ticks, 200)
    counts = counts_of(ticks, bins=settings.get("bins"))
    settings = settings | {"refine": planner == "best"}
    together = plan.start(seed=5, **settings).push_many(counts)
    each = plan.start(seed=5, **settings)
    assert rows(together) == rows(itertools.chain.from_iterable(each.push(count) for count in counts))
    pieces, cuts = plan.start(seed=5, **settings), np.sort(np.random.default_rng(2).integers(0, ticks + 1, 7))
    found = [pieces.push_many(part) for part in np.split(counts, cuts)]
    assert rows(together) == rows(itertools.chain.from_iterable(found))
    assert len(together)


@pytest.mark.parametrize("planner", ["base", "emd", "best"])
@pytest.mark.parametrize("name", ["nested steps", "general"])
def test_a_tick_to_come_changes_no_answer_already_due(planner, name):
    plan, ticks = planned(name, planner)
    counts = counts_of(ticks)
    refine = planner == "best"
    before = plan.start(seed=3, refine=refine).push_many(counts)
    for changed in np.random.default_rng(4).integers(0, ticks, 5):
        other = counts.copy()
        other[changed] += 10_000
        after = plan.start(seed=3, refine=refine).push_many(other)
        early = before.end <= changed
        np.testing.assert_array_equal(before.value[early & ~before.refined], after.value[early & ~after.refined])
        touched = (before.begin <= changed) & (changed < before.end) & ~before.refined
        assert (after.value[touched] > before.value[touched]).all()


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("window", [1, 7])
def test_every_tick_is_charged_what_the_slots_over_it_cost(planner, window, monkeypatch):
    charged, charge_each = [], WindowLedger.charge_each
    monkeypatch.setattr(
        WindowLedger, "charge_each", lambda ledger, amounts: charged.extend(amounts) or charge_each(ledger, amounts)
    )
    plan, ticks = planned("nested steps", planner, epsilon=0.3)
    answers = plan.start(seed=1, window=window)
    answers.push_many(counts_of(ticks))
    slots, ticks = plan.scheme.divided(window).slots, np.arange(ticks)[:, None] % plan.scheme.length
    over = (slots.begin <= ticks) & (ticks < slots.end)
    assert charged == (over @ slots.budget).tolist()
    assert max(charged) <= plan.budget // window
    assert answers.ledger.worst_window() == pytest.approx(max(np.convolve(charged, np.ones(window))) / NANO)
    assert answers.ledger.worst_window() <= 0.3


def test_a_plan_that_costs_too_much_is_refused_by_the_ledger():
    plan = windows.plan([Query(15, 5), Query(20, 10)], planner="base")
    plan.scheme.slots.budget[:] += 2
    answers = plan.start(noise=Zero())
    with pytest.raises(BudgetExceeded):
        answers.push_many([1, 2])
    assert answers.tick == 0


@pytest.mark.parametrize("window", [1, 10])
@pytest.mark.parametrize("sensitivity", [1, 4])
def test_noise_grows_with_window_and_sensitivity(window, sensitivity):
    plan = windows.plan([Query(1, 1)], epsilon=0.5)
    due = plan.start(noise=Unit(), window=window, sensitivity=sensitivity).push_many(np.zeros(3, dtype=int))
    scale = window * sensitivity / 0.5
    q = np.exp(-1 / scale)
    assert due.value == pytest.approx([scale] * 3)
    assert due.variance == pytest.approx([2 * q / (1 - q) ** 2] * 3)


@pytest.mark.parametrize("epsilon", [1e-6, 1, 50, 1e6])
def test_any_epsilon_gives_finite_answers(epsilon):
    plan = windows.plan(special(2, 20), epsilon)
    due = plan.start(seed=2, refine=True).push_many(counts_of(11_000))
    assert np.isfinite(due.value).all()
    assert (due.variance > 0).all()
    assert np.isfinite(due.variance).all()
    if epsilon == 1e6:
        np.testing.assert_allclose(due.value, truth(counts_of(11_000), due), atol=1e-3)


def test_shapes_of_values():
    plan = windows.plan([Query(2, 1)])
    single, bins, both = (plan.start(noise=Zero(), **s) for s in ({}, {"bins": 3}, {"bins": ["a", "b"], "replicas": 4}))
    assert [answer.value for answer in single.push(1) + single.push(2)] == [3.0]
    assert bins.push_many([[1, 2, 3], [1, 1, 1]]).value.tolist() == [[2, 3, 4]]
    assert both.push_many([[1, 2], [3, 4], [0, 0]]).value.shape == (2, 4, 2)
    assert both.bins == ("a", "b")
    copies = plan.start(replicas=5, noise=Zero())
    assert copies.push_many([1, 1]).value.tolist() == [[2.0] * 5]
    assert len(copies.push_many([])) == 0


def test_bins_and_replicas_have_noise_of_their_own():
    plan = windows.plan([Query(4, 2)], epsilon=0.1)
    value = plan.start(seed=1, bins=50, replicas=2).push_many(np.zeros((4, 50), dtype=int)).value
    assert len(np.unique(np.round(value, 9))) > 40


@pytest.mark.parametrize("name", ["every tick", "special", "windows over cycles"])
@pytest.mark.parametrize("planner", ["base", "best"])
def test_memory_stays_bounded_on_an_endless_stream(name, planner):
    plan, _ = planned(name, planner)
    answers = plan.start(seed=1, refine=planner == "best")
    sizes = []
    for _ in range(4):
        answers.push_many(counts_of(30_000))
        held = [answers.ledger.snapshot(), answers.snapshot()]
        arrays = [value for part in held for value in walk(part) if isinstance(value, np.ndarray)]
        sizes.append(sum(array.nbytes for array in arrays))
    assert max(sizes) < 1.05 * sizes[0]


def walk(value):
    if isinstance(value, dict):
        for inner in value.values():
            yield from walk(inner)
    else:
        yield value


def test_answers_do_not_drift_on_a_long_stream():
    plan = windows.plan([Query(60, 1), Query(5, 5)])
    answers = plan.start(noise=Zero())
    for _ in range(5):
        due = answers.push_many(np.full(200_000, 2**40 + 1))  # all of them together are beyond what a float can tell
    np.testing.assert_array_equal(due.value, (due.end - due.begin) * (2.0**40 + 1))
    assert due.end[-1] == 1_000_000
