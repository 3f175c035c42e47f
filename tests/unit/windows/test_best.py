"""The planner `best`: figures it must reach, and what it must never do worse."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.bench.study.workloads import general, special
from eventide.privacy.amounts import NANO
from eventide.windows.planners import best, emd, sample_dp
from eventide.windows.planners import every_step as base
from eventide.windows.schemes.cover import Cover
from eventide.windows.schemes.nested import Level, Nested
from eventide.windows.schemes.scheme import noise_variance, workload_error
from eventide.windows.workload import Query, Workload

EXAMPLE = [Query(15, 5), Query(20, 10), Query(350, 350)]
FAR_STEPS = [Query(2400, 2400)] * 20 + [Query(36, 4)]
FIGURE = [Query(6, 3), Query(9, 3), Query(8, 4), Query(12, 6)]

SPECIAL = [13609, 12777, 12127, 13420, 11396]
GENERAL = [7081, 8093, 6678, 8677, 8156]
FIGURES = [
    *((special(seed), None, total) for seed, total in enumerate(SPECIAL)),
    *((general(seed), 5_000, total) for seed, total in enumerate(GENERAL)),
    (EXAMPLE, None, 48.5),
    (FAR_STEPS, None, 220.83),
    (FIGURE, None, 35),
]


@pytest.mark.parametrize(("queries", "horizon", "total"), FIGURES)
def test_the_dynamic_program_reaches_its_figures_and_refinement_only_lowers_them(queries, horizon, total):
    workload = Workload.of(queries, horizon)
    grown = best.grown(workload)
    error = workload_error(workload, grown)
    assert error == pytest.approx(total, rel=1e-3)
    assert all(budget.any() for budget in best.refined(workload, grown).budgets)
    assert 0.97 * error < workload_error(workload, best.design(workload, NANO)) <= error


def ratios(workloads, *planners):
    ours = np.array([workload_error(w, best.design(w, NANO)) for w in workloads])
    return [ours / [workload_error(w, planner.design(w, NANO)) for w in workloads] for planner in planners]


def test_targets_on_special_workloads():
    to_emd, to_dp = ratios([Workload.of(special(seed)) for seed in range(10)], emd, sample_dp)
    assert to_emd.mean() <= 0.58
    assert to_emd.max() <= 0.76
    assert to_dp.mean() <= 0.52


def test_targets_on_general_workloads():
    (to_emd,) = ratios([Workload.of(general(seed), 5_000) for seed in range(10)], emd)
    assert to_emd.mean() <= 0.67
    assert to_emd.max() <= 0.76


def test_budgets_on_given_steps_are_as_good_as_a_search_over_them():
    """Seed 0 on the steps 20, 320 and 5120: 13581 with .359 / .314 / .327, the best budgets per level."""
    workload = Workload.of(special(0))
    plan = best.nested_steps(workload, {320: 0.314 / (0.314 + 0.359), 5120: 0.327})
    assert workload_error(workload, plan) == pytest.approx(13581, rel=1e-4)
    plan = best.refined(workload, best.nested_steps(workload, {320: 1 / 2, 5120: 1 / 3}))
    assert workload_error(workload, plan) <= 13581


@st.composite
def workloads(draw):
    """One to four steps, coprime or not, skewed multiplicities, a horizon that may be too short for some windows."""
    steps = draw(st.lists(st.integers(1, 30), min_size=1, max_size=4, unique=True))
    queries = []
    for _ in range(draw(st.integers(1, 6))):
        step = draw(st.sampled_from(steps))
        queries += [Query(step * draw(st.integers(1, 12)), step)] * draw(st.sampled_from([1, 1, 2, 50]))
    shortest = min(query.window for query in queries)
    cycle = math.lcm(*(query.step for query in queries))
    if cycle > 2_000 or (shortest <= cycle and draw(st.booleans())):
        return Workload.of(queries, shortest + draw(st.integers(0, 500)))
    return Workload.of(queries)


@given(workloads(), st.sampled_from([1_000, 123_456_789, NANO, 10**15]))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_never_worse_than_published_planners_and_never_over_budget(workload, budget):
    plan = best.design(workload, budget)
    error = workload_error(workload, plan)
    planners = [base, emd, sample_dp] if sample_dp.is_nested(workload.steps.sizes) else [base, emd]
    for planner in planners:
        other = planner.design(workload, budget)
        assert error <= workload_error(workload, other) * (1 + 1e-9)
        assert other.slots.largest_sum() <= budget
    assert plan.slots.largest_sum() <= budget
    variance = plan.variance(workload.begin, workload.end, workload.step[workload.owner])
    assert variance.min() >= noise_variance(np.array(budget)) * (1 - 1e-9)  # no answer beats a release of its own


def test_two_coprime_steps_need_one_level_only():
    workload = Workload.of([Query(7, 7), Query(9, 9)])
    assert workload_error(workload, best.design(workload, NANO)) == pytest.approx(
        workload_error(workload, emd.design(workload, NANO))
    )


@pytest.mark.parametrize("seed", range(6))
def test_the_new_level_is_the_best_of_all_partitions_and_fractions(seed, monkeypatch):
    """By brute force, on a plan of one level and on one of two, where a new slot may also stand on a single old one."""
    fractions = np.array([0.3, 0.6])
    monkeypatch.setattr(best, "FRACTIONS", fractions)
    random = np.random.default_rng(seed)
    queries = [Query(int(w), 1) for w in random.choice(np.arange(2, 6), 2, replace=False)]
    workload = Workload.of([*queries, Query(1, 1), Query(6, 6)], horizon=6)
    begin, end, weight = workload.pieces
    atoms = best.nested_steps(workload, {})
    middle = Level(np.array([0, 1, 3, 6]), np.array([0.0, 0.4, 0.5]))
    for plan in (atoms, Nested(atoms.nodes, [*atoms.levels, middle], NANO, periodic=False)):
        bounds = plan.levels[-1].bounds
        errors = []
        for size in range(len(bounds) - 1):
            for inside in combinations(bounds[1:-1], size):
                cut = np.array([0, *inside, bounds[-1]])
                for choice in product([0.0, *fractions], repeat=len(cut) - 1):
                    higher = Nested(plan.nodes, [*plan.levels, Level(cut, np.array(choice))], NANO, periodic=False)
                    errors.append(weight @ higher.view(begin, end).variance)
        error, found = best.with_level(workload, plan, plan.view(begin, end))
        assert weight @ found.view(begin, end).variance == pytest.approx(min(errors), rel=1e-7)
        assert error == pytest.approx(min(errors), rel=1e-7)


@pytest.mark.parametrize("queries", [special(0), special(1), FAR_STEPS])
def test_the_program_knows_the_error_of_the_level_it_adds(queries):
    """Level after level, on scaffolds too, so that begins and ends deep inside slots of every level are met."""
    workload = Workload.of(queries)
    begin, end, weight = workload.pieces
    for start in ({}, {2400: 0.0}, {320: 0.3, 2560: 0.0}):
        plan = best.nested_steps(workload, start)
        for _ in range(3):
            error, plan = best.with_level(workload, plan, plan.view(begin, end))
            assert weight @ plan.view(begin, end).variance == pytest.approx(error, rel=1e-7)


def test_damping_gives_the_first_level_less():
    workload = Workload.of(special(0))
    begin, end, _ = workload.pieces
    atoms = best.nested_steps(workload, {})
    full, damped = (best.with_level(workload, atoms, atoms.view(begin, end), damping)[1] for damping in (1.0, 0.03))
    assert full.budgets[1].mean() > damped.budgets[1].mean()


def test_layers_that_are_not_nested_win_where_they_are_better():
    """4 and 33 share no boundary: two layers with budgets of their own beat cutting one at the other's boundaries."""
    workload = Workload.of([Query(4, 4), Query(66, 33), Query(330, 33)])
    plan = best.design(workload, NANO)
    nested = best.refined(workload, best.grown(workload))
    assert isinstance(plan, Cover)
    assert workload_error(workload, plan) < 0.995 * workload_error(workload, nested)
